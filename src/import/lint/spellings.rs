//! Words that licenses and filters compare exactly. With two spellings of a word, they miss some of its records.
//!
//! Lint prefers the spelling used by a license, then the one in the database, then the more frequent one. Of equal
//! ones, it prefers the one that it knows, then lower case. It corrects a word only if the other spelling is surely the
//! same word. A word that is only similar is a question.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::successors;
use std::sync::Arc;

use super::likeness::{MAX_BYTES, comparable, distance};
use super::rule::Uses;
use super::texts::{is_placeholder, tidy};
use crate::import::findings::Finding;
use crate::model::message::{Joined, Message, Remedy, first_of, message};
use crate::model::{License, Scope, country};

/// A kind of words.
#[derive(Debug)]
pub struct Vocabulary {
    /// The field with the words.
    pub field: &'static str,
    /// The name of the kind in messages.
    pub kind: &'static str,
    /// The remedy for an unknown word.
    pub remedy: &'static str,
    /// The rules: another spelling, several words in one text, and an unknown word.
    pub rules: [&'static str; 3],
    /// Returns the word without common differences of spelling. An alias becomes its usual form.
    pub comparable: fn(&str) -> String,
    /// Returns true for a code of a word. It is right only if a license or the database has it.
    pub is_code: fn(&str) -> bool,
    /// Lists of words that are always right.
    pub known: &'static [&'static [&'static str]],
    /// The separators of words in the field, including wrong ones. Empty if the field has a single word.
    pub separators: &'static [&'static str],
    /// Returns the words of this kind in the scope of a license.
    pub of_scope: fn(&Scope) -> Option<&BTreeSet<String>>,
}

/// The maximum number of different words among which misspellings are sought. The time grows with its square.
const MAX_WORDS: usize = 1_000;

/// The right spellings of words, each by its field and the word. They may differ from a correction that a finding names:
/// a right word may break another rule.
pub type Respellings = HashMap<(&'static str, String), String>;

/// A possible spelling of a word. The greatest of several is preferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<'a> {
    is_licensed: bool,
    /// Whether the database has it.
    is_stored: bool,
    /// The number of rows that have it.
    total: usize,
    is_known: bool,
    /// In code point order, lower case follows upper case.
    word: &'a str,
}

impl Candidate<'_> {
    /// Returns true if no row or license has the word.
    fn is_unseen(&self) -> bool {
        self.total == 0 && !self.is_licensed
    }

    /// Whether this may be the right spelling of other words. A word that the import removes from all rows corrects no
    /// other word, unless it is known to be right.
    fn may_be_right(&self, vocabulary: &Vocabulary) -> bool {
        let is_new_code = (vocabulary.is_code)(self.word) && !self.is_stored && !self.is_licensed;
        let is_tidy = tidied(self.word) == self.word && !self.word.contains(['[', ']', '{', '}']);
        let has_meaning = self.is_known || !self.is_unseen();
        has_meaning && !is_new_code && (self.is_licensed || is_tidy)
    }
}

/// Checks the words that the import brings. Each finding has the location of the first row with the word. Words with one
/// right spelling are added to `respellings`, too.
pub fn check_words(
    vocabulary: &'static Vocabulary,
    seen: &BTreeMap<String, Uses>,
    licenses: &[&Arc<License>],
    respellings: &mut Respellings,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if seen.values().all(|uses| uses.brought == 0) {
        return findings;
    }
    let field = vocabulary.field;
    let checker = WordChecker::new(vocabulary, seen, licenses);
    for (word, uses) in seen {
        let first = uses.first.as_ref();
        let Some(first) = first.filter(|_| !is_placeholder(field, word)) else {
            continue;
        };
        let Some((rule, fault)) = checker.find_fault(word, uses) else {
            continue;
        };
        // Rules do not undo each other.
        const MAX_STEPS: usize = 10;
        let steps = successors(fault.right.clone(), |word| {
            checker.find_fault(word, uses)?.1.right
        });
        if let Some(right) = steps.take(MAX_STEPS).last() {
            respellings.insert((field, word.clone()), right);
        }
        findings.push(first.finding(rule, field, Some(word), fault));
    }
    let count = seen.len();
    if count > MAX_WORDS {
        let message = message!(
            "{count} different values are too many to look for misspellings; check that the column is the right one"
        );
        findings.push(Finding {
            rule: Some("not_compared"),
            ..Finding::about(Some(field), None, message)
        });
    }
    findings
}

