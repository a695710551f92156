//! Detects that another publisher has taken over. Then keys may be revoked in the other database, and this server would
//! not notice.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;

use crate::model::{DatabaseId, since_boot};
use crate::store::StoreError;
use crate::store::replication::PublishedNote;

/// Watches the publisher's note next to a database.
#[derive(Debug)]
pub struct FenceWatch {
    database: PathBuf,
    /// The time for which the server still answers after another publisher took over.
    staleness: Duration,
    /// The publisher that took over, if any, and the end of that time, since the machine's start. Locked only briefly,
    /// never while a disk is read: `/readyz` and requests read this.
    takeover: Mutex<Option<(String, Duration)>>,
}

impl FenceWatch {
    /// Watches the note of a database. Each read follows the symbolic links of the path.
    pub fn new(database: PathBuf, staleness: Duration) -> FenceWatch {
        FenceWatch {
            database,
            staleness,
            takeover: Mutex::default(),
        }
    }

    /// Reads the note. Ignores a note about another database id.
    pub fn poll(&self, id: impl FnOnce() -> Result<Option<DatabaseId>, StoreError>) {
        // Keep the state if the note or the database cannot be read now.
        let Ok(note) = PublishedNote::read(&self.database) else {
            return;
        };
        let note = match note.filter(|note| note.fenced.is_some()) {
            None => None,
            Some(note) => match id() {
                Ok(id) => Some(note).filter(|note| id == Some(note.id)),
                Err(_) => return,
            },
        };
        let fenced = note.and_then(|note| Some((note.fenced_for(), note.fenced?)));
        let end = self.takeover.lock().as_ref().map(|(_, end)| *end);
        let takeover = match (end, fenced) {
            (None, Some((fenced_for, by))) => {
                tracing::error!(
                    "another publisher took over from this database ({by}): keys may be revoked there, and this server would \
                     not notice. It is not ready, and responds with 503 after --max-staleness. Send callers to a server of \
                     the other database, and stop this one"
                );
                // Count from the takeover: a restart of the server or of the machine must not extend the time.
                Some((
                    by,
                    since_boot()
                        .saturating_add(self.staleness)
                        .saturating_sub(fenced_for),
                ))
            }
            (Some(end), Some((_, by))) => Some((by, end)),
            (Some(_), None) => {
                tracing::info!("this database is the published one again");
                None
            }
            (None, None) => None,
        };
        *self.takeover.lock() = takeover;
    }

    /// The reason why the server is not ready; `None` if nobody took over.
    pub fn reason(&self) -> Option<String> {
        let by = self.takeover.lock().clone()?.0;
        let answers = if self.is_over() {
            "so it answers 503"
        } else {
            "so it will answer 503 soon"
        };
        Some(format!(
            "another publisher took over from this database, {answers}: {by}; stop this server"
        ))
    }

