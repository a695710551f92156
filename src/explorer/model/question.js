// The question of a view, and its address. An address never holds a key.
import {FACETS, NONE, fullWordOf} from './facets.js';
import {KINDS} from './deadlines.js';
import {COLUMNS, FIRST_COLUMN} from './order.js';

export {select} from './select.js';

/** The question of a view at first. */
export const firstQuestion = dataset => ({dataset, words: '', facets: {}, kind: '', within: null, sort: FIRST_COLUMN[dataset], descending: false, mode: 'list'});

/** Whether a text holds what looks like a key. */
export const hasKey = text => /mfk_/i.test(text ?? '');

/** A text without keys: it becomes part of an address. */
export const withoutKeys = words => words.replace(/\S*mfk_\S*/gi, '').trim();

/** The question of an address fragment such as `#/conferences?region=Europe&within=60`; null for another view. */
export function parse(hash) {
	const [path, query] = hash.replace(/^#\/?/, '').split(/\?(.*)/s), given = new URLSearchParams(query ?? '');
	const dataset = path.replace(/\/$/, '');
	if (!Object.hasOwn(FACETS, dataset)) return null;
	const question = firstQuestion(dataset), one = (name, known) => Object.hasOwn(known, given.get(name) ?? '') ? given.get(name) : null;
	question.words = withoutKeys(given.get('q') ?? '');
	for (const {name} of FACETS[dataset]) {
		// A name without a value, `region=`, asks for records without any.
		const values = [...new Set(given.getAll(name))];
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
	return `#/${dataset}${String(given) && '?' + given}`;
}

/** The question with a value of a facet chosen, or no longer chosen. */
export function toggle(question, facet, value) {
	const before = question.facets[facet] ?? [], after = before.includes(value) ? before.filter(one => one !== value) : [...before, value];
	const facets = {...question.facets, [facet]: after};
	if (!after.length) delete facets[facet];
	return {...question, facets};
}

/** The filters of a question in words, each with the question without it: [{text, without}]. No text holds a key. */
export function filtersOf(question) {
	const {dataset, words, facets, kind, within} = question, filters = [], put = (text, without) => filters.push({text, without: {...question, ...without}});
	if (words.trim()) put(withoutKeys(words) ? `“${withoutKeys(words)}”` : 'API key', {words: ''});
	for (const facet of FACETS[dataset]) for (const value of facets[facet.name] ?? []) put(fullWordOf(facet, value), toggle(question, facet.name, value));
	if (kind) put(KINDS[kind], {kind: ''});
	if (within) put(`due in the next ${within === 1 ? 'day' : `${within} days`}`, {within: null});
	return filters;
}

/** The name of a view, such as `Conferences: Oncology, Europe, due in the next 60 days`. */
export function titleOf(question) {
	const name = question.mode === 'deadlines' ? 'Conference deadlines' : {conferences: 'Conferences', journals: 'Journals'}[question.dataset];
	return [name, filtersOf(question).map(({text}) => text).join(', ')].filter(Boolean).join(': ');
}

/** Whether a question asks for less than all records. */
export const isNarrowed = ({words, facets, kind, within}) => Boolean(words || Object.keys(facets).length || kind || within);
