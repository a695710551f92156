// The answer to a question, from an index.
import {addDays, deadlinesOf} from './deadlines.js';
import {confidencesOf, listValues} from './facets.js';

/** The period of a question, as `deadlinesOf` takes it; null if it does not ask for deadlines. */
export function periodOf({mode, kind, within}, today) {
	if (mode !== 'deadlines' && !kind && !within) return null;
	return {kind, from: today, to: within ? addDays(today, within) : '~'};
}

/**
 * Answers a question: {total, records, facets, deadlines}. `records` are all matching records in the order of the question's column.
 * `facets` are [{name, label, values: [{value, text, count, chosen}]}]; a facet's own choice does not lower its counts.
 * `deadlines` are [{record, kind, date, confidence}], the earliest first; null if the question does not ask for deadlines.
 */
export function select(index, question, today) {
	const period = periodOf(question, today), isMatch = index.matcher(question.words);
	const {facets} = index, counts = facets.map(facet => new Uint32Array(facet.values.length));
	const chosen = facets.map(facet => chosenNumbers(facet, question.facets[facet.name]));
	const records = [], deadlines = period && [];

	for (const entry of index.order(question.sort, question.descending, today)) {
		if (isMatch && !isMatch(entry)) continue;
		const due = period && deadlinesOf(entry.record, period);
		if (due && !due.length) continue;
		// The only facet whose choice the record does not meet; it still counts there.
		let unmet = -1, misses = 0;
		for (let at = 0; at < facets.length && misses < 2; at++) {
			if (!chosen[at] || valuesOf(entry, facets, at, due).some(number => chosen[at][number])) continue;
			misses++;
			unmet = at;
		}
		if (misses > 1) continue;
		for (let at = misses ? unmet : 0; at < (misses ? unmet + 1 : facets.length); at++) {
			for (const number of valuesOf(entry, facets, at, due)) counts[at][number]++;
		}
		if (misses) continue;
		records.push(entry.record);
		if (due) for (const deadline of due) deadlines.push({record: entry.record, ...deadline});
	}
	return {total: records.length, records, deadlines: deadlines && inOrder(deadlines, question),
		facets: facets.map((facet, at) => ({name: facet.name, label: facet.label, values: listValues(facet, counts[at], question.facets[facet.name])}))};
}

/** The numbers of an entry's values of a facet. */
function valuesOf(entry, facets, at, due) {
	if (!due || !facets[at].ofDeadlines) return entry.facets[at];
	return confidencesOf(due).map(confidence => facets[at].numbers.get(confidence));
}

/** By a value's number whether it is chosen; null if none is chosen. */
function chosenNumbers(facet, values) {
	if (!values?.length) return null;
	const chosen = new Uint8Array(facet.values.length);
	for (const value of values) if (facet.numbers.has(value)) chosen[facet.numbers.get(value)] = 1;
	return chosen;
}

/** The deadlines of the chosen confidences, the earliest first. */
function inOrder(deadlines, question) {
	const confidences = question.facets.confidence;
	return deadlines.filter(({confidence}) => !confidences || confidences.includes(confidence))
		.sort((one, other) => one.date < other.date ? -1 : one.date > other.date ? 1 : one.record.id - other.record.id);
}
