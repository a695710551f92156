// Parts that views share.
import {html, useEffect, useRef, useState} from './preact.js';
import {curl, query} from './api.js';
import {STATUS, date, daysBetween} from './model/deadlines.js';
import {isUnlicensed, reasonOf} from './model/follower.js';
import {useSession} from './session.js';

export const link = (path, params) => `#/${path}${query(params) && '?' + query(params)}`;

export const DATASETS = {conferences: ['Conferences', 'conference'], journals: ['Journals', 'journal']};

/** Links to a view of each dataset. */
export const Datasets = ({at, dataset}) => html`<nav class="choice segments" aria-label="Dataset">${Object.keys(DATASETS).map(one =>
	html`<a href=${link(`${at}/${one}`)} aria-current=${one === dataset ? 'page' : null}>${one}</a>`)}</nav>`;

export const clock = time => new Date(time).toTimeString().slice(0, 8);
export const count = (number, one, many = one + 's') => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

/** The days from one day to another, in words. */
export function inDays(today, day) {
	const days = daysBetween(today, day);
	if (Math.abs(days) < 2) return ['yesterday', 'today', 'tomorrow'][days + 1];
	const size = count(Math.abs(days), 'day');
	return days > 0 ? `in ${size}` : `${size} ago`;
}

/** The confidence of a date: a dot or a ring, and a word, which a dense table hides from sight. */
export const Status = ({of}) => of && html`<span class="mark ${of}" title=${STATUS[of]?.join(': ')}>${STATUS[of]?.[0] ?? of}</span>`;

/** The confidence words and their meanings. */
export const Legend = () => html`<dl class="legend">${Object.entries(STATUS).map(([status, [, meaning]]) => html`<div><dt><${Status} of=${status} /></dt><dd>${meaning}</dd></div>`)}</dl>`;

/** Moves the focus to the title of a view. */
export const focusTitle = () => document.querySelector('h1')?.focus();

/** A link to elsewhere, of web addresses only. */
export const Out = ({href, children}) => /^https?:\/\//i.test(href ?? '')
	? html`<a href=${href} rel="noreferrer noopener" target="_blank">${children ?? href}</a>` : children ?? href ?? null;

export const Badge = ({kind}) => html`<span class="badge ${kind}">${kind}</span>`;

/** Names the window after the view. Without a text, a part of the view does so. */
export function useWindowTitle(text) {
	useEffect(() => { if (text) document.title = `${text} · medfeed`; }, [text]);
}

/** A view's heading, and the window's title, which may say more. The heading gets the focus when the view changes. Lists have theirs in the header. */
export function Title({full, children}) {
	useWindowTitle(full ?? children);
	return html`<h1 tabindex="-1"><bdi>${children}</bdi></h1>`;
}

/** Texts of records with commas between them, each in its own direction of writing; null if there are none. */
export const texts = list => list.some(Boolean) ? list.filter(Boolean).map((text, at) => html`${at > 0 && ', '}<bdi>${text}</bdi>`) : null;

/** A button that is on or off. */
export const Toggle = ({on, onChange, disabled, children}) => html`<button type="button" class="quiet" aria-pressed=${on} disabled=${disabled} onClick=${onChange}>${children}</button>`;

/** Moves the focus within a choice by the arrow keys: the choice is one stop of the Tab key. */
export function rove(event) {
	const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key], all = [...event.currentTarget.querySelectorAll('[role=radio]')];
	if (!step) return;
	event.preventDefault();
	all.at((all.indexOf(document.activeElement) + step) % all.length).focus();
}

/** One of several choices. `isStop`: the Tab key stops here. */
export const Choice = ({on, isStop, onChoose, children, ...rest}) => html`<button type="button" role="radio" aria-checked=${String(on)} tabindex=${isStop ? 0 : -1} onClick=${onChoose} ...${rest}>${children}</button>`;

/** A choice of one: `options` are [[value, text]]. */
export const Segments = ({label, options, value, onChange}) => html`<div class="segments" role="radiogroup" aria-label=${label} onKeyDown=${rove}>${options.map(([own, text]) =>
	html`<${Choice} key=${own} on=${own === value} isStop=${own === value} onChoose=${() => onChange(own)}>${text}<//>`)}</div>`;

/** A button that opens a sheet below it. The sheet closes when the focus leaves it, or by the Escape key. */
export function Menu({name, onOpen, children}) {
	const [open, setOpen] = useState(false), button = useRef();
	const leave = ({currentTarget, relatedTarget}) => currentTarget.contains(relatedTarget) || setOpen(false);
	const close = ({key}) => {
		if (key !== 'Escape' || !open) return;
		button.current.focus();
		setOpen(false);
	};
	return html`<div class="menu" onFocusOut=${leave} onKeyDown=${close}><button type="button" class="ghost" ref=${button} aria-expanded=${open} onClick=${() => { if (!open) onOpen?.(); setOpen(!open); }}>${name}</button>
		${open && html`<div class="sheet" tabindex="-1">${children}</div>`}</div>`;
}

