//! The names of columns in public lists, and the fields that they probably contain.

use std::sync::LazyLock;

use regex::Regex;

use crate::import::read::row_kind::RowKind;
use crate::import::read::words::{has_word, pattern};
use crate::model::fold::fold;

/// The known names of all kinds of rows.
const NAMES: &str = include_str!("names.txt");

/// Words before a name that add nothing to it, such as in `conference dates`.
const NOUNS: &str = "conference conf event meeting congress journal kongress tagung properties attributes fields node acf \
                     bibjson confs conferences congresses events meetings editions timeline";

/// Words of a header above others, such as `When` above `From` and `To`.
const GROUPS: &str = "when where date dates deadline deadlines place location venue address metrics summary stats \
                      identifiers apc fees";

/// Words without a meaning.
const FILLERS: &str = "the of de del della der des du la le el d l di do da for";

/// Returns the words of a header in lower case, without accents and punctuation. `cfpEndDate` has three words, and
/// `Date(s)` has one.
fn words_of(header: &str) -> Vec<String> {
    static JOINED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\p{Lowercase})(\p{Uppercase})"));
    let header = header.replace("(s)", "s");
    fold(&JOINED.replace_all(&header, "$1 $2"))
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn year_in(word: &str) -> Option<u16> {
    word.parse()
        .ok()
        .filter(|year| word.len() == 4 && (1900..=2100).contains(year))
}

/// Returns the latest year in a header.
pub(super) fn year_of(header: &str) -> Option<u16> {
    words_of(header)
        .iter()
        .filter_map(|word| year_in(word))
        .max()
}

/// Returns the words of a header without years and repetitions.
fn plain(header: &str) -> Vec<String> {
    let mut words = words_of(header);
    words.retain(|word| year_in(word).is_none());
    words.dedup();
    words
}

/// The fields that a header names.
#[derive(Default)]
pub(in crate::import) struct KnownName {
    pub fields: Vec<&'static str>,
    /// 0 for the exact name of a field, and more for less exact names.
    pub rank: usize,
}

/// Returns the fields that a header names, if it is a known name of a column of this kind of rows.
pub(in crate::import) fn known_name(kind: RowKind, header: &str) -> Option<KnownName> {
    let words = plain(header);
    let whole = words.join(" ");
    let squeezed = words.concat();
    let mut fields = kind.table().fields.iter();
    if let Some(field) = fields.find(|field| field.column.replace('_', "") == squeezed) {
        let fields = vec![&*field.column];
        return Some(KnownName { fields, rank: 0 });
    }
    let name_of = |words: &[String]| known_name(kind, &words.join(" "));
    let is_digit = |sign: char| sign.is_ascii_digit();
    name_in(kind, &kind.to_string(), &words)
        .or_else(|| name_in(kind, "shared", &words))
        .or_else(|| match &*words {
            // Results of SPARQL and of web sites: `placeLabel`, `place.value`, `title.rendered`.
            [rest @ .., last] if has_word("label value rendered", last) => name_of(rest),
            [first, rest @ ..] if has_word(NOUNS, first) => name_of(rest),
            [first, rest @ ..] if has_word(GROUPS, first) => {
                name_of(rest).filter(|known| !["name", "url"].contains(&known.fields[0]))
            }
            // `Society 2` or `Society2`.
            [.., last] if last.ends_with(is_digit) => {
                known_name(kind, whole.trim_end_matches(is_digit))
            }
            _ => None,
        })
}

/// Returns the price that a header names, without its currency.
pub(super) fn price_name(header: &str) -> Option<KnownName> {
    name_in(RowKind::Journals, "prices", &plain(header))
}

/// Returns the fields that a header names in a section of the known names.
fn name_in(kind: RowKind, section: &str, words: &[String]) -> Option<KnownName> {
    let whole = words.join(" ");
    let mut kept = words.to_vec();
    kept.retain(|word| !has_word(FILLERS, word));
    [whole, kept.join(" ")].iter().find_map(|wanted| {
        blocks(section).find_map(|(fields, mut names)| {
            let rank = 1 + names.position(|name| name == wanted)?;
            let fields: Vec<&str> = fields.split('+').collect();
            let is_known = fields
                .iter()
                .all(|field| kind.table().index_of(field).is_some());
            is_known.then_some(KnownName { fields, rank })
        })
    })
}

/// Returns the fields of a section of the known names, with their names.
fn blocks(
    section: &str,
) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    let mut sections = NAMES.split("\n[").skip(1);
    let blocks = sections.find_map(|text| text.strip_prefix(section)?.strip_prefix("]\n\n"));
    blocks
        .into_iter()
        .flat_map(|text| text.split("\n\n"))
        .filter_map(|block| {
            let (fields, names) = block.trim_end().split_once('\n')?;
            Some((fields, names.split(['|', '\n']).map(str::trim)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_fields() {
        use RowKind::{Conferences, Journals, Organizations};
        let cases = outcomes![
            "Journal name" "Source Title" "journal_full_title" "Título de la revista" "title.title"
            "journalLabel.value" => (Journals, "name");
            "Source Title" "venue.url" "Place name" "ISSN" "Society name" => (Conferences, "");
            "2024 JIF" "Facteur d'impact 2024" => (Journals, "impact_factor");
            "5-Year JIF" "JIF Quartile" "SJR Best Quartile" "APC (EUR)" "URL in DOAJ" "date"
                => (Journals, "");
            "SJR 2024" => (Journals, "sjr");
            "Journal ISSN (print version)" "ISSN1" => (Journals, "issn_print");
            "Journal EISSN (online version)" "issn_electronic" => (Journals, "issn_online");
            "NLM Title Abbreviation (TA)" => (Journals, "abbv");
            "Article publication charge USD" "APC (USD)" => (Journals, "publishing_apc_usd");
            "itemLabel" "title.rendered" "Name of congress" "properties.name" => (Conferences, "name");
            "Date(s)" "Conference dates" => (Conferences, "start_date+end_date");
            "confs.timeline.deadline" "Deadlines Abstracts" "cfpEndDate" "submission_due"
                => (Conferences, "abstract_due_date");
            "venue.country.name" => (Conferences, "country");
            "acf.start_date" "conf_start" "Date de début" "startDate" => (Conferences, "start_date");
            "Journal type" => (Journals, "publishing_access");
            "summary_stats.h_index" => (Journals, "h_index");
            "location.address.addressLocality" "Where City" => (Conferences, "city");
            "conf_loc" => (Conferences, "city+country");
            "cfp_link" => (Conferences, "url");
            "Society 2" => (Conferences, "organizations");
            "Deadlines Late-breaking" => (Conferences, "late_breaking_due_date");
            "Society name" "正式名称" => (Organizations, "name");
        ];
        for (header, (kind, expected)) in cases {
            let found =
                known_name(kind, header).map_or(String::new(), |known| known.fields.join("+"));
            assert_eq!(found, expected, "{kind} {header}");
        }
        assert_eq!(year_of("JIF 2023/2024"), Some(2024));
    }

    #[test]
    fn all_names_are_in_their_plain_form() {
        for section in words!["shared" "conferences" "journals" "organizations" "tags" "prices"] {
            assert!(blocks(section).count() > 0, "{section}");
            for name in blocks(section).flat_map(|(_, names)| names) {
                assert_eq!(words_of(name).join(" "), name);
                assert!(!name.is_empty());
            }
        }
    }
}
