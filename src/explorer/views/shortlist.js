// Stars, and what a list does with them.
import {html, useEffect, useRef, useState} from '../preact.js';
import {firstQuestion} from '../model/question.js';
import {count} from '../parts.js';
import {allLists, isStarred, setStars, starsOf, subscribe} from '../shortlist.js';

/** The most records that stand side by side. */
export const MAX_COMPARED = 4;

/** The address of records side by side. */
export const compareLink = (dataset, ids) => `#/compare/${dataset}?ids=${ids.slice(0, MAX_COMPARED).join()}`;

/** The link to records side by side, if there are some: the first ones. */
export const CompareLink = ({dataset, ids}) => ids.length > 1 && html`<a href=${compareLink(dataset, ids)}>Compare ${ids.length > MAX_COMPARED ? `${MAX_COMPARED} of ${ids.length.toLocaleString('en')} ` : ''}side by side</a>`;

/** The reader's lists. The view is drawn again when they change. */
export function useLists() {
	const [, draw] = useState(0);
	useEffect(() => subscribe(() => draw(turn => turn + 1)), []);
	return allLists();
}

/** The ids of a dataset's starred records, which the view follows too. */
export const useStars = dataset => useLists() && starsOf(dataset);

/** A button that stars a record. It alone is drawn again when its star changes. */
export function Star({dataset, record: {id, name, year}, children}) {
	const [, draw] = useState(0), isOn = isStarred(dataset, id), shown = useRef();
	shown.current = {dataset, id, isOn};
	useEffect(() => subscribe(() => {
		const {dataset, id, isOn} = shown.current;
		if (isStarred(dataset, id) !== isOn) draw(turn => turn + 1);
	}), []);
	const toggle = () => setStars(dataset, isOn ? starsOf(dataset).filter(one => one !== id) : [...starsOf(dataset), id]);
	return html`<button type="button" class=${children ? 'star ghost' : 'star'} aria-pressed=${String(isOn)} aria-label=${['Star', name, year].filter(Boolean).join(' ')} onClick=${toggle}>${children}</button>`;
}

/** The column of stars in a table of records, or of rows with a record. */
export const starColumn = dataset => ({name: 'Starred', kind: 'stars', isNamed: true, cell: row => html`<${Star} dataset=${dataset} record=${row.record ?? row} />`});

/**
 * The shortlist above a list: *Only starred*, and what leads on. While a list shows the reader's own stars, `onFollow` gets the
 * question when they change. `onLeave` goes to the results. `found` answers the question from `index`.
 */
export function Shortlist({question, found: {records, missing, total}, index, onChange, onLeave, onFollow}) {
	const {dataset, ids, isOwn} = question, stars = useStars(dataset);
	useEffect(() => {
		if (isOwn && ids?.join() !== stars.join()) onFollow({...question, ids: stars});
	}, [question, stars.join()]);
	const drop = missing => {
		if (isOwn) setStars(dataset, stars.filter(id => !missing.includes(id)));
		onChange({...question, ids: ids.filter(id => !missing.includes(id))});
	};
	// A button that goes when it is pressed takes its focus with it.
	const once = (text, act) => html`<button class="plain" onClick=${() => { act(); onLeave(); }}>${text}</button>`;
	const others = ids ? ids.length - missing.length - total : 0;
	const foreign = ids?.filter(id => !stars.includes(id) && !missing.includes(id)) ?? [];
	// Those in the list come first, in its order. Those that the license does not show lead nowhere.
	const wanted = new Set(ids ?? stars), listed = records.filter(({id}) => wanted.has(id)).map(({id}) => id);
	const compared = [...new Set([...listed, ...wanted])].filter(id => index.slots.has(id));
	return (ids || stars.length > 0) && html`<div class="row" role="group" aria-label="Shortlist">
		<button type="button" class="quiet" aria-pressed=${String(Boolean(isOwn))} onClick=${() => onChange({...question, ids: isOwn ? null : stars, isOwn: !isOwn})}>Only starred (${stars.length.toLocaleString('en')})</button>
		<${CompareLink} dataset=${dataset} ids=${compared} />
		${foreign.length > 0 && once(`Star ${foreign.length === 1 ? 'the other one' : `${foreign.length.toLocaleString('en')} of these`} too`, () => setStars(dataset, [...stars, ...foreign]))}
		${missing.length > 0 && html`<span class="soft" role="status">${missing.length.toLocaleString('en')} of ${count(ids.length, 'record')} ${missing.length === 1 ? 'is' : 'are'} not in this license, or removed.</span>
			${once('Leave out', () => drop(missing))}`}
		${others > 0 && html`<span class="soft" role="status">${count(others, 'more', 'more')} starred ${others === 1 ? 'does' : 'do'} not fit the other filters.</span>
			${once('Show all starred', () => onChange({...firstQuestion(dataset), ids, isOwn}))}`}</div>`;
}