/// Returns a word without unneeded blanks and punctuation.
fn tidied(word: &str) -> String {
    tidy(tidy(word).trim_matches([';', ',', '|', '/', '"']))
}

/// The words that are equal apart from their spelling.
#[derive(Default)]
struct WordForm<'a> {
    /// The best spelling.
    best: Option<Candidate<'a>>,
    /// Whether one of them is always right.
    is_known: bool,
    /// Whether the database has one of them before the import.
    is_stored: bool,
}

/// The data for checking words.
struct WordChecker<'a> {
    vocabulary: &'static Vocabulary,
    /// The names of the licenses that name each word.
    licensed: BTreeMap<&'a str, Vec<&'a str>>,
    /// The names of the licenses that restrict this kind of words.
    restricted: Vec<&'a str>,
    /// All words, by their comparable forms.
    forms: HashMap<String, WordForm<'a>>,
    /// Whether there are few enough words to look for misspellings.
    seeks_misspellings: bool,
    /// Whether most words are known. If not, unknown countries are not reported.
    mostly_known: bool,
}

impl<'a> WordChecker<'a> {
    fn new(
        vocabulary: &'static Vocabulary,
        seen: &'a BTreeMap<String, Uses>,
        licenses: &'a [&Arc<License>],
    ) -> WordChecker<'a> {
        let comparable = vocabulary.comparable;
        let mut licensed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut restricted = Vec::new();
        for license in licenses {
            let Some(words) = (vocabulary.of_scope)(&license.scope) else {
                continue;
            };
            restricted.push(license.name.as_str());
            for word in words {
                licensed.entry(word).or_default().push(&license.name);
            }
        }
        let right: BTreeSet<&str> = vocabulary.known.concat().into_iter().collect();
        let mut forms: HashMap<String, WordForm<'_>> = HashMap::new();
        for word in seen
            .keys()
            .map(String::as_str)
            .chain(right.iter().copied())
            .chain(licensed.keys().copied())
        {
            let uses = seen.get(word);
            let candidate = Candidate {
                is_licensed: licensed.contains_key(word),
                is_stored: uses.is_some_and(|uses| uses.is_stored),
                total: uses.map_or(0, |uses| uses.total),
                is_known: right.contains(word),
                word,
            };
            let form = forms.entry(comparable(word)).or_default();
            form.is_known |= candidate.is_known;
            form.is_stored |= candidate.is_stored;
            if candidate.may_be_right(vocabulary) {
                form.best = form.best.max(Some(candidate));
            }
        }
        let known = seen.keys().filter(|word| forms[&comparable(word)].is_known);
        WordChecker {
            vocabulary,
            mostly_known: known.count() * 2 > seen.len(),
            licensed,
            restricted,
            forms,
            seeks_misspellings: seen.len() <= MAX_WORDS,
        }
    }

    /// Returns the best spelling of a word.
    fn best_of(&self, word: &str) -> Option<&Candidate<'a>> {
        self.forms
            .get(&(self.vocabulary.comparable)(word))?
            .best
            .as_ref()
    }

    /// Returns the rule that a word breaks, and the message.
    fn find_fault(&self, word: &str, uses: &Uses) -> Option<(&'static str, Message)> {
        let [spelling, list, unknown] = self.vocabulary.rules;
        let is_licensed = self.licensed.contains_key(word);
        let form = (self.vocabulary.comparable)(word);
        let is_known = is_licensed || self.forms.get(&form).is_some_and(|form| form.is_known);
        if !is_known && let Some(parts) = self.parts(word, uses) {
            return Some((list, self.several(&parts, uses)));
        }
        let best = self.best_of(word);
        if let Some(best) = best.filter(|best| best.word != word) {
            return Some((spelling, self.other_spelling(word, best, uses)));
        }
        let tidied = tidied(word);
        if tidied != word && !is_licensed {
            let message = message!(
                "has unneeded blanks or punctuation{}; write `{tidied}`",
                rows(uses)
            );
            return Some((spelling, message.with(Remedy::OfValue).corrected_by(tidied)));
        }
        if is_known {
            return None;
        }
        if let Some(meant) = self.nearest(&form, best, uses) {
            return Some((spelling, self.misspelling(meant, uses)));
        }
        let message = self.unexpected(&form, uses)?;
        Some((unknown, message))
    }

    /// The message about a text with several words.
    fn several(&self, parts: &[String], uses: &Uses) -> Message {
        let message = message!(
            "lists several in one text: {}{}{}; in CSV write `{}`, in JSON one text each",
            parts.iter().map(|part| format!("`{part}`")).joined(", "),
            rows(uses),
            self.blind_licenses(parts).unwrap_or_default(),
            parts.join("; ")
        );
        message.with(Remedy::OfValue)
    }

    /// The message about a word of which `best` is the preferred spelling.
    fn other_spelling(&self, word: &str, best: &Candidate<'_>, uses: &Uses) -> Message {
        let consequence = self.consequence(best.word);
        let message = message!(
            "is another spelling of `{0}`{1}{consequence}; write `{0}`",
            best.word,
            rows(uses)
        );
        let has_one_spelling = best.is_licensed || best.is_known;
        let is_same = has_one_spelling || tidied(word).to_lowercase() == best.word.to_lowercase();
        // Of two spellings in licenses, each means other records.
        let comparable = self.vocabulary.comparable;
        let form = comparable(word);
        let is_only = self
            .licensed
            .keys()
            .filter(|word| comparable(word) == form)
            .count()
            < 2;
        let right = (is_same && is_only).then(|| best.word.to_owned());
        Message { right, ..message }.with(Remedy::OfValue)
    }

    /// The question whether another word is meant.
    fn misspelling(&self, meant: &str, uses: &Uses) -> Message {
        let count = match uses.total {
            1 => rows(uses),
            total => format!(" ({total} records)"),
        };
        let consequence = self.consequence(meant);
        let message = message!(
            "looks like a misspelling of `{meant}`{count}{consequence}; did you mean `{meant}`? If not, keep it"
        );
        message.with(Remedy::OfValue)
    }

    /// The message about a word that is not known, unless there is nothing to compare with: an empty database allows
    /// no comparison. Countries are compared with the known ones.
    fn unexpected(&self, form: &str, uses: &Uses) -> Option<Message> {
        let Vocabulary {
            kind,
            remedy,
            separators,
            ..
        } = self.vocabulary;
        let is_unexpected = match separators {
            [] => self.mostly_known,
            _ => {
                let is_stored = self.forms.get(form).is_some_and(|form| form.is_stored);
                !is_stored && self.forms.values().any(|form| form.is_stored)
            }
        };
        let blind = match first_names(&self.restricted) {
            Some(names) => format!(
                "; no license names it, so licenses with other ones ({names}) do not match it"
            ),
            None => String::new(),
        };
        is_unexpected.then(|| message!("is not a known {kind}{}{blind}; {remedy}", rows(uses)))
    }

    /// Says what another spelling than `meant` causes.
    fn consequence(&self, meant: &str) -> String {
        self.blind_licenses(&[meant.to_owned()])
            .unwrap_or("; licenses and filters treat them as different".to_owned())
    }

    /// Names the licenses that miss records because of the wrong word, if there are some.
    fn blind_licenses(&self, meant: &[String]) -> Option<String> {
        let named = meant.iter().filter_map(|word| self.licensed.get(&**word));
        let names: BTreeSet<&str> = named.flatten().copied().collect();
        let names = first_names(&Vec::from_iter(names))?;
        Some(format!(
            "; licenses that name the right one ({names}) do not match this one"
        ))
    }

    /// Splits a list of words, and corrects their spelling. Returns `None` if the text is a single word.
    fn parts(&self, word: &str, uses: &Uses) -> Option<Vec<String>> {
        // These are always separators.
        const UNAMBIGUOUS: &[&str] = &[";", "|", "\n", "\t"];
        if word.len() > MAX_BYTES {
            return None;
        }
        for separator in self
            .vocabulary
            .separators
            .iter()
            .filter(|separator| word.contains(**separator))
        {
            let parts = word
                .split(separator)
                .map(|part| part.trim_matches(|sign| " []'\"".contains(sign)));
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
            let best = parts.iter().map(|part| {
                let best = self.best_of(part);
                best.filter(|best| best.word != word)
            });
            let best: Vec<_> = best.collect();
            // A text that occurs more often than its parts is a single word.
            let known = best
                .iter()
                .flatten()
                .filter(|best| best.is_licensed || best.is_unseen() || best.total >= uses.total)
                .count();
            let are_words = known == parts.len() && known > 1;
            if are_words || known > 0 && UNAMBIGUOUS.contains(separator) {
                let meant = parts
                    .iter()
                    .zip(best)
                    .map(|(part, best)| best.map_or(*part, |best| best.word));
                return Some(meant.map(str::to_owned).collect());
            }
        }
        None
    }

    /// Returns the most similar word. For a word that several records have, only words of licenses count. `own` is the
    /// word's own candidate.
    fn nearest(&self, form: &str, own: Option<&Candidate<'_>>, uses: &Uses) -> Option<&str> {
        let max = match form.chars().count() {
            _ if !self.seeks_misspellings => return None,
            0..5 | MAX_BYTES.. => return None,
            5..9 => 1,
            _ => 2,
        };
        self.forms
            .iter()
            .filter(|(other, _)| *other != form)
            .filter_map(|(other, of_other)| {
                let best = of_other.best.as_ref()?;
                let is_better = of_other.is_known || own.is_none_or(|own| best > own);
                let is_meant = best.is_licensed || uses.total < 2 && is_better;
                let distance = distance(form, other, max).filter(|_| is_meant)?;
                Some((Reverse(distance), best))
            })
            .max()
            .map(|(_, best)| best.word)
    }
}

