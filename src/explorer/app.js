// The page: who looks, at what, and the frame around it.
import {html, render, useEffect, useState} from './preact.js';
import {Session, ask} from './api.js';
import {KeyForm, count, link, Title} from './parts.js';
import {Exports, List, Record, Reference} from './views.js';
import {Feed} from './feed.js';
import {SideBySide, readDemo} from './demo.js';

/** The view that the fragment names: {path: [...], params: {...}}. */
function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	return {path: path.split('/').filter(Boolean), params: Object.fromEntries(new URLSearchParams(query ?? ''))};
}

function view({path: [first, second, ...more], params}, {demo, start, follow}) {
	if (!more.length) switch (first) {
		case undefined: return demo ? html`<${SideBySide} demo=${demo} />` : html`<${List} dataset="conferences" params=${params} />`;
		case 'conferences': case 'journals':
			if (second && !/^\d+$/.test(second)) break;
			return second ? html`<${Record} key=${first + second} dataset=${first} id=${second} />` : html`<${List} key=${first} dataset=${first} params=${params} />`;
		case 'reference': if (['therapy-areas', 'tags', 'organizations'].includes(second)) return html`<${Reference} key=${second} kind=${second} params=${params} />`; break;
		case 'feed': if (['conferences', 'journals'].includes(second)) return html`<${Feed} key=${second} dataset=${second} start=${start} />`; break;
		case 'exports': if (!second) return html`<${Exports} follow=${follow} />`; break;
	}
	return html`<${Title}>No such view<//><p><a href="#/">Begin at the start</a></p>`;
}

const NAV = [['conferences', 'Conferences'], ['journals', 'Journals'], ['reference/therapy-areas', 'Reference'],
	['feed/conferences', 'Feed'], ['exports', 'Exports']];

const fresh = () => ({conferences: new Map(), journals: new Map()});

function App({demo, why}) {
	const first = demo?.licenses[0];
	// The key lives here alone.
	const [{key, name, seen}, setLicense] = useState({key: first?.key ?? '', name: first?.name, seen: fresh()});
	const [at, setAt] = useState(route);
	const [rate, setRate] = useState(null);
	const [areas, setAreas] = useState([]);
	const [start, setStart] = useState(null);
	const [showKey, setShowKey] = useState(!!demo);

	useEffect(() => {
		const moved = () => setAt(before => {
			const now = route();
			if (now.path[0] !== 'feed') setStart(null);
			return now;
		});
		addEventListener('hashchange', moved);
		return () => removeEventListener('hashchange', moved);
	}, []);
	const place = at.path.join('/') + (key ? '' : ' key');
	const [arrived] = useState({place});
	useEffect(() => {
		const heading = document.querySelector('h1');
		document.title = `${heading?.textContent ?? ''} · medfeed`;
		if (arrived.place === place) return;
		arrived.place = place;
		heading?.focus();
		scrollTo(0, 0);
	}, [place]);
	useEffect(() => {
		setAreas([]);
		if (key) ask(key, 'reference/therapy-areas').then(({data}) => setAreas(data?.data.map(row => row.name) ?? []));
	}, [key]);

	const setKey = (key, name) => {
		setLicense({key, name, seen: fresh()});
		setRate(null);
	};
	const onAnswer = ({headers}) => {
		const [limit, left, reset] = ['limit', 'remaining', 'reset'].map(part => headers?.get(`ratelimit-${part}`));
		if (limit) setRate({limit, left, reset});
	};
	const follow = (dataset, token) => {
		setStart({dataset, token});
		location.hash = link(`feed/${dataset}`);
	};
	const session = {key, setKey, rate, onAnswer, showKey, setShowKey, seen, areas};
	const isDemo = demo && !at.path.length;
	const current = path => at.path[0] === path.split('/')[0] ? 'page' : null;
	return html`<${Session.Provider} value=${session}>
		<a class="skip" href="#main" onClick=${event => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to the content</a>
		<header><div class="frame">
			<a class="brand" href="#/"><img src="favicon.svg" alt="" width="26" height="26" />medfeed</a>
			<nav aria-label="Views">
				${demo && html`<a href="#/" aria-current=${isDemo ? 'page' : null}>Side by side</a>`}
				${NAV.map(([path, text]) => html`<a href=${link(path)} aria-current=${current(path)}>${text}</a>`)}</nav>
			${key && !isDemo && html`<div class="who">
				${demo && demo.licenses.some(license => license.key === key)
					? html`<label for="license">License</label><select id="license" value=${key} onChange=${event => {
							const chosen = demo.licenses.find(license => license.key === event.target.value);
							setKey(chosen?.key ?? '', chosen?.name);
						}}>${demo.licenses.map(license => html`<option value=${license.key}>${license.name}</option>`)}<option value="">another key …</option></select>`
					: html`<span>Key <code>${key.slice(0, 4)}…${key.slice(-4)}</code></span><button type="button" class="quiet" onClick=${() => setKey('')}>Forget key</button>`}
			</div>`}
		</div></header>
		<main id="main" tabindex="-1" class="frame">${key || isDemo ? view(at, {demo, start, follow}) : html`<${KeyForm} />
			${why && html`<p role="alert">${why}</p>`}
			${demo && html`<p>Or a key of the demo: ${demo.licenses.map(license => html`<button type="button" class="quiet" onClick=${() => setKey(license.key, license.name)}>${license.name}</button> `)}</p>`}`}</main>
		<footer><div class="frame">
			<span class="rate">${rate && `${(+rate.left).toLocaleString('en')} of ${count(+rate.limit, 'request')} left in this minute`}</span>
			<span><a href="docs">Documentation</a> <a href="openapi.json">OpenAPI</a></span>
		</div></footer><//>`;
}

readDemo().then(demo => {
	const place = document.getElementById('app');
	place.textContent = '';
	render(html`<${App} demo=${demo?.licenses.length ? demo : null} why=${demo?.why} />`, place);
});
