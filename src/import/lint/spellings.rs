//! Words that licenses and filters compare exactly: two spellings of one split what belongs together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::edit_distance::{Budget, Letters, MAX_BYTES};
use super::rule::{Hit, RowLocation};
use super::texts::{is_placeholder, tidy};
use crate::model::{ConferenceFields, Id, License, Scope};
use crate::store::WordCount;

/// Words of one kind.
#[derive(Debug)]
pub(in crate::import) struct Vocabulary {
    /// Its code in the index of names.
    pub code: u8,
    /// The field that holds them.
    pub field: &'static str,
    /// What one of them is, in words.
    pub kind: &'static str,
    /// What to do about one that is not known.
    pub remedy: &'static str,
    /// The rules: another spelling, several words in one, and a word that is not known.
    pub rules: [&'static str; 3],
    /// A word without what people write differently; of an alias its usual form.
    pub comparable: fn(&str) -> String,
    /// Words that are right wherever they stand.
    pub known: &'static [&'static str],
    /// What separates words in the field, where there may be several; and what people take for it.
    pub separators: &'static [&'static str],
    /// The words of this kind that a license names.
    pub of_scope: fn(&Scope) -> Option<&BTreeSet<String>>,
}

/// How often one word was seen, and where first.
#[derive(Debug, Default)]
struct WordUses {
    /// Rows that the run brings it to.
    new: usize,
    /// Rows of the database that have it before the run.
    stored: usize,
    /// The first of the new rows, else one of the stored ones that is known.
    first: Option<RowLocation>,
    /// The stored rows that the run takes it from, or counts as new.
    lost_by: BTreeSet<u64>,
}

impl WordUses {
    fn total(&self) -> usize {
        self.new + self.stored
    }
}

/// All words of a vocabulary that were seen.
#[derive(Debug)]
pub(super) struct Spellings {
    pub vocabulary: &'static Vocabulary,
    seen: BTreeMap<String, WordUses>,
}

/// A fault of a word, and a row that has the word. Of a stored word the row may not be known.
pub(super) struct WordFault {
    pub word: String,
    pub location: Option<RowLocation>,
    pub hit: Hit,
}

/// A word that another one may be meant for.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    word: &'a str,
    /// How sure it is that the word is right: licenses name it, the database had it, so many rows have it, it is known.
    rank: (bool, bool, usize, bool),
}

/// Licenses name it, so many rows have it, the database had it, it is known.
type ByNumber = (bool, usize, bool, bool);

impl Candidate<'_> {
    /// The rank among words that only look alike: there the rarer one is the mistake, wherever it stands.
    fn by_number(&self) -> ByNumber {
        let (licensed, stored, total, known) = self.rank;
        (licensed, total, stored, known)
    }
}

impl Spellings {
    pub fn new(vocabulary: &'static Vocabulary) -> Spellings {
        Spellings { vocabulary, seen: BTreeMap::new() }
    }

    /// Takes the words of a row that the run states. `known` are those that count as the database's: the row had them before,
    /// and they are not told again. `stored` are all that it had before.
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
        if !self.seen.contains_key(word) {
            self.seen.insert(word.to_owned(), WordUses::default());
        }
        self.seen.entry(word.to_owned()).or_default()
    }

    /// Whether the run brings a word to a row.
    pub fn has_new(&self) -> bool {
        self.seen.values().any(|uses| uses.new > 0)
    }

    /// Takes the words of the database as it is before the run. Where `all` words are judged, the rows that the run states count
    /// as new alone.
    pub fn add_stored(&mut self, counts: Vec<WordCount>, all: bool) {
        for WordCount { word, records, record } in counts {
            let uses = self.uses(&word);
            let lost = if all { uses.lost_by.len() } else { 0 };
            uses.stored = usize::try_from(records).unwrap_or(usize::MAX).saturating_sub(lost);
            if uses.new == 0
                && let Some(id) = record.filter(|id| !uses.lost_by.contains(&id.get()))
            {
                uses.first = Some(RowLocation::of_stored::<ConferenceFields>(id));
            }
        }
    }

    /// Whether a stored row that has a word has it after the run, too.
    pub fn keeps(&self, word: &str, id: Id) -> bool {
        self.seen.get(word).is_none_or(|uses| !uses.lost_by.contains(&id.get()))
    }

    /// Judges all words, and returns the faults: of `all`, or of what the run brings in and of what that shows to be wrong.
    pub fn judge(&mut self, licenses: &[License], all: bool, budget: &mut Budget) -> Vec<WordFault> {
        self.seen.retain(|_, uses| uses.total() > 0);
        let judge = Judge::new(self, licenses, all);
        // The words of the run come first: they are the likelier mistakes, and comparing has a bound.
        let (new, stored): (Vec<_>, Vec<_>) = self.seen.iter().partition(|(_, uses)| uses.new > 0);
        let stored = stored.into_iter().filter(|(_, uses)| all || uses.stored > uses.lost_by.len());
        let words = new.into_iter().chain(stored).filter(|(word, _)| !is_placeholder(self.vocabulary.field, word));
        let faults = words.filter_map(|(word, uses)| {
            let (rule, message) = judge.fault_of(word, uses, budget)?;
            let hit = Hit { rule, field: self.vocabulary.field.to_owned(), value: Some(word.clone()), message };
            Some(WordFault { word: word.clone(), location: uses.first.clone(), hit })
        });
        faults.collect()
    }
}

