// The reader's lists, kept in the tab, or on this computer if the key is. Stars are the records of the current list.
import {DATASETS, areEmpty, joined, listsOf, notesIn, withIds} from './model/lists.js';
import {inTab, keepInTab} from './session.js';

const NAME = 'medfeed-lists';
const listeners = new Set();
let state = listsOf(), stars = {}, keep = null;

function change(next) {
	state = next;
	stars = Object.fromEntries(DATASETS.map(dataset => [dataset, new Set(state.lists[state.current][dataset].map(({id}) => id))]));
	for (const listener of listeners) listener();
}

/** Reads the lists that the tab keeps. */
export const loadLists = () => change(listsOf(inTab(storage => JSON.parse(storage.getItem(NAME) ?? storage.getItem('medfeed-stars')))));

/** Takes the lists that another tab kept. */
export const takeLists = kept => change(listsOf(kept));

/** Shows the lists of a kept key, and keeps them with it. Without one, those of the tab. */
export function keepLists(next) {
	if (!next && keep) loadLists();
	keep = next;
	// The first release kept one list, without a name.
	if (keep) change(listsOf(keep.get('lists') ?? keep.get('shortlist')));
}

/** Moves the lists of the tab to a kept key, which may have some. */
export function moveLists(next) {
	const own = state;
	keepLists(next);
	if (!areEmpty(own)) setLists(joined(state, own));
	keepInTab(NAME);
}

/** Forgets all lists. */
export function clearLists() {
	keepInTab(NAME);
	change(listsOf());
}

/** The lists: {lists, current}. */
export const allLists = () => state;

export function setLists(next) {
	keep ? keep.put('lists', next) : keepInTab(NAME, !areEmpty(next) && JSON.stringify(next));
	change(next);
}

/** The ids of a dataset's starred records, in their order. */
export const starsOf = dataset => [...stars[dataset]];

export const isStarred = (dataset, id) => stars[dataset].has(id);

/** Sets the ids of a dataset's starred records. Notes of others are removed only if the reader says so. */
export function setStars(dataset, ids) {
	const next = withIds(state, dataset, [...new Set(ids)]), lost = notesIn(state) - notesIn(next);
	if (lost <= 0 || confirm(lost === 1 ? 'Your note on this record is removed too.' : `Your notes on ${lost} records are removed too.`)) setLists(next);
}

/** Calls a listener with each change. Returns a function that ends this. */
export function subscribe(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

loadLists();
