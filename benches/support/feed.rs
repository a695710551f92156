//! Positions in a license's feed, and their tokens.

use medfeed::model::Dataset;
use medfeed::store::Snapshot;
use medfeed::token::{Sealer, SyncToken};
use medfeed::view::View;

use super::world::license_name;

/// Entries of a feed page; also the default of the API.
pub const PAGE: usize = 500;

/// The position of a page in the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names explain the variants")]
pub enum Position {
    Start,
    Middle,
    Head,
    NothingNew,
}

impl Position {
    /// Every position.
    pub const EACH: [Position; 4] = [
        Position::Head,
        Position::Middle,
        Position::Start,
        Position::NothingNew,
    ];

    /// The position in the names of benchmarks.
    pub const fn name(self) -> &'static str {
        match self {
            Position::Start => "from the start",
            Position::Middle => "in the middle",
            Position::Head => "at the head",
            Position::NothingNew => "nothing new",
        }
    }
}

/// The conferences of a license by its position among the world's.
pub fn view(snapshot: &Snapshot, license: usize) -> View<'_> {
    let license = snapshot
        .find_license_named(&license_name(license))
        .expect("the license of the position is there");
    View::open(snapshot, license, Dataset::Conferences).expect("every license shows conferences")
}

/// The seqs of all entries of a feed.
pub fn seqs(view: &View<'_>) -> Vec<u64> {
    view.feed_after(0, usize::MAX)
        .expect("the feed can be read")
        .iter()
        .map(|entry| entry.seq)
        .collect()
}

/// The number of entries before a position.
pub fn before(position: Position, entries: usize) -> usize {
    match position {
        Position::Start => 0,
        Position::Middle => entries / 2,
        Position::Head => entries.saturating_sub(PAGE),
        Position::NothingNew => entries,
    }
}

/// The token of a caller that has the first `taken` entries of the feed.
pub fn token(snapshot: &Snapshot, view: &View<'_>, seqs: &[u64], taken: usize) -> String {
    let token = SyncToken {
        dataset: view.dataset(),
        license: view.license().id,
        scope_seq: view.license().scope_seq,
        position: taken.checked_sub(1).map_or(0, |last| seqs[last]),
        witness: view.witness().expect("the feed can be read"),
    };
    Sealer::new(snapshot.secret()).seal_sync_token(&token)
}
