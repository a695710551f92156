//! Publishing a database: each commit's changes become the next entry of a log in a bucket.
//!
//! **The commit point is the creation of `log/N`**: a name can be created once, so of two publishers one goes on and the other
//! is fenced. Whatever dies before it has published nothing; whatever dies after it is found at the end of the log by the next
//! start, which goes on there.
//!
//! - [`start`]: the lock, trying the store, the end of the log, and whether this database may go on after it.
//! - [`end`]: reading the end of the log.
//! - [`step`]: putting what waits; [`states`]: putting whole states, [`beside`] the log in a thread of its own; [`parts`]: their
//!   objects; [`sweep`]: deleting what nobody needs.
//! - [`heartbeat`]: the sign of life, and noticing that the bucket lost objects; [`life`]: what is remembered of them.
//! - [`fence`]: noticing that another publisher took over, and noting what is published.
//! - [`patience`]: trying again what may pass. [`lock`]: one publisher per file.
//! - [`standing`]: what others see of a publisher at work; [`status`]: what people ask.

mod beside;
mod end;
mod error;
mod fence;
mod heartbeat;
mod life;
pub mod lock;
mod parts;
mod patience;
pub mod standing;
mod start;
mod states;
pub mod status;
mod step;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use error::{Diverged, PublishError};

use self::beside::Beside;
use self::end::{End, Growth, StateObjects};
use self::life::{Life, WantedState};
use self::lock::PublisherLock;
use self::patience::Patience;
use self::standing::{Standing, Trouble};
use crate::bucket::Bucket;
use crate::model::{DatabaseId, Timestamp};
use crate::store::{CommitPoint, Follower, StoreError};

/// The time between two looks for new commits.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// For how long a single round tries a bucket that cannot be reached.
const ONCE_TRIES: Duration = Duration::from_secs(60);

/// How a database is published.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Put what waits, and end.
    pub once: bool,
    /// The least time between two entries; what is committed meanwhile is one entry.
    pub every: Duration,
    /// For how long any instant can be restored.
    pub keep: Duration,
    /// The most time between two states, if there are entries between them.
    pub state_every: Duration,
    /// The time between two signs of life. Whether another publisher took over is looked for twice as often.
    pub heartbeat: Duration,
    /// Put a state of this database, whatever the log's end is.
    pub start_over: bool,
    /// How long to wait for another process that is writing to the database.
    pub wait: Duration,
}

impl Settings {
    /// Settings of a single round.
    pub fn once(wait: Duration, start_over: bool) -> Settings {
        Settings {
            once: true,
            every: Duration::ZERO,
            keep: Duration::MAX,
            state_every: Duration::MAX,
            heartbeat: Duration::MAX,
            start_over,
            wait,
        }
    }
}

/// What a single round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The last slot of the log.
    pub slot: u64,
    /// The last seq in it.
    pub seq: u64,
    /// How many entries were put.
    pub entries: u64,
}

/// The publisher of a database.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    bucket: Arc<Bucket>,
    settings: Settings,
    follower: Follower,
    standing: Arc<Standing>,
    patience: Patience,
    /// That the database's own file cannot be read, or what is published not be noted.
    local: Trouble,
    id: DatabaseId,
    who: String,
    /// The end of the log; `None` before the first entry.
    end: Option<End>,
    growth: Growth,
    /// When the newest state was written.
    state_at: Timestamp,
    /// The newest state; `None` while none is known.
    newest_state: Option<StateObjects>,
    /// A state that must go out because the bucket lost objects.
    wanted_state: Option<WantedState>,
    /// The state that is being put beside the log.
    beside: Option<Beside>,
    /// The entries that this publisher put.
    entries: u64,
    /// When it put the last one.
    put_at: Option<Instant>,
    /// Up to where nothing waits.
    seen: Option<CommitPoint>,
    /// Whether the note beside the database tells of an earlier end.
    note_due: bool,
    life: Life,
    /// When the store was last found to create names only once.
    probed_at: Option<Timestamp>,
    _lock: PublisherLock,
}

impl Publisher {
    /// Publishes until an error that does not pass; with [`Settings::once`] until nothing waits. Calls `on_its_way` once what waits
    /// at the start is published.
    ///
    /// # Errors
    /// [`PublishError`]; whatever it is, starting again goes on where the log ends.
    pub fn run(&mut self, on_its_way: impl FnOnce()) -> Result<Round, PublishError> {
        let mut on_its_way = Some(on_its_way);
        loop {
            let is_done = match self.round() {
                Ok(is_done) => {
                    if let Some(tell) = on_its_way.take() {
                        tell();
                    }
                    is_done
                }
                // The database is being replaced, say, or a disk is full.
                Err(PublishError::Store(error)) if !self.settings.once && may_pass(&error) => {
                    self.local.tell(&format!("{}: {error}", self.path.display()));
                    false
                }
                Err(error) => return Err(error),
            };
            if self.settings.once && is_done {
                self.end_with_life()?;
                let end = self.end.as_ref();
                let (slot, seq) = end.map_or((0, 0), |end| (end.slot, end.head.seq));
                return Ok(Round { slot, seq, entries: self.entries });
            }
            sleep(LOOK_EVERY);
        }
    }

    /// One look; returns whether nothing waits.
    fn round(&mut self) -> Result<bool, PublishError> {
        self.take_in_state()?;
        let is_done = self.publish_waiting()?;
        self.local.passed();
        self.show_life()?;
        if is_done {
            self.standing.note(|progress| progress.all_published_at = Some(Instant::now()));
            if self.wanted_state == Some(WantedState::Entry) {
                self.put_state_entry()?;
            } else if self.is_state_due() {
                self.begin_state(self.follower.origin()?)?;
            }
        }
        if self.note_due {
            self.note();
        }
        if self.settings.once {
            self.await_state()?;
        }
        Ok(is_done)
    }

    /// Who publishes, without the random name.
    fn shown_who(&self) -> &str {
        shown_who(&self.who)
    }
}

/// Who published, as people are told: user and machine.
pub(super) fn shown_who(who: &str) -> &str {
    who.split_once(' ').map_or(who, |(who, _)| who)
}

/// User and machine, and the random name of the publisher's file: who puts entries.
pub fn who(lock: &PublisherLock) -> String {
    format!("{} {}", crate::replicate::who::who(), lock.name)
}

/// Whether a failure of the database may pass by itself, or by what an operator does beside it.
fn may_pass(error: &StoreError) -> bool {
    use StoreError::{Busy, DiskFull, Io, NeedsRepair, NotFound, Replaced};
    matches!(error, Busy { .. } | DiskFull(_) | Io { .. } | NeedsRepair { .. } | NotFound { .. } | Replaced { .. })
}
