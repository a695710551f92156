//! Rows as the files state them, before they meet what is stored.

use jiff::civil::Date;

use super::report::{BadRows, Place, Warning};
use crate::model::field::{Field, Slot};
use crate::model::{
    Access, ConferenceFields, Curated, DateStatus, Id, JournalFields, Number, OrganizationFields, TagFields,
};

/// All that was read, with the bad rows met on the way.
#[derive(Debug, Default)]
pub struct Rows {
    pub(super) organizations: Vec<Row<OrganizationFields>>,
    pub(super) tags: Vec<Row<TagFields>>,
    pub(super) conferences: Vec<Row<ConferenceFields>>,
    pub(super) journals: Vec<Row<JournalFields>>,
    pub(super) bad: BadRows,
    pub(super) warnings: Vec<Warning>,
}

impl Rows {
    /// The bad rows so far; merging finds more, and refuses all together.
    pub fn bad(&self) -> &BadRows {
        &self.bad
    }
}

/// A row of a file.
#[derive(Debug)]
pub(super) struct Row<F: 'static> {
    pub place: Place,
    pub id: Id,
    pub edit: Edit<F>,
    /// Some of it could not be read and is reported. What could be read still counts for the checks of other rows, so
    /// that one mistake does not look like many.
    pub is_bad: bool,
}

/// What a row does.
#[derive(Debug)]
pub(super) enum Edit<F: 'static> {
    /// Sets what it names; the other fields keep their stored values.
    Set(Vec<(&'static Field<F>, Cell)>),
    /// Removes the row.
    Remove,
}

/// A field's value as a row states it; links are not resolved yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Date(Date),
    Status(DateStatus),
    Year(u16),
    Whole(u64),
    Number(Number),
    Flag(bool),
    Access(Access),
    Texts(Vec<String>),
    Organizations(Vec<Link<OrganizationFields>>),
    Tags(Vec<Link<TagFields>>),
}

/// One link of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Link<F> {
    Id(Id),
    /// The name; of a tag `Type: Name`.
    Label(String),
    /// Creates or updates what it links.
    Object(Curated<F>),
}

impl Cell {
    /// Writes the value to its field's place. Links are resolved by `resolve`, for which a place has room for ids only.
    pub fn write(self, slot: Slot<'_>, resolve: &mut impl Resolve) {
        match (self, slot) {
            (Cell::Text(value), Slot::Text(place)) => *place = Some(value),
            (Cell::Date(value), Slot::Date(place)) => *place = Some(value),
            (Cell::Status(value), Slot::Status(place)) => *place = Some(value),
            (Cell::Year(value), Slot::Year(place)) => *place = Some(value),
            (Cell::Whole(value), Slot::Whole(place)) => *place = Some(value),
            (Cell::Number(value), Slot::Number(place)) => *place = Some(value),
            (Cell::Flag(value), Slot::Flag(place)) => *place = Some(value),
            (Cell::Access(value), Slot::Access(place)) => *place = Some(value),
            (Cell::Texts(value), Slot::Texts(place)) => *place = value,
            (Cell::Organizations(links), Slot::Organizations(place)) => *place = resolve.organizations(links),
            (Cell::Tags(links), Slot::Tags(place)) => *place = resolve.tags(links),
            // Null. A cell is made for its field's kind (`cells`), so no other pair comes here.
            (_, slot) => slot.clear(),
        }
    }
}

/// Turns links into the ids of what they link.
pub(super) trait Resolve {
    fn organizations(&mut self, links: Vec<Link<OrganizationFields>>) -> Vec<Id>;
    fn tags(&mut self, links: Vec<Link<TagFields>>) -> Vec<Id>;
}

/// For rows that have no links.
pub(super) struct NoLinks;

impl Resolve for NoLinks {
    fn organizations(&mut self, _links: Vec<Link<OrganizationFields>>) -> Vec<Id> {
        Vec::new()
    }

    fn tags(&mut self, _links: Vec<Link<TagFields>>) -> Vec<Id> {
        Vec::new()
    }
}