    /// Whether the time for answering after the takeover is over. Called on every request.
    pub fn is_over(&self) -> bool {
        self.takeover
            .lock()
            .as_ref()
            .is_some_and(|(_, end)| since_boot() > *end)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::model::Timestamp;
    use crate::model::time::now;

    const ID: DatabaseId = DatabaseId([1; 16]);

    fn note(fenced_s_ago: Option<i64>) -> PublishedNote {
        PublishedNote {
            url: "file:///srv/feed".to_owned(),
            id: ID,
            slot: 1,
            seq: 1,
            lineage: [0; 16],
            hash: [0; 32],
            fenced: fenced_s_ago.map(|_| "ana@b published slot 2".to_owned()),
            fenced_at: fenced_s_ago.map(|ago_s| now().plus_s(-ago_s)),
        }
    }

    struct Watched {
        folder: tempfile::TempDir,
        watch: FenceWatch,
    }

    impl Watched {
        fn new(staleness_s: u64) -> Watched {
            let folder = tempfile::tempdir().unwrap();
            let watch = FenceWatch::new(
                folder.path().join("feed.redb"),
                Duration::from_secs(staleness_s),
            );
            Watched { folder, watch }
        }

        /// Writes the note, and reads it.
        fn poll(&self, note: &PublishedNote, id: Result<Option<DatabaseId>, StoreError>) -> bool {
            note.write(&self.folder.path().join("feed.redb")).unwrap();
            self.watch.poll(|| id);
            self.watch.reason().is_some()
        }
    }

    #[test]
    fn a_takeover_counts_until_a_note_without_it() {
        let watched = Watched::new(3600);
        assert!(!watched.poll(&note(None), Ok(Some(ID))));
        assert!(watched.poll(&note(Some(0)), Ok(Some(ID))) && !watched.watch.is_over());
        let reason = watched.watch.reason().unwrap();
        assert!(reason.contains("so it will answer 503 soon: ana@b published slot 2"));
        // Nothing changes while the database or the note cannot be read.
        let unreadable = || Err(StoreError::damaged("meta", "for this test"));
        assert!(watched.poll(&note(Some(0)), unreadable()));
        std::fs::write(watched.folder.path().join("feed.redb.published"), "no note").unwrap();
        watched.watch.poll(|| Ok(Some(ID)));
        assert!(
            watched.watch.reason().is_some(),
            "an unreadable note says nothing"
        );
        assert!(!watched.poll(&note(None), Ok(Some(ID))));
        assert_eq!(watched.watch.reason(), None);
        assert!(
            !watched.poll(&note(Some(0)), unreadable()),
            "not fenced before, and not known now"
        );
    }

    #[test]
    fn readiness_never_waits_for_a_poll() {
        let watched = Watched::new(3600);
        note(Some(0))
            .write(&watched.folder.path().join("feed.redb"))
            .unwrap();
        let (answers, answered) = channel();
        std::thread::scope(|scope| {
            watched.watch.poll(|| {
                // The disk does not answer, and `/readyz` is asked.
                scope.spawn(|| answers.send(watched.watch.reason()));
                let recv_timeout = answered.recv_timeout(Duration::from_secs(20));
                assert_eq!(recv_timeout, Ok(None), "it waited for the poll");
                Ok(Some(ID))
            });
        });
        assert!(watched.watch.reason().is_some());
    }

    #[test]
    fn a_note_about_another_database_is_ignored() {
        let watched = Watched::new(3600);
        for id in [Some(DatabaseId([2; 16])), None] {
            assert!(!watched.poll(&note(Some(0)), Ok(id)), "{id:?}");
        }
        assert!(watched.poll(&note(Some(0)), Ok(Some(ID))));
        assert!(
            !watched.poll(&note(Some(0)), Ok(Some(DatabaseId([2; 16])))),
            "the file was replaced"
        );
    }

    #[test]
    fn the_time_of_answering_begins_with_the_takeover() {
        // The allowed time, the age of the takeover, and whether the time is over. Some takeovers are older than the
        // last start of this machine.
        let boot_s = since_boot().as_secs();
        let before_boot_s = i64::try_from(boot_s).unwrap() + 3600;
        for (staleness_s, ago_s, expected) in [
            (60, 0, false),
            (60, 30, false),
            (60, 90, true),
            (7200, 3700, false),
            (60, before_boot_s, true),
            (boot_s + 1800, before_boot_s, true),
            (10 * 365 * 86_400, before_boot_s, false),
        ] {
            let watched = Watched::new(staleness_s);
            assert!(watched.poll(&note(Some(ago_s)), Ok(Some(ID))));
            let is_over = watched.watch.is_over();
            assert_eq!(is_over, expected, "{ago_s} of {staleness_s} s");
            assert!(watched.watch.reason().unwrap().contains(if expected {
                "it answers 503"
            } else {
                "503 soon"
            }));
        }
        // The clock of this machine was set back.
        let watched = Watched::new(60);
        let ahead = PublishedNote {
            fenced_at: Some(Timestamp::from_unix_s(now().unix_s() + 1000)),
            ..note(Some(0))
        };
        assert!(watched.poll(&ahead, Ok(Some(ID))) && !watched.watch.is_over());
        assert!(!Watched::new(0).watch.is_over(), "no publisher took over");
    }
}
