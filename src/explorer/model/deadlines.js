// Deadlines of conferences. Dates are texts, `YYYY-MM-DD`, which compare as they are.

/** The confidence of a date: a word, and what it means. */
export const STATUS = {
	confirmed: ['confirmed', 'published by the organizer and checked against the official source'],
	estimated: ['estimated', 'projected from earlier editions until the organizer announces it'],
	copied: ['copied', 'carried forward from the previous edition, awaiting confirmation'],
	not_found: ['not found', 'looked for, not published yet'],
	check: ['in check', 'under review by the service operator'],
};

/** All confidences but that of the organizer's own dates. */
export const UNSURE = Object.keys(STATUS).slice(1);

/** The kinds of deadlines, in words. */
export const KINDS = {abstract: 'Abstracts', late_breaking: 'Late-breaking abstracts'};
const FIELDS = Object.keys(KINDS).map(kind => [kind, `${kind}_due_date`, `${kind}_due_date_status`]);

/** The reader's day as `YYYY-MM-DD`. */
export function todayOf(now = new Date()) {
	const two = number => String(number).padStart(2, '0');
	return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

/** The first day that a field for dates takes. */
export const FIRST_DAY = '1900-01-01';
/** The last day that a date can be. */
export const LAST_DAY = '9999-12-31';

/** Whether a text is a day, `YYYY-MM-DD`, that the calendar has. */
export function isDay(text) {
	const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
	// Some days that a month does not have are days of the next month.
	return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === text;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The days of the week, in words. */
export const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
/** The days of a weekend, as a question names them. */
export const WEEKEND = 'saturday,sunday';
const weekdayOf = day => WEEKDAYS[new Date(day).getUTCDay()];
const shortDayOf = day => weekdayOf(day).slice(0, 3);

/** Whether a date is on one of some days of the week, such as `saturday,sunday`. Every date is on no named day. */
export const isOn = (date, weekdays) => !weekdays || weekdays.includes(weekdayOf(date).toLowerCase());

/** A day, or a range of days, such as `Fri 29 May – Tue 2 Jun 2026`. */
export function date(from, to) {
	if (!from) return null;
	const [first, last] = [from, to ?? from].map(day => [+day.slice(8, 10), MONTHS[day.slice(5, 7) - 1], day.slice(0, 4)]);
	// Parts that both days share appear once, at the end.
	const shared = [2, 1, 0].find(part => first[part] !== last[part]) ?? -1;
	return (shared < 0 ? '' : [shortDayOf(from), ...first.slice(0, shared + 1)].join(' ') + ' – ') + [shortDayOf(to ?? from), ...last].join(' ');
}

/** A day so many days later, but no later than the last day. */
export const addDays = (day, days) => new Date(Math.min(Date.parse(day) + days * 86400000, Date.parse(LAST_DAY))).toISOString().slice(0, 10);

/** The months of a year from a day on: [{month, from, to}]. The first one begins on that day. */
export function monthsFrom(today) {
	const first = (+today.slice(0, 4)) * 12 + +today.slice(5, 7) - 1, textOf = at => `${Math.floor(at / 12)}-${String(at % 12 + 1).padStart(2, '0')}`;
	return Array.from({length: 12}, (_, at) => ({month: textOf(first + at), from: at ? `${textOf(first + at)}-01` : today, to: addDays(`${textOf(first + at + 1)}-01`, -1)}));
}

/** The days from one day to another. */
export const daysBetween = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / 86400000);

/**
 * A record's deadlines of some kind or all, from a day to a day, on some days of the week or all, of some confidences or all: [{record, kind, date, confidence}], the
 * earliest first.
 */
export function deadlinesOf(record, {from = '', to = '~', kind = '', weekdays = '', confidences} = {}) {
	const found = [];
	for (const [name, field, status] of FIELDS) {
		const date = record[field];
		if (date && date >= from && date <= to && (!kind || kind === name) && isOn(date, weekdays) && isOf(record[status], confidences)) found.push({record, kind: name, date, confidence: record[status]});
	}
	return found.length > 1 && found[1].date < found[0].date ? found.reverse() : found;
}

/** The last day of a record's meeting. */
export const lastDayOf = ({start_date, end_date}) => end_date > start_date ? end_date : start_date;

/** The last day on which something of a record is still ahead: a deadline, the meeting, or its year if it has no date. */
export function untilOf(record) {
	const last = record.start_date ? lastDayOf(record) : record.year ? `${record.year}-12-31` : LAST_DAY;
	const due = deadlinesOf(record).at(-1)?.date;
	return due > last ? due : last;
}

const isOf = (confidence, confidences) => !confidences || confidences.includes(confidence);

/**
 * The deadline of a record that a list shows: the next one that fits a question, else the last one that has passed, else one without a
 * date whose confidence was asked for. `period` is {from, …} of `deadlinesOf`.
 */
export function shownDeadline(record, day, period) {
	const [next] = deadlinesOf(record, period);
	if (next) return next;
	const {kind, weekdays, confidences} = period, passed = deadlinesOf(record, {kind, weekdays, confidences, to: day}).at(-1);
	if (passed || !confidences) return passed;
	const undated = FIELDS.find(([name, field, status]) => !record[field] && (!kind || kind === name) && confidences.includes(record[status]));
	return undated && {record, kind: undated[0], date: null, confidence: record[undated[2]]};
}

/** Deadlines [{date, …}] in their order, grouped by month: [{month: '2027-03', from, deadlines}]. `from` deadlines come before the month. */
export function byMonth(deadlines) {
	const months = [];
	for (const [from, deadline] of deadlines.entries()) {
		const month = deadline.date.slice(0, 7);
		if (months.at(-1)?.month !== month) months.push({month, from, deadlines: []});
		months.at(-1).deadlines.push(deadline);
	}
	return months;
}
