//! `GET /reference/therapy-areas`, `/reference/tags` and `/reference/organizations`.

use super::etag::ETag;
use super::representation::Representation;
use crate::query::reference::envelope;

pub(super) fn list(items: &[Vec<u8>]) -> Representation {
    let body = envelope(items);
    let etag = ETag::of("reference", [body.as_slice()]);
    Representation::json(body).revalidatable(etag)
}
