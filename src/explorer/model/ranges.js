// Ranges: filters by a day or a number, from one end.
import {date, isDay} from './deadlines.js';

const dollars = amount => `${Number(amount).toLocaleString('en')} US dollars`;
/** The longest time of a step that a journal states, in weeks. */
const weeks = step => ({timelines}) => timelines?.[step]?.max_weeks ?? timelines?.[step]?.min_weeks;
const inWeeks = number => `at most ${number} ${+number === 1 ? 'week' : 'weeks'}`;

/**
 * The ranges of each dataset: {name, label, kind, isMoney, isLeast, keyOf(record), text(value)}. `name` is the parameter in an address, `kind`
 * the kind of its field. `isMoney`: it is an amount. `isLeast`: the value is the least that fits, not the most. A range without `keyOf` is one of deadlines.
 */
export const RANGES = {
	conferences: [
		{name: 'start_date_from', label: 'Begins from', kind: 'date', isLeast: true, keyOf: record => record.start_date, text: day => `begins from ${date(day)}`},
		{name: 'start_date_to', label: 'Begins until', kind: 'date', keyOf: record => record.start_date, text: day => `begins until ${date(day)}`},
		{name: 'due_from', label: 'Deadline from', kind: 'date', isLeast: true, text: day => `due from ${date(day)}`},
		{name: 'due_to', label: 'Deadline until', kind: 'date', text: day => `due until ${date(day)}`},
	],
	journals: [
		{name: 'impact_min', label: 'Impact factor, at least', kind: 'number', isLeast: true, keyOf: record => record.impact_factor, text: number => `impact factor of at least ${number}`},
		{name: 'fee_max', label: 'Fee in US dollars, at most', kind: 'number', isMoney: true, keyOf: record => record.publishing?.apc_usd, text: amount => `fee of at most ${dollars(amount)}`},
		{name: 'weeks_max', label: 'Weeks to acceptance, at most', kind: 'number', keyOf: weeks('online_submit_to_accept'), text: number => `${inWeeks(number)} to acceptance`},
		{name: 'decision_max', label: 'Weeks to first decision, at most', kind: 'number', keyOf: weeks('submit_to_first_decision'), text: number => `${inWeeks(number)} to a first decision`},
	],
};

/** Whether a text is a value of a range: a day such as `2027-03-15`, or a number such as `2.5`. */
export const isValue = ({kind}, text) => kind === 'date' ? isDay(text) : /^\d{1,15}(\.\d{1,9})?$/.test(text);

/** A text without the signs and units that people write beside a number: `>5`, `5+`, `12 weeks`; `3k` is 3000. */
const bareOf = text => text.trim().replace(/^[<>≤≥=\s]+/, '').replace(/\s*(\+|weeks?|wks?|w)$/i, '').replace(/^(\d+(?:[.,]\d+)?)\s*k$/i, (_, number) => String(Math.round(number.replace(',', '.') * 1000)));

/**
 * The value that a reader typed; '' if it is none. A comma before three digits separates thousands, and so does a point in an amount
 * of money, which may name its currency. Another comma is a decimal point.
 */
export function typedValue(range, text) {
	const given = bareOf(range.isMoney ? text.replace(/^[<>≤≥=\s]*(\$|USD)|(\$|USD)[\s+]*$/i, '') : text), bare = range.isMoney ? given.replace(/\.(?=\d{3}(\D|$))/g, '') : given;
	const plain = range.kind === 'date' ? text : bare.trim().replace(/[,\s](?=\d{3}(\D|$))/g, '').replace(',', '.');
	return isValue(range, plain) ? plain : '';
}

/** Whether the first day of a period is after its last one. */
export const isReversed = ({start_date_from, start_date_to, due_from, due_to}) => start_date_from > start_date_to || due_from > due_to;

/**
 * A test of records by the given values {name: value}: true, false, or null if the record fits as far as it is known and a value is not
 * announced. Null if no range of records is given.
 */
export function rangesTest(dataset, given) {
	const tests = RANGES[dataset].filter(({name, keyOf}) => keyOf && given[name]).map(({name, kind, isLeast, keyOf}) => ({keyOf, isLeast, end: kind === 'date' ? given[name] : +given[name]}));
	return tests.length ? record => {
		let fits = true;
		for (const {keyOf, isLeast, end} of tests) {
			const value = keyOf(record);
			if (value == null) fits = null;
			else if (isLeast ? value < end : value > end) return false;
		}
		return fits;
	} : null;
}
