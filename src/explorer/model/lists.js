// A reader's lists: names, owners, and records with their order and notes.
import {Failure} from './load.js';

/** The bounds of what comes from elsewhere: a link, a file, the browser's storage. */
const MAX_LISTS = 50, MAX_RECORDS = 2000, MAX_NAME = 100, MAX_NOTE = 2000;
/** The largest file of a list, in bytes. */
export const MAX_FILE = 8 << 20;
export const DATASETS = ['conferences', 'journals'];
/** The name of a reader's first list. */
export const FIRST = 'Shortlist';

const isId = id => Number.isSafeInteger(id) && id > 0;
/** A line of text without control characters, of bounded length. */
const line = (text, most) => typeof text === 'string' ? [...text.replace(/[\x00-\x1f\x7f]+/g, ' ').trim()].slice(0, most).join('') : '';
const noteOf = note => typeof note === 'string' ? [...note.replace(/\r\n?/g, '\n').replace(/[\x00-\x09\x0b-\x1f\x7f]+/g, ' ')].slice(0, MAX_NOTE).join('') : '';

/** The records of a list, whatever a value holds: [{id, note}], each once. Ids alone are records without notes. */
function recordsOf(value) {
	const found = new Map();
	for (const one of Array.isArray(value) ? value : []) {
		const id = Object(one) === one ? one.id : one;
		if (isId(id) && !found.has(id) && found.size < MAX_RECORDS) found.set(id, {id, note: noteOf(one.note)});
	}
	return [...found.values()];
}

/** A list of a value, whatever it holds: {name, owner, conferences: [{id, note}], journals: [{id, note}]}. */
export const listOf = (value, name = FIRST) => ({name: line(value?.name, MAX_NAME) || name, owner: line(value?.owner, MAX_NAME), ...Object.fromEntries(DATASETS.map(dataset => [dataset, recordsOf(value?.[dataset])]))});

/** The lists of a value, and which of them takes stars: {lists, current}. The first release kept one list of ids. */
export function listsOf(value) {
	const given = Array.isArray(value?.lists) ? value.lists : [value], lists = given.slice(0, MAX_LISTS).map(one => listOf(one));
	if (!lists.length) lists.push(listOf());
	return {lists, current: lists[value?.current] ? value.current : 0};
}

export const isEmpty = list => DATASETS.every(dataset => !list[dataset].length);

/** Whether lists hold nothing of the reader's. */
export const areEmpty = ({lists}) => lists.length === 1 && isEmpty(lists[0]) && lists[0].name === FIRST && !lists[0].owner;

/** The number of notes in lists. */
export const notesIn = ({lists}) => lists.reduce((sum, list) => sum + DATASETS.reduce((sum, dataset) => sum + list[dataset].filter(({note}) => note).length, 0), 0);

/** The lists with another state of one of them. */
const change = (state, at, next) => ({...state, lists: state.lists.map((list, own) => own === at ? listOf(next(list)) : list)});

/** Sets the ids of a list. Records that stay keep their notes. */
export const withIds = (state, dataset, ids, at = state.current) => change(state, at, list => ({...list, [dataset]: ids.map(id => list[dataset].find(one => one.id === id) ?? {id})}));

/** Sets the name or the owner of the current list. */
export const named = (state, names) => change(state, state.current, list => ({...list, ...names}));

export const withNote = (state, dataset, id, note) => change(state, state.current, list => ({...list, [dataset]: list[dataset].map(one => one.id === id ? {id, note} : one)}));

/** Moves a record of the current list up (-1) or down (1). */
export const moved = (state, dataset, id, step) => change(state, state.current, list => {
	const records = [...list[dataset]], from = records.findIndex(one => one.id === id), [record] = records.splice(from, 1);
	records.splice(Math.max(0, from + step), 0, record);
	return {...list, [dataset]: records};
});

/** Why no list can be added; '' if one can. */
export const fullWords = state => !areEmpty(state) && state.lists.length >= MAX_LISTS ? `There are ${MAX_LISTS} lists, and no room for another one. Save one as a file, delete it, and try again.` : '';

/** Adds a list, which becomes the current one. Another one of the same name gets a number. */
export function added(state, given) {
	const list = listOf(given, 'New list'), names = state.lists.map(({name}) => name), isFree = name => !names.includes(name);
	if (fullWords(state)) return state;
	const name = isFree(list.name) || areEmpty(state) ? list.name : Array.from({length: MAX_LISTS}, (_, at) => `${list.name} ${at + 2}`).find(isFree);
	const lists = areEmpty(state) && !isEmpty(list) ? [{...list, name}] : [...state.lists, {...list, name}];
	return {lists, current: lists.length - 1};
}

/** The lists without the current one. */
export const removed = state => listsOf({lists: state.lists.filter((_, at) => at !== state.current), current: 0});

/** The lists of two places: a list of the same name has the records of both, first those of `state`. */
export function joined(state, others) {
	let result = state;
	for (const other of others.lists) {
		const at = result.lists.findIndex(({name}) => name === other.name);
		if (at < 0) result = {...added(result, other), current: result.current};
		else result = change(result, at, list => Object.fromEntries([['name', list.name], ['owner', list.owner || other.owner], ...DATASETS.map(dataset => [dataset, [...list[dataset], ...other[dataset]]])]));
	}
	return listsOf(result);
}

/** The parameters of a link to a list: its name and ids, and no notes. */
export const linkOf = list => ({name: list.name, ...Object.fromEntries(DATASETS.map(dataset => [dataset, list[dataset].map(({id}) => id).join()]))});

/** The list of a link's parameters. */
export const fromLink = params => listOf({name: params.name, ...Object.fromEntries(DATASETS.map(dataset => [dataset, (params[dataset] ?? '').split(',').map(Number)]))}, 'Shared list');

/** A file of a list, with its notes. */
export const fileOf = list => JSON.stringify({medfeed: 'list', ...list}, null, 1) + '\n';

/** The list of a file. */
export function fromFile(text) {
	let value = null;
	try {
		value = JSON.parse(text);
	} catch {}
	if (value?.medfeed !== 'list') throw new Failure('This is not a file of a list. Choose a file that “Save as a file” made.');
	return listOf(value, 'Shared list');
}
