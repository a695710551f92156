// The way back to a list as its reader left it.
import {html} from '../preact.js';
import {DATASETS, link} from '../parts.js';

const left = new Map();

/** Keeps where the reader leaves a list by a click on a link: the address, and in the history the link, the number of rows and the scroll. */
export function leave(dataset, {target}, shown) {
	const row = target.closest('a')?.getAttribute('href');
	if (!row?.startsWith('#/')) return;
	if (shown) history.replaceState({...history.state, row, shown, top: scrollY}, '');
	left.set(dataset, {hash: location.hash || link(dataset), state: history.state});
}

/** Forgets all lists. */
export const forgetLists = () => left.clear();

/** Goes back to a list as it was left. */
function follow(event, {hash, state}) {
	if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
	event.preventDefault();
	history.pushState(state, '', hash);
	dispatchEvent(new Event('hashchange'));
}

/** The link to the list of a dataset, as it was left. */
export function Back({dataset}) {
	const kept = left.get(dataset);
	return html`<p class="back"><a href=${kept?.hash ?? link(dataset)} onClick=${event => kept && follow(event, kept)}>${kept ? `Back to the list of ${dataset}` : `All ${DATASETS[dataset][0].toLowerCase()}`}</a></p>`;
}
