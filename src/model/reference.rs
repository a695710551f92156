//! Organizations and tags: what records link to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::Id;
use super::curated::{Curated, Fault, Fields, forbid_separator, require_text};
use super::field::{Field, fields};
use super::json::{self, Layout};

/// An organization whose rules hold.
pub type Organization = Curated<OrganizationFields>;

/// A tag whose rules hold.
pub type Tag = Curated<TagFields>;

/// The fields of an organization, apart from its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named and described by the contract; `kind` is its `type`")]
pub struct OrganizationFields {
    pub name: Option<String>,
    pub abbv: Option<String>,
    pub kind: Option<String>,
    pub url: Option<String>,
}

/// The fields of a tag, apart from its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named and described by the contract; `kind` is its `type`")]
pub struct TagFields {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub category: Option<String>,
}

static ORGANIZATION: &[Field<OrganizationFields>] = fields!(OrganizationFields:
    Text name;
    Text abbv;
    Text kind as "type";
    Text url;
);

static TAG: &[Field<TagFields>] = fields!(TagFields:
    Text kind as "type";
    Text name;
    Text category;
);

impl Fields for OrganizationFields {
    const STEM: &'static str = "organizations";

    fn table() -> &'static [Field<Self>] {
        ORGANIZATION
    }

    fn layout() -> &'static Layout {
        static LAYOUT: OnceLock<Layout> = OnceLock::new();
        LAYOUT.get_or_init(|| Layout::of_reference(ORGANIZATION))
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        require_text(self, &ORGANIZATION[0], &mut faults);
        forbid_separator("name", self.name.as_deref().unwrap_or_default(), "; ", &mut faults);
        faults
    }
}

impl Fields for TagFields {
    const STEM: &'static str = "tags";

    fn table() -> &'static [Field<Self>] {
        TAG
    }

    fn layout() -> &'static Layout {
        static LAYOUT: OnceLock<Layout> = OnceLock::new();
        LAYOUT.get_or_init(|| Layout::of_reference(TAG))
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        require_text(self, &TAG[0], &mut faults);
        require_text(self, &TAG[1], &mut faults);
        let kind = self.kind.as_deref().unwrap_or_default();
        forbid_separator("type", kind, "; ", &mut faults);
        forbid_separator("type", kind, ": ", &mut faults);
        forbid_separator("name", self.name.as_deref().unwrap_or_default(), "; ", &mut faults);
        faults
    }
}

/// Which of the two kinds of rows that records link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// An organization.
    Organization,
    /// A tag.
    Tag,
}

impl ReferenceKind {
    /// Both kinds.
    pub const ALL: [ReferenceKind; 2] = [ReferenceKind::Organization, ReferenceKind::Tag];

    /// The number that stands for the kind in row keys. Part of the file format.
    pub const fn code(self) -> u8 {
        match self {
            ReferenceKind::Organization => 1,
            ReferenceKind::Tag => 2,
        }
    }
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReferenceKind::Organization => "organization",
            ReferenceKind::Tag => "tag",
        })
    }
}

/// The fields of a kind of row that records link to.
pub trait ReferenceFields: Fields {
    /// Which kind.
    const KIND: ReferenceKind;

    /// The text that names the row in CSV lists and in imports: the name, of a tag `Type: Name`. Unique.
    fn label(&self) -> String;
}

impl ReferenceFields for OrganizationFields {
    const KIND: ReferenceKind = ReferenceKind::Organization;

    fn label(&self) -> String {
        self.name.clone().unwrap_or_default()
    }
}

impl ReferenceFields for TagFields {
    const KIND: ReferenceKind = ReferenceKind::Tag;

    fn label(&self) -> String {
        format!("{}: {}", self.kind.as_deref().unwrap_or_default(), self.name.as_deref().unwrap_or_default())
    }
}

/// A row that records link to, with the two texts that stand for it in them.
#[derive(Clone, Debug)]
pub struct Referenced<F> {
    /// The row.
    pub row: Curated<F>,
    /// Its JSON object, as it stands within records.
    pub json: Vec<u8>,
    /// Its text in CSV lists.
    pub label: String,
}

impl<F: ReferenceFields> Referenced<F> {
    /// Renders the row.
    pub fn new(row: Curated<F>) -> Referenced<F> {
        Referenced { json: json::render_reference(&row), label: row.fields().label(), row }
    }
}

/// All organizations and tags of one state of the database.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Organizations by id.
    pub organizations: BTreeMap<Id, Referenced<OrganizationFields>>,
    /// Tags by id.
    pub tags: BTreeMap<Id, Referenced<TagFields>>,
}

impl References {
    /// The JSON object of a linked row; `null` where the link leads nowhere, which no commit lets happen.
    pub fn json(&self, kind: ReferenceKind, id: Id) -> &[u8] {
        let json = match kind {
            ReferenceKind::Organization => self.organizations.get(&id).map(|found| &found.json),
            ReferenceKind::Tag => self.tags.get(&id).map(|found| &found.json),
        };
        json.map_or(b"null", Vec::as_slice)
    }

    /// The CSV text of a linked row.
    pub fn label(&self, kind: ReferenceKind, id: Id) -> &str {
        let label = match kind {
            ReferenceKind::Organization => self.organizations.get(&id).map(|found| &found.label),
            ReferenceKind::Tag => self.tags.get(&id).map(|found| &found.label),
        };
        label.map_or("", String::as_str)
    }
}
