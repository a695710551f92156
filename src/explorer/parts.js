// What views share.
import {html, useEffect, useRef, useState} from './preact.js';
import {curl, query, useSession} from './api.js';

export const link = (path, params) => `#/${path}${query(params) && '?' + query(params)}`;

/** Date confidence, in the contract's words. */
export const STATUS = {
	confirmed: ['confirmed', 'published by the organizer and checked against the official source'],
	estimated: ['estimated', 'projected from earlier editions until the organizer announces it'],
	copied: ['copied', 'carried forward from the previous edition, awaiting confirmation'],
	not_found: ['not found', 'looked for, not published yet'],
	check: ['in check', 'under review by the service operator'],
};

const DAY = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC'});
/** A day, or several, in words. */
export const date = (from, to) => from && DAY.formatRange(new Date(from), new Date(to ?? from));
export const clock = text => new Date(text).toLocaleTimeString('en-GB');
export const count = (number, one, many = one + 's') => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

export const Status = ({of}) => of && html`<span class="status ${of}">${STATUS[of]?.[0] ?? of}</span>`;

/** A link to elsewhere, of web addresses only. */
export const Out = ({href, children}) => /^https?:\/\//i.test(href ?? '')
	? html`<a href=${href} rel="noreferrer noopener" target="_blank">${children ?? href}</a>` : children ?? href ?? null;

export const Badge = ({kind}) => html`<span class="badge ${kind}">${kind}</span>`;

/** A view's heading, which gets the focus when the view changes. */
export const Title = ({children}) => html`<h1 tabindex="-1">${children}</h1>`;

export function Copy({text}) {
	const [done, setDone] = useState('');
	const copy = () => navigator.clipboard.writeText(text)
		.then(() => setDone('Copied'), () => setDone('Select it by hand'));
	useEffect(() => setDone(''), [text]);
	return html`<button type="button" class="quiet" onClick=${copy} aria-label="Copy the curl line">${done || 'Copy'}</button>
		<span role="status" class="hidden">${done}</span>`;
}

/** The curl line of a request. */
export function Curl({of, as, options}) {
	const {key, showKey, setShowKey} = useSession();
	const used = as ?? key;
	const line = curl(of, showKey ? used : null, options);
	return html`<div class="curl"><pre tabindex="0" aria-label="The same request with curl"><code>${line}</code></pre>
		<div class="buttons"><${Copy} text=${line} />
			${used && html`<button type="button" class="quiet" onClick=${() => setShowKey(!showKey)}>${showKey ? 'Hide key' : 'Show key'}</button>`}
		</div></div>`;
}

/** An error as the API words it. */
export function Problem({of, children}) {
	const {problem, headers} = of;
	const code = (problem.type ?? '').split('/').pop();
	const wait = headers?.get('retry-after');
	return html`<section class="problem" role="alert">
		<h2>${problem.status} ${problem.title}</h2>
		<p>${problem.detail.split('`').map((text, at) => at % 2 ? html`<code>${text}</code>` : text)}</p>
		${wait && html`<p>Wait ${count(+wait, 'second')}.</p>`}
		${children}
		${code && html`<p class="soft">Code <${Out} href=${problem.type}><code>${code}</code><//>, request <code>${problem.request_id}</code></p>`}
	</section>`;
}

/** An answer: its problem or its data by children(data), and its curl line. */
export function Answer({of, options, children}) {
	const {setKey} = useSession();
	if (!of) return html`<p class="soft" role="status">Asking …</p>`;
	return html`<div aria-busy=${of.stale}>
		${of.problem
			? html`<${Problem} of=${of}>${of.status === 401 && html`<p><button type="button" onClick=${() => setKey('')}>Use another key</button></p>`}<//>`
			: children(of.data, of)}
		<${Curl} of=${of} options=${options} /></div>`;
}

/** A table of columns [heading, cell of a row, class]. On a phone it is a stack of cards, and a table by its roles. */
export const Table = ({label, columns, rows}) => html`<table role="table" aria-label=${label}>
	<thead role="rowgroup"><tr role="row">${columns.map(([name, , kind]) => html`<th role="columnheader" scope="col" class=${kind}>${name}</th>`)}</tr></thead>
	<tbody role="rowgroup">${rows.map(row => html`<tr role="row" key=${row.id ?? row.name}>
		${columns.map(([name, cell, kind], at) => html`<td role=${at ? 'cell' : 'rowheader'} class=${kind} data-label=${name}><div>${cell(row) ?? html`<span class="none">–</span>`}</div></td>`)}
	</tr>`)}</tbody></table>`;

export const Changes = ({of}) => of.length > 0 && html`<ul class="changes">${of.map(({field, from, to}) => html`<li>
	<code>${field}</code> ${from && html`<del><span class="hidden">was </span>${from}</del>`} ${to && html`<ins><span class="hidden">is </span>${to}</ins>`}</li>`)}</ul>`;

export const Choice = ({label, current, of}) => html`<nav class="choice" aria-label=${label}>
	${of.map(([href, text]) => html`<a href=${href} aria-current=${text === current ? 'page' : null}>${text}</a>`)}</nav>`;

export function KeyForm() {
	const {setKey} = useSession();
	const input = useRef();
	const send = event => {
		event.preventDefault();
		setKey(input.current.value.trim());
	};
	return html`<${Title}>See what a license sees<//>
		<p class="lead">Paste an API key. This page asks the API with it as any program would, and shows the records, the feed and the files of its license, each with its curl line.</p>
		<form class="key" onSubmit=${send}>
			<label for="key">API key</label>
			<div class="row"><input id="key" ref=${input} type="password" autocomplete="off" spellcheck="false" placeholder="mfk_…" required />
			<button>Explore</button></div>
			<p class="soft">The key stays in this page's memory: it is stored nowhere, stands in no address, and is gone when you reload the page. <a href="docs">The documentation</a> needs none.</p>
		</form>`;
}
