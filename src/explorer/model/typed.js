// Typed words that are filters: periods and days of the week of deadlines, two years or more, access and figures of journals. The page shows each as a filter that can be removed.
import {UNSURE, WEEKDAYS, WEEKEND, addDays, monthsFrom} from './deadlines.js';
import {hasKey} from './question.js';
import {RANGES, typedValue} from './ranges.js';
import {monthOf} from './words.js';

const DAY = `weekend|${WEEKDAYS.join('|')}`;
const DUE = '(?:deadlines?|due)(?: dates?)?';
const YEAR = '(?:19|20)\\d\\d';
const NUMBER = '\\d[\\d.,]*\\s?k?\\b\\+?';
const LEAST = '(?:>=?|≥|over|above|at least|min\\.?|more than|from)';
const MOST = '(?:<=?|≤|under|below|at most|max\\.?|less than|up to|within)';

const withFacet = (name, values) => ({facets}) => ({facets: {...facets, [name]: [...new Set([...facets[name] ?? [], ...values])]}});

/** The filter of a range with a typed number; null if it is none. */
function withRange(name, number) {
	const range = RANGES.journals.find(range => range.name === name), value = typedValue(range, number);
	return value && (({ranges}) => ({ranges: {...ranges, [name]: value}}));
}

/** The days of the week that a text names. */
function withDays([text]) {
	const named = text.toLowerCase().match(new RegExp(DAY, 'gi')).flatMap(day => day === 'weekend' ? WEEKEND.split(',') : day);
	return () => ({weekdays: [...new Set(named)].join(',')});
}

/** The years that a text names, if they are two or more and none is the year of a month. `2026/27` has two, `2025-2027` three. */
function withYears([text], before) {
	const years = text.match(/\d+/g).map(year => year.length === 2 ? `20${year}` : year), [first] = years, last = years.at(-1);
	const isRange = years.length === 2 && /[-–]|to/.test(text) && last - first > 0 && last - first < 10;
	const all = isRange ? Array.from({length: last - first + 1}, (_, at) => String(+first + at)) : years;
	return new Set(all).size > 1 && !monthOf(before.split(/\s+/).at(-1).toLowerCase()) && withFacet('year', all);
}

/** The next so many days, weeks or months of 30 days. */
const withPeriod = ([, number, unit]) => () => ({within: number * {d: 1, w: 7, m: 30}[unit[0].toLowerCase()]});

const withDue = ({from, to}) => ({ranges}) => ({ranges: {...ranges, due_from: from, due_to: to}});

/** The next day that is a Sunday, which ends a week. */
const sundayOf = day => addDays(day, (7 - new Date(day).getUTCDay()) % 7);
/** Spans of days by their names: {from, to} on a day. */
const SPANS = {
	today: day => ({from: day, to: day}),
	tomorrow: day => SPANS.today(addDays(day, 1)),
	'this week': day => ({from: day, to: sundayOf(day)}),
	'next week': day => ({from: addDays(sundayOf(day), 1), to: addDays(sundayOf(day), 7)}),
	'this month': day => monthsFrom(day)[0],
	'next month': day => monthsFrom(day)[1],
};

/** The deadlines of a month: of the year that is named, else the next such month. */
function withMonth([, name, year], _, day) {
	const number = monthOf(name.toLowerCase()), months = monthsFrom(year ? `${year}-01-01` : day);
	return number && withDue(months.find(({month}) => +month.slice(5) === number));
}

/** The texts that are filters: [pattern, the filter of its match, the words before it and the day; nothing if it is none]. */
const PATTERNS = {
	conferences: [
		[`(?:deadlines? |due )?(?:on )?(?:an? )?(?:${DAY})s?(?:(?:,? and|,? or|,|/)? (?:${DAY})s?)*`, withDays],
		// The second half of `2027-06` is a month.
		[`${YEAR}(?:(?:\\s*[-–/,&]\\s*| (?:and |or |vs\\.? |to )?)${YEAR}|[-–/](?:1[3-9]|[2-9]\\d))+`, withYears],
		[`(?:${DUE} )?(?:(?:with)?in |over )?(?:the )?(?:next )?([1-9]\\d?) (days?|weeks?|months?)`, withPeriod],
		[`(?:${DUE} )?(${Object.keys(SPANS).join('|')})`, ([, name], _, day) => withDue(SPANS[name.toLowerCase()](day))],
		[`${DUE} (?:in |for )?(\\p{L}{3,9})\\.?(?: (${YEAR}))?`, withMonth],
		['not (?:yet )?confirmed|unconfirmed', () => withFacet('confidence', UNSURE)],
	],
	journals: [
		['(?:gold )?(?:open[- ]access|oa)|gold', () => withFacet('access', ['open'])],
		['(?:no|without an?|zero) (?:article )?(?:fees?|apcs?)', () => withFacet('fee', ['0'])],
		[`(?:impact(?: factor)?|j?if)(?: of)?\\s*(?:${LEAST})?\\s*(${NUMBER})`, ([, number]) => withRange('impact_min', number)],
		[`(?:fees?|apcs?)(?: of)?\\s*(?:${MOST})?\\s*((?:\\$|usd)?\\s*${NUMBER})(?:\\s*(?:\\$|usd|dollars))?`, ([, number]) => withRange('fee_max', number)],
		[`(?:(?:accept\\w*|(?:first )?(decision))(?: in)?\\s*)?(?:${MOST})?\\s*(?<!${LEAST}\\s*)(\\d[\\d.,]*)\\s?(?:weeks?|wks?)(?: to (?:acceptance|(?:an? )?(?:first )?(decision)))?`,
			([, before, number, after]) => withRange(before || after ? 'decision_max' : 'weeks_max', number)],
	],
};
const KNOWN = Object.fromEntries(Object.entries(PATTERNS).map(([dataset, list]) => [dataset, list.map(([pattern, filterOf]) => [new RegExp(`(?<=^|\\s)(?:${pattern})(?=$|\\s)`, 'giu'), filterOf])]));

/** The question on a day with those typed words as filters that are some. The other words stay; so do words in quotation marks. */
export function understood(question, day) {
	let result = question;
	if (hasKey(question.words)) return question;
	for (const [pattern, filterOf] of KNOWN[question.dataset]) {
		const words = result.words.replace(pattern, (text, ...rest) => {
			const at = rest.findIndex(one => typeof one === 'number'), filter = filterOf([text, ...rest.slice(0, at)], question.words.slice(0, rest[at]).trim(), day);
			if (!filter) return text;
			result = {...result, ...filter(result)};
			return '';
		});
		if (words !== result.words) result = {...result, words: words.replace(/\s+/g, ' ').trim()};
	}
	return result;
}
