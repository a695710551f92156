// The shortlist: the records that the reader starred, kept in the tab.
import {inTab} from './session.js';

const NAME = 'medfeed-stars';
const isId = id => Number.isSafeInteger(id) && id > 0;
const idsOf = list => new Set(Array.isArray(list) ? list.filter(isId) : []);
const listeners = new Set();
let stars = {};

function change(next) {
	stars = next;
	for (const listener of listeners) listener();
}

/** Reads the shortlist that the tab keeps, whatever stands there. */
export function loadShortlist() {
	let kept = null;
	try {
		kept = JSON.parse(inTab(storage => storage.getItem(NAME)));
	} catch {}
	change({conferences: idsOf(kept?.conferences), journals: idsOf(kept?.journals)});
}

/** Forgets the shortlist. */
export function clearShortlist() {
	inTab(storage => storage.removeItem(NAME));
	change({conferences: new Set(), journals: new Set()});
}

/** The ids of a dataset's starred records, in the order in which they were starred. */
export const starsOf = dataset => [...stars[dataset]];

export const isStarred = (dataset, id) => stars[dataset].has(id);

/** Sets the ids of a dataset's starred records. */
export function setStars(dataset, ids) {
	const next = {...stars, [dataset]: idsOf(ids)};
	inTab(storage => storage.setItem(NAME, JSON.stringify({conferences: [...next.conferences], journals: [...next.journals]})));
	change(next);
}

/** Calls a listener with each change. Returns a function that ends this. */
export function subscribe(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

loadShortlist();