/** A button that copies a text. Without a clipboard, as over plain HTTP, a field offers the text to select. */
export function Copy({text, label, children = 'Copy'}) {
	const [done, setDone] = useState(''), field = useRef();
	const copy = () => Promise.resolve().then(() => navigator.clipboard.writeText(text))
		.then(() => setDone('Copied'), () => setDone('Select it by hand'));
	useEffect(() => setDone(''), [text]);
	useEffect(() => field.current?.select(), [done]);
	return html`<button type="button" class="quiet" onClick=${copy} aria-label=${done ? null : label}>${done || children}</button>
		${done && done !== 'Copied' && html`<input ref=${field} readonly aria-label=${label ?? children} value=${text} />`}
		<span role="status" class="hidden">${done}</span>`;
}

/** The curl line of a request. */
export function Curl({of, as, options}) {
	const {key, showKey, setShowKey} = useSession();
	const used = as ?? key;
	const line = curl(of, showKey ? used : null, options);
	return html`<div class="curl"><pre tabindex="0" role="group" aria-label="The same request with curl"><code>${line}</code></pre>
		<div class="buttons"><${Copy} text=${line} label="Copy the curl line" />
			${used && html`<button class="quiet" onClick=${() => setShowKey(!showKey)}>${showKey ? 'Hide key' : 'Show key'}</button>`}
		</div></div>`;
}

/** A text in which backticks mark code. */
export const Words = ({of}) => of.split('`').map((text, at) => at % 2 ? html`<code>${text}</code>` : text);

/** An error as the API words it. */
export function Problem({of, children}) {
	const {problem, headers} = of;
	const code = (problem.type ?? '').split('/').pop();
	const wait = headers?.get('retry-after');
	return html`<section class="problem" role="alert">
		<h2>${problem.status ?? of.status} ${problem.title}</h2>
		<p><${Words} of=${reasonOf(problem)} /></p>
		${wait && html`<p>Wait ${count(+wait, 'second')}.</p>`}
		${children}
		${code && html`<p class="soft">Code <${Out} href=${problem.type}><code>${code}</code><//>, request <code>${problem.request_id}</code></p>`}
	</section>`;
}

export const Unlicensed = ({dataset}) => html`<p class="empty">This license has no ${dataset}.</p>`;

/** An answer about a dataset: its problem or its data by children(data), and its curl line. */
export function Answer({of, dataset, options, children}) {
	if (!of) return html`<p class="soft" role="status">Asking …</p>`;
	if (isUnlicensed(of)) return html`<${Unlicensed} dataset=${dataset} />`;
	return html`<div aria-busy=${of.stale}>
		${of.problem ? html`<${Problem} of=${of} />` : children(of.data, of)}
		<${Curl} of=${of} options=${options} /></div>`;
}

/** Follows the link of a row that is clicked anywhere, unless the reader selects text. */
function follow({target, ctrlKey, metaKey, shiftKey}) {
	if (target.closest('a, button') || String(getSelection())) return;
	target.closest('tr')?.querySelector('a')?.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey}));
}

/**
 * A table of columns {name, label, cell(row), kind, sort, isNamed}. `label` is the name as a text. `sorted` is {by, descending, onSort(by)}, for columns with a sort key.
 * `isNamed`: the name of the column is out of sight. The first column names the rows, after one of stars.
 * On a phone it is a stack of cards, and a table by its roles. Rows have no key: it is faster to write over them while a reader types.
 */
export const Table = ({label, columns, rows, sorted}) => html`<table role="table" aria-label=${label} onClick=${follow}>
	<thead role="rowgroup"><tr role="row">${columns.map(({name, kind, sort, isNamed}) => {
		const now = sort && sorted?.by === sort;
		return html`<th role="columnheader" scope="col" class=${kind} aria-sort=${now ? sorted.descending ? 'descending' : 'ascending' : null}>
			${sort && sorted ? html`<button class="sort" onClick=${() => sorted.onSort(sort)}>${name}</button>` : html`<span class=${isNamed ? 'hidden' : null}>${name}</span>`}</th>`;
	})}</tr></thead>
	<tbody role="rowgroup">${rows.map(row => html`<tr role="row">
		${columns.map(({name, label = name, cell, kind}, at) => html`<td role=${at === (columns[0].kind === 'stars' ? 1 : 0) ? 'rowheader' : 'cell'} class=${kind} data-label=${label}>${cell(row) ?? html`<span class="none">–</span>`}</td>`)}
	</tr>`)}</tbody></table>`;

const wordsOf = (field, text) => /status$/.test(field) && STATUS[text]?.[0] || text;

/** The fields of a record that changed, old beside new. */
export const Fields = ({of}) => of.length > 0 && html`<dl class="changes">${of.map(({field, from, to}) => html`<div>
	<dt>${field.replace(/[._]/g, ' ')}</dt><dd>${from && html`<del><span class="hidden">was </span><bdi>${wordsOf(field, from)}</bdi></del>`}
	<span class="soft"> ${!to ? 'removed' : !from ? 'added ' : html`<span aria-hidden="true">→ </span>`}</span>
	${to && html`<ins><span class="hidden">is now </span><bdi>${wordsOf(field, to)}</bdi></ins>`}</dd></div>`)}</dl>`;

/** Gives the reader a file that the page made or loaded. */
export function save(name, blob) {
	const anchor = Object.assign(document.createElement('a'), {href: URL.createObjectURL(blob), download: name});
	anchor.click();
	setTimeout(() => URL.revokeObjectURL(anchor.href), 60000);
}
