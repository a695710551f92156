// The shortlist: the records that the reader starred, kept in the tab, or on this computer if the key is.
import {inTab} from './session.js';

const NAME = 'medfeed-stars';
const isId = id => Number.isSafeInteger(id) && id > 0;
const idsOf = list => new Set(Array.isArray(list) ? list.filter(isId) : []);
const lists = ({conferences, journals}) => ({conferences: [...conferences], journals: [...journals]});
const listeners = new Set();
let stars = {}, keep = null;

function change(next) {
	stars = next;
	for (const listener of listeners) listener();
}

/** Writes the lists {dataset: ids} into the tab. Empty ones leave nothing there. */
const writeInTab = lists => inTab(storage => lists?.conferences?.length || lists?.journals?.length ? storage.setItem(NAME, JSON.stringify(lists)) : storage.removeItem(NAME));

/** The lists of a value, whatever it is. */
const starsIn = kept => ({conferences: idsOf(kept?.conferences), journals: idsOf(kept?.journals)});

/** Reads the shortlist that the tab keeps. */
export function loadShortlist() {
	let kept = null;
	try {
		kept = JSON.parse(inTab(storage => storage.getItem(NAME)));
	} catch {}
	change(starsIn(kept));
}

/** Takes the shortlist {dataset: ids} that another tab kept. */
export const takeShortlist = kept => change(starsIn(kept));

/** Keeps the shortlist on this computer from now on, or no longer. The tab's own one is added to the one that is there already. */
export function keepShortlist(next) {
	keep = next;
	if (!keep) return;
	const kept = starsIn(keep.get('shortlist')), own = stars;
	change(kept);
	for (const dataset in own) if (own[dataset].size) setStars(dataset, [...kept[dataset], ...own[dataset]]);
	writeInTab(null);
}

/** Forgets the shortlist. */
export function clearShortlist() {
	writeInTab(null);
	change({conferences: new Set(), journals: new Set()});
}

/** The ids of a dataset's starred records, in the order in which they were starred. */
export const starsOf = dataset => [...stars[dataset]];

export const isStarred = (dataset, id) => stars[dataset].has(id);

/** Sets the ids of a dataset's starred records. */
export function setStars(dataset, ids) {
	const next = {...stars, [dataset]: idsOf(ids)};
	keep ? keep.put('shortlist', lists(next)) : writeInTab(lists(next));
	change(next);
}

/** Calls a listener with each change. Returns a function that ends this. */
export function subscribe(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

loadShortlist();
