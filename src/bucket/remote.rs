//! A bucket over the network, with the `object_store` crate.
//!
//! The crate retries a request after a truncated connection or a 5xx. If a conditional put had succeeded, its retry is
//! refused. Then `create` returns [`Created::Exists`], and the caller finds its own bytes in the object.

use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload, RetryConfig,
};
use tokio::runtime::Runtime;

use super::error::BucketError;
use super::fault::{Action, ErrorMapper};
use super::object::{BucketObject, Created, ListedObject, OBJECT_BYTES};
use super::url::{BucketUrl, StoreKind};
use crate::model::Timestamp;
use crate::transport::tls;

/// The time limit of a request with its retries, without the time for its bytes.
const REQUEST: Duration = Duration::from_secs(30);

/// The minimum transfer rate, in bytes per second.
const BYTES_PER_S: u64 = 1 << 15;

/// The crate's own time limit, longer than any of ours.
const NEVER: &str = "86400 seconds";

/// A bucket in an object store.
#[derive(Debug)]
pub(super) struct Remote {
    store: Box<dyn ObjectStore>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
    prefix: Path,
    errors: ErrorMapper,
}

impl Remote {
    pub(super) fn open(
        url: &BucketUrl,
        kind: StoreKind,
        bucket: &str,
        prefix: &str,
        environment: &[(String, String)],
    ) -> Result<Remote, BucketError> {
        // The crate uses the process's TLS provider, and panics if there is none.
        tls::install_provider();
        let (store, has_credentials) = store(kind, bucket, environment);
        let errors = ErrorMapper::new(url, kind, bucket, has_credentials);
        let store = store.map_err(|error| errors.configuration(&error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|error| BucketError::Unreachable(format!("cannot start a thread for {url}: {error}")))?;
        let prefix = Path::parse(prefix).map_err(|error| errors.configuration(&Error::from(error)))?;
        Ok(Remote { store, runtime: Some(runtime), prefix, errors })
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<BucketObject>, BucketError> {
        let path = self.path(name);
        let found = match self.wait(REQUEST, self.store.get(&path)) {
            Some(Ok(found)) => found,
            Some(Err(error)) if self.errors.is_absent(&error) => return Ok(None),
            Some(Err(error)) => return Err(self.errors.map(Action::Read, name, &error)),
            None => return Err(self.errors.timeout(Action::Read, name)),
        };
        let (size, modified) = (found.meta.size, modified(&found.meta));
        if size > OBJECT_BYTES {
            let detail = format!("its {size} bytes are too many for an object");
            return Err(BucketError::Damaged { name: name.to_owned(), detail });
        }
        match self.wait(time_for(size), found.bytes()) {
            Some(Ok(bytes)) if u64::try_from(bytes.len()) == Ok(size) => {
                Ok(Some(BucketObject { bytes: bytes.into(), modified }))
            }
            Some(Ok(bytes)) => Err(self.errors.truncated(name, format!("{} of its {size} bytes came", bytes.len()))),
            Some(Err(error)) => Err(self.errors.map(Action::Read, name, &error)),
            None => Err(self.errors.timeout(Action::Read, name)),
        }
    }

    pub(super) fn contains(&self, name: &str) -> Result<bool, BucketError> {
        let path = self.path(name);
        let first_byte = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.wait(REQUEST, self.store.get_opts(&path, first_byte)) {
            Some(Ok(_)) => Ok(true),
            Some(Err(error)) if self.errors.is_absent(&error) => Ok(false),
            // An empty object has no first byte (416).
            Some(Err(error)) if error.to_string().contains("status code: 416") => Ok(true),
            Some(Err(error)) => Err(self.errors.map(Action::Read, name, &error)),
            None => Err(self.errors.timeout(Action::Read, name)),
        }
    }

    pub(super) fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, BucketError> {
        match self.write(name, bytes, PutMode::Create) {
            Some(Ok(())) => Ok(Created::New),
            Some(Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. })) => {
                Ok(Created::Exists)
            }
            Some(Err(error)) => Err(self.errors.map(Action::Create, name, &error)),
            None => Err(self.errors.timeout(Action::Create, name)),
        }
    }

    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), BucketError> {
        match self.write(name, bytes, PutMode::Overwrite) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.errors.map(Action::Write, name, &error)),
            None => Err(self.errors.timeout(Action::Write, name)),
        }
    }

    fn write(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Option<Result<(), Error>> {
        let limit = time_for(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let path = self.path(name);
        let put = self.store.put_opts(&path, PutPayload::from(bytes), mode.into());
        self.wait(limit, async { put.await.map(drop) })
    }

    pub(super) fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<ListedObject>, BucketError> {
        let path = self.path(folder);
        let mut objects = match after {
            Some(after) => self.store.list_with_offset(Some(&path), &self.path(after)),
            None => self.store.list(Some(&path)),
        };
        let mut listed = Vec::new();
        loop {
            match self.wait(REQUEST, objects.try_next()) {
                Some(Ok(None)) => return Ok(listed),
                // Foreign objects are skipped.
                Some(Ok(Some(found))) => listed.extend(self.listed(&found)),
                Some(Err(error)) => return Err(self.errors.map(Action::List, folder, &error)),
                None => return Err(self.errors.timeout(Action::List, folder)),
            }
        }
    }

    fn listed(&self, found: &ObjectMeta) -> Option<ListedObject> {
        let parts = found.location.prefix_match(&self.prefix)?;
        let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        Some(ListedObject { name, bytes: found.size, modified: modified(found) })
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), BucketError> {
        let path = self.path(name);
        match self.wait(REQUEST, self.store.delete(&path)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) if self.errors.is_absent(&error) => Ok(()),
            Some(Err(error)) => Err(self.errors.map(Action::Delete, name, &error)),
            None => Err(self.errors.timeout(Action::Delete, name)),
        }
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Runs a request; `None` after a timeout.
    fn wait<T>(&self, limit: Duration, request: impl Future<Output = T>) -> Option<T> {
        self.runtime.as_ref()?.block_on(async { tokio::time::timeout(limit, request).await.ok() })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Do not wait for a DNS lookup, which can take minutes.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the time limit for an object of this size.
fn time_for(bytes: u64) -> Duration {
    REQUEST + Duration::from_secs(bytes / BYTES_PER_S)
}

fn modified(found: &ObjectMeta) -> Timestamp {
    Timestamp::from_unix_s(found.last_modified.timestamp())
}

/// Returns the crate's own retry policy: a few seconds. Callers have their own policy on top.
fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(2), base: 2.0 };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(10) }
}

