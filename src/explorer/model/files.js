// The files of a view: what is in them.
import {eventsOf} from './calendar.js';
import {shownDeadline} from './deadlines.js';
import {periodOf} from './select.js';

/** The events of a view's calendar: the deadlines that fit its question, or all dates of its records. */
export const calendarOf = (question, {records, deadlines}) => deadlines ?? records.flatMap(record => eventsOf(record, {confidences: question.facets.confidence}));

/** The rows of a view's CSV file: deadlines, or records. If the question asks for deadlines, a record has the one that the list shows. */
export function rowsOf(question, {records, deadlines}, day) {
	if (question.mode === 'deadlines') return deadlines;
	if (!deadlines && !question.facets.confidence) return records;
	const period = periodOf(question, day);
	return records.map(record => shownDeadline(record, day, period));
}
