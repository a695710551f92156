//! Reference lists: what the visible records carry, counted, in alphabetical order.

use std::collections::BTreeMap;

use crate::model::fold::fold;
use crate::model::json::{push_display, push_str};
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Fields, Id, OrganizationFields, TagFields};
use crate::store::StoreError;
use crate::view::View;

/// The JSON of a therapy area with the number of visible conferences that have it.
pub fn therapy_area(name: &str, conferences: u64) -> Vec<u8> {
    let mut json = b"{\"name\":".to_vec();
    push_str(&mut json, name);
    push_display(&mut json, format_args!(",\"conferences\":{conferences}}}"));
    json
}

/// The JSON of an organization or tag with the number of visible records that carry it.
pub fn item<F>(row: &Referenced<F>, records: u64) -> Vec<u8> {
    let mut json = row.json.strip_suffix(b"}").unwrap_or(&row.json).to_vec();
    push_display(&mut json, format_args!(",\"records\":{records}}}"));
    json
}

/// The JSON of a whole list.
pub fn envelope(items: &[Vec<u8>]) -> Vec<u8> {
    [b"{\"data\":[".as_slice(), &items.join(&b','), b"]}"].concat()
}

/// Alphabetical means: by the folding of `q`, then by code points. What is still equal goes by id.
type SortKey = (String, String);

fn sort_key(text: &str) -> SortKey {
    (fold(text), text.to_owned())
}

/// The therapy areas of visible conferences.
pub fn list_therapy_areas(view: &View<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut counts = view.count_texts("therapy_areas")?;
    counts.sort_by_cached_key(|(name, _)| sort_key(name));
    Ok(counts.iter().map(|(name, conferences)| therapy_area(name, *conferences)).collect())
}

/// The tags of visible records, by type then name; of one type where it is given.
pub fn list_tags(view: &View<'_>, kind: Option<&str>) -> Result<Vec<Vec<u8>>, StoreError> {
    list(view, &view.references()?.tags, |TagFields { kind: own, name, .. }| {
        let key = [own, name].map(|text| sort_key(text.as_deref().unwrap_or_default()));
        (kind.is_none() || own.as_deref() == kind).then_some(key)
    })
}

/// The organizations linked to visible records, by name.
pub fn list_organizations(view: &View<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
    list(view, &view.references()?.organizations, |fields: &OrganizationFields| Some(sort_key(fields.name())))
}

/// The items of the rows that have a sort key, in its order, then by id.
fn list<F: ReferenceFields, K: Ord>(
    view: &View<'_>,
    rows: &BTreeMap<Id, Referenced<F>>,
    key_of: impl Fn(&F) -> Option<K>,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut items = Vec::new();
    for (id, records) in view.count_links(F::KIND)? {
        let missing = || StoreError::damaged(F::STEM, format!("there is no {id}, to which a record links"));
        let row = rows.get(&id).ok_or_else(missing)?;
        items.extend(key_of(row.row.fields()).map(|key| (key, id, item(row, records))));
    }
    items.sort_unstable();
    Ok(items.into_iter().map(|(.., json)| json).collect())
}
