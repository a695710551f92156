//! Comparing the copy with the service's content, and mending it.

use super::catch_up::{Done, catch_up, load};
use super::client::PullClient;
use super::digest::ContentDigest;
use super::error::PullError;
use super::target::{Events, Position, PullTarget};
use crate::model::Dataset;

/// How often a comparison is tried while the service changes under it.
const ATTEMPTS: u32 = 5;

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The copy is equal to the service's content.
    Sound,
    /// It was not, for this reason. It was loaded anew, and is equal now.
    Repaired(String),
}

/// Brings the copy to the present, compares it with the service's export at the same token, and what is derived from the
/// records with the records. A copy that differs is loaded anew and compared with the export again.
///
/// # Errors
/// When the service or the copy fails, or the service changes faster than it can be compared.
pub fn verify(
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    events: &dyn Events,
    done: &mut Done,
) -> Result<Verdict, PullError> {
    for _ in 0..ATTEMPTS {
        catch_up(server, copy, dataset, 0, events, done)?;
        let (token, theirs) = server.export_digest(dataset)?;
        let Some(position) = copy.position(dataset)? else { continue };
        let fault = match difference(copy, dataset, &position, &theirs)? {
            // The service has moved on meanwhile, so a difference means nothing.
            Some(CopyFault { is_of_content: true, .. }) if token != position.token => continue,
            fault => fault,
        };
        let Some(fault) = fault else {
            copy.set_verified(dataset)?;
            return Ok(Verdict::Sound);
        };
        let fault = fault.text;
        events.note(&format!("{dataset}: the copy was changed or damaged: {fault}; loading the export"));
        let theirs = load(server, copy, dataset, true, events, done)?;
        // A load can leave a fault where another program writes to the copy, so it is compared once more.
        let position = copy.position(dataset)?;
        let left = position.map(|position| difference(copy, dataset, &position, &theirs)).transpose()?.flatten();
        if let Some(left) = left {
            return Err(PullError::Unusable(format!(
                "{dataset}: the copy still differs after the export was loaded: {}; another program writes to it: stop that one, \
                 or give another place for the copy",
                left.text
            )));
        }
        copy.set_verified(dataset)?;
        return Ok(Verdict::Repaired(fault));
    }
    Err(PullError::failed(format!(
        "{dataset}: the service's content changed again and again while it was compared; verify it at a quieter time"
    )))
}

/// A difference between a copy and what it should hold.
struct CopyFault {
    text: String,
    /// Whether the records differ from the service's, rather than what is derived from them.
    is_of_content: bool,
}

/// Compares a copy with the service's content, and what is derived from its records with them.
fn difference(
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    position: &Position,
    theirs: &ContentDigest,
) -> Result<Option<CopyFault>, PullError> {
    let ours = copy.digest(dataset)?;
    if ours != *theirs {
        let (ours, theirs) = (ours.records, theirs.records);
        let counts = if ours == theirs { String::new() } else { format!(" (there were {ours} records for {theirs})") };
        let text = format!("it differs from the service's content{counts}");
        return Ok(Some(CopyFault { text, is_of_content: true }));
    }
    let fault = if position.records == ours.records {
        copy.find_fault(dataset)?
    } else {
        Some("its count of records was wrong".to_owned())
    };
    Ok(fault.map(|text| CopyFault { text, is_of_content: false }))
}
