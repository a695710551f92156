//! A service that a test scripts: a function answers each request. And a copy in memory that records the calls.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use medfeed::model::Dataset;
use medfeed::model::time::now;
use medfeed::pull::body::ReadLimits;
use medfeed::pull::export::{ContentDigest, Export, FeedPage, Hasher};
use medfeed::pull::target::Position;
use medfeed::pull::{Events, PullClient, PullError, PullTarget};
use sha2::{Digest as _, Sha256};

/// A response of a [`Scripted`] service.
#[derive(Clone)]
pub struct Reply {
    /// 0 if the connection ends without a response.
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The connection ends after this number of bytes of the body.
    cut: Option<usize>,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: body.into(),
            cut: None,
        }
    }

    /// A page of a feed; `entries` are separated by commas.
    pub fn page(entries: &str, has_more: bool, token: &str) -> Reply {
        Reply::new(
            200,
            format!(
                "{{\"data\":[{entries}],\"has_more\":{has_more},\"next_sync_token\":\"{token}\"}}"
            ),
        )
    }

    /// An export of these lines.
    pub fn export(token: &str, lines: &[&str]) -> Reply {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let digest = format!("sha-256=:{}:", BASE64.encode(&Sha256::digest(&text)));
        Reply::new(200, gzip.finish().unwrap())
            .with("x-sync-token", token)
            .with("x-record-count", &lines.len().to_string())
            .with("x-records-digest", &digest)
    }

    /// An error with a code of the contract.
    pub fn problem(status: u16, code: &str) -> Reply {
        Reply::new(
            status,
            format!("{{\"type\":\"https://docs.example/errors/{code}\",\"detail\":\"No.\"}}"),
        )
    }

    /// The redirect of a request to the same path of another server.
    pub fn redirect(status: u16, server: &str, asked: &Asked) -> Reply {
        Reply::new(status, "").with("location", &format!("{server}{}", asked.target()))
    }

    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Reply {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// The value of a header, which must exist.
    pub fn header(&self, name: &str) -> &str {
        &self
            .headers
            .iter()
            .find(|(other, _)| other == name)
            .expect("the header")
            .1
    }

    pub fn cut_after(mut self, bytes: usize) -> Reply {
        self.cut = Some(bytes);
        self
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// A request: its method and target, and its headers.
#[derive(Clone, Debug)]
pub struct Asked {
    pub line: String,
    headers: BTreeMap<String, String>,
}

impl Asked {
    pub fn target(&self) -> &str {
        self.line.split_once(' ').expect("a method and a target").1
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A service whose responses come from a function. It records the requests.
pub struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// `answer` takes a request and the number of those before it.
    pub fn new(answer: impl FnMut(&Asked, usize) -> Reply + Send + 'static) -> Scripted {
        Scripted::at("127.0.0.1", answer)
    }

    /// A service at another address of this machine.
    pub fn at(
        host: &str,
        mut answer: impl FnMut(&Asked, usize) -> Reply + Send + 'static,
    ) -> Scripted {
        Scripted::raw(host, move |asked, before, stream| {
            let reply = answer(asked, before);
            if reply.status == 0 {
                return Ok(());
            }
            let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", reply.status);
            head.extend(
                reply
                    .headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n")),
            );
            head += &format!("content-length: {}\r\n\r\n", reply.body.len());
            let sent = if asked.line.starts_with("HEAD") {
                0
            } else {
                reply.cut.unwrap_or(reply.body.len())
            };
            stream.write_all(head.as_bytes())?;
            stream.write_all(&reply.body[..sent])
        })
    }

    /// `answer` writes the bytes of a response.
    pub fn raw(
        host: &str,
        mut answer: impl FnMut(&Asked, usize, &mut TcpStream) -> std::io::Result<()> + Send + 'static,
    ) -> Scripted {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let scripted = Scripted {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let noted = Arc::clone(&scripted.asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let Some(asked) = read(&mut reader) else {
                    continue;
                };
                let before = noted.lock().unwrap().len();
                noted.lock().unwrap().push(asked.clone());
                // A caller may leave before the end.
                let _ = answer(&asked, before, reader.get_mut());
            }
        });
        scripted
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn client(&self) -> PullClient {
        self.client_with(ReadLimits::default())
    }

    pub fn client_with(&self, limits: ReadLimits) -> PullClient {
        PullClient::new(self.url().parse().unwrap(), "k", None, limits).unwrap()
    }

    /// The requests since the last call.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The requests since the last call, each as method and target without `/v1/`.
    pub fn lines(&self) -> Vec<String> {
        self.take()
            .iter()
            .map(|asked| asked.line.replacen("/v1/", "", 1))
            .collect()
    }
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end_matches("\r\n").split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some(Asked { line, headers })
}

/// Stores the messages of a pull.
#[derive(Default)]
pub struct Notes(pub RefCell<Vec<String>>);

impl Events for Notes {
    fn note(&self, text: &str) {
        self.0.borrow_mut().push(text.to_owned());
    }
}

/// A copy in memory.
#[derive(Default)]
pub struct MemoryCopy {
    pub datasets: BTreeMap<&'static str, MemoryDataset>,
    /// The actions, such as `load conferences t1`.
    pub done: Vec<String>,
    /// The number of calls of `check_location` that succeed; `None` for all.
    pub checks_left: RefCell<Option<u32>>,
    /// Whether another program changes each loaded copy.
    pub spoils_loads: bool,
    /// The fault of derived tables, until the next load.
    pub fault: Option<String>,
    /// The number of pages that fail with a temporary error before one is applied.
    pub failing_pages: u32,
}

/// A dataset of a [`MemoryCopy`].
#[derive(Clone, Default)]
pub struct MemoryDataset {
    pub token: String,
    pub records: BTreeMap<i64, String>,
    /// A number that makes the count wrong.
    pub miscount: u64,
    pub verified_at: i64,
}

impl MemoryCopy {
    /// A copy of one dataset that holds these records.
    pub fn of(dataset: Dataset, token: &str, ids: &[i64], verified_at: i64) -> MemoryCopy {
        let records = ids.iter().map(|id| (*id, format!("{{\"id\":{id}}}")));
        let records = records.collect();
        let held = MemoryDataset {
            token: token.to_owned(),
            records,
            miscount: 0,
            verified_at,
        };
        MemoryCopy {
            datasets: BTreeMap::from([(dataset.as_str(), held)]),
            ..MemoryCopy::default()
        }
    }
}

impl PullTarget for MemoryCopy {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError> {
        Ok(self.datasets.get(dataset.as_str()).map(|held| Position {
            token: held.token.clone(),
            records: held.records.len() as u64 + held.miscount,
            verified_at: held.verified_at,
            other_server: None,
        }))
    }

    fn records(&mut self, dataset: Dataset) -> Result<Option<u64>, PullError> {
        Ok(self
            .datasets
            .get(dataset.as_str())
            .map(|held| held.records.len() as u64))
    }

    fn apply(
        &mut self,
        dataset: Dataset,
        page: &FeedPage,
        _: &dyn Events,
    ) -> Result<(), PullError> {
        if self.failing_pages > 0 {
            self.failing_pages -= 1;
            return Err(PullError::Failed {
                message: "a deadlock".to_owned(),
                retry_after: Some(Duration::ZERO),
            });
        }
        self.done.push(format!("apply {dataset} {}", page.token));
        let held = self.datasets.get_mut(dataset.as_str()).unwrap();
        for entry in &page.entries {
            if entry.is_removal {
                held.records.remove(&entry.id);
            } else {
                held.records.insert(entry.id, entry.json.to_string());
            }
        }
        held.token.clone_from(&page.token);
        Ok(())
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        _: &dyn Events,
    ) -> Result<(), PullError> {
        let mut records = BTreeMap::new();
        while let Some(entry) = export.next_record()? {
            records.insert(entry.id, entry.json.to_string());
        }
        self.done
            .push(format!("load {dataset} {}", export.announced.token));
        if self.spoils_loads {
            records.clear();
        }
        self.fault = None;
        let (token, verified_at) = (export.announced.token.clone(), now().unix_s());
        self.datasets.insert(
            dataset.as_str(),
            MemoryDataset {
                token,
                records,
                miscount: 0,
                verified_at,
            },
        );
        Ok(())
    }

    fn clear(&mut self, dataset: Dataset, _: &dyn Events) -> Result<u64, PullError> {
        self.done.push(format!("clear {dataset}"));
        Ok(self
            .datasets
            .remove(dataset.as_str())
            .map_or(0, |held| held.records.len() as u64))
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError> {
        let mut hasher = Hasher::default();
        self.datasets[dataset.as_str()]
            .records
            .values()
            .for_each(|json| hasher.add(json.as_bytes()));
        Ok(hasher.finish())
    }

    fn find_fault(&mut self, _: Dataset) -> Result<Option<String>, PullError> {
        Ok(self.fault.clone())
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError> {
        self.done.push(format!("verified {dataset}"));
        self.datasets.get_mut(dataset.as_str()).unwrap().verified_at = now().unix_s();
        Ok(())
    }

    fn check_location(&self) -> Result<(), PullError> {
        match &mut *self.checks_left.borrow_mut() {
            None => Ok(()),
            Some(0) => Err(PullError::Unusable("the copy was replaced".to_owned())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}