/// Joins the first names of licenses, if there are some.
fn first_names(licenses: &[&str]) -> Option<String> {
    const NAMED: usize = 3;
    (!licenses.is_empty()).then(|| first_of(licenses, licenses.len(), NAMED))
}

/// Formats the number of rows with the word.
fn rows(uses: &Uses) -> String {
    match uses.brought {
        1 => " (1 row)".to_owned(),
        count => format!(" ({count} rows, the first is here)"),
    }
}

/// The vocabulary of therapy areas, which licenses restrict.
pub static AREAS: Vocabulary = Vocabulary {
    field: "therapy_areas",
    kind: "therapy area",
    remedy: "check its spelling, and keep it if it is a new one",
    rules: ["area_spelling", "area_list", "area_unknown"],
    comparable: comparable_area,
    is_code: |_| false,
    known: &[KNOWN_AREAS],
    separators: &[";", "|", "\n", "\t", ",", "/", "+", " & ", " and "],
    of_scope: |scope| scope.therapy_areas.as_ref(),
};

/// Returns true if a text is a common therapy area.
pub fn is_area(text: &str) -> bool {
    let area = comparable_area(text);
    let mut known = KNOWN_AREAS.iter();
    known.any(|known| comparable_area(known) == area)
}

/// Returns the area without case, diacritics, blanks, punctuation, and differences of British and American spelling.
fn comparable_area(area: &str) -> String {
    comparable(area).replace("ae", "e").replace("oe", "e")
}

