// The files of a list, its address, and its print.
import {html, useEffect, useMemo, useRef, useState} from '../preact.js';
import {calendar, eventsOf} from '../model/calendar.js';
import {csv} from '../model/csv.js';
import {date, todayOf} from '../model/deadlines.js';
import {fileName, filesOf} from '../model/files.js';
import {format, parse, titleOf} from '../model/question.js';
import {xlsx} from '../model/xlsx.js';
import {Copy, Menu, count, save} from '../parts.js';
import {undatedWords} from './undated.js';

/** The most of a name on paper, in characters. */
const MAX_NAME = 100;
let printedFor = '';

/** Forgets for whom the page was printed. */
export const forgetPaper = () => { printedFor = ''; };

/** Whether the page is being printed. */
export function usePrinting() {
	const [isPrinting, setPrinting] = useState(false);
	useEffect(() => {
		const listeners = [['beforeprint', () => setPrinting(true)], ['afterprint', () => setPrinting(false)]];
		for (const [name, listener] of listeners) addEventListener(name, listener);
		return () => listeners.forEach(([name, listener]) => removeEventListener(name, listener));
	}, []);
	return isPrinting;
}

/** A line that only paper has: the day, and for whom, if the reader gave a name. */
export function Paper() {
	usePrinting();
	return html`<p class="paper printed">Printed on ${date(todayOf())}${printedFor && html` for <bdi>${printedFor}</bdi>`}</p>`;
}

/** A button that prints the view, after it asked for whom. `size` says how much. */
export function Print({size = ''}) {
	const [open, setOpen] = useState(false), button = useRef();
	const send = event => {
		event.preventDefault();
		// The form goes, and takes the focus of its button with it.
		button.current.focus();
		setOpen(false);
		print();
	};
	return html`<button class="quiet" ref=${button} aria-expanded=${open} onClick=${() => setOpen(!open)}>Print${size && ` (${size})`}</button>
		${open && html`<form class="row" onSubmit=${send}><label for="printed-for">Printed for (optional)</label>
			<input id="printed-for" value=${printedFor} maxlength=${MAX_NAME} autocomplete="off" onInput=${event => { printedFor = event.target.value; }} /><button>Print</button></form>`}`;
}

const saveText = async (name, type, text) => save(name, new Blob([await text].flat(), {type}));
/** The days before an event on which a calendar may remind. */
const REMINDERS = [0, 1, 7, 14, 30];
let reminder = 0;

/** A choice of a reminder, for all calendar files from now on. */
const Reminder = () => html`<label for="reminder">Reminder in the calendar</label><select id="reminder" value=${reminder} onChange=${({target}) => { reminder = +target.value; }}>
	${REMINDERS.map(days => html`<option value=${days}>${days ? `${count(days, 'day')} before` : 'none'}</option>`)}</select>`;

/** A button that saves the dates of a conference that are ahead. */
export function AddToCalendar({record}) {
	const day = todayOf(), events = eventsOf(record, {from: day}), name = `${record.abbv || record.name} ${record.year ?? ''}`.trim();
	return html`<button disabled=${!events.length} onClick=${() => saveText(fileName({...parse('#/conferences'), past: 'yes', words: name}, day, 'ics'), 'text/calendar', calendar(events, {days: reminder, name}))}>Add to calendar</button>`;
}

/** The menu of a view's files, its address, and its print. `size` says how much is printed; `undated` are deadlines that no calendar has. */
export const Files = props => html`<${Menu} name="Export"><${Sheet} ...${props} /><//>`;

/** The open menu: only then the dates are counted. */
function Sheet({question, found, day, size, undated}) {
	const {counts, events, rows} = useMemo(() => filesOf(question, found, day), [question, found, day]);
	const file = (title, size, end, type, text, isEmpty) => html`<button class="quiet" disabled=${isEmpty} onClick=${() => saveText(fileName(question, day, end), type, text())}>${title} (${size})<span class="hidden"> file of this view</span></button>`;
	return html`${question.dataset === 'conferences' && file('Calendar', count(counts.events, 'date'), 'ics', 'text/calendar', () => calendar(events(), {days: reminder, name: titleOf(question)}), !counts.events)}
		${question.dataset === 'conferences' && html`<${Reminder} />`}
		${undated.length > 0 && html`<p class="soft">${undatedWords(undated)}</p>`}
		${file('Excel', count(counts.rows, 'row'), 'xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', () => xlsx(rows()))}
		${file('CSV', count(counts.rows, 'row'), 'csv', 'text/csv', () => csv(rows()))}
		${file('CSV with ;', count(counts.rows, 'row'), 'csv', 'text/csv', () => csv(rows(), ';'))}
		<${Copy} text=${new URL(format(question), location.href).href}>Copy link<//><${Print} size=${size} />`;
}
