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
    BackoffConfig, ClientConfigKey, Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload, RetryConfig,
};
use tokio::runtime::Runtime;

use super::fault::{Action, ErrorMapper};
use super::object::{
    BucketError, BucketObject, Created, ListedObject, OBJECT_BYTES, Result, Store,
};
use super::url::{BucketUrl, StoreKind};
use crate::model::{Joined, Timestamp};
use crate::transport::tls;

/// The time limit of a request with its retries, without the time for its bytes.
const REQUEST: Duration = Duration::from_secs(30);

/// The minimum transfer rate, in bytes per second.
const BYTES_PER_S: u64 = 1 << 15;

/// The crate's own time limit, longer than any of ours.
const NEVER: &str = "86400 seconds";

/// A bucket in an object store.
#[derive(Debug)]
pub struct Remote {
    store: Box<dyn ObjectStore>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
    prefix: Path,
    errors: ErrorMapper,
}

impl Remote {
    pub fn open(
        url: &BucketUrl,
        kind: StoreKind,
        bucket: &str,
        prefix: &str,
        environment: &[(String, String)],
    ) -> Result<Remote> {
        // The crate uses the process's TLS provider, and panics if there is none.
        tls::install_provider();
        let (store, has_credentials) = store(kind, bucket, environment);
        let errors = ErrorMapper {
            url: url.to_string(),
            bucket: bucket.to_owned(),
            kind,
            has_credentials,
        };
        let store = store.map_err(|error| errors.configuration(&error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|error| errors.unreachable(format!("needs a thread: {error}")))?;
        let prefix =
            Path::parse(prefix).map_err(|error| errors.configuration(&Error::from(error)))?;
        Ok(Remote {
            store,
            runtime: Some(runtime),
            prefix,
            errors,
        })
    }

    fn write(
        &self,
        action: Action,
        name: &str,
        bytes: Vec<u8>,
        mode: PutMode,
    ) -> Result<Result<(), Error>> {
        let limit = time_for(bytes.len() as u64);
        let path = self.path(name);
        let put = self
            .store
            .put_opts(&path, PutPayload::from(bytes), mode.into());
        self.wait(action, name, limit, async { put.await.map(drop) })
    }

    fn listed(&self, found: &ObjectMeta) -> Option<ListedObject> {
        let parts = found.location.prefix_match(&self.prefix)?;
        let name = parts.map(|part| part.as_ref().to_owned()).joined("/");
        Some(ListedObject {
            name,
            bytes: found.size,
            modified: modified(found),
        })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Runs a request for an object; `None` if the bucket has no such object.
    fn find<T>(
        &self,
        action: Action,
        name: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>> {
        match self.wait(action, name, limit, request)? {
            Ok(found) => Ok(Some(found)),
            Err(error) if self.errors.is_absent(&error) => Ok(None),
            Err(error) => Err(self.errors.map(action, name, &error)),
        }
    }

    /// Runs a request. Only a timeout is an error.
    fn wait<T>(
        &self,
        action: Action,
        name: &str,
        limit: Duration,
        request: impl Future<Output = T>,
    ) -> Result<T> {
        let runtime = self.runtime.as_ref();
        let done = runtime.and_then(|runtime| {
            runtime.block_on(async { tokio::time::timeout(limit, request).await.ok() })
        });
        done.ok_or_else(|| {
            self.errors.unreachable(format!(
                "did not {action} `{name}` in time; check the network"
            ))
        })
    }
}

impl Store for Remote {
    fn get(&self, name: &str) -> Result<Option<BucketObject>> {
        let path = self.path(name);
        let Some(found) = self.find(Action::Read, name, REQUEST, self.store.get(&path))? else {
            return Ok(None);
        };
        // All stores send an ETag, and a login page of a network does not.
        if found.meta.e_tag.is_none() {
            return Err(self.errors.unreachable(format!(
                "cannot be reached to read `{name}`: the response has no ETag, so it is not the store's; check the \
                 network, and any proxy between this machine and the store"
            )));
        }
        let size = found.meta.size;
        let modified = modified(&found.meta);
        if size > OBJECT_BYTES {
            return Err(BucketError::Damaged {
                name: name.to_owned(),
                detail: format!("its {size} bytes are too many for an object"),
            });
        }
        match self.find(Action::Read, name, time_for(size), found.bytes())? {
            Some(bytes) if bytes.len() as u64 != size => Err(self.errors.unreachable(format!(
                "sent only a part of `{name}` ({} of its {size} bytes came); check the network",
                bytes.len()
            ))),
            found => Ok(found.map(|bytes| BucketObject {
                bytes: bytes.into(),
                modified,
            })),
        }
    }

    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created> {
        match self.write(Action::Create, name, bytes, PutMode::Create)? {
            Ok(()) => Ok(Created::New),
            Err(
                Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. },
            ) => Ok(Created::Exists),
            Err(error) => Err(self.errors.map(Action::Create, name, &error)),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let written = self.write(Action::Write, name, bytes, PutMode::Overwrite)?;
        written.map_err(|error| self.errors.map(Action::Write, name, &error))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<ListedObject>> {
        let path = self.path(folder);
        let mut objects = match after {
            Some(after) => self.store.list_with_offset(Some(&path), &self.path(after)),
            None => self.store.list(Some(&path)),
        };
        let mut listed = Vec::new();
        loop {
            match self.wait(Action::List, folder, REQUEST, objects.try_next())? {
                Ok(None) => return Ok(listed),
                // A proxy may return the list of another request. The sweep would delete what it names.
                Ok(Some(found)) if !found.location.prefix_matches(&path) => {
                    return Err(self.errors.unreachable(format!(
                        "cannot be reached to list `{folder}`: the response names `{}`, so it is that of another \
                         request; check any proxy between this machine and the store",
                        found.location
                    )));
                }
                Ok(Some(found)) => listed.extend(self.listed(&found)),
                Err(error) => return Err(self.errors.map(Action::List, folder, &error)),
            }
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        self.find(Action::Delete, name, REQUEST, self.store.delete(&path))?;
        Ok(())
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
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: Duration::from_secs(10),
    }
}

/// Gives a builder the variables with a prefix, as the crate's `from_env` does, and our limits, then calls the last methods.
/// Returns the built store, and whether one of the keys for credentials is set.
macro_rules! built {
    ($environment:ident, $builder:expr, $prefix:literal, $keys:ident::{$($credentials:ident),+}, $($last:tt)+) => {{
        let ours = $environment.iter().filter(|(name, _)| name.starts_with($prefix));
        let builder = ours.fold($builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
            Ok(key) => builder.with_config(key, value),
            Err(_) => builder,
        });
        let builder = builder.with_config($keys::Client(ClientConfigKey::Timeout), NEVER).with_retry(retries());
        let has_credentials = [$($keys::$credentials),+].iter().any(|key| builder.get_config_value(key).is_some());
        let store = builder.$($last)+.build().map(|store| Box::new(store) as Box<dyn ObjectStore>);
        (store, has_credentials)
    }};
}

/// Builds a store from the environment. Also returns whether the environment holds credentials for it.
fn store(
    kind: StoreKind,
    bucket: &str,
    environment: &[(String, String)],
) -> (Result<Box<dyn ObjectStore>, Error>, bool) {
    let value_of = |wanted| environment.iter().find(|(name, _)| name == wanted);
    match kind {
        StoreKind::S3 => built!(
            environment,
            AmazonS3Builder::new(),
            "AWS_",
            AmazonS3ConfigKey::{
                AccessKeyId, SecretAccessKey, WebIdentityTokenFile, ContainerCredentialsRelativeUri,
                ContainerCredentialsFullUri
            },
            // Some stores do not support deleting several objects in one request.
            with_bucket_name(bucket).with_disable_bulk_delete(true)
        ),
        StoreKind::Google => {
            let mut builder = GoogleCloudStorageBuilder::new();
            if let Some((_, path)) = value_of("SERVICE_ACCOUNT") {
                builder = builder.with_service_account_path(path);
            }
            built!(
                environment,
                builder,
                "GOOGLE_",
                GoogleConfigKey::{ServiceAccount, ServiceAccountKey, ApplicationCredentials, BearerToken},
                with_bucket_name(bucket)
            )
        }
        StoreKind::Azure => {
            let mut builder = MicrosoftAzureBuilder::new();
            if let Some((_, endpoint)) = value_of("IDENTITY_ENDPOINT") {
                builder = builder.with_msi_endpoint(endpoint);
            }
            built!(
                environment,
                builder,
                "AZURE_",
                AzureConfigKey::{AccessKey, SasKey, Token, ClientSecret, FederatedTokenFile},
                with_container_name(bucket)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    /// A bucket with this prefix in a store that others share.
    fn below(store: &Arc<InMemory>, prefix: &str) -> Remote {
        Remote {
            store: Box::new(Arc::clone(store)),
            runtime: Some(
                tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .enable_all()
                    .build()
                    .unwrap(),
            ),
            prefix: Path::parse(prefix).unwrap(),
            errors: ErrorMapper {
                url: format!("s3://feed/{prefix}"),
                bucket: "feed".to_owned(),
                kind: StoreKind::S3,
                has_credentials: true,
            },
        }
    }

    fn names(remote: &Remote, folder: &str, after: Option<&str>) -> Vec<String> {
        let names = remote.list(folder, after).unwrap().into_iter();
        let mut names: Vec<String> = names.map(|found| found.name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn prefixes_that_begin_alike_do_not_share_objects() {
        let store = Arc::new(InMemory::new());
        let prefixes = ["", "a", "a/b", "a/bc", "a/b/log", "ab", "log"];
        let buckets = prefixes.iter();
        let buckets: Vec<Remote> = buckets.map(|prefix| below(&store, prefix)).collect();
        for (bucket, prefix) in buckets.iter().zip(prefixes) {
            for name in ["log/1", "logs/1", "log1", "alive"] {
                let content = format!("{prefix} {name}").into_bytes();
                let found = bucket.create(name, content);
                assert_eq!(found, Ok(Created::New), "{prefix:?} {name}");
                let found = bucket.create(name, Vec::new());
                assert_eq!(found, Ok(Created::Exists), "{prefix:?} {name}");
            }
        }
        for (bucket, prefix) in buckets.iter().zip(prefixes) {
            let expected: &[&str] = match prefix {
                // These buckets contain the bucket of a longer prefix.
                "" | "a/b" => &["log/1", "log/alive", "log/log/1", "log/log1", "log/logs/1"],
                _ => &["log/1"],
            };
            assert_eq!(names(bucket, "log", None), expected, "{prefix:?}");
            assert_eq!(names(bucket, "logs", None), ["logs/1"], "{prefix:?}");
            assert_eq!(names(bucket, "lo", None), [""; 0], "{prefix:?}");
            assert_eq!(
                bucket.get("log/1").unwrap().unwrap().bytes,
                format!("{prefix} log/1").into_bytes()
            );
            assert!(bucket.get("log").unwrap().is_none(), "{prefix:?}");
        }
        // Deleting and overwriting in one leaves the others alone.
        buckets[2].delete("alive").unwrap();
        buckets[2].put("log1", b"x".to_vec()).unwrap();
        for (bucket, prefix) in buckets.iter().zip(prefixes) {
            let has_alive = bucket.get("alive").unwrap().is_some();
            assert_eq!(has_alive, prefix != "a/b", "{prefix:?}");
            let is_old =
                bucket.get("log1").unwrap().unwrap().bytes == format!("{prefix} log1").into_bytes();
            assert_eq!(is_old, prefix != "a/b", "{prefix:?}");
        }
    }

    #[test]
    fn requests_get_time_for_their_bytes() {
        for (bytes, seconds) in [
            (0, 30),
            (32_767, 30),
            (32_768, 31),
            (1 << 20, 62),
            (1 << 29, 30 + 16_384),
        ] {
            assert_eq!(time_for(bytes), Duration::from_secs(seconds), "{bytes}");
        }
    }

    #[test]
    fn credentials_are_known_from_the_environment() {
        let cases = [
            (StoreKind::S3, "AWS_ACCESS_KEY_ID", true),
            (StoreKind::S3, "AWS_WEB_IDENTITY_TOKEN_FILE", true),
            (StoreKind::S3, "AWS_REGION", false),
            (StoreKind::S3, "XAWS_ACCESS_KEY_ID", false),
            (StoreKind::S3, "GOOGLE_SERVICE_ACCOUNT", false),
            (StoreKind::Google, "GOOGLE_SERVICE_ACCOUNT", true),
            (StoreKind::Google, "AWS_ACCESS_KEY_ID", false),
            (StoreKind::Azure, "AZURE_STORAGE_ACCOUNT_KEY", true),
            (StoreKind::Azure, "AZURE_STORAGE_ACCOUNT_NAME", false),
        ];
        tls::install_provider();
        for (kind, variable, expected) in cases {
            let environment = [(variable.to_owned(), "x".to_owned())];
            assert_eq!(
                store(kind, "feed", &environment).1,
                expected,
                "{kind:?} {variable}"
            );
        }
    }
}