/// Areas that resemble others or combine two, and common ones. They allow lint to find a typo in a word that no other
/// row has.
const KNOWN_AREAS: &[&str] = &[
    "Addiction Medicine",
    "Allergy",
    "Allergy and Immunology",
    "Andrology",
    "Anesthesiology",
    "Angiology",
    "Audiology",
    "Bioinformatics",
    "Biochemistry",
    "Cardiology",
    "Cardiothoracic Surgery",
    "Cardiovascular",
    "Critical Care",
    "Dentistry",
    "Dermatology",
    "Diabetes",
    "Ear, Nose and Throat",
    "Emergency Medicine",
    "Endocrinology",
    "Epidemiology",
    "Epileptology",
    "Family Medicine",
    "Gastroenterology",
    "General Medicine",
    "Genetics",
    "Genomics",
    "Geriatrics",
    "Gerontology",
    "Gynecology",
    "Health Economics",
    "Hematology",
    "Hepatology",
    "HIV",
    "Immunology",
    "Infectious Diseases",
    "Intensive Care",
    "Internal Medicine",
    "Medical Informatics",
    "Medical Publishing",
    "Metabolism",
    "Microbiology",
    "Neonatology",
    "Nephrology",
    "Neurology",
    "Neuroradiology",
    "Neuroscience",
    "Neurosurgery",
    "Nuclear Medicine",
    "Nursing",
    "Nutrition",
    "Obesity",
    "Obstetrics",
    "Obstetrics and Gynecology",
    "Oncology",
    "Ophthalmology",
    "Optometry",
    "Orthopedics",
    "Osteology",
    "Otolaryngology",
    "Otology",
    "Pain Medicine",
    "Palliative Care",
    "Parasitology",
    "Pathology",
    "Pediatrics",
    "Pharmacology",
    "Pharmacy",
    "Physiology",
    "Physical Medicine and Rehabilitation",
    "Plastic Surgery",
    "Podiatry",
    "Preventive Medicine",
    "Primary Care",
    "Proctology",
    "Psychiatry",
    "Psychology",
    "Public Health",
    "Pulmonology",
    "Radiation Oncology",
    "Radiology",
    "Rare Diseases",
    "Regulatory Affairs",
    "Rehabilitation",
    "Reproductive Medicine",
    "Respiratory",
    "Respiratory Medicine",
    "Rheumatology",
    "Serology",
    "Sexual Health",
    "Sleep Medicine",
    "Sports Medicine",
    "Stroke",
    "Surgery",
    "Thrombosis and Hemostasis",
    "Toxicology",
    "Transplantation",
    "Traumatology",
    "Tropical Medicine",
    "Urology",
    "Vaccines",
    "Vaccinology",
    "Vascular Medicine",
    "Vascular Surgery",
    "Venereology",
    "Virology",
    "Women's Health",
];

