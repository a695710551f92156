//! Words that licenses and filters compare exactly. With two spellings of a word, they miss some of its records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::edit_distance::{CountedText, MAX_BYTES};
use super::rule::RowLocation;
use super::texts::{is_placeholder, tidy};
use crate::import::report::faults::Finding;
use crate::model::message::{Message, Remedy, message};
use crate::model::{ConferenceFields, Id, License, Scope};

/// A kind of words.
#[derive(Debug)]
pub(in crate::import) struct Vocabulary {
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
    /// Lists of words that are always right.
    pub known: &'static [&'static [&'static str]],
    /// The separators of words in the field, including wrong ones. Empty if the field has a single word.
    pub separators: &'static [&'static str],
    /// Returns the words of this kind in the scope of a license.
    pub of_scope: fn(&Scope) -> Option<&BTreeSet<String>>,
}

impl Vocabulary {
    /// Returns true if the word is always right.
    fn knows(&self, word: &str) -> bool {
        self.known.iter().any(|words| words.contains(&word))
    }
}

/// The maximum number of different words among which misspellings are sought. The time grows with its square.
const MAX_WORDS: usize = 5_000;

/// The occurrences of a word.
#[derive(Debug, Default)]
struct WordUses {
    /// The number of imported rows that add it.
    new: usize,
    /// The number of stored rows that have it before the import.
    stored: usize,
    /// The number of them that keep it.
    kept: usize,
    /// The first imported row that adds it, otherwise the first stored row that keeps it.
    first: Option<RowLocation>,
    /// The stored rows that lose it in the import, or that count as new.
    lost_by: BTreeSet<u64>,
}

impl WordUses {
    /// The number of rows that have it after the import.
    fn total(&self) -> usize {
        self.new + self.kept
    }
}

/// The words of a vocabulary seen so far.
#[derive(Debug)]
pub(super) struct Spellings {
    pub vocabulary: &'static Vocabulary,
    seen: BTreeMap<String, WordUses>,
}

/// A possible correction for a word.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    word: &'a str,
    /// The evidence that the word is correct: a license names it, it was stored before, the number of its rows, it is
    /// known.
    rank: (bool, bool, usize, bool),
}

/// A license names it, the number of its rows, it was stored before, it is known.
type FrequencyRank = (bool, usize, bool, bool);

impl Candidate<'_> {
    /// The rank for words that only look similar. The rarer one is probably wrong, even if it is the stored one.
    fn by_frequency(&self) -> FrequencyRank {
        let (licensed, stored, total, known) = self.rank;
        (licensed, total, stored, known)
    }
}

impl Spellings {
    pub fn new(vocabulary: &'static Vocabulary) -> Spellings {
        Spellings { vocabulary, seen: BTreeMap::new() }
    }

    /// Adds the words of an imported row. `stored` are the words of its stored version. `known` are those of them that
    /// are not reported again.
    pub fn add_row(&mut self, location: &RowLocation, id: Id, words: &[&str], known: &[&str], stored: &[&str]) {
        let words: BTreeSet<&str> = words.iter().copied().collect();
        for word in words.iter().filter(|word| !known.contains(word)) {
            let uses = self.uses(word);
            uses.new += 1;
            if uses.new == 1 {
                uses.first = Some(location.clone());
            }
        }
        for word in stored.iter().filter(|word| !(words.contains(*word) && known.contains(word))) {
            self.uses(word).lost_by.insert(id.get());
        }
    }

    fn uses(&mut self, word: &str) -> &mut WordUses {
        self.seen.entry(word.to_owned()).or_default()
    }

    /// Returns true if the import adds a word to a row.
    pub fn has_new(&self) -> bool {
        self.seen.values().any(|uses| uses.new > 0)
    }

    /// Adds the words of a record in the database before the import, after all imported rows. With `all`, imported rows
    /// count only as new.
    pub fn add_stored(&mut self, id: Id, words: &[&str], all: bool) {
        let words: BTreeSet<&str> = words.iter().copied().collect();
        for word in words {
            let uses = self.uses(word);
            let is_kept = !uses.lost_by.contains(&id.get());
            uses.kept += usize::from(is_kept);
            uses.stored += usize::from(is_kept || !all);
            if is_kept && uses.first.is_none() {
                uses.first = Some(RowLocation::of_stored::<ConferenceFields>(id));
            }
        }
    }