/// Builds a store from the environment. Also returns whether the environment holds credentials for it.
fn store(
    kind: StoreKind,
    bucket: &str,
    environment: &[(String, String)],
) -> (Result<Box<dyn ObjectStore>, Error>, bool) {
    fn boxed<S: ObjectStore>(built: Result<S, Error>) -> Result<Box<dyn ObjectStore>, Error> {
        built.map(|store| Box::new(store) as Box<dyn ObjectStore>)
    }
    // As the crate's `from_env` does.
    let named = |prefix: &'static str| {
        let ours = environment.iter().filter(move |(name, _)| name.starts_with(prefix));
        ours.map(|(name, value)| (name.to_ascii_lowercase(), value))
    };
    let value_of = |wanted: &str| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    match kind {
        StoreKind::S3 => {
            use AmazonS3ConfigKey as Key;
            let set = |builder: AmazonS3Builder, (name, value): (String, &String)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            };
            let builder = named("AWS_")
                .fold(AmazonS3Builder::new(), set)
                .with_bucket_name(bucket)
                // Some stores do not support deleting several objects in one request.
                .with_disable_bulk_delete(true)
                .with_config(Key::Client(ClientConfigKey::Timeout), NEVER)
                .with_retry(retries());
            let sources = [
                Key::AccessKeyId,
                Key::SecretAccessKey,
                Key::WebIdentityTokenFile,
                Key::ContainerCredentialsRelativeUri,
                Key::ContainerCredentialsFullUri,
            ];
            let has_credentials = sources.iter().any(|key| builder.get_config_value(key).is_some());
            (boxed(builder.build()), has_credentials)
        }
        StoreKind::Google => {
            use GoogleConfigKey as Key;
            let set = |builder: GoogleCloudStorageBuilder, (name, value): (String, &String)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            };
            let mut builder = GoogleCloudStorageBuilder::new();
            if let Some(path) = value_of("SERVICE_ACCOUNT") {
                builder = builder.with_service_account_path(path);
            }
            let builder = named("GOOGLE_")
                .fold(builder, set)
                .with_bucket_name(bucket)
                .with_config(Key::Client(ClientConfigKey::Timeout), NEVER)
                .with_retry(retries());
            let sources = [Key::ServiceAccount, Key::ServiceAccountKey, Key::ApplicationCredentials, Key::BearerToken];
            let has_credentials = sources.iter().any(|key| builder.get_config_value(key).is_some());
            (boxed(builder.build()), has_credentials)
        }
        StoreKind::Azure => {
            use AzureConfigKey as Key;
            let set = |builder: MicrosoftAzureBuilder, (name, value): (String, &String)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            };
            let mut builder = MicrosoftAzureBuilder::new();
            if let Some(endpoint) = value_of("IDENTITY_ENDPOINT") {
                builder = builder.with_msi_endpoint(endpoint);
            }
            let builder = named("AZURE_")
                .fold(builder, set)
                .with_container_name(bucket)
                .with_config(Key::Client(ClientConfigKey::Timeout), NEVER)
                .with_retry(retries());
            let sources = [Key::AccessKey, Key::SasKey, Key::Token, Key::ClientSecret, Key::FederatedTokenFile];
            let has_credentials = sources.iter().any(|key| builder.get_config_value(key).is_some());
            (boxed(builder.build()), has_credentials)
        }
    }
}
