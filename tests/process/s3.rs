//! An S3 server in the test's own process: real HTTP on a port of its own, checked signatures, objects in memory,
//! atomic creates, and faults when a test requests them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, SystemTime};

use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, ETag, GetObjectInput, GetObjectOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput, PutObjectOutput,
    StreamingBlob, Timestamp,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};

use super::site::SOON;

/// The only bucket.
pub const BUCKET: &str = "feed";
const ACCESS_KEY: &str = "AKIDEXAMPLE";
/// The access keys of callers that can get faults of their own. All have the same secret.
pub const CALLERS: [&str; 4] = words!["AKIDPUBLISHER" "AKIDREPLICA0" "AKIDREPLICA1" "AKIDREPLICA2"];
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// The names per page of a list: few, so that lists have several pages.
const PAGE: usize = 3;

/// The time for which a racing store waits for another create of the same name.
const RACE: Duration = Duration::from_millis(200);

/// A fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is refused with this status before anything is done.
    Status(u16),
    /// The request is refused with a status and a code of S3, such as `RequestTimeTooSkewed`.
    Code(u16, &'static str),
    /// The request is done, and the connection is closed without an answer.
    LostAnswer,
    /// The connection is closed after half of the answer's body.
    HalfBody,
    /// The request is done, and the answer is held back until [`S3::release`].
    Held,
    /// The request is held back, and done only after [`S3::release`]. If the caller has left by then, it is never done.
    Waiting,
}

/// A running server. Dropping it ends the server.
pub struct S3 {
    /// The URL of the bucket, without a prefix.
    pub url: String,
    port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, Stored>>,
    faults: Mutex<Vec<Planned>>,
    requests: Mutex<Vec<String>>,
    ignores_conditions: AtomicBool,
    races: AtomicBool,
    /// The number of creates that found their name free, and have not written yet.
    racers: AtomicUsize,
    second_racer: Notify,
    /// The requests that are held back.
    held: Mutex<Vec<String>>,
    /// The number of requests that were held back and released.
    let_go: AtomicUsize,
    held_changed: Condvar,
    released: Notify,
}

/// Holds a request back until it is dropped.
struct Hold<'a>(&'a Shared, String);

