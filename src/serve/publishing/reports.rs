//! The replicas' reports, laid beside the database: what each says of the use of keys becomes a file `NAME.usage-replica-ID`,
//! where `medfeed key list` and the page for operators look. They are locked while the publisher lives, so that no server takes
//! them for a dead one's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bucket::{Bucket, BucketError, ListedObject};
use crate::model::{DatabaseId, Timestamp};
use crate::replicate::layout;
use crate::replicate::report::{Heartbeat, ReplicaReport};
use crate::serve::operators::usage::{Uses, find_files, prefix, write_file};
use crate::store::file::links::folder_of;

/// For how long a replica counts that reports no more, in seconds of the store's clock.
const KEPT_S: i64 = 7 * 86_400;
/// The signs of life between two lists of the reports.
const HEARTBEATS: u32 = 30;
/// The largest report that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// The most reports that are read.
const MAX_REPORTS: usize = 1000;
/// What is dated so many seconds before the last sign of life may be overwritten within the same second.
const SETTLED_S: i64 = 2;
/// What names of these files have after the common beginning.
const KIND: &str = "replica-";

/// The reports that lie beside a database.
#[derive(Debug)]
pub struct Reports {
    database: PathBuf,
    laid: BTreeMap<String, Laid>,
    /// Whether the last look failed, of which was told.
    is_failing: bool,
}

/// A report that was read.
#[derive(Debug)]
struct Laid {
    /// When the store dates it, and its bytes: by these it is known again. `None` reads it anew.
    version: Option<(Timestamp, u64)>,
    /// Its file, open to keep it locked; `None` for a report that cannot be used.
    file: Option<File>,
}

/// Why a report is not laid down.
enum Unlaid {
    /// Nothing can be read or written for now.
    Failing(String),
    /// This one cannot be used.
    Unusable(String),
}

impl Reports {
    /// The reports for a database, links followed.
    pub fn new(database: &Path) -> Reports {
        Reports { database: database.to_owned(), laid: BTreeMap::new(), is_failing: false }
    }

    /// Keeps the files like the reports as long as the process lives. Lists are what costs most in a store, so there is one in
    /// so many signs of life.
    pub fn watch(mut self, bucket: &Bucket, heartbeat: Duration) {
        loop {
            self.look(bucket);
            std::thread::sleep(heartbeat.saturating_mul(HEARTBEATS));
        }
    }

    /// Makes the files like the reports. Nothing rests on them, so failures are told and no more.
    pub fn look(&mut self, bucket: &Bucket) {
        match self.lay_down(bucket) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!("the replicas' reports cannot be laid beside the database: {error}");
                }
            }
        }
    }

    fn lay_down(&mut self, bucket: &Bucket) -> Result<(), String> {
        let told = |error: BucketError| error.to_string();
        // The store's clock and the database, by what the publisher itself wrote.
        let Some(object) = bucket.get(layout::ALIVE).map_err(told)? else { return Ok(()) };
        let alive = Heartbeat::decode(&object.bytes).map_err(|error| error.to_string())?;
        let now = object.modified;
        let listed = bucket.list(layout::REPLICAS, None).map_err(told)?;
        let reports: BTreeMap<&str, &ListedObject> = listed
            .iter()
            .filter(|report| report.modified >= now.plus_s(-KEPT_S))
            .filter_map(|report| Some((name_of(report)?, report)))
            .take(MAX_REPORTS)
            .collect();
        self.laid.retain(|name, _| reports.contains_key(name.as_str()));
        let present = self.remove_others(&reports);
        for (name, report) in reports {
            let version = Some((report.modified, report.bytes));
            let is_known = self.laid.get(name).is_some_and(|laid| {
                laid.version == version && (laid.file.is_none() || present.iter().any(|present| present == name))
            });
            if is_known {
                continue;
            }
            let file = match self.lay(bucket, name, report, alive.id) {
                Ok(file) => file,
                Err(Unlaid::Failing(error)) => return Err(error),
                Err(Unlaid::Unusable(error)) => {
                    tracing::warn!("the report of replica `{name}` cannot be used: {error}");
                    None
                }
            };
            let is_settled = report.modified <= now.plus_s(-SETTLED_S);
            self.laid.insert(name.to_owned(), Laid { version: version.filter(|_| is_settled), file });
        }
        Ok(())
    }

    /// Removes files that no report stands for: of replicas that are gone, or left by an earlier publisher. Returns the names of
    /// the replicas whose files are there.
    fn remove_others(&self, reports: &BTreeMap<&str, &ListedObject>) -> Vec<String> {
        let start = format!("{}{KIND}", prefix(&self.database));
        let mut present = Vec::new();
        for path in find_files(&self.database) {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(&start));
            match name {
                Some(name) if reports.contains_key(name) => present.push(name.to_owned()),
                // If it stays, the next look removes it.
                Some(_) => drop(fs::remove_file(&path)),
                None => {}
            }
        }
        present
    }

    /// Lays a report down; returns its file, or nothing if it is gone meanwhile.
    fn lay(&self, bucket: &Bucket, name: &str, report: &ListedObject, id: DatabaseId) -> Result<Option<File>, Unlaid> {
        if report.bytes > MAX_BYTES {
            return Err(Unlaid::Unusable(format!("it has {} bytes", report.bytes)));
        }
        let object = bucket.get(&report.name).map_err(|error| match error {
            BucketError::Damaged { .. } => Unlaid::Unusable(error.to_string()),
            error => Unlaid::Failing(error.to_string()),
        })?;
        let Some(object) = object else { return Ok(None) };
        let report = ReplicaReport::decode(&object.bytes).map_err(|error| Unlaid::Unusable(error.to_string()))?;
        if report.id != id {
            return Err(Unlaid::Unusable(format!("it is of another database ({})", report.id)));
        }
        let uses: Uses = serde_json::from_str(&report.usage).map_err(|error| Unlaid::Unusable(error.to_string()))?;
        let path = folder_of(&self.database).join(format!("{}{KIND}{name}", prefix(&self.database)));
        let file = write_file(&path, &uses, Some(&self.database));
        file.map(Some).map_err(|error| Unlaid::Failing(format!("{}: {error}", path.display())))
    }
}

/// The name of a replica, by that of its report; `None` for what no replica is called.
fn name_of(report: &ListedObject) -> Option<&str> {
    let (_, name) = report.name.rsplit_once('/')?;
    (layout::replica(name) == report.name && !name.is_empty()).then_some(name)
}
