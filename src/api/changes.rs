//! `GET /{dataset}/changes`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::observe::FeedUse;
use super::problem::{Code, Problem};
use super::representation::Representation;
use super::source::SnapshotSource;
use crate::contract::Query;
use crate::contract::parameters::{ChangesParameters, Resync};
use crate::model::{Dataset, License};
use crate::query::feed::{self, Start};
use crate::query::segments::SegmentCache;
use crate::store::{Snapshot, StoreError};
use crate::token::{Sealer, SyncToken};
use crate::view::View;

/// Where newer commits are looked for, once, before a token is said to be lost.
pub(super) struct Newer<'s> {
    pub source: &'s dyn SnapshotSource,
    /// The looks that had begun when the request came.
    pub looks: u64,
    /// When the request came.
    pub since: Instant,
}

/// A page of the change feed.
pub(super) fn changes(
    caller: &Caller,
    newer: &Newer<'_>,
    dataset: Dataset,
    query: &Query<'_>,
    gzip: Option<&SegmentCache>,
    patience: Wait,
) -> Result<Outcome, Problem> {
    let mut caller = Cow::Borrowed(caller);
    caller.view(dataset)?;
    let ChangesParameters { since, updated_since, limit, wait, resync } = query.parse()?;
    let later = |wait| Ok(Outcome::Later(wait));
    let mut sent = None;
    let start = match (&since, updated_since) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid_parameter(
                "updated_since",
                "cannot be combined with `since`; send one of the two",
            ));
        }
        (None, None) => Start::Now,
        (None, Some(time)) => Start::Since(time),
        (Some(text), None) => {
            let token = open_token(&caller, dataset, text)?;
            if patience < Wait::Reading && !is_newest(&caller, &token)? {
                return later(Wait::Reading);
            }
            if !continues(&caller.snapshot, &caller.license, &token, resync)? {
                if patience < Wait::Looking {
                    return later(Wait::Looking);
                }
                // Another server may have given it a moment ago: look once before saying that it is lost.
                caller = Cow::Owned(catch_up(&caller, newer, &token, resync)?);
            }
            sent = Some(token);
            Start::After(token.position)
        }
    };
    let view = caller.view(dataset)?;
    let is_poll = |position| position >= view.witness().map_or(0, |witness| witness.seq);
    if patience < Wait::Reading && !matches!(start, Start::Now) && !matches!(start, Start::After(at) if is_poll(at)) {
        return later(Wait::Reading);
    }
    let after = start.after(&view)?;
    let rows = feed::feed(&view, after, usize::from(limit))?;
    let next = feed::token_after(&view, &rows)?;
    let mut page = feed::page(&view, &rows)?;
    let token = match since {
        // With nothing new the token is the same.
        Some(text) if sent == Some(next) => text,
        _ => Sealer::new(caller.snapshot.secret()).seal_sync_token(&next),
    };
    page.end_changes(rows.has_more, &token);
    let mut representation = Representation::page(page, &view, gzip)?;
    // Who asks for the present moment has it, and a token of another scope is news.
    let is_news = !rows.entries.is_empty() || matches!(start, Start::Now) || sent.is_some_and(|sent| sent != next);
    representation.hold = (wait > 0 && !is_news).then(|| Duration::from_secs(wait.into()));
    if let Start::After(position) = start {
        let newest_at = view.known_newest().map_or(caller.snapshot.commit().time, |(_, time)| time);
        representation.feed = Some(FeedUse { dataset, position, behind_s: behind_s(&view, position)?, newest_at });
    }
    Ok(Outcome::made(&view, representation)?)
}

/// By how many seconds the feed's newest entry is later than a position.
pub(crate) fn behind_s(view: &View<'_>, position: u64) -> Result<u64, StoreError> {
    let witness = view.witness()?.seq;
    if position >= witness {
        return Ok(0);
    }
    let newest = view.commit_of(witness)?.time.unix_s();
    // A walk by `updated_since` may stand before the first commit.
    let at = view.commit_of(position.max(1))?.time.unix_s();
    Ok(u64::try_from(newest - at).unwrap_or(0))
}

/// Whether it is seen at once, in memory, that a token continues in this state: nothing has changed since it was given.
fn is_newest(caller: &Caller, token: &SyncToken) -> Result<bool, Problem> {
    Ok(caller.view(token.dataset)?.witness()? == token.witness)
}

fn open_token(caller: &Caller, dataset: Dataset, text: &str) -> Result<SyncToken, Problem> {
    let sealer = Sealer::new(caller.snapshot.secret());
    sealer.open_sync_token(text).ok().filter(|token| token.dataset == dataset).ok_or_else(|| {
        Problem::new(
            Code::InvalidSyncToken,
            format!("The `since` value is not a sync token of `/{dataset}/changes`. Send a `next_sync_token` of this feed, or the `X-Sync-Token` of `/exports/{dataset}`."),
        )
    })
}

/// Whether a token continues in this state: of this license, of this history, and of the license's present scope or, where
/// the caller takes the difference, of a former one. The license's rows hold the difference: each record that it ever saw has
/// one, which moved when the record changed, entered or left.
fn continues(
    snapshot: &Snapshot,
    license: &License,
    token: &SyncToken,
    resync: Option<Resync>,
) -> Result<bool, StoreError> {
    let is_of_scope = token.scope_seq == license.scope_seq || resync == Some(Resync::Diff);
    if token.license != license.id || !is_of_scope {
        return Ok(false);
    }
    match View::open(snapshot, license, token.dataset) {
        Ok(view) => view.holds(&token.witness),
        Err(_) => Ok(false),
    }
}

/// The last seq that a token rests on.
fn last_seq(token: &SyncToken) -> u64 {
    token.scope_seq.max(token.position).max(token.witness.seq)
}

/// Whether a token rests on what comes after all commits of a state.
fn is_ahead(token: &SyncToken, snapshot: &Snapshot) -> bool {
    last_seq(token) > snapshot.commit().seq
}

/// The caller in a newer state, in which the token continues.
fn catch_up(caller: &Caller, newer: &Newer<'_>, token: &SyncToken, resync: Option<Resync>) -> Result<Caller, Problem> {
    let license_id = caller.license.id;
    let accept = |snapshot: &Snapshot| {
        let license = snapshot.find_license(license_id);
        license.is_some_and(|license| continues(snapshot, license, token, resync).unwrap_or(false))
    };
    let accepted = |snapshot: Arc<Snapshot>| {
        let license = snapshot.find_license(license_id).map(Arc::clone).filter(|_| accept(&snapshot));
        license.map(|license| Caller { snapshot, license })
    };
    let snapshot = newer.source.catch_up(newer.looks, &accept);
    let was_ahead = is_ahead(token, &snapshot);
    if let Some(caller) = accepted(snapshot) {
        return Ok(caller);
    }
    if was_ahead && let Some(snapshot) = newer.source.catch_up_with_origin(newer.since, &accept) {
        // Another server of the same data gave it, so it is not lost, unless the origin went back since.
        let is_ahead = is_ahead(token, &snapshot) && !newer.source.is_lost(last_seq(token));
        match accepted(snapshot) {
            Some(caller) => return Ok(caller),
            None if is_ahead => return Err(Problem::ahead()),
            None => {}
        }
    }
    let dataset = token.dataset;
    Err(Problem::new(
        Code::ResyncRequired,
        format!(
            "The sync token is from before a change of the license, or from a state of the data that no longer exists. Load the export `/exports/{dataset}` anew and go on from its `X-Sync-Token`."
        ),
    ))
}
