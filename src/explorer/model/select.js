// The answer to a question, from an index.
import {addDays, deadlinesOf, isOn} from './deadlines.js';
import {NONE, isOpen, listValues} from './facets.js';
import {Order} from './order.js';
import {rangesTest} from './ranges.js';
import {wantedOf} from './words.js';

/** Whether a question asks for deadlines. */
export const asksForDeadlines = ({mode, kind, weekdays, within, ranges}) => Boolean(mode === 'deadlines' || kind || weekdays || within || ranges.due_from || ranges.due_to);

/**
 * Whether a question leaves out meetings that are over. It does so unless it asks for deadlines, years, days or single records, or says
 * which.
 */
export const isComing = question => question.dataset === 'conferences' && !asksForDeadlines(question) && (question.past ? question.past === 'no' : !(question.ids || isDated(question)));

/** Whether a question asks for years or days of meetings. */
const isDated = ({facets, ranges}) => Boolean(facets.year || ranges.start_date_from || ranges.start_date_to);

/** Whether a question asks for what is over. */
export const showsPast = question => question.past ? question.past === 'yes' : isDated(question);

/** The deadlines that fit a question, for `deadlinesOf`: those ahead or in its period, of its kind, days of the week and confidences. */
export function periodOf({kind, weekdays, within, ranges: {due_from, due_to}, facets}, today) {
	const [from, to] = within ? [today, addDays(today, within)] : [due_from ?? today, '~'];
	return {kind, weekdays, from: due_from > from ? due_from : from, to: due_to < to ? due_to : to, confidences: facets.confidence};
}

/**
 * Answers a question: {total, records, facets, deadlines, past, unknown, missing}. `records` are all matching records in the order of the question's column.
 * `facets` are [{name, label, values: [{value, text, count, chosen}]}]; a facet's own choice does not lower its counts.
 * `deadlines` are [{record, kind, date, confidence}], the earliest first; null if the question does not ask for deadlines.
 * `past` and `unknown` are the numbers of records that fit but are over, and that fit as far as they are announced; `missing` are the
 * question's ids without a record.
 */