/// The vocabulary of countries, which licenses and the filter `country` use.
pub static COUNTRIES: Vocabulary = Vocabulary {
    field: "country",
    kind: "country",
    remedy: "write the usual English name of one country, such as `Germany`, or leave the cell empty",
    rules: ["country_spelling", "country_spelling", "country_unknown"],
    comparable: country::comparable,
    is_code: country::is_code,
    known: &country::COUNTRIES,
    separators: &[],
    of_scope: |scope| scope.countries.as_ref(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::lint::RowLocation;
    use crate::model::Id;

    #[test]
    fn too_many_words_are_not_searched() {
        for (count, expected) in [
            (MAX_WORDS, ["area_spelling"]),
            (MAX_WORDS + 1, ["not_compared"]),
        ] {
            let mut seen: BTreeMap<String, Uses> = BTreeMap::new();
            for at in 0..count {
                let location = RowLocation::Database("conferences", Id::MIN);
                // Words of four letters are no misspellings.
                let word = if at == 0 {
                    "Cardiolgoy".to_owned()
                } else {
                    format!("{at:04}")
                };
                seen.entry(word).or_default().add(&location, true);
            }
            let found = check_words(&AREAS, &seen, &[], &mut Respellings::new());
            let rules: Vec<&str> = found.iter().filter_map(|found| found.rule).collect();
            assert_eq!(rules, expected, "{count}: {found:?}");
        }
    }
}
