//! Copies the replicas' reports from the bucket to files next to the database. The key usage in each report becomes a
//! file `NAME.usage-replica-ID`, for `medfeed key list` and the operators' page. The publisher keeps these files
//! locked, so no server deletes them as those of a dead server.

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

/// Reports that are older are ignored, in seconds of the object store's clock.
const MAX_AGE_S: i64 = 7 * 86_400;
/// The time between two updates, in heartbeat intervals. Listing objects is expensive in an object store.
const HEARTBEATS_PER_UPDATE: u32 = 30;
const MAX_BYTES: u64 = 8 << 20;
/// The maximum number of reports.
const MAX_REPORTS: usize = 1000;
/// A report that is younger, relative to the last heartbeat, may be overwritten within the same second.
const SETTLED_S: i64 = 2;
/// The part of these files' names after the common prefix.
const KIND: &str = "replica-";

#[derive(Debug)]
pub struct ReportFiles {
    database: PathBuf,
    files: BTreeMap<String, ReportFile>,
    /// Whether the last update failed, and that was logged.
    is_failing: bool,
}

#[derive(Debug)]
struct ReportFile {
    /// The object's time and size, to notice changes. `None`: read it again next time.
    version: Option<(Timestamp, u64)>,
    /// The file, open to keep it locked; `None` for an unusable report.
    file: Option<File>,
}

/// The reason why a report was not copied.
enum ReportError {
    Failing(String),
    Unusable(String),
}

impl ReportFiles {
    /// Creates the files of a database. The path must have its symbolic links resolved.
    pub fn new(database: &Path) -> ReportFiles {
        ReportFiles { database: database.to_owned(), files: BTreeMap::new(), is_failing: false }
    }

    /// Updates the files regularly until the process ends.
    pub fn watch(mut self, bucket: &Bucket, heartbeat: Duration) {
        loop {
            self.update(bucket);
            std::thread::sleep(heartbeat.saturating_mul(HEARTBEATS_PER_UPDATE));
        }
    }

    /// Updates the files from the bucket. A failure is only logged.
    pub fn update(&mut self, bucket: &Bucket) {
        match self.try_update(bucket) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!("the replicas' reports cannot be copied next to the database: {error}");
                }
            }
        }
    }

    fn try_update(&mut self, bucket: &Bucket) -> Result<(), String> {
        let failing = |error: BucketError| error.to_string();
        // The publisher's own heartbeat has the object store's time and the id of the database.
        let Some(object) = bucket.get(layout::ALIVE).map_err(failing)? else { return Ok(()) };
        let alive = Heartbeat::decode(&object.bytes).map_err(|error| error.to_string())?;
        let now = object.modified;
        let listed = bucket.list(layout::REPLICAS, None).map_err(failing)?;
        let reports: BTreeMap<&str, &ListedObject> = listed
            .iter()
            .filter(|report| report.modified >= now.plus_s(-MAX_AGE_S))
            .filter_map(|report| Some((name_of(report)?, report)))
            .take(MAX_REPORTS)
            .collect();
        self.files.retain(|name, _| reports.contains_key(name.as_str()));
        let present = self.remove_others(&reports);
        for (name, report) in reports {
            let version = Some((report.modified, report.bytes));
            let is_known = self.files.get(name).is_some_and(|known| {
                known.version == version && (known.file.is_none() || present.iter().any(|present| present == name))
            });
            if is_known {
                continue;
            }
            let file = match self.copy(bucket, name, report, alive.id) {
                Ok(file) => file,
                Err(ReportError::Failing(error)) => return Err(error),
                Err(ReportError::Unusable(error)) => {
                    tracing::warn!("the report of replica `{name}` cannot be used: {error}");
                    None
                }
            };
            let is_settled = report.modified <= now.plus_s(-SETTLED_S);
            self.files.insert(name.to_owned(), ReportFile { version: version.filter(|_| is_settled), file });
        }
        Ok(())
    }

    /// Removes files without a report. Returns the names of the replicas whose files exist.
    fn remove_others(&self, reports: &BTreeMap<&str, &ListedObject>) -> Vec<String> {
        let start = format!("{}{KIND}", prefix(&self.database));
        let mut present = Vec::new();
        for path in find_files(&self.database) {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(&start));
            match name {
                Some(name) if reports.contains_key(name) => present.push(name.to_owned()),
                // If this fails, the next update removes it.
                Some(_) => drop(fs::remove_file(&path)),
                None => {}
            }
        }
        present
    }

    /// Copies a report to its file. Returns the file; `None` if the report no longer exists.
    fn copy(
        &self,
        bucket: &Bucket,
        name: &str,
        report: &ListedObject,
        id: DatabaseId,
    ) -> Result<Option<File>, ReportError> {
        if report.bytes > MAX_BYTES {
            return Err(ReportError::Unusable(format!("it has {} bytes", report.bytes)));
        }
        let object = bucket.get(&report.name).map_err(|error| match error {
            BucketError::Damaged { .. } => ReportError::Unusable(error.to_string()),
            error => ReportError::Failing(error.to_string()),
        })?;
        let Some(object) = object else { return Ok(None) };
        let report = ReplicaReport::decode(&object.bytes).map_err(|error| ReportError::Unusable(error.to_string()))?;
        if report.id != id {
            return Err(ReportError::Unusable(format!("it is of another database ({})", report.id)));
        }
        let uses: Uses =
            serde_json::from_str(&report.usage).map_err(|error| ReportError::Unusable(error.to_string()))?;
        let path = folder_of(&self.database).join(format!("{}{KIND}{name}", prefix(&self.database)));
        let file = write_file(&path, &uses, Some(&self.database));
        file.map(Some).map_err(|error| ReportError::Failing(format!("{}: {error}", path.display())))
    }
}