    /// Checks all words if `all` is set. Otherwise it checks the words of the import, and stored words that they prove
    /// wrong. Each finding has the location of a row with the word.
    pub fn check(&mut self, licenses: &[&Arc<License>], all: bool) -> Vec<Finding> {
        let had = self.seen.iter().filter(|(_, uses)| uses.stored > 0);
        let had: HashSet<String> = had.map(|(word, _)| (self.vocabulary.comparable)(word)).collect();
        // A word that the import removes from all rows corrects no other word, unless it is known to be right.
        self.seen.retain(|word, uses| uses.total() > 0 || uses.stored > 0 && self.vocabulary.knows(word));
        let checker = WordChecker::new(self, licenses, all, had);
        let field = self.vocabulary.field;
        let words = self.seen.iter().filter(|(word, uses)| uses.total() > 0 && !is_placeholder(field, word));
        let found = words.filter_map(|(word, uses)| {
            let (rule, message) = checker.find_fault(word, uses)?;
            Some(uses.first.as_ref()?.finding(rule, field, Some(word), message))
        });
        let mut found: Vec<Finding> = found.collect();
        let count = self.seen.len();
        if count > MAX_WORDS && self.has_new() {
            let message = message!(
                "{count} different values are too many to look for misspellings; check that the column is the right one"
            );
            found.push(Finding { rule: Some("not_compared"), ..Finding::about(Some(field), None, message) });
        }
        found
    }
}

/// The data for checking words.
struct WordChecker<'a> {
    vocabulary: &'static Vocabulary,
    seen: &'a BTreeMap<String, WordUses>,
    /// The names of the licenses that name each word.
    licensed: BTreeMap<&'a str, Vec<&'a str>>,
    /// The names of the licenses that restrict this kind of words.
    restricted: Vec<&'a str>,
    /// Whether stored words are checked too.
    all: bool,
    /// The comparable forms of the words of the database before the import.
    had: HashSet<String>,
    /// The best of the seen and licensed words of each comparable form.
    best: HashMap<String, Candidate<'a>>,
    /// The known words of the vocabulary, by comparable form.
    known: HashMap<String, &'static str>,
    /// The comparable forms of seen, licensed and known words.
    forms: Vec<ComparableForm<'a>>,
    /// Whether most words are known. If not, unknown countries are not reported.
    mostly_known: bool,
}

/// A comparable form and its best word.
struct ComparableForm<'a> {
    letters: CountedText,
    candidate: Candidate<'a>,
    /// Whether it is a form of a known word.
    is_known: bool,
    /// Whether no row or license has it.
    is_unseen: bool,
}