impl<'a> Hold<'a> {
    fn new(shared: &'a Shared, request: String) -> Hold<'a> {
        shared.held.lock().unwrap().push(request.clone());
        shared.held_changed.notify_all();
        Hold(shared, request)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap();
        let at = held
            .iter()
            .position(|request| *request == self.1)
            .expect("it was held");
        held.remove(at);
        self.0.let_go.fetch_add(1, Ordering::SeqCst);
        self.0.held_changed.notify_all();
    }
}

#[derive(Clone)]
struct Stored {
    bytes: Bytes,
    modified: SystemTime,
}

/// A fault for the next requests of a method to names that contain a text.
struct Planned {
    /// The access key of the only affected caller.
    caller: Option<&'static str>,
    /// `None` for any.
    method: Option<Method>,
    name: String,
    fault: Fault,
    /// The number of requests that pass before.
    skip: usize,
    times: usize,
}

impl Planned {
    fn is_for(&self, method: &Method, target: &str, authorization: &str) -> bool {
        self.times > 0
            && self
                .method
                .as_ref()
                .is_none_or(|expected| expected == method)
            && target.contains(&self.name)
            && self
                .caller
                .is_none_or(|caller| authorization.contains(caller))
    }
}

impl S3 {
    /// Starts a server on 127.0.0.1 and a free port.
    pub fn start() -> S3 {
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let (tell_port, port) = std::sync::mpsc::channel();
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                    tell_port
                        .send(listener.local_addr().unwrap().port())
                        .unwrap();
                    tokio::select! {
                        () = accept(listener, shared) => {}
                        _ = stopped => {}
                    }
                });
            }
        });
        let port = port.recv().unwrap();
        S3 {
            url: format!("s3://{BUCKET}"),
            port,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Another server with the same objects.
    pub fn fork(&self) -> S3 {
        let fork = S3::start();
        fork.shared
            .objects
            .lock()
            .unwrap()
            .clone_from(&self.shared.objects.lock().unwrap());
        fork
    }

    /// The variables with which a program reaches it.
    pub fn environment(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Adds a fault to the next requests of a method (`GET` for lists too) to names that contain a text.
    pub fn fail(&self, method: &str, name: &str, fault: Fault, times: usize) {
        let (method, name) = (Some(method.parse().unwrap()), name.to_owned());
        self.plan(Planned {
            caller: None,
            method,
            name,
            fault,
            skip: 0,
            times,
        });
    }

    /// Adds a fault to one request of a caller, recognized by its access key, after `skip` others. An empty method
    /// matches any method, and an empty name any name.
    pub fn fail_for(
        &self,
        caller: &'static str,
        method: &str,
        name: &str,
        fault: Fault,
        skip: usize,
    ) {
        let method = (!method.is_empty()).then(|| method.parse().unwrap());
        self.plan(Planned {
            caller: Some(caller),
            method,
            name: name.to_owned(),
            fault,
            skip,
            times: 1,
        });
    }

    fn plan(&self, planned: Planned) {
        self.shared.faults.lock().unwrap().push(planned);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.faults.lock().unwrap().clear();
    }

    /// Ignores the conditions of puts from now on.
    pub fn ignore_conditions(&self) {
        self.shared.ignores_conditions.store(true, Ordering::SeqCst);
    }

    /// Checks a condition and writes the object in two steps from now on.
    pub fn race(&self) {
        self.shared.races.store(true, Ordering::SeqCst);
    }

    /// Waits until a request is held back. Returns it.
    pub fn wait_for_held(&self) -> String {
        self.held_within(SOON).expect("a request is held back")
    }

    /// The request that is held back, if there is one within the time.
    pub fn held_within(&self, time: Duration) -> Option<String> {
        let held = self.shared.held.lock().unwrap();
        self.shared
            .held_changed
            .wait_timeout_while(held, time, |held| held.is_empty())
            .unwrap()
            .0
            .first()
            .cloned()
    }

    /// Waits until no request is held back, because its caller has left.
    pub fn wait_for_none_held(&self) {
        self.wait_for_none_held_within(SOON);
    }

    /// Waits until no request is held back, with a time limit.
    pub fn wait_for_none_held_within(&self, time: Duration) {
        let held = self.shared.held.lock().unwrap();
        let held = self
            .shared
            .held_changed
            .wait_timeout_while(held, time, |held| !held.is_empty())
            .unwrap()
            .0;
        assert!(held.is_empty(), "{held:?}");
    }

    /// Releases the request that is held back, or the next one.
    pub fn release(&self) {
        let held = self.shared.held.lock().unwrap();
        let before = self.shared.let_go.load(Ordering::SeqCst);
        self.shared.released.notify_one();
        if !held.is_empty() {
            // Otherwise a caller that waits for the next request could find this one.
            let is_held = |_: &mut Vec<String>| self.shared.let_go.load(Ordering::SeqCst) == before;
            let waited = self
                .shared
                .held_changed
                .wait_timeout_while(held, SOON, is_held)
                .unwrap();
            assert!(!waited.1.timed_out(), "a request is held back for ever");
        }
    }

    /// The requests so far, such as `PUT feed/log/00000000000000000001`; a list is `GET feed?prefix=...`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The names of the objects.
    pub fn names(&self) -> Vec<String> {
        self.shared
            .objects
            .lock()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    /// The bytes of an object.
    pub fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.shared
            .objects
            .lock()
            .unwrap()
            .get(name)
            .map(|stored| stored.bytes.to_vec())
    }

    /// Dates all objects as if they were written earlier by this duration.
    pub fn age(&self, by: Duration) {
        self.shared
            .objects
            .lock()
            .unwrap()
            .values_mut()
            .for_each(|stored| stored.modified -= by);
    }

    /// Stores an object, without faults; `None` removes it.
    pub fn set_object(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut objects = self.shared.objects.lock().unwrap();
        match bytes {
            Some(bytes) => drop(objects.insert(name.to_owned(), Stored::now(bytes.into()))),
            None => drop(objects.remove(name)),
        }
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Stored {
    #[allow(
        clippy::disallowed_methods,
        reason = "the store's clock is not the program's"
    )]
    fn now(bytes: Bytes) -> Stored {
        Stored {
            bytes,
            modified: SystemTime::now(),
        }
    }

    fn etag(&self) -> ETag {
        ETag::Strong(blake3::hash(&self.bytes).to_hex()[..32].to_owned())
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut builder = S3ServiceBuilder::new(Store(Arc::clone(&shared)));
    let mut auth = SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY);
    for caller in CALLERS {
        auth.register(caller.to_owned(), SECRET_KEY.into());
    }
    builder.set_auth(auth);
    let service = builder.build();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        let answer =
            service_fn(move |request| answer(service.clone(), Arc::clone(&shared), request));
        tokio::spawn(async move {
            // Faults end connections with errors.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), answer)
                .await;
        });
    }
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("a fault that the test asked for")]
struct Closed;