export function select(index, question, today) {
	const {records, facets, facetOf} = index, {data, ends} = index.values;
	const period = asksForDeadlines(question) && periodOf(question, today), isMatch = index.matcher(question.words);
	const ids = question.ids && new Set(question.ids), fitsRanges = rangesTest(index.dataset, question.ranges), isLeft = isComing(question);
	let past = 0, unknown = 0;
	const counts = new Uint32Array(facetOf.length), isChosen = new Uint8Array(facetOf.length);
	let wanted = 0;
	const isBlank = new Uint8Array(facetOf.length);
	facets.forEach((facet, at) => {
		const values = question.facets[facet.name] ?? [];
		if (values.length) wanted |= 1 << at;
		if (values.length && isOpen(facet) && facet.numbers.has(NONE)) isBlank[facet.numbers.get(NONE)] = 1;
		for (const value of values) if (facet.numbers.has(value)) isChosen[facet.numbers.get(value)] = 1;
	});
	// Of deadlines in a period, their own confidences count, not all of the record.
	const year = facets.findIndex(({name}) => name === 'year'), own = period ? facets.findIndex(facet => facet.ofDeadlines) : -1;
	const found = new Uint8Array(records.length), due = [];

	// One pass in the order of the slots, because memory is fastest to read in a row.
	for (let slot = 0; slot < records.length; slot++) {
		if (!records[slot] || ids && !ids.has(records[slot].id) || isMatch && !isMatch(slot)) continue;
		const fits = fitsRanges ? fitsRanges(records[slot]) : true, isPast = isLeft && index.until(slot) < today;
		if (fits === false) continue;
		const deadlines = period && inPeriod(index.deadlines(slot), period);
		if (deadlines && !deadlines.length) continue;
		const begin = slot && ends[slot - 1], end = ends[slot], confidences = own < 0 ? [] : numbersOf(deadlines, facets[own]);
		let met = 0, blank = 0;
		if (wanted) {
			for (let at = begin; at < end; at++) if (facetOf[data[at]] !== own) {
				if (isChosen[data[at]]) met |= 1 << facetOf[data[at]];
				else if (isBlank[data[at]]) blank |= 1 << facetOf[data[at]];
			}
			for (const number of confidences) if (isChosen[number]) met |= 1 << own;
		}
		if (question.unknown) met |= blank;
		let unmet = wanted & ~met;
		const isUnknown = fits === null && !question.unknown;
		if (!(unmet & ~blank)) isUnknown || unmet ? unknown += !isPast : past += isPast;
		if (isUnknown || isPast) {
			// A chosen year is shown whole.
			if (isUnknown || unmet || question.past) continue;
			unmet = 1 << year;
		}
		// A record that misses one facet's choice counts there, and only there.
		if (unmet & (unmet - 1)) continue;
		for (let at = begin; at < end; at++) {
			const facet = facetOf[data[at]];
			if (facet !== own && (!unmet || unmet === 1 << facet)) counts[data[at]]++;
		}
		if (!unmet || unmet === 1 << own) for (const number of confidences) counts[number]++;
		if (unmet) continue;
		found[slot] = 1;
		if (period) due[slot] = deadlines;
	}

	const slots = [];
	for (const slot of index.order(question.sort, question.descending, today)) if (found[slot]) slots.push(slot);
	const deadlines = period ? byDate(slots, due, question.facets.confidence) : null;
	const asked = wantedOf(question.words ?? ''), fits = asked && index.fitting(slots, asked);
	let sorted = byFit(slots, fits).map(slot => records[slot]);
	// By the deadlines that are asked for.
	if (question.sort === 'deadline') if (period) {
		sorted = [...new Set(deadlines.map(({record}) => record))];
		if (question.descending) sorted.reverse();
		sorted = byFit(sorted.map(({id}) => index.slots.get(id)), fits).map(slot => records[slot]);
	} else if (question.facets.confidence) {
		const keyOf = record => deadlinesOf(record, periodOf(question, today))[0]?.date;
		const own = slots.map(slot => records[slot]), order = new Order(keyOf, today, own).list(question.descending);
		sorted = byFit(order.map(at => slots[at]), fits).map(slot => records[slot]);
	}
	return {total: slots.length, records: sorted, deadlines, past, unknown, missing: question.ids?.filter(id => !index.slots.has(id)) ?? [],
		facets: facets.map(facet => ({name: facet.name, label: facet.label, values: listValues(facet, counts, question.facets[facet.name])}))};
}

/** Slots in their order, but those whose names fit best come first. */
function byFit(slots, fits) {
	if (!fits) return slots;
	const groups = [[], [], [], []];
	for (const slot of slots) groups[fits[slot]].push(slot);
	return groups.flat();
}

/** The deadlines of a list that are in a period. */
function inPeriod(deadlines, {kind, weekdays, from, to}) {
	const isIn = ({kind: own, date}) => date >= from && date <= to && (!kind || kind === own) && isOn(date, weekdays);
	return deadlines.every(isIn) ? deadlines : deadlines.filter(isIn);
}

/** The numbers of the confidences of one or two deadlines, each once. */
function numbersOf([first, second], facet) {
	const number = facet.numbers.get(first.confidence);
	return !second || second.confidence === first.confidence ? [number] : [number, facet.numbers.get(second.confidence)];
}

/** The deadlines of the chosen confidences, the earliest first. */
function byDate(slots, due, confidences) {
	const days = new Map();
	for (const slot of slots) for (const deadline of due[slot]) {
		if (confidences && !confidences.includes(deadline.confidence)) continue;
		const day = days.get(deadline.date);
		day ? day.push(deadline) : days.set(deadline.date, [deadline]);
	}
	return [...days.keys()].sort().flatMap(day => days.get(day));
}