impl<'a> WordChecker<'a> {
    fn new(
        spellings: &'a Spellings,
        licenses: &'a [&Arc<License>],
        all: bool,
        had: HashSet<String>,
    ) -> WordChecker<'a> {
        let Spellings { vocabulary, seen } = spellings;
        let known: HashMap<String, &str> =
            vocabulary.known.iter().copied().flatten().map(|word| ((vocabulary.comparable)(word), *word)).collect();
        let mut licensed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut restricted = Vec::new();
        for license in licenses {
            let Some(words) = (vocabulary.of_scope)(&license.scope) else { continue };
            restricted.push(license.name.as_str());
            for word in words {
                licensed.entry(word).or_default().push(&license.name);
            }
        }
        let mut checker = WordChecker {
            vocabulary,
            seen,
            restricted,
            all,
            had,
            best: HashMap::new(),
            forms: Vec::new(),
            mostly_known: false,
            known,
            licensed,
        };
        let mut known_count = 0;
        for word in seen.keys().map(String::as_str).chain(checker.licensed.keys().copied().collect::<Vec<_>>()) {
            let key = (vocabulary.comparable)(word);
            known_count += usize::from(seen.contains_key(word) && checker.known.contains_key(&key));
            let candidate = checker.candidate(word);
            let best = checker.best.entry(key).or_insert(candidate);
            // On a tie, the later word in code point order wins: lower case comes after upper case.
            if candidate.rank >= best.rank {
                *best = candidate;
            }
        }
        checker.mostly_known = known_count * 2 > seen.len();
        let seen = checker.best.iter().map(|(key, candidate)| (key, *candidate, false));
        let unseen = checker.known.iter().filter(|(key, _)| !checker.best.contains_key(*key));
        let unseen = unseen.map(|(key, word)| (key, Candidate { word, rank: (false, false, 0, true) }, true));
        let forms = seen.chain(unseen).map(|(key, candidate, is_unseen)| ComparableForm {
            letters: CountedText::of(key.clone()),
            candidate,
            is_known: checker.known.contains_key(key),
            is_unseen,
        });
        if spellings.seen.len() <= MAX_WORDS {
            checker.forms = forms.collect();
        }
        checker
    }

    fn candidate(&self, word: &'a str) -> Candidate<'a> {
        let is_known = self.vocabulary.knows(word);
        let is_stored = |uses: &WordUses| uses.kept > 0 || uses.stored > 0 && is_known;
        let (stored, total) = self.seen.get(word).map_or((false, 0), |uses| (is_stored(uses), uses.total()));
        let rank = (self.licensed.contains_key(word), stored && !self.all, total, is_known);
        Candidate { word, rank }
    }

    /// Returns the rule that a word breaks, and the message.
    fn find_fault(&self, word: &'a str, uses: &WordUses) -> Option<(&'static str, Message)> {
        let Vocabulary { kind, remedy, rules: [spelling, list, unknown], comparable, .. } = self.vocabulary;
        let is_new = uses.new > 0 && uses.stored == 0;
        let concerns_import = |other: &str| {
            self.all || is_new || self.seen.get(other).is_some_and(|uses| uses.new > 0 && uses.stored == 0)
        };
        let key = comparable(word);
        let best = self.best.get(&key).copied();
        let own = self.candidate(word);
        let is_known = self.known.contains_key(&key) || own.rank.0;
        if let Some(parts) = self.parts(word, uses).filter(|_| !is_known && concerns_import(word)) {
            let message = message!(
                "lists several in one text: {}{}{}; in CSV write `{}`, in JSON one text each",
                parts.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", "),
                rows(uses),
                self.consequence(&parts),
                parts.join("; ")
            );
            return Some((list, message.with(Remedy::OfValue)));
        }
        if let Some(best) = best.filter(|best| best.word != word) {
            return concerns_import(best.word)
                .then(|| (*spelling, self.message("is another spelling of", best.word, uses)));
        }
        let tidied = tidy(tidy(word).trim_matches([';', ',', '|', '/', '"']));
        if tidied != word && !own.rank.0 && concerns_import(word) {
            let message = message!("has unneeded blanks or punctuation{}; write `{tidied}`", rows(uses));
            return Some((spelling, message.with(Remedy::OfValue)));
        }
        if is_known {
            return None;
        }
        if let Some(meant) = self.nearest(&key, own)
            && concerns_import(meant)
        {
            return Some((spelling, self.message("looks like a misspelling of", meant, uses)));
        }
        // An empty database allows no comparison. Countries are compared with the known ones.
        let is_unexpected = match self.vocabulary.separators {
            [] => self.mostly_known && concerns_import(word),
            _ => is_new && !self.had.is_empty() && !self.had.contains(&key),
        };
        if !is_unexpected {
            return None;
        }
        let blind = match self.names(&self.restricted) {
            Some(names) => format!("; no license names it, so licenses with other ones ({names}) do not match it"),
            None => String::new(),
        };
        let message = message!("is not a known {kind}{}{blind}; {remedy}", rows(uses));
        Some((unknown, message))
    }

    /// Returns the message for a word with a correction.
    fn message(&self, is: &str, meant: &str, uses: &WordUses) -> Message {
        let consequence = self.consequence(&[meant.to_owned()]);
        let consequence = if consequence.is_empty() {
            "; licenses and filters treat them as different".to_owned()
        } else {
            consequence
        };
        message!("{is} `{meant}`{}{consequence}; write `{meant}`", rows(uses)).with(Remedy::OfValue)
    }

    /// Names the licenses that miss records because of the wrong word.
    fn consequence(&self, meant: &[String]) -> String {
        let names: BTreeSet<&str> =
            meant.iter().filter_map(|word| self.licensed.get(word.as_str())).flatten().copied().collect();
        match self.names(&names.into_iter().collect::<Vec<_>>()) {
            Some(names) => format!("; licenses that name the right one ({names}) do not match this one"),
            None => String::new(),
        }
    }

    fn names(&self, licenses: &[&str]) -> Option<String> {
        const NAMED: usize = 3;
        let first = licenses.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        match licenses.len() {
            0 => None,
            count if count > NAMED => Some(format!("{first} and {} more", count - NAMED)),
            _ => Some(first),
        }
    }

    /// Splits a list of words, and corrects their spelling. Returns `None` if the text is a single word.
    fn parts(&self, word: &str, uses: &WordUses) -> Option<Vec<String>> {
        // These are always separators.
        const UNAMBIGUOUS: &[&str] = &[";", "|", "\n", "\t"];
        if word.len() > MAX_BYTES {
            return None;
        }
        for separator in self.vocabulary.separators.iter().filter(|separator| word.contains(**separator)) {
            let parts: Vec<&str> = word.split(separator).map(str::trim).filter(|part| !part.is_empty()).collect();
            if parts.is_empty() {
                continue;
            }
            let mut meant = Vec::with_capacity(parts.len());
            let mut known = 0;
            for part in &parts {
                let key = (self.vocabulary.comparable)(part);
                let best = self.best.get(&key).filter(|best| best.word != word);
                let by_itself = self.known.get(&key);
                // A text that occurs more often than its parts is a single word.
                let is_rare = best.is_none_or(|best| best.rank.0 || best.rank.2 >= uses.total());
                known += usize::from((best.is_some() || by_itself.is_some()) && is_rare);
                let spelled = best.map(|best| best.word).or(by_itself.copied()).unwrap_or(part);
                meant.push(spelled.to_owned());
            }
            if known == parts.len() && parts.len() > 1 || known > 0 && UNAMBIGUOUS.contains(separator) {
                return Some(meant);
            }
        }
        None
    }

    /// Returns the most probable correction of a word.
    fn nearest(&self, key: &str, own: Candidate<'_>) -> Option<&str> {
        let letters = CountedText::of(key.to_owned());
        let max = match letters.length {
            0..5 | MAX_BYTES.. => return None,
            5..9 => 1,
            _ => 2,
        };
        let mut nearest: Option<(Reverse<usize>, FrequencyRank, &str)> = None;
        for ComparableForm { letters: other, candidate, is_known, is_unseen } in &self.forms {
            if other.text == key
                || !(*is_known || candidate.by_frequency() > own.by_frequency())
                // A frequent word is not a typo of a word that no row has.
                || *is_unseen && own.rank.2 >= 10
            {
                continue;
            }
            let Some(distance) = letters.distance(other, max) else { continue };
            let found = (Reverse(distance), candidate.by_frequency(), candidate.word);
            if nearest.is_none_or(|nearest| found > nearest) {
                nearest = Some(found);
            }
        }
        nearest.map(|(_, _, word)| word)
    }
}

/// Formats the number of rows with the word.
fn rows(uses: &WordUses) -> String {
    let count = if uses.new > 0 { uses.new } else { uses.kept };
    if count == 1 { " (1 row)".to_owned() } else { format!(" ({count} rows, the first is here)") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::lint::areas::AREAS;

    #[test]
    fn too_many_words_are_not_searched() {
        for (count, expected) in [(MAX_WORDS, ["area_spelling"]), (MAX_WORDS + 1, ["not_compared"])] {
            let mut spellings = Spellings::new(&AREAS);
            for at in 0..count {
                let location = RowLocation::of_stored::<ConferenceFields>(Id::MIN);
                // Words of four letters are no misspellings.
                let word = if at == 0 { "Cardiolgoy".to_owned() } else { format!("{at:04}") };
                spellings.add_row(&location, Id::MIN, &[&word], &[], &[]);
            }
            let found = spellings.check(&[], true);
            let rules: Vec<&str> = found.iter().filter_map(|found| found.rule).collect();
            assert_eq!(rules, expected, "{count}: {found:?}");
        }
    }
}
