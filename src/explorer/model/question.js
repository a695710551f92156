// The question of a view, and its address. An address never holds a key.
import {FACETS, NONE, fullWordOf, isOpen} from './facets.js';
import {KINDS, WEEKDAYS} from './deadlines.js';
import {COLUMNS, FIRST_COLUMN} from './order.js';
import {RANGES, isValue} from './ranges.js';
import {isComing} from './select.js';

/** The parameters of the API that filter as a facet does, by one value each. */
const ASKED = {year: 'year', country: 'country', area: 'therapy_area'};
/** The ranges that are filters of the API too. */
const ASKED_RANGES = ['start_date_from', 'start_date_to'];
/** The names that a filter has in addresses: its own, and the API's. */
const namesIn = name => [...new Set([name, ASKED[name] ?? name])];
const valuesIn = hash => new URLSearchParams(hash.split(/\?(.*)/s)[1] ?? '');
/** The longest text that the API searches for, in characters. */
const MAX_ASKED = 100;
/** The most of an unknown value that the page repeats, in characters. */
const MAX_TOLD = 40;

/**
 * The question of a view at first. `ids`: only these records; null for all. `weekdays`: the days of the week of deadlines, such as `saturday,sunday`; '' for all. `ranges` are {name: value} of `RANGES`; `unknown`: records
 * fit too if a value that is filtered by is not announced. `past` is `yes` with meetings that are over, `no` without, or empty for what
 * `isComing` says.
 */
export const firstQuestion = dataset => ({dataset, words: '', ids: null, facets: {}, kind: '', weekdays: '', within: null, ranges: {}, unknown: false, past: '',
	sort: FIRST_COLUMN[dataset], descending: false, mode: 'list'});

/** Whether a text holds what looks like a key. */
export const hasKey = text => /mfk_/i.test(text ?? '');