async fn answer(
    service: S3Service,
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let target = request
        .uri()
        .path_and_query()
        .unwrap()
        .as_str()
        .trim_start_matches('/')
        .to_owned();
    let authorization = request.headers().get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let fault = shared.next_fault(request.method(), &target, authorization.unwrap_or_default());
    let told = format!("{} {target}", request.method());
    shared.requests.lock().unwrap().push(told.clone());
    let refused = |status: u16, code: &str| {
        let body =
            format!("<Error><Code>{code}</Code><Message>as the test asked</Message></Error>");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    };
    let refusal = match fault {
        Some(Fault::Status(status)) => Some((status, "Injected")),
        Some(Fault::Code(status, code)) => Some((status, code)),
        _ => None,
    };
    if let Some((status, code)) = refusal {
        // A request whose body is not read ends its connection. Then the client would send it again, as if it were
        // lost.
        let _ = request.into_body().collect().await;
        return Ok(refused(status, code));
    }
    let request = match fault {
        Some(Fault::Waiting) => {
            // The server notices only callers that leave after they have sent everything.
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.map_err(|_| Closed)?.to_bytes();
            let _hold = Hold::new(&shared, told.clone());
            shared.released.notified().await;
            Request::from_parts(parts, Body::from(bytes))
        }
        _ => request.map(Body::from),
    };
    let response = service.call(request).await.map_err(|_| Closed)?;
    match fault {
        Some(Fault::LostAnswer) => Err(Closed),
        Some(Fault::HalfBody) => {
            let (mut parts, body) = response.into_parts();
            let bytes = body.collect().await.map_err(|_| Closed)?.to_bytes();
            parts.headers.insert(CONTENT_LENGTH, bytes.len().into());
            let half = Half(Some(bytes.slice(..bytes.len() / 2)));
            Ok(Response::from_parts(parts, Body::http_body(half)))
        }
        Some(Fault::Held) => {
            let _hold = Hold::new(&shared, told);
            shared.released.notified().await;
            Ok(response)
        }
        _ => Ok(response),
    }
}

impl Shared {
    fn next_fault(&self, method: &Method, target: &str, authorization: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        for planned in faults
            .iter_mut()
            .filter(|planned| planned.is_for(method, target, authorization))
        {
            if planned.skip == 0 {
                planned.times -= 1;
                return Some(planned.fault);
            }
            // A fault that lets a request pass leaves it to the other faults.
            planned.skip -= 1;
        }
        None
    }
}

/// A body that ends with an error.
struct Half(Option<Bytes>);

impl HttpBody for Half {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        Poll::Ready(Some(self.0.take().map(Frame::data).ok_or(Closed)))
    }
}

/// The objects, as S3 serves them.
struct Store(Arc<Shared>);

type Answer<'a, T> = Pin<Box<dyn Future<Output = S3Result<S3Response<T>>> + Send + 'a>>;

fn check_bucket(bucket: &str) -> S3Result<()> {
    if bucket == BUCKET {
        Ok(())
    } else {
        Err(s3_error!(
            NoSuchBucket,
            "The specified bucket does not exist"
        ))
    }
}

fn blob(bytes: Bytes) -> StreamingBlob {
    StreamingBlob::from(Body::from(bytes))
}

