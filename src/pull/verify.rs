//! Compares the copy with the service's content, and repairs it.

use super::catch_up::{Done, catch_up, load};
use super::client::PullClient;
use super::digest::ContentDigest;
use super::error::PullError;
use super::target::{Events, Position, PullTarget};
use crate::model::Dataset;

/// The most comparisons while the service's content changes during each one.
const MAX_ATTEMPTS: u32 = 5;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The copy is equal to the service's content.
    Sound,
    /// The copy had this fault. It was loaded again, and is equal now.
    Repaired(String),
}

/// Brings the copy up to date, and compares it with the service's export at the same token. Also compares the derived
/// tables and files with the records. Loads a copy that differs again, and compares it once more.
pub fn verify(
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    events: &dyn Events,
    done: &mut Done,
) -> Result<Verdict, PullError> {
    for _ in 0..MAX_ATTEMPTS {
        catch_up(server, copy, dataset, 0, events, done)?;
        let (token, theirs) = server.export_digest(dataset)?;
        let Some(position) = copy.position(dataset)? else { continue };
        let fault = match difference(copy, dataset, &position, &theirs)? {
            // The service's content has changed meanwhile, so the two may differ.
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
        // Another program may write to the copy at the same time.
        let position = copy.position(dataset)?;
        let left = position.map(|position| difference(copy, dataset, &position, &theirs)).transpose()?.flatten();
        if let Some(left) = left {
            return Err(PullError::Unusable(format!(
                "{dataset}: the copy still differs after the export was loaded: {}; another program may be writing to it: \
                 stop it, or give another location",
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

struct CopyFault {
    text: String,
    /// True if the records differ from the service's, false if derived tables differ from the records.
    is_of_content: bool,
}

/// Compares the records with the service's digest, and the derived tables with the records.
fn difference(
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    position: &Position,
    theirs: &ContentDigest,
) -> Result<Option<CopyFault>, PullError> {
    let ours = copy.digest(dataset)?;
    if ours != *theirs {
        let (ours, theirs) = (ours.records, theirs.records);
        let counts = if ours == theirs { String::new() } else { format!(" ({ours} records instead of {theirs})") };
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
