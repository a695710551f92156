// The files of a view: what is in them, and their names.
import {eventsOf} from './calendar.js';
import {shownDeadline} from './deadlines.js';
import {wordsOf} from './fold.js';
import {titleOf} from './question.js';
import {periodOf} from './select.js';

/** The longest name of a view in the name of a file, in characters. */
const MAX_NAME = 80;

/** Whether something of a record is still ahead on a day: one of its dates, or its year if the meeting has no date. */
const isAhead = (record, day) => !record.start_date && !(record.year && record.year < +day.slice(0, 4)) || eventsOf(record, {from: day}).length > 0;

/**
 * The files of a view on a day. `past`: with the dates and records that have passed. A question for deadlines asks for none of them.
 * - `events()`: the calendar's events: the deadlines that fit the question, or all dates of its records.
 * - `rows()`: the rows of the CSV file: deadlines, or records. If the question asks for deadlines, a record has the one that the list
 *   shows.
 * - `counts`: {events, rows}.
 * - `hasPast`: whether there is a choice.
 */
export function filesOf(question, {records, deadlines}, day, past = false) {
	const {mode, dataset, facets: {confidence: confidences}} = question, options = {from: past ? '' : day, confidences}, hasPast = dataset === 'conferences' && !deadlines;
	const period = periodOf(question, day), kept = hasPast ? [] : records, rows = mode === 'deadlines' ? deadlines : kept;
	let events = deadlines?.length ?? 0;
	if (hasPast) for (const record of records) {
		const {length} = eventsOf(record, options);
		events += length;
		if (past || length || isAhead(record, day)) kept.push(record);
	}
	return {hasPast, counts: {events, rows: rows.length}, events: () => deadlines ?? records.flatMap(record => eventsOf(record, options)),
		rows: () => rows === kept && (deadlines || confidences) ? kept.map(record => shownDeadline(record, day, period)) : rows};
}

/** The name of a file of a view: the view and the day. */
export const fileName = (question, day, end) => `${[...wordsOf(titleOf(question)).join('-')].slice(0, MAX_NAME).join('').replace(/-$/, '')}-${day}.${end}`;
