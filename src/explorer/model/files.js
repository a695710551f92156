// The files of a view: what is in them, and their names.
import {eventsOf} from './calendar.js';
import {shownDeadline, untilOf} from './deadlines.js';
import {wordsOf} from './fold.js';
import {titleOf} from './question.js';
import {periodOf, showsPast} from './select.js';

/** The longest name of a view in the name of a file, in characters. */
const MAX_NAME = 80;

/**
 * The files of a view on a day:
 * - `events()`: the calendar's events: the deadlines that fit the question, or the dates of its records that are ahead. A meeting that
 *   is over has all its dates if the question asks for it, and each one if it asks for the past by name.
 * - `rows()`: the rows of the CSV file: deadlines, or records. If the question asks for deadlines or confidences, a record has the
 *   deadline that the list shows.
 * - `counts`: {events, rows}.
 */
export function filesOf(question, {records, deadlines}, day) {
	const {mode, dataset, facets: {confidence: confidences}} = question, fromOf = record => question.past === 'yes' || showsPast(question) && untilOf(record) < day ? '' : day;
	const ofRecord = record => eventsOf(record, {from: fromOf(record), confidences}), period = periodOf(question, day), rows = mode === 'deadlines' ? deadlines : records;
	let events = deadlines?.length ?? 0;
	if (dataset === 'conferences' && !deadlines) for (const record of records) events += ofRecord(record).length;
	return {counts: {events, rows: rows.length}, events: () => deadlines ?? records.flatMap(ofRecord),
		rows: () => rows === records && (deadlines || confidences) ? records.map(record => shownDeadline(record, day, period)) : rows};
}

/** The name of a file of a view: the view and the day. */
export const fileName = (question, day, end) => `${[...wordsOf(titleOf(question)).join('-')].slice(0, MAX_NAME).join('').replace(/-$/, '')}-${day}.${end}`;
