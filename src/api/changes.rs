//! `GET /{dataset}/changes`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answers::Answer;
use super::auth::Caller;
use super::observe::FeedUse;
use super::problem::{Code, Problem};
use super::source::SnapshotSource;
use crate::contract::parameters::{ChangesParameters, Resync};
use crate::contract::{BadRequest, Query};
use crate::model::{Dataset, License};
use crate::query::feed::{self, FeedStart};
use crate::query::segments::SegmentCache;
use crate::store::{Snapshot, StoreError};
use crate::token::{Sealer, SyncToken};
use crate::view::View;

/// The longest wait, in seconds. Proxies and load balancers close connections that are silent for 60 seconds.
const MAX_WAIT_S: u16 = 45;

/// The parameters of a request for changes, with the sync token opened.
#[derive(Debug)]
pub(super) struct FeedQuery {
    parameters: ChangesParameters,
    start: FeedStart,
    token: Option<SyncToken>,
}

impl FeedQuery {
    pub fn parse(
        caller: &Caller,
        dataset: Dataset,
        query: &Query<'_>,
    ) -> Result<FeedQuery, Problem> {
        let parameters: ChangesParameters = query.parse()?;
        let (start, token) = match (&parameters.since, parameters.updated_since) {
            (Some(_), Some(_)) => {
                let rule = "cannot be combined with `since`; send one of the two";
                return Err(BadRequest::parameter("updated_since", rule).into());
            }
            (None, None) => (FeedStart::Now, None),
            (None, Some(time)) => (FeedStart::Since(time), None),
            (Some(text), None) => {
                let token = open_token(caller, dataset, text)?;
                (FeedStart::After(token.position), Some(token))
            }
        };
        Ok(FeedQuery {
            parameters,
            start,
            token,
        })
    }

    /// Whether the page is empty and needs only memory: it begins now, or nothing has changed since the token was
    /// issued.
    pub fn is_poll(&self, caller: &Caller) -> Result<bool, Problem> {
        let Some(token) = &self.token else {
            return Ok(matches!(self.start, FeedStart::Now));
        };
        let is_newest = caller.view(token.dataset)?.witness()? == token.witness;
        Ok(is_newest
            && token.position >= token.witness.seq
            && self.check_token(&caller.snapshot, &caller.license)?)
    }

    /// Checks the token in a snapshot, which may read the disk. Returns false if it is not valid: it must be of this
    /// license, this history and the license's current scope. With `resync=diff` the scope may be an earlier one: the
    /// feed has an entry for each record that the license ever showed.
    pub fn check_token(&self, snapshot: &Snapshot, license: &License) -> Result<bool, StoreError> {
        let Some(token) = &self.token else {
            return Ok(true);
        };
        let is_of_scope =
            token.scope_seq == license.scope_seq || self.parameters.resync == Some(Resync::Diff);
        if token.license != license.id || !is_of_scope {
            return Ok(false);
        }
        match View::open(snapshot, license, token.dataset) {
            Ok(view) => view.holds(&token.witness),
            Err(_) => Ok(false),
        }
    }

    /// Finds a newer snapshot in which the token is valid: another server may have just issued it. `asked_at` is the
    /// time of the check. It may block. Returns 410 if the token is lost; 503 if it is of a snapshot that this server
    /// does not have yet.
    pub fn catch_up(
        &self,
        caller: &Caller,
        source: &dyn SnapshotSource,
        asked_at: Instant,
    ) -> Result<Caller, Problem> {
        let Some(token) = &self.token else {
            return Err(Problem::internal("there is no sync token"));
        };
        let license_id = caller.license.id;
        let license_in = |snapshot: &Snapshot| {
            let license = snapshot.find_license(license_id);
            license
                .filter(|license| self.check_token(snapshot, license).unwrap_or(false))
                .map(Arc::clone)
        };
        let accept = |snapshot: &Snapshot| license_in(snapshot).is_some();
        let accepted = |snapshot: Arc<Snapshot>| {
            license_in(&snapshot).map(|license| Caller { snapshot, license })
        };
        let snapshot = source.catch_up(asked_at, &accept);
        let was_ahead = is_ahead(token, &snapshot);
        if let Some(caller) = accepted(snapshot) {
            return Ok(caller);
        }
        if was_ahead && let Some(snapshot) = source.catch_up_with_origin(asked_at, &accept) {
            // Another server issued it, so it is not lost, unless the origin was rolled back.
            let is_ahead = is_ahead(token, &snapshot) && !source.ask_if_lost(last_seq(token));
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
                "The sync token is from before a change of the license, of another license, or from a state of the data that no longer exists. Load the export `/exports/{dataset}` again and continue from its `X-Sync-Token`."
            ),
        ))
    }

    /// A page of the change feed. The token must be valid.
    pub fn answer(
        &self,
        view: &View<'_>,
        sealer: &Sealer,
        gzip: Option<&SegmentCache>,
    ) -> Result<Answer, Problem> {
        let limit = usize::from(self.parameters.limit);
        let (mut page, next_seq, next) = feed::page(view, self.start.after(view)?, limit)?;
        let token = match &self.parameters.since {
            // If nothing is new, the token stays the same.
            Some(text) if self.token == Some(next) => Cow::from(text),
            _ => Cow::from(sealer.seal_sync_token(&next)),
        };
        page.end(next_seq.is_some(), "next_sync_token", Some(&token));
        // A first token, and a new token after a change of the scope, are sent at once.
        let is_news = !page.is_empty()
            || matches!(self.start, FeedStart::Now)
            || self.token.is_some_and(|sent| sent != next);
        let wait_s = MAX_WAIT_S.min(self.parameters.wait);
        let mut answer = Answer::page(page, view, gzip)?;
        answer.wait = (wait_s > 0 && !is_news).then(|| Duration::from_secs(wait_s.into()));
        if let FeedStart::After(position) = self.start {
            let next = next_seq.map(|seq| view.commit_of(seq)).transpose()?;
            answer.feed = Some(FeedUse {
                dataset: view.dataset(),
                position,
                witness: view.witness()?,
                behind_since: next.map(|commit| commit.time),
            });
        }
        Ok(answer)
    }
}

fn open_token(caller: &Caller, dataset: Dataset, text: &str) -> Result<SyncToken, Problem> {
    let sealer = caller.sealer();
    sealer.open_sync_token(text).ok().filter(|token| token.dataset == dataset).ok_or_else(|| {
        Problem::new(
            Code::InvalidSyncToken,
            format!("The `since` value is not a sync token of `/{dataset}/changes`. Send a `next_sync_token` of this feed, or the `X-Sync-Token` of `/exports/{dataset}`."),
        )
    })
}

fn last_seq(token: &SyncToken) -> u64 {
    token.scope_seq.max(token.position).max(token.witness.seq)
}

/// Whether a token depends on commits after a snapshot.
fn is_ahead(token: &SyncToken, snapshot: &Snapshot) -> bool {
    last_seq(token) > snapshot.commit().seq
}
