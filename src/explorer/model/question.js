// The question of a view, and its address. An address never holds a key.
import {FACETS, NONE, fullWordOf} from './facets.js';
import {KINDS} from './deadlines.js';
import {COLUMNS, FIRST_COLUMN} from './order.js';

export {select} from './select.js';

/** The parameters of the API that filter as a facet does, by one value each. */
const ASKED = {year: 'year', country: 'country', area: 'therapy_area'};
/** The names that a filter has in addresses: its own, and the API's. */
const namesIn = name => [...new Set([name, ASKED[name] ?? name])];
const valuesIn = hash => new URLSearchParams(hash.split(/\?(.*)/s)[1] ?? '');
/** The longest text that the API searches for, in characters. */
const MAX_ASKED = 100;

/** The question of a view at first. */
export const firstQuestion = dataset => ({dataset, words: '', facets: {}, kind: '', within: null, sort: FIRST_COLUMN[dataset], descending: false, mode: 'list'});

/** Whether a text holds what looks like a key. */
export const hasKey = text => /mfk_/i.test(text ?? '');

// A line break may have cut a key in two. The second half does not begin like a key.
const HALF_KEY = /\b(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{12,}\b/g;

/** A text without keys: it becomes part of an address. */
export const withoutKeys = words => hasKey(words) ? words.replace(/\S*mfk_\S*/gi, '').replace(HALF_KEY, '').trim() : words.trim();

/** The question of an address fragment such as `#/conferences?region=Europe&within=60`; null for another view. */
export function parse(hash) {
	const [path, query] = hash.replace(/^#\/?/, '').split(/\?(.*)/s), given = new URLSearchParams(query ?? '');
	const dataset = path.replace(/\/$/, '');
	if (!Object.hasOwn(FACETS, dataset)) return null;
	const question = firstQuestion(dataset), one = (name, known) => Object.hasOwn(known, given.get(name) ?? '') ? given.get(name) : null;
	question.words = withoutKeys(given.get('q') ?? '');
	for (const {name} of FACETS[dataset]) {
		// A name without a value, `region=`, asks for records without any.
		const values = [...new Set(given.getAll(namesIn(name).find(own => given.has(own)) ?? name))];
		if (values.length) question.facets[name] = values;
	}
	question.sort = one('sort', COLUMNS[dataset]) ?? question.sort;
	question.descending = given.get('order') === 'desc';
	if (dataset === 'conferences') {
		question.kind = one('deadline', KINDS) ?? '';
		question.within = /^[1-9]\d{0,3}$/.test(given.get('within')) ? +given.get('within') : null;
		if (given.get('view') === 'deadlines') question.mode = 'deadlines';
	}
	return question;
}

/** The names in an address fragment that ask for something which `parse` does not know. */
export function unknownOf(hash) {
	const question = parse(hash), given = valuesIn(hash);
	if (!question) return [];
	const isConferences = question.dataset === 'conferences', known = ['q', 'sort', 'order', 'limit', 'cursor', ...isConferences ? ['view'] : [], ...FACETS[question.dataset].flatMap(({name}) => namesIn(name))];
	if (isConferences && question.kind) known.push('deadline');
	if (isConferences && question.within) known.push('within');
	return [...new Set(given.keys())].filter(name => given.get(name) && !known.includes(name) && !hasKey(name));
}

/** The address fragment of a question. `parse` reads it. */
export function format(question) {
	const {dataset, words, facets, kind, within, sort, descending, mode} = question, given = new URLSearchParams();
	const put = (name, value) => value && given.append(name, value);
	put('view', mode === 'list' ? '' : mode);
	put('q', withoutKeys(words ?? ''));
	for (const {name} of FACETS[dataset]) for (const value of facets?.[name] ?? []) value === NONE ? given.append(name, NONE) : put(name, hasKey(value) ? withoutKeys(value) : value);
	put('deadline', kind);
	put('within', within);
	put('sort', sort === FIRST_COLUMN[dataset] ? '' : sort);
	put('order', descending && 'desc');
	return addressOf(dataset, given);
}

/** The question with a value of a facet chosen, or no longer chosen. */
export function toggle(question, facet, value) {
	const before = question.facets[facet] ?? [], after = before.includes(value) ? before.filter(one => one !== value) : [...before, value];
	const facets = {...question.facets, [facet]: after};
	if (!after.length) delete facets[facet];
	return {...question, facets};
}

/** The filters of a question in words, each with the question without it: [{name, value, text, without}]. No text holds a key. */
export function filtersOf(question) {
	const {dataset, words, facets, kind, within} = question, filters = [], put = (name, value, text, without) => filters.push({name, value, text, without: {...question, ...without}});
	if (words.trim()) put('q', words, withoutKeys(words) ? `“${withoutKeys(words)}”` : 'API key', {words: ''});
	for (const facet of FACETS[dataset]) for (const value of facets[facet.name] ?? []) put(facet.name, value, fullWordOf(facet, value), toggle(question, facet.name, value));
	if (kind) put('deadline', kind, KINDS[kind], {kind: ''});
	if (within) put('within', `${within}`, `due in the next ${within === 1 ? 'day' : `${within} days`}`, {within: null});
	return filters;
}

/** The value by which the API filters as a facet does; '' if it cannot. */
const askedValue = (facets, name) => facets[name]?.length === 1 ? facets[name][0] : '';

/** The parameters of the nearest request of the API. */
export function requestOf({words, facets}) {
	const text = withoutKeys(words), params = {q: text.length > 1 ? [...text].slice(0, MAX_ASKED).join('') : ''};
	for (const name in ASKED) params[ASKED[name]] = askedValue(facets, name);
	return params;
}

/** The filters of a question that no request of the API has, as in `filtersOf`. */
export const lostOf = question => filtersOf(question).filter(({name}) => name !== 'q' && !(name in ASKED && askedValue(question.facets, name)));

/** The names in an address of the filters that no request of the API has. */
export const lostNames = question => [...new Set(lostOf(question).flatMap(({name}) => namesIn(name)))];

/** The address fragment of the API's list with other values, from the first page on. Filters that no request has stay in it. */
export function addressWith(hash, values) {
	const question = parse(hash), given = valuesIn(hash), lost = lostNames(question);
	for (const [name, value] of Object.entries({cursor: '', ...values})) {
		if (value || !lost.includes(name)) for (const own of [name, ...Object.keys(ASKED).filter(facet => ASKED[facet] === name)]) given.delete(own);
		if (value) given.append(name, value);
	}
	return addressOf(question.dataset, given);
}

/** The address fragment of the API's list without a filter {name, value}, from the first page on. */
export const addressWithout = (hash, {name, value}) => addressOf(parse(hash).dataset,
	new URLSearchParams([...valuesIn(hash)].filter(([own, given]) => own !== 'cursor' && !(namesIn(name).includes(own) && given === value))));

const addressOf = (dataset, given) => `#/${dataset}${String(given) && '?' + given}`;

/** The name of a view, such as `Conferences: Oncology, Europe, due in the next 60 days`. */
export function titleOf(question) {
	const name = question.mode === 'deadlines' ? 'Conference deadlines' : {conferences: 'Conferences', journals: 'Journals'}[question.dataset];
	return [name, filtersOf(question).map(({text}) => text).join(', ')].filter(Boolean).join(': ');
}

/** Whether a question asks for less than all records. */
export const isNarrowed = ({words, facets, kind, within}) => Boolean(words || Object.keys(facets).length || kind || within);