impl Store {
    async fn get(&self, input: GetObjectInput) -> S3Result<S3Response<GetObjectOutput>> {
        check_bucket(&input.bucket)?;
        let stored = self.0.objects.lock().unwrap().get(&input.key).cloned();
        let stored =
            stored.ok_or_else(|| s3_error!(NoSuchKey, "The specified key does not exist."))?;
        let size = stored.bytes.len();
        let range = input
            .range
            .map(|range| range.check(size as u64))
            .transpose()?;
        let bytes = range.clone().map_or(stored.bytes.clone(), |range| {
            stored
                .bytes
                .slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap())
        });
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(i64::try_from(bytes.len()).unwrap()),
            content_range: range
                .map(|range| format!("bytes {}-{}/{size}", range.start, range.end - 1)),
            body: Some(blob(bytes)),
            e_tag: Some(stored.etag()),
            last_modified: Some(Timestamp::from(stored.modified)),
            ..GetObjectOutput::default()
        }))
    }

    async fn put(&self, input: PutObjectInput) -> S3Result<S3Response<PutObjectOutput>> {
        check_bucket(&input.bucket)?;
        let taken = || {
            s3_error!(
                PreconditionFailed,
                "At least one of the pre-conditions you specified did not hold"
            )
        };
        let body = input.body.map(Body::from).unwrap_or_default();
        let bytes = body.collect().await;
        let bytes = bytes.map_err(|_| s3_error!(IncompleteBody))?.to_bytes();
        let creates =
            input.if_none_match.is_some() && !self.0.ignores_conditions.load(Ordering::SeqCst);
        let races = creates && self.0.races.load(Ordering::SeqCst);
        if races {
            if self.0.objects.lock().unwrap().contains_key(&input.key) {
                return Err(taken());
            }
            if self.0.racers.fetch_add(1, Ordering::SeqCst) == 0 {
                let _ = tokio::time::timeout(RACE, self.0.second_racer.notified()).await;
            } else {
                self.0.second_racer.notify_waiters();
            }
            self.0.racers.fetch_sub(1, Ordering::SeqCst);
        }
        let stored = Stored::now(bytes);
        let etag = stored.etag();
        let mut objects = self.0.objects.lock().unwrap();
        if creates && !races && objects.contains_key(&input.key) {
            return Err(taken());
        }
        objects.insert(input.key, stored);
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(etag),
            ..PutObjectOutput::default()
        }))
    }

    async fn list(&self, input: ListObjectsV2Input) -> S3Result<S3Response<ListObjectsV2Output>> {
        check_bucket(&input.bucket)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        let after = input
            .continuation_token
            .clone()
            .or(input.start_after.clone())
            .unwrap_or_default();
        let objects = self.0.objects.lock().unwrap();
        let mut found = objects
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let contents: Vec<Object> = (&mut found)
            .take(PAGE)
            .map(|(key, stored)| Object {
                key: Some(key.clone()),
                size: Some(i64::try_from(stored.bytes.len()).unwrap()),
                last_modified: Some(Timestamp::from(stored.modified)),
                e_tag: Some(stored.etag()),
                ..Object::default()
            })
            .collect();
        let is_truncated = found.next().is_some();
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(prefix),
            key_count: Some(i32::try_from(contents.len()).unwrap()),
            is_truncated: Some(is_truncated),
            next_continuation_token: contents
                .last()
                .filter(|_| is_truncated)
                .and_then(|last| last.key.clone()),
            contents: Some(contents),
            ..ListObjectsV2Output::default()
        }))
    }

    async fn delete(&self, input: DeleteObjectInput) -> S3Result<S3Response<DeleteObjectOutput>> {
        check_bucket(&input.bucket)?;
        self.0.objects.lock().unwrap().remove(&input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }
}

/// Implements operations. The methods have the form to which the trait's attribute expands.
macro_rules! operations {
    ($($operation:ident: $method:ident($input:ty) -> $output:ty;)*) => {
        impl s3s::S3 for Store {$(
            fn $operation<'life0, 'async_trait>(
                &'life0 self,
                request: S3Request<$input>,
            ) -> Answer<'async_trait, $output>
            where
                'life0: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(self.$method(request.input))
            }
        )*}
    };
}
operations! {
    get_object: get(GetObjectInput) -> GetObjectOutput;
    put_object: put(PutObjectInput) -> PutObjectOutput;
    list_objects_v2: list(ListObjectsV2Input) -> ListObjectsV2Output;
    delete_object: delete(DeleteObjectInput) -> DeleteObjectOutput;
}
