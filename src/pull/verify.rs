//! Comparing the copy with the service's content, and mending it.

use super::catch_up::{Done, catch_up, load};
use super::client::Client;
use super::error::PullError;
use super::target::{Events, Target};
use crate::model::Dataset;

/// How often a comparison is tried while the service changes under it.
const ATTEMPTS: u32 = 5;

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The copy is equal to the service's content.
    Sound,
    /// It was not, for this reason, and was loaded anew.
    Mended(String),
}

/// Brings the copy to the present, compares it with the service's export at the same token, and what is derived from the
/// records with the records. What differs is loaded anew.
///
/// # Errors
/// When the service or the copy fails, or the service changes faster than it can be compared.
pub fn verify(
    server: &Client,
    copy: &mut dyn Target,
    dataset: Dataset,
    events: &dyn Events,
    done: &mut Done,
) -> Result<Verdict, PullError> {
    for _ in 0..ATTEMPTS {
        catch_up(server, copy, dataset, 0, events, done)?;
        let (token, theirs) = server.export_digest(dataset)?;
        let Some(position) = copy.position(dataset)? else { continue };
        let ours = copy.digest(dataset)?;
        let fault = if ours != theirs {
            if token != position.token {
                // The service has moved on meanwhile, so a difference means nothing.
                continue;
            }
            let (ours, theirs) = (ours.records, theirs.records);
            let counts =
                if ours == theirs { String::new() } else { format!(" (there were {ours} records for {theirs})") };
            Some(format!("it differs from the service's content{counts}"))
        } else if position.records != ours.records {
            Some("its count of records was wrong".to_owned())
        } else {
            copy.find_fault(dataset)?
        };
        if let Some(fault) = fault {
            events.note(&format!("{dataset}: the copy was changed or damaged: {fault}; loading the export"));
            load(server, copy, dataset, true, events, done)?;
            copy.set_verified(dataset)?;
            return Ok(Verdict::Mended(fault));
        }
        copy.set_verified(dataset)?;
        return Ok(Verdict::Sound);
    }
    Err(PullError::failed(format!(
        "{dataset}: the service's content changed again and again while it was compared; verify it at a quieter time"
    )))
}
