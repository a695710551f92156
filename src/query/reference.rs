//! Reference lists: what the visible records carry, counted, in alphabetical order.

use serde::Serialize;

use crate::model::Id;
use crate::model::fold::fold;
use crate::store::StoreError;
use crate::view::View;

/// A therapy area with the number of visible conferences that have it.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct TherapyAreaItem {
    pub name: String,
    pub conferences: u64,
}

/// A tag with the number of visible records that carry it.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct TagItem {
    pub id: Id,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    pub category: Option<String>,
    pub records: u64,
}

/// An organization with the number of visible records linked to it.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct OrganizationItem {
    pub id: Id,
    pub name: String,
    pub abbv: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub url: Option<String>,
    pub records: u64,
}

/// Alphabetical means: by the folding of `q`, then by code points. What is still equal goes by id.
type SortKey = (String, String);

fn sort_key(text: &str) -> SortKey {
    (fold(text), text.to_owned())
}

/// The therapy areas of visible conferences.
///
/// # Errors
/// When the database cannot be read.
pub fn list_therapy_areas(view: &View<'_>) -> Result<Vec<TherapyAreaItem>, StoreError> {
    let counts = view.count_therapy_areas()?.into_iter();
    let mut items: Vec<TherapyAreaItem> =
        counts.map(|(name, conferences)| TherapyAreaItem { name, conferences }).collect();
    items.sort_by_cached_key(|item| sort_key(&item.name));
    Ok(items)
}

/// A record links to what is not there.
fn missing(table: &'static str, id: Id) -> StoreError {
    StoreError::damaged(table, format!("there is no {id}, to which a record links"))
}

/// The tags of visible records, by type then name; of one type where it is given.
///
/// # Errors
/// When the database cannot be read.
pub fn list_tags(view: &View<'_>, kind: Option<&str>) -> Result<Vec<TagItem>, StoreError> {
    let counts = view.count_tags()?;
    let tags = &view.references()?.tags;
    let mut items: Vec<TagItem> = Vec::with_capacity(counts.len());
    for (id, records) in counts {
        let tag = tags.get(&id).ok_or_else(|| missing("tags", id))?;
        let fields = tag.row.fields();
        if kind.is_none_or(|kind| fields.kind.as_deref() == Some(kind)) {
            items.push(TagItem {
                id,
                kind: fields.kind.clone().unwrap_or_default(),
                name: fields.name.clone().unwrap_or_default(),
                category: fields.category.clone(),
                records,
            });
        }
    }
    items.sort_by_cached_key(|item| (sort_key(&item.kind), sort_key(&item.name), item.id));
    Ok(items)
}

/// The organizations linked to visible records, by name.
///
/// # Errors
/// When the database cannot be read.
pub fn list_organizations(view: &View<'_>) -> Result<Vec<OrganizationItem>, StoreError> {
    let counts = view.count_organizations()?;
    let organizations = &view.references()?.organizations;
    let mut items: Vec<OrganizationItem> = Vec::with_capacity(counts.len());
    for (id, records) in counts {
        let organization = organizations.get(&id).ok_or_else(|| missing("organizations", id))?;
        let fields = organization.row.fields();
        items.push(OrganizationItem {
            id,
            name: fields.name.clone().unwrap_or_default(),
            abbv: fields.abbv.clone(),
            kind: fields.kind.clone(),
            url: fields.url.clone(),
            records,
        });
    }
    items.sort_by_cached_key(|item| (sort_key(&item.name), item.id));
    Ok(items)
}
