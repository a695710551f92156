// Parts that views share.
import {html, useEffect, useState} from './preact.js';
import {curl, query} from './api.js';
import {STATUS, date, daysBetween} from './model/deadlines.js';
import {isUnlicensed, reasonOf} from './model/follower.js';
import {useSession} from './session.js';

export const link = (path, params) => `#/${path}${query(params) && '?' + query(params)}`;

export const DATASETS = {conferences: ['Conferences', 'conference'], journals: ['Journals', 'journal']};

export {date};

export const clock = time => new Date(time).toTimeString().slice(0, 8);
export const count = (number, one, many = one + 's') => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

/** The days from one day to another, in words. */
export function inDays(today, day) {
	const days = daysBetween(today, day);
	if (Math.abs(days) < 2) return ['yesterday', 'today', 'tomorrow'][days + 1];
	const size = count(Math.abs(days), 'day');
	return days > 0 ? `in ${size}` : `${size} ago`;
}

export const Status = ({of}) => of && html`<span class="status ${of}" title=${STATUS[of]?.[1]}>${STATUS[of]?.[0] ?? of}</span>`;

/** A link to elsewhere, of web addresses only. */
export const Out = ({href, children}) => /^https?:\/\//i.test(href ?? '')
	? html`<a href=${href} rel="noreferrer noopener" target="_blank">${children ?? href}</a>` : children ?? href ?? null;

export const Badge = ({kind}) => html`<span class="badge ${kind}">${kind}</span>`;

/** Names the window after the view. */
export function useWindowTitle(text) {
	useEffect(() => { document.title = `${text} · medfeed`; }, [text]);
}

/** A view's heading, and the window's title, which may say more. The heading gets the focus when the view changes. */
export function Title({full, children}) {
	useWindowTitle(full ?? children);
	return html`<h1 tabindex="-1"><bdi>${children}</bdi></h1>`;
}

/** Texts of records with commas between them, each in its own direction of writing; null if there are none. */
export const texts = list => list.some(Boolean) ? list.filter(Boolean).map((text, at) => html`${at > 0 && ', '}<bdi>${text}</bdi>`) : null;

/** A button that is on or off. */
export const Toggle = ({on, onChange, disabled, children}) => html`<button type="button" class="quiet" aria-pressed=${on} disabled=${disabled} onClick=${onChange}>${children}</button>`;

/** A button that copies a text. */
export function Copy({text, label, children = 'Copy'}) {
	const [done, setDone] = useState('');
	const copy = () => Promise.resolve().then(() => navigator.clipboard.writeText(text))
		.then(() => setDone('Copied'), () => setDone('Select it by hand'));
	useEffect(() => setDone(''), [text]);
	return html`<button class="quiet" onClick=${copy} aria-label=${done ? null : label}>${done || children}</button>
		<span role="status" class="hidden">${done}</span>`;
}

/** The curl line of a request. */
export function Curl({of, as, options}) {
	const {key, showKey, setShowKey} = useSession();
	const used = as ?? key;
	const line = curl(of, showKey ? used : null, options);
	return html`<div class="curl"><pre tabindex="0" aria-label="The same request with curl"><code>${line}</code></pre>
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

/**
 * A table of columns {name, cell(row), kind, sort}. `sorted` is {by, descending, onSort(by)}, for columns with a sort key. The first
 * column names the rows, after one of stars.
 * On a phone it is a stack of cards, and a table by its roles. Rows have no key: it is faster to write over them while a reader types.
 */
export const Table = ({label, columns, rows, sorted}) => html`<table role="table" aria-label=${label}>
	<thead role="rowgroup"><tr role="row">${columns.map(({name, kind, sort}) => {
		const now = sort && sorted?.by === sort;
		return html`<th role="columnheader" scope="col" class=${kind} aria-sort=${now ? sorted.descending ? 'descending' : 'ascending' : null}>
			${sort && sorted ? html`<button class="sort" onClick=${() => sorted.onSort(sort)}>${name}</button>` : html`<span class=${kind === 'stars' ? 'hidden' : null}>${name}</span>`}</th>`;
	})}</tr></thead>
	<tbody role="rowgroup">${rows.map(row => html`<tr role="row">
		${columns.map(({name, cell, kind}, at) => html`<td role=${at === (columns[0].kind === 'stars' ? 1 : 0) ? 'rowheader' : 'cell'} class=${kind} data-label=${name}><div>${cell(row) ?? html`<span class="none">–</span>`}</div></td>`)}
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
