// The list of a dataset that is too large for a copy: the API answers.
import {html, useEffect, useRef, useState} from '../preact.js';
import {ask, useAsk} from '../api.js';
import {FILTERS} from '../filters.js';
import {FACETS} from '../model/facets.js';
import {describe} from '../model/follower.js';
import {shownDeadline, todayOf} from '../model/deadlines.js';
import {addressWith, addressWithout, checksOf, hasKey, lostNames, lostOf, parse, withoutKeys} from '../model/question.js';
import {nearest} from '../model/suggest.js';
import {Answer, Table, count, focusTitle, link} from '../parts.js';
import {REGIONS} from '../regions.js';
import {useSession} from '../session.js';
import {columnsOf} from './columns.js';
import {usePrinting} from './files.js';
import {CompareLink, starColumn, useStars} from './shortlist.js';
import {leave} from './way.js';

// Texts all: the API judges them.
const BOXES = dataset => [...FILTERS[dataset], {name: 'updated_since', label: 'Changed since', example: '2026-03-15'},
	{name: 'limit', label: 'Per page', example: '100'}];

/** The view's address fragment. The page's address may have none. */
const addressOf = dataset => parse(location.hash) ? location.hash : link(dataset);

/** The parameters of an address that the API knows, without keys. Those that only a copy answers are left out. */
export function given(dataset, {area, ...params}, lost) {
	const own = [...['conferences', dataset].flatMap(name => Object.keys(checksOf(name))), ...FACETS[dataset].map(({name}) => name)], known = BOXES(dataset).map(({name}) => name);
	if (area && !lost.includes('area')) params.therapy_area ??= area;
	return Object.fromEntries(Object.entries(params).filter(([name]) => !lost.includes(name) && (known.includes(name) || !own.includes(name)))
		// A cursor is random text. It may hold the letters with which keys begin.
		.map(([name, value]) => [name, name === 'cursor' ? value : withoutKeys(value)]));
}

function Boxes({dataset, params, known}) {
	const form = useRef();
	const [dropped, setDropped] = useState(false);
	useEffect(() => {
		for (const input of form.current.querySelectorAll('input')) input.value = params[input.name] ?? '';
	}, [JSON.stringify(params)]);
	const apply = event => {
		event.preventDefault();
		const inputs = [...form.current.querySelectorAll('input')];
		setDropped(inputs.some(input => hasKey(input.value)));
		for (const input of inputs) input.value = withoutKeys(input.value);
		location.hash = addressWith(addressOf(dataset), Object.fromEntries(new FormData(form.current)));
	};
	const clear = event => {
		event.preventDefault();
		location.hash = link(dataset);
	};
	return html`<form class="boxes" ref=${form} onSubmit=${apply} onReset=${clear} aria-label="Filters">
		${BOXES(dataset).map(({name, label, example, field}) => html`<div class="field ${name}" key=${name}><label for=${name}>${label}</label>
			<input id=${name} name=${name} placeholder=${example} autocomplete="off" list=${field && `${name}-known`} />
			${field && html`<datalist id="${name}-known">${(known[name] ?? []).map(text => html`<option value=${text} />`)}</datalist>`}</div>`)}
		${dropped && html`<p class="soft" role="status">What looked like an API key was left out. It is sent nowhere, and is in no address.</p>`}
		<div class="row"><button>Apply</button><button type="reset" class="quiet">Clear</button></div>
	</form>`;
}

/** The nearest known value of each filter that has none of its own. */
const Meant = ({dataset, params, known}) => Object.keys(known).map(name => {
	const meant = params[name] && nearest(params[name], known[name]);
	return meant && html`<p class="empty">Did you mean <a href=${addressWith(addressOf(dataset), {[name]: meant})}>${meant}</a>?</p>`;
});

// A removed filter takes its focus with it.

/** The filters of the address that the API does not have, each with a link that removes it. */
const Lost = ({of}) => of.length > 0 && html`<p>The server cannot filter by these. The list shows more than they ask for:</p>
	<ul class="chips" aria-label="Filters that are left out">${of.map(filter => html`<li><a class="button chip" href=${addressWithout(location.hash, filter)} onClick=${focusTitle}><span class="hidden">Remove </span><bdi>${filter.text}</bdi> <span aria-hidden="true">×</span></a></li>`)}</ul>`;

/** The list as the API gives it, page by page. */
export function Asked({dataset, params, state}) {
	const {key} = useSession();
	const question = parse(addressOf(dataset)), lost = lostOf(question), asked = given(dataset, params, lostNames(question));
	const answer = useAsk(dataset, asked);
	const results = useRef(), stars = useStars(dataset), day = todayOf(), isPrinting = usePrinting();
	const [areas, setAreas] = useState([]);
	useEffect(() => {
		if (dataset === 'conferences') ask(key, 'reference/therapy-areas').then(({data}) => setAreas(data?.data.map(row => row.name) ?? []));
	}, [key, dataset]);
	useEffect(() => {
		// A reader who sets a filter stays in the form.
		if (answer && !answer.stale && asked.cursor) results.current?.focus();
	}, [answer?.url, answer?.stale]);
	const known = dataset === 'conferences' ? {country: Object.values(REGIONS).flatMap(list => list.split('|').map(names => names.split(',')[0])).sort(), therapy_area: areas} : {};
	return html`${state.name === 'too-many' && html`<p class="soft">${describe(state)}</p>`}
		${state.name === 'too-many' && html`<${Lost} of=${lost} />`}
		<${Boxes} dataset=${dataset} params=${asked} known=${known} />
		<${Answer} of=${answer} dataset=${dataset}>${({data, has_more, next_cursor}) => {
			const {cursor} = asked;
			return html`<h2 class="results" ref=${results} tabindex="-1" aria-live="polite">${data.length ? `${count(data.length, 'record')}${cursor ? ' on this page' : ''}${has_more ? ', more follow' : cursor ? ', the last ones' : ''}` : 'No record fits.'}</h2>
				${data.length > 0 ? html`<div class="found" onClick=${event => leave(dataset, event)}><${CompareLink} dataset=${dataset} ids=${stars} /><${Table} label=${dataset} columns=${[starColumn(dataset), ...columnsOf(dataset, {day, isPrinting})]}
					rows=${data.map(record => ({record, due: dataset === 'conferences' && shownDeadline(record, day, {from: day})}))} /></div>` : html`<${Meant} dataset=${dataset} params=${asked} known=${known} />`}
				${(cursor || has_more) && html`<nav class="pages" aria-label="Pages">
					${cursor && html`<a class="button quiet" href=${addressWith(addressOf(dataset), {})}>First page</a>`}
					${has_more && html`<a class="button quiet" href=${addressWith(addressOf(dataset), {cursor: next_cursor})}>Next page</a>`}</nav>`}`;
		}}<//>`;
}
