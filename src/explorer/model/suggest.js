// "Did you mean …?"
import {lettersOf} from './fold.js';
import {namesOf} from './facets.js';

/** The number of letters to add, drop or change between two texts; more than `most` counts as `most + 1`. */
function distance(one, other, most) {
	if (Math.abs(one.length - other.length) > most) return most + 1;
	let old = Array.from({length: other.length + 1}, (_, at) => at);
	for (let i = 1; i <= one.length; i++) {
		const row = [i];
		for (let j = 1; j <= other.length; j++) row[j] = Math.min(old[j] + 1, row[j - 1] + 1, old[j - 1] + (one[i - 1] !== other[j - 1]));
		if (Math.min(...row) > most) return most + 1;
		old = row;
	}
	return old.at(-1);
}

/**
 * The value that a text most likely means, or null. A value that differs only in case, marks or punctuation is first, then another
 * name of a country, then the shortest value that begins with the text, then the nearest spelling. Null too if the text is a value.
 */
export function nearest(text, values) {
	const wanted = lettersOf(text);
	if (!wanted || values.includes(text)) return null;
	const letters = values.map(value => [lettersOf(value), value]);
	const same = letters.find(([known]) => known === wanted);
	if (same) return same[1];
	const country = namesOf(text)[0];
	if (country && values.includes(country)) return country;
	const longer = letters.filter(([known]) => known.startsWith(wanted)).sort(([one], [other]) => one.length - other.length);
	if (wanted.length > 2 && longer.length) return longer[0][1];
	const most = Math.min(3, Math.floor(wanted.length / 3));
	let best = null, least = most + 1;
	for (const [known, value] of letters) {
		const edits = distance(wanted, known, most);
		if (edits < least) [best, least] = [value, edits];
	}
	return best;
}