/// What words are judged by.
struct Judge<'a> {
    vocabulary: &'static Vocabulary,
    seen: &'a BTreeMap<String, WordUses>,
    /// The names of the licenses that name each word.
    licensed: BTreeMap<&'a str, Vec<&'a str>>,
    /// The names of the licenses that name any.
    restricted: Vec<&'a str>,
    /// Whether all words are judged alike, those of the database too.
    all: bool,
    has_stored: bool,
    /// The best word of each comparable form, of those that are seen or licensed.
    best: HashMap<String, Candidate<'a>>,
    /// The vocabulary's own words, by their comparable form.
    known: HashMap<String, &'static str>,
    /// The comparable forms of both, with their letters counted.
    forms: Vec<ComparableForm<'a>>,
    /// Whether most words are known, so that an unknown one is worth a look.
    mostly_known: bool,
}

/// A comparable form and its best word.
struct ComparableForm<'a> {
    letters: Letters,
    candidate: Candidate<'a>,
    /// Whether the vocabulary has it.
    is_known: bool,
    /// Whether only the vocabulary has it.
    is_unseen: bool,
}

impl<'a> Judge<'a> {
    fn new(spellings: &'a Spellings, licenses: &'a [License], all: bool) -> Judge<'a> {
        let Spellings { vocabulary, seen } = spellings;
        let known: HashMap<String, &str> =
            vocabulary.known.iter().map(|word| ((vocabulary.comparable)(word), *word)).collect();
        let mut licensed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut restricted = Vec::new();
        for license in licenses {
            let Some(words) = (vocabulary.of_scope)(&license.scope) else { continue };
            restricted.push(license.name.as_str());
            for word in words {
                licensed.entry(word).or_default().push(&license.name);
            }
        }
        let mut judge = Judge {
            vocabulary,
            seen,
            restricted,
            all,
            has_stored: seen.values().any(|uses| uses.stored > 0),
            best: HashMap::new(),
            forms: Vec::new(),
            mostly_known: false,
            known,
            licensed,
        };
        let mut known_count = 0;
        for word in seen.keys().map(String::as_str).chain(judge.licensed.keys().copied().collect::<Vec<_>>()) {
            let key = (vocabulary.comparable)(word);
            known_count += usize::from(seen.contains_key(word) && judge.known.contains_key(&key));
            let candidate = judge.candidate(word);
            let best = judge.best.entry(key).or_insert(candidate);
            // Of equals the later one in the order of code points: small letters come after capitals.
            if candidate.rank >= best.rank {
                *best = candidate;
            }
        }
        judge.mostly_known = known_count * 2 > seen.len();
        let seen = judge.best.iter().map(|(key, candidate)| (key, *candidate, false));
        let unseen = judge.known.iter().filter(|(key, _)| !judge.best.contains_key(*key));
        let unseen = unseen.map(|(key, word)| (key, Candidate { word, rank: (false, false, 0, true) }, true));
        let forms = seen.chain(unseen).map(|(key, candidate, is_unseen)| ComparableForm {
            letters: Letters::of(key.clone()),
            candidate,
            is_known: judge.known.contains_key(key),
            is_unseen,
        });
        judge.forms = forms.collect();
        judge
    }

    fn candidate(&self, word: &'a str) -> Candidate<'a> {
        let (stored, total) = self.seen.get(word).map_or((false, 0), |uses| (uses.stored > 0, uses.total()));
        let rank =
            (self.licensed.contains_key(word), stored && !self.all, total, self.vocabulary.known.contains(&word));
        Candidate { word, rank }
    }

    /// The rule that a word breaks, and what to do about it.
    fn fault_of(&self, word: &'a str, uses: &WordUses, budget: &mut Budget) -> Option<(&'static str, String)> {
        let Vocabulary { kind, remedy, rules: [spelling, list, unknown], comparable, .. } = self.vocabulary;
        let is_new = uses.new > 0 && uses.stored == 0;
        let is_of_run = |other: &str| {
            self.all || is_new || self.seen.get(other).is_some_and(|uses| uses.new > 0 && uses.stored == 0)
        };
        let key = comparable(word);
        let best = self.best.get(&key).copied();
        let own = self.candidate(word);
        let is_known = self.known.contains_key(&key) || own.rank.0;
        if let Some(parts) = self.parts(word, uses).filter(|_| !is_known && is_of_run(word)) {
            let message = format!(
                "is one text with several: {}{}{}; in CSV write `{}`, in JSON one text each",
                parts.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", "),
                rows(uses),
                self.consequence(&parts),
                parts.join("; ")
            );
            return Some((list, message));
        }
        if let Some(best) = best.filter(|best| best.word != word) {
            return is_of_run(best.word).then(|| (*spelling, self.message("is another spelling of", best.word, uses)));
        }
        let tidied = tidy(tidy(word).trim_matches([';', ',', '|', '/', '"']));
        if tidied != word && !own.rank.0 && is_of_run(word) {
            let message = format!("has blanks or signs that do not belong to it{}; write `{tidied}`", rows(uses));
            return Some((spelling, message));
        }
        if is_known {
            return None;
        }
        if let Some(meant) = self.nearest(&key, own, budget)
            && is_of_run(meant)
        {
            return Some((spelling, self.message("looks like a misspelling of", meant, uses)));
        }
        // In a database without any there is nothing to compare with; countries are known by themselves.
        let is_strange = match self.vocabulary.separators {
            [] => self.mostly_known && is_of_run(word),
            _ => is_new && self.has_stored,
        };
        if !is_strange {
            return None;
        }
        let blind = match self.names(&self.restricted) {
            Some(names) => format!("; no license names it, and those that name others ({names}) do not show it"),
            None => String::new(),
        };
        let message = format!("is no {kind} that is known here{}{blind}; {remedy}", rows(uses));
        Some((unknown, message))
    }

    /// What to say of a word that is meant for another one.
    fn message(&self, is: &str, meant: &str, uses: &WordUses) -> String {
        let consequence = self.consequence(&[meant.to_owned()]);
        let consequence =
            if consequence.is_empty() { "; licenses and filters tell them apart".to_owned() } else { consequence };
        format!("{is} `{meant}`{}{consequence}; write `{meant}`", rows(uses))
    }

    /// Which licenses name one of the words, and so do not show this one.
    fn consequence(&self, meant: &[String]) -> String {
        let names: BTreeSet<&str> =
            meant.iter().filter_map(|word| self.licensed.get(word.as_str())).flatten().copied().collect();
        match self.names(&names.into_iter().collect::<Vec<_>>()) {
            Some(names) => format!("; licenses that name the right one ({names}) do not show a record for this one"),
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

    /// The words that a text lists, in the spellings in use.
    fn parts(&self, word: &str, uses: &WordUses) -> Option<Vec<String>> {
        // These separate nothing else.
        const SURE: &[&str] = &[";", "|", "\n", "\t"];
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
                // A text that more rows have than any of its parts is a word of its own.
                let is_rare = best.is_none_or(|best| best.rank.0 || best.rank.2 >= uses.total());
                known += usize::from((best.is_some() || by_itself.is_some()) && is_rare);
                let spelled = best.map(|best| best.word).or(by_itself.copied()).unwrap_or(part);
                meant.push(spelled.to_owned());
            }
            if known == parts.len() && parts.len() > 1 || known > 0 && SURE.contains(separator) {
                return Some(meant);
            }
        }
        None
    }

    /// The word that this one is most likely meant for.
    fn nearest(&self, key: &str, own: Candidate<'_>, budget: &mut Budget) -> Option<&str> {
        let letters = Letters::of(key.to_owned());
        let max = match letters.length {
            0..5 | MAX_BYTES.. => return None,
            5..9 => 1,
            _ => 2,
        };
        let mut nearest: Option<(Reverse<usize>, ByNumber, &str)> = None;
        for ComparableForm { letters: other, candidate, is_known, is_unseen } in &self.forms {
            if other.text == key
                || !(*is_known || candidate.by_number() > own.by_number())
                // A word that many rows have is not a slip in one that none has.
                || *is_unseen && own.rank.2 >= 10
            {
                continue;
            }
            let Some(distance) = letters.distance(other, max, budget) else { continue };
            let found = (Reverse(distance), candidate.by_number(), candidate.word);
            if nearest.is_none_or(|nearest| found > nearest) {
                nearest = Some(found);
            }
        }
        nearest.map(|(_, _, word)| word)
    }
}

/// How many rows have the word.
fn rows(uses: &WordUses) -> String {
    let count = if uses.new > 0 { uses.new } else { uses.stored };
    if count == 1 { " (1 row)".to_owned() } else { format!(" ({count} rows, the first is here)") }
}
