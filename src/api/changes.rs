//! `GET /{dataset}/changes`.

use std::sync::Arc;

use super::caller::Caller;
use super::content::{Content, Page};
use super::observe::FeedUse;
use super::pages::{PackedPlace, Pages};
use super::params::Params;
use super::problem::{Code, Problem};
use super::records::updated_since;
use super::response::Response;
use super::source::Source;
use crate::model::json::push_str;
use crate::model::{Dataset, License};
use crate::query::feed::{self, Start};
use crate::store::{Snapshot, StoreError};
use crate::token::{Sealer, SyncToken};
use crate::view::View;

const LIMIT_DEFAULT: u16 = 500;
const LIMIT_MOST: u16 = 1000;

/// A page of the change feed.
pub(super) fn changes(
    mut caller: Caller,
    source: &dyn Source,
    dataset: Dataset,
    params: &Params<'_>,
    pages: &Arc<Pages>,
) -> Result<Response, Problem> {
    caller.view(dataset)?;
    params.allow(&["since", "updated_since", "limit"])?;
    let limit = params.whole("limit", 1, LIMIT_MOST)?.unwrap_or(LIMIT_DEFAULT);
    let since_time = updated_since(params)?;
    let since = params.opaque("since")?;
    let mut sent = None;
    let start = match (&since, since_time) {
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
            if !is_current(&caller.snapshot, &caller.license, &token)? {
                // Another server may have given it a moment ago: look once before saying that it is lost.
                catch_up(&mut caller, source, &token)?;
            }
            sent = Some(token);
            Start::After(token.position)
        }
    };
    let view = caller.view(dataset)?;
    let after = start.after(&view)?;
    let rows = pages.feed(&view, (after, usize::from(limit)), |(after, limit)| feed::feed(&view, *after, *limit))?;
    let next = feed::token_after(&view, &rows)?;
    let feed = match start {
        Start::After(position) => Some(feed_use(&view, position, next.witness.seq)?),
        Start::Since(_) | Start::Now => None,
    };
    let mut tail = Vec::with_capacity(160);
    tail.extend_from_slice(b"],\"has_more\":");
    tail.extend_from_slice(if rows.has_more { b"true" } else { b"false" });
    tail.extend_from_slice(b",\"next_sync_token\":");
    match since {
        // With nothing new the same token stands for the same place.
        Some(text) if sent == Some(next) => push_str(&mut tail, &text),
        _ => push_str(&mut tail, &Sealer::new(caller.snapshot.secret()).seal_sync_token(&next)),
    }
    tail.push(b'}');
    let texts = feed::texts(&view, &rows)?;
    let packed_place = Some(PackedPlace::of(pages, &rows));
    let page = Page { license: caller.license, dataset, head: "{\"data\":[", texts, tail, packed_place };
    let mut response = Response::json(Content::Page(Box::new(page)));
    response.feed = feed;
    Ok(response)
}

/// How far behind the feed's newest entry a caller's token stands.
fn feed_use(view: &View<'_>, position: u64, witness: u64) -> Result<FeedUse, StoreError> {
    let behind_s = if position >= witness {
        0
    } else {
        let newest = view.commit_of(witness)?.time.unix_s();
        // A walk by `updated_since` may stand before the first commit.
        let at = view.commit_of(position.max(1))?.time.unix_s();
        u64::try_from(newest - at).unwrap_or(0)
    };
    Ok(FeedUse { dataset: view.dataset(), position, behind_s })
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

/// Whether a token continues in this state: of this license, of its present scope, and of this history.
fn is_current(snapshot: &Snapshot, license: &License, token: &SyncToken) -> Result<bool, StoreError> {
    if token.license != license.id || token.scope_seq != license.scope_seq {
        return Ok(false);
    }
    match View::open(snapshot, license, token.dataset) {
        Ok(view) => view.holds(&token.witness),
        Err(_) => Ok(false),
    }
}

fn catch_up(caller: &mut Caller, source: &dyn Source, token: &SyncToken) -> Result<(), Problem> {
    let license_id = caller.license.id;
    let continues = |snapshot: &Snapshot| {
        snapshot.find_license(license_id).is_some_and(|license| is_current(snapshot, license, token).unwrap_or(false))
    };
    let snapshot = source.catch_up(&continues);
    if !continues(&snapshot) {
        let dataset = token.dataset;
        return Err(Problem::new(
            Code::ResyncRequired,
            format!(
                "The sync token is from before a change of the license, or from a state of the data that no longer exists. Load the export `/exports/{dataset}` anew and go on from its `X-Sync-Token`."
            ),
        ));
    }
    if let Some(license) = snapshot.find_license(license_id) {
        caller.license = Arc::clone(license);
    }
    caller.snapshot = snapshot;
    Ok(())
}
