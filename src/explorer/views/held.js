// Rows that do not move under the pointer.
import {useRef, useState} from '../preact.js';

const idOf = ({id, record, kind}) => record ? `${record.id} ${kind}` : id;
/** The rows of an answer that a list shows, by their ids. */
const idsOf = ({records, deadlines}, mode, shown) => (mode === 'deadlines' ? deadlines : records).slice(0, shown).map(idOf);

/** The number of rows that come or go from one list of ids to another; 1 if they only change places, 0 if all stay. */
export function moves(before, after) {
	if (before.join() === after.join()) return 0;
	const [old, next] = [new Set(before), new Set(after)];
	return Math.max(1, after.filter(id => !old.has(id)).length + before.filter(id => !next.has(id)).length);
}

/**
 * The answer that a list shows: {found, waiting, show}. While the pointer or a visible focus is on a row, an answer that moves rows
 * waits until the reader asks for it: `waiting` counts its changes, and `show` shows them.
 */
export function useHeld(fresh, question, rows, shown) {
	const last = useRef({}), [, draw] = useState(0), {current: held} = last;
	const isBusy = () => Boolean(rows.current?.querySelector('tbody tr:hover, tbody :focus-visible'));
	const waiting = held.question === question && held.found !== fresh && isBusy() ? moves(idsOf(held.found, question.mode, shown), idsOf(fresh, question.mode, shown)) : 0;
	const show = () => {
		last.current = {question, found: fresh};
		draw(turn => turn + 1);
	};
	if (!waiting) last.current = {question, found: fresh};
	return {found: last.current.found, waiting, show};
}