// A line break may have cut a key in two. The second half does not begin like a key.
const HALF_KEY = /\b(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{12,}\b/g;

/** A text without keys: it becomes part of an address. */
export const withoutKeys = words => hasKey(words) ? words.replace(/\S*mfk_\S*/gi, '').replace(HALF_KEY, '').trim() : words.trim();

const isId = text => /^[1-9]\d*$/.test(text) && Number.isSafeInteger(+text);
/** The ids of a list such as `12,40`, each once. Other texts in it are left out. */
export const readIds = text => [...new Set(text.split(',').filter(isId))].map(Number);
const oneOf = (...values) => value => values.includes(value);

const areWeekdays = text => text.split(',').every(day => WEEKDAYS.some(known => known.toLowerCase() === day));
/** Days of the week in words: `due on a Saturday or Sunday`. */
const weekdaysText = weekdays => `due on a ${weekdays.split(',').map(day => day[0].toUpperCase() + day.slice(1)).join(' or ')}`;

/** The parameters with one value, besides the words: {name: isValid(value)}. */
const checksOf = dataset => ({
	ids: text => text.split(',').every(isId), sort: value => Object.hasOwn(COLUMNS[dataset], value), order: oneOf('asc', 'desc'), unknown: oneOf('yes'),
	...Object.fromEntries(RANGES[dataset].map(range => [range.name, text => isValue(range, text)])),
	...dataset === 'conferences' && {view: oneOf('list', 'deadlines'), deadline: value => Object.hasOwn(KINDS, value), due_on: areWeekdays, within: text => /^[1-9]\d{0,3}$/.test(text), past: oneOf('yes', 'no')},
});

/** The question of an address fragment such as `#/conferences?region=Europe&within=60`; null for another view. */
export function parse(hash) {
	const [path, query] = hash.replace(/^#\/?/, '').split(/\?(.*)/s), given = new URLSearchParams(query ?? '');
	const dataset = path.replace(/\/$/, '');
	if (!Object.hasOwn(FACETS, dataset)) return null;
	const question = firstQuestion(dataset), checks = checksOf(dataset), one = name => checks[name]?.(given.get(name) ?? '') ? given.get(name) : null;
	question.words = withoutKeys(given.get('q') ?? '');
	const ids = given.get('ids');
	// A list without ids is the shortlist of a reader who starred nothing.
	if (ids === '' || ids && readIds(ids).length) question.ids = readIds(ids);
	for (const {name} of FACETS[dataset]) {
		// A name without a value, `region=`, asks for records without any.
		const values = [...new Set(given.getAll(namesIn(name).find(own => given.has(own)) ?? name))];
		if (values.length) question.facets[name] = values;
	}
	question.kind = one('deadline') ?? '';
	question.weekdays = one('due_on') ?? '';
	question.within = one('within') && +one('within');
	for (const {name} of RANGES[dataset]) if (one(name)) question.ranges[name] = one(name);
	question.unknown = one('unknown') === 'yes';
	question.past = one('past') ?? '';
	question.sort = one('sort') ?? question.sort;
	question.descending = one('order') === 'desc';
	question.mode = one('view') ?? 'list';
	return question;
}

/** What an address fragment asks for and `parse` does not know: names, or with a value that is none: `within=soon`. */
export function unknownOf(hash) {
	const question = parse(hash), given = [...valuesIn(hash)].filter(([name, value]) => value && !hasKey(name));
	if (!question) return [];
	const {dataset} = question, checks = checksOf(dataset), known = ['q', 'limit', 'cursor', ...FACETS[dataset].flatMap(({name}) => namesIn(name))];
	const isFirst = (name, at) => given.findIndex(([own]) => own === name) === at;
	return [...new Set(given.map(([name, value], at) => {
		if (!checks[name]) return !known.includes(name) && name;
		return !(checks[name](value) && isFirst(name, at)) && `${name}=${[...withoutKeys(value)].slice(0, MAX_TOLD).join('')}`;
	}))].filter(Boolean);
}

/** The address fragment of a question. `parse` reads it. */
export function format(question) {
	const {dataset, words, ids, facets, kind, weekdays, within, ranges, unknown, past, sort, descending, mode} = question, given = new URLSearchParams();
	const put = (name, value) => value && given.append(name, value);
	put('view', mode === 'list' ? '' : mode);
	put('q', withoutKeys(words ?? ''));
	if (ids) given.append('ids', ids.join());
	for (const {name} of FACETS[dataset]) for (const value of facets?.[name] ?? []) value === NONE ? given.append(name, NONE) : put(name, hasKey(value) ? withoutKeys(value) : value);
	put('deadline', kind);
	put('due_on', weekdays);
	put('within', within);
	for (const {name} of RANGES[dataset]) put(name, ranges?.[name]);
	put('unknown', unknown && 'yes');
	put('past', past);
	put('sort', sort === FIRST_COLUMN[dataset] ? '' : sort);
	put('order', descending && 'desc');
	return addressOf(dataset, given);
}

/** The address fragment that the browser's history gets: without the words, which may be a secret. */
export const placeOf = question => format({...question, words: ''});

/** The question with a value of a facet chosen, or no longer chosen. */
export function toggle(question, facet, value) {
	const before = question.facets[facet] ?? [], after = before.includes(value) ? before.filter(one => one !== value) : [...before, value];
	const facets = {...question.facets, [facet]: after};
	if (!after.length) delete facets[facet];
	return {...question, facets};
}

/** The question with or without meetings that are over, the other way round. */
export function toggleComing(question) {
	const isOn = isComing(question);
	return {...question, past: isComing({...question, past: ''}) === isOn ? isOn ? 'yes' : 'no' : ''};
}

/** The filters of a question in words, each with the question without it: [{name, value, text, without}]. No text holds a key. */
export function filtersOf(question) {
	const {dataset, words, ids, facets, kind, weekdays, within, ranges, unknown, past} = question, filters = [], put = (name, value, text, without) => filters.push({name, value, text, without: {...question, ...without}});
	if (words.trim()) put('q', words, withoutKeys(words) ? `“${withoutKeys(words)}”` : 'API key', {words: ''});
	if (ids) put('ids', ids.join(), `${ids.length.toLocaleString('en')} starred`, {ids: null, isOwn: false});
	for (const facet of FACETS[dataset]) for (const value of facets[facet.name] ?? []) put(facet.name, value, fullWordOf(facet, value), toggle(question, facet.name, value));
	if (kind) put('deadline', kind, KINDS[kind], {kind: ''});
	if (weekdays) put('due_on', weekdays, weekdaysText(weekdays), {weekdays: ''});
	if (within) put('within', `${within}`, `due in the next ${within === 1 ? 'day' : `${within} days`}`, {within: null});
	for (const {name, text} of RANGES[dataset]) if (ranges[name]) put(name, ranges[name], text(ranges[name]), {ranges: {...ranges, [name]: undefined}});
	if (unknown && hasOpenFilter(question)) put('unknown', 'yes', 'or not announced', {unknown: false});
	if (isComing(question)) put('past', 'no', 'to come', toggleComing(question));
	else if (past === 'yes' && isComing({...question, past: ''})) put('past', 'yes', 'with past ones', {past: ''});
	return filters;
}

/** Whether a question filters by values that may not be announced. */
const hasOpenFilter = ({dataset, ranges, facets}) => RANGES[dataset].some(({name, keyOf}) => keyOf && ranges[name])
	|| FACETS[dataset].some(facet => isOpen(facet) && facets[facet.name]);

/** The value by which the API filters as a facet does; '' if it cannot. */
const askedValue = (facets, name) => facets[name]?.length === 1 ? facets[name][0] : '';

/** The parameters of the nearest request of the API. */
export function requestOf({words, facets, ranges}) {
	const text = withoutKeys(words), params = {q: text.length > 1 ? [...text].slice(0, MAX_ASKED).join('') : ''};
	for (const name in ASKED) params[ASKED[name]] = askedValue(facets, name);
	for (const name of ASKED_RANGES) if (ranges?.[name]) params[name] = ranges[name];
	return params;
}

// Commas of lists may stay as they are.
const addressOf = (dataset, given) => `#/${dataset}${String(given) && '?' + String(given).replace(/\b(ids|due_on)=[^&]*/g, list => list.replaceAll('%2C', ','))}`;

/** The name of a view, such as `Conferences: Oncology, Europe, due in the next 60 days`. */
export function titleOf(question) {
	const name = question.mode === 'deadlines' ? 'Conference deadlines' : {conferences: 'Conferences', journals: 'Journals'}[question.dataset];
	return [name, filtersOf(question).map(({text}) => text).join(', ')].filter(Boolean).join(': ');
}

/** Whether a question asks for less than all records, apart from those that are over. */
export const isNarrowed = question => filtersOf(question).some(({name}) => name !== 'past');
