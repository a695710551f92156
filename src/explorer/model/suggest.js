// "Did you mean …?"
import {wordsOf} from './fold.js';

/** The number of letters to add, drop, change or swap with the next one between two texts; more than `most` counts as `most + 1`. */
function distance(one, other, most) {
	if (Math.abs(one.length - other.length) > most) return most + 1;
	let older = [], old = Array.from({length: other.length + 1}, (_, at) => at);
	for (let i = 1; i <= one.length; i++) {
		const row = [i];
		let least = i;
		for (let j = 1; j <= other.length; j++) {
			let edits = Math.min(old[j] + 1, row[j - 1] + 1, old[j - 1] + (one[i - 1] !== other[j - 1]));
			if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) edits = Math.min(edits, older[j - 2] + 1);
			row[j] = edits;
			least = Math.min(least, edits);
		}
		if (least > most) return most + 1;
		[older, old] = [old, row];
	}
	return old.at(-1);
}

const MAX_MEANT = 3;
const sorted = word => [...word].sort().join('');

/** The words of an index that are nearest to a word, the likeliest first: those with the same letters in another order, then with the same first letter. */
function nearestWords(index, word) {
	const most = Math.min(3, Math.floor(word.length / 3)), letters = sorted(word), found = [];
	// Words with digits are dates and initials, which nobody types.
	for (const known of index.numbers.keys()) if (!/\d/.test(known)) {
		const edits = distance(word, known, most);
		// Short words that differ in the first letter and another one are different words.
		if (edits <= most && (edits < 2 || word.length > 6 || known[0] === word[0])) found.push({known, edits, rank: sorted(known) === letters ? 0 : known[0] === word[0] ? 1 : 2});
	}
	return found.sort((one, other) => one.edits - other.edits || one.rank - other.rank || (one.known < other.known ? -1 : 1)).slice(0, MAX_MEANT)
		.map(({known}) => index.spellingOf(known)).filter(Boolean);
}

/** The texts that a reader may mean, the likeliest first, if some words of a text are in no record: those words are spelled as records do. */
export function meantBy(index, text) {
	const parts = text.split(/(\s+)/), isUnknown = word => !/^\d+$/.test(word) && !index.vocabulary.some(known => known.startsWith(word));
	const choices = parts.map(part => {
		const words = wordsOf(part);
		return words.length === 1 && isUnknown(words[0]) ? nearestWords(index, words[0]) : null;
	});
	const most = Math.max(0, ...choices.map(choice => choice?.length ?? 0));
	return Array.from({length: most}, (_, at) => parts.map((part, which) => choices[which]?.length ? choices[which][Math.min(at, choices[which].length - 1)] : part).join(''));
}