/// The name of the replica in the name of its report; `None` if the object is not a report.
fn name_of(report: &ListedObject) -> Option<&str> {
    let (_, name) = report.name.rsplit_once('/')?;
    (layout::replica(name) == report.name && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::serve::operators::usage::{KeyUse, read_all};

    const ID: DatabaseId = DatabaseId([1; 16]);

    fn time() -> Timestamp {
        Timestamp::from_unix_s(1_700_000_000)
    }

    /// A report of one use of a key.
    fn encoded(id: DatabaseId, key: &str) -> Vec<u8> {
        let uses = Uses::from([(key.to_owned(), KeyUse::default())]);
        let usage = serde_json::to_string(&uses).unwrap();
        ReplicaReport { id, slot: 1, seq: 1, at: time(), who: String::new(), usage }.encode().unwrap()
    }

    struct Place {
        folder: tempfile::TempDir,
        bucket: Bucket,
        files: ReportFiles,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("file://{}/bucket", folder.path().display());
            let bucket = Bucket::open_with(&url.parse().unwrap(), None, &[]).unwrap();
            bucket.prepare().unwrap();
            // The files get the owner of the database.
            File::create(folder.path().join("feed.redb")).unwrap();
            let files = ReportFiles::new(&folder.path().join("feed.redb"));
            let place = Place { folder, bucket, files };
            let who = String::new();
            let alive = Heartbeat { id: ID, slot: 1, hash: [0; 32], seq: 1, at: time(), who };
            place.put(layout::ALIVE, &alive.encode().unwrap(), 0);
            place
        }

        fn put(&self, name: &str, bytes: &[u8], age_s: i64) {
            self.bucket.put(name, bytes).unwrap();
            let then = UNIX_EPOCH + Duration::from_secs(u64::try_from(time().plus_s(-age_s).unix_s()).unwrap());
            let path = self.folder.path().join("bucket").join(name);
            File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        }

        /// Puts a report of one use of a key.
        fn report(&self, name: &str, id: DatabaseId, key: &str, age_s: i64) {
            self.put(&layout::replica(name), &encoded(id, key), age_s);
        }

        /// The keys in the files after an update.
        fn keys(&mut self) -> Vec<String> {
            self.files.update(&self.bucket);
            let mut keys: Vec<String> = read_all(&self.folder.path().join("feed.redb")).into_keys().collect();
            keys.sort_unstable();
            keys
        }
    }

    #[test]
    fn reports_of_more_than_a_week_are_dropped() {
        let mut place = Place::new();
        let week_s = 7 * 86_400;
        for (name, age_s) in [("a", 0), ("b", week_s), ("c", week_s + 1), ("d", 2 * week_s)] {
            place.report(name, ID, name, age_s);
        }
        assert_eq!(place.keys(), ["a", "b"]);
        place.report("a", ID, "a", week_s + 1);
        assert_eq!(place.keys(), ["b"], "its file is removed");
    }

    #[test]
    fn a_report_that_was_overwritten_within_its_second_is_read_again() {
        let mut place = Place::new();
        for (age_s, is_read_again) in [(0, true), (1, true), (2, false), (60, false)] {
            place.report("a", ID, "x", age_s);
            assert_eq!(place.keys(), ["x"], "{age_s}");
            // The same time and size, and another key.
            place.report("a", ID, "y", age_s);
            assert_eq!(place.keys(), [if is_read_again { "y" } else { "x" }], "{age_s}");
            place.bucket.delete("replicas/a").unwrap();
            assert_eq!(place.keys(), [""; 0], "{age_s}");
        }
    }

    #[test]
    fn an_unusable_report_is_read_again_once_it_has_changed() {
        let mut place = Place::new();
        place.put("replicas/a", &vec![0; encoded(ID, "x").len()], 60);
        place.report("b", DatabaseId([2; 16]), "x", 60);
        assert_eq!(place.keys(), [""; 0]);
        // The same time and size: nothing says that the report has become usable.
        place.report("a", ID, "x", 60);
        place.report("b", ID, "y", 60);
        assert_eq!(place.keys(), [""; 0]);
        place.report("a", ID, "x", 59);
        place.report("b", ID, "longer", 60);
        assert_eq!(place.keys(), ["longer", "x"]);
    }

    #[test]
    fn a_changed_report_replaces_its_file_and_a_removed_file_comes_back() {
        let mut place = Place::new();
        place.report("a", ID, "x", 60);
        place.report("b", ID, "z", 60);
        assert_eq!(place.keys(), ["x", "z"]);
        place.report("a", ID, "y", 59);
        assert_eq!(place.keys(), ["y", "z"], "a later time");
        place.report("a", ID, "longer", 59);
        assert_eq!(place.keys(), ["longer", "z"], "another size");
        for path in find_files(&place.folder.path().join("feed.redb")) {
            fs::remove_file(path).unwrap();
        }
        assert_eq!(place.keys(), ["longer", "z"]);
    }

    #[test]
    fn reports_of_others_are_not_copied() {
        let mut place = Place::new();
        place.report("a", DatabaseId([2; 16]), "x", 0);
        place.put("replicas/b", b"damaged", 0);
        place.put("replicas/c/d", b"damaged", 0);
        place.report("e", ID, "z", 0);
        assert_eq!(place.keys(), ["z"]);
        // Without a heartbeat, nothing is known and nothing removed.
        place.bucket.delete(layout::ALIVE).unwrap();
        place.bucket.delete("replicas/e").unwrap();
        assert_eq!(place.keys(), ["z"]);
    }
}
