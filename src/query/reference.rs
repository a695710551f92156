//! Reference lists: therapy areas, tags and organizations of visible records, with counts, in alphabetical order.

use std::collections::BTreeMap;

use crate::model::json::{push_display, push_json};
use crate::model::{Fields, Id, OrganizationFields, ReferenceFields, Referenced, TagFields, fold};
use crate::store::{Result, StoreError};
use crate::view::View;

/// Returns the JSON of a therapy area with its number of visible conferences.
pub fn therapy_area(name: &str, conferences: u64) -> Vec<u8> {
    let mut json = b"{\"name\":".to_vec();
    push_json(&mut json, name);
    push_display(&mut json, format_args!(",\"conferences\":{conferences}}}"));
    json
}

/// Returns the JSON of an organization or tag with its number of visible records.
pub fn item<F>(row: &Referenced<F>, records: u64) -> Vec<u8> {
    let mut json = row.json.strip_suffix(b"}").unwrap_or(&row.json).to_vec();
    push_display(&mut json, format_args!(",\"records\":{records}}}"));
    json
}

/// Returns the JSON of a complete list.
pub fn envelope(items: &[Vec<u8>]) -> Vec<u8> {
    [b"{\"data\":[".as_slice(), &items.join(&b','), b"]}"].concat()
}

/// Text folded as for the parameter `q`, then the text itself. Ids break ties.
type SortKey = (String, String);

fn sort_key(text: &str) -> SortKey {
    (fold(text), text.to_owned())
}

/// Returns the therapy areas of visible conferences.
pub fn list_therapy_areas(view: &View<'_>) -> Result<Vec<Vec<u8>>> {
    let mut counts = view.count_texts("therapy_areas")?;
    counts.sort_by_cached_key(|(name, _)| sort_key(name));
    Ok(counts
        .iter()
        .map(|(name, conferences)| therapy_area(name, *conferences))
        .collect())
}

/// Returns the tags of visible records, by type and name. `kind` selects one type.
pub fn list_tags(view: &View<'_>, kind: Option<&str>) -> Result<Vec<Vec<u8>>> {
    list(
        view,
        &view.references()?.tags,
        |TagFields {
             kind: own, name, ..
         }| {
            let key = [own, name].map(|text| sort_key(text.as_deref().unwrap_or_default()));
            (kind.is_none() || own.as_deref() == kind).then_some(key)
        },
    )
}

/// Returns the organizations linked to visible records, by name.
pub fn list_organizations(view: &View<'_>) -> Result<Vec<Vec<u8>>> {
    list(
        view,
        &view.references()?.organizations,
        |fields: &OrganizationFields| Some(sort_key(fields.name())),
    )
}

/// Returns the linked items for which `key_of` returns a sort key, by that key and then by id.
fn list<F: ReferenceFields, K: Ord>(
    view: &View<'_>,
    rows: &BTreeMap<Id, Referenced<F>>,
    key_of: impl Fn(&F) -> Option<K>,
) -> Result<Vec<Vec<u8>>> {
    let mut items = Vec::new();
    for (id, records) in view.count_links(F::KIND)? {
        let row = rows.get(&id).ok_or_else(|| {
            let detail = format!("there is no {id}, to which a record links");
            StoreError::damaged(F::STEM, detail)
        })?;
        items.extend(key_of(row.row.fields()).map(|key| (key, id, item(row, records))));
    }
    items.sort_unstable();
    Ok(items.into_iter().map(|(.., json)| json).collect())
}
