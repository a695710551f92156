// The page: who looks, at what, and the frame around it.
import {html, render, useEffect, useLayoutEffect, useMemo, useState} from './preact.js';
import {Copies} from './copies.js';
import {canKeep, createKeep, onOtherTabs, openKeep} from './keep.js';
import {isUnlicensed, reasonOf} from './model/follower.js';
import {hasKey, withoutKeys} from './model/question.js';
import {Title} from './parts.js';
import {Session, clearTab, dropKey, keepKey, keptKey} from './session.js';
import {clearShortlist, keepShortlist, takeShortlist} from './shortlist.js';
import {Changes} from './views/changes.js';
import {SideBySide, readDemo} from './views/demo.js';
import {Developers, Reference} from './views/developers.js';
import {Paper, forgetPaper} from './views/files.js';
import {Header} from './views/header.js';
import {Help} from './views/help.js';
import {KeyForm} from './views/key.js';
import {List} from './views/list.js';
import {Compare, Record, forgetLists} from './views/record.js';

const isDataset = name => ['conferences', 'journals'].includes(name);

/** The view that the fragment names: {path: [...], params: {...}}. */
function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const given = [...new URLSearchParams(query ?? '')], isKey = ([name, value]) => name !== 'cursor' && hasKey(value);
	// Somebody pasted a key into the address. A cursor is random text.
	if (given.some(isKey)) {
		// A name whose value was nothing but a key goes too: `region=` has a meaning of its own.
		const kept = given.map(pair => isKey(pair) ? [pair[0], withoutKeys(pair[1])] : pair).filter((pair, at) => pair[1] || !given[at][1]);
		history.replaceState(null, '', `#/${path}?${new URLSearchParams(kept)}`);
		return route();
	}
	return {path: path.split('/').filter(Boolean), params: Object.fromEntries(new URLSearchParams(query ?? ''))};
}

function view(at, demo) {
	let {path: [first = demo ? '' : 'conferences', second, ...more], params} = at;
	if (!more.length) switch (first) {
		case '': return html`<${SideBySide} demo=${demo} />`;
		case 'conferences': case 'journals':
			if (second && !/^\d+$/.test(second)) break;
			return second ? html`<${Record} key=${first + second} dataset=${first} id=${second} />` : html`<${List} key=${first} dataset=${first} at=${at} />`;
		case 'help': if (!second) return html`<${Help} />`; break;
		case 'compare': if (isDataset(second)) return html`<${Compare} key=${second} dataset=${second} params=${params} />`; break;
		case 'changes': if (isDataset(second)) return html`<${Changes} key=${second} dataset=${second} since=${params.since} />`; break;
		case 'reference': if (isDataset(second)) return html`<${Reference} key=${second} dataset=${second} />`; break;
		case 'developers': if (isDataset(second ??= 'conferences')) return html`<${Developers} key=${second} dataset=${second} />`; break;
	}
	return html`<${Title}>No such view<//><p><a href="#/">Go to the first view</a></p>`;
}

/** The `/` key goes to the search, unless the reader types. */
function toSearch(event) {
	const words = document.getElementById('words');
	if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || !words || event.target.closest('input, select, textarea')) return;
	event.preventDefault();
	words.select();
	words.focus();
}
addEventListener('keydown', toSearch);

function App({demo, why, kept}) {
	// The key is in memory. It is also in the tab's storage, or on this computer, if the reader says so.
	const [{key, refused, keep, isUnkept}, setLicense] = useState(() => {
		const key = keptKey() || (kept?.key ?? demo?.licenses[0].key ?? '');
		return {key, refused: why, keep: kept?.key === key ? kept : null};
	});
	const copies = useMemo(() => key ? new Copies(key, keep) : null, [key]);
	const [at, setAt] = useState(route);
	const [showKey, setShowKey] = useState(!!demo);

	// Other effects run after the first frame, and the address may change before it.
	useLayoutEffect(() => {
		const moved = () => setAt(route());
		addEventListener('hashchange', moved);
		return () => removeEventListener('hashchange', moved);
	}, []);
	const place = at.path.join('/') + (key ? '' : ' key');
	const [arrived] = useState({place});
	useEffect(() => {
		if (arrived.place === place) return;
		arrived.place = place;
		// A list that the reader comes back to finds its own place.
		if (history.state?.top !== undefined) return;
		document.querySelector('h1')?.focus();
		scrollTo(0, 0);
	}, [place]);

	const setKey = (key, isInTab, refused) => {
		isInTab ? keepKey(key) : key ? dropKey() : clearTab();
		if (!key) for (const forget of [clearShortlist, forgetLists, forgetPaper]) forget();
		setLicense({key, refused});
	};
	/** Keeps the key, which may be a new one, and its copies on this computer. */
	const keepHere = async key => {
		const keep = await createKeep(key);
		if (keep && copies?.key === key) copies.saveTo(keep);
		if (keep) dropKey();
		setLicense({key, keep, isUnkept: !keep});
	};
	/** Ends the use of the key, and removes what is kept of it, unless another window has done that. */
	const forget = async (refused, isDone) => {
		copies.stop();
		await (isDone ? keep?.close() : keep?.forget());
		setKey('', false, refused);
	};
	useEffect(() => () => copies?.stop(), [copies]);
	useEffect(() => keepShortlist(keep), [keep]);
	useLayoutEffect(() => {
		if (!copies) return;
		const leave = () => forget('Another window has removed this key from this computer.', true);
		if (keep?.isGone) leave();
		const unheard = onOtherTabs(({forgotten, of, name, value}) => {
			if (forgotten === key) leave();
			if (keep && of === key && name === 'shortlist') takeShortlist(value);
		});
		const unsubscribe = copies.subscribe(({dataset, state}) => {
			if (state.name === 'refused' && state.status === 401) forget(`This key is no longer accepted, so its records and the shortlist are removed here. ${reasonOf(state.problem)}`);
			// A license without conferences opens on journals.
			if (dataset === 'conferences' && isUnlicensed(state) && !location.hash) location.replace('#/journals');
		});
		return () => {
			unheard();
			unsubscribe();
		};
	}, [copies, keep]);
	const session = {key, setKey, copies, keep, keepHere: !demo && canKeep() ? keepHere : null, showKey, setShowKey};
	const isDemo = demo && !at.path.length, isHelp = at.path[0] === 'help';
	return html`<${Session.Provider} value=${session}>
		<a class="skip" href="#main" onClick=${event => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to the content</a>
		<${Header} at=${at} demo=${demo} onForget=${() => forget()} />
		<main id="main" tabindex="-1" class="frame">${key || isDemo || isHelp ? html`${isUnkept && html`<p class="problem" role="alert">This browser keeps nothing on this computer. The key is gone when you close or reload the page.</p>`}<div key=${key}>${key && html`<${Paper} />`}${view(at, demo)}</div>` : html`<${KeyForm} why=${refused} />
			${demo && html`<p>Or a key of the demo: ${demo.licenses.map(license => html`<button class="quiet" onClick=${() => setKey(license.key)}>${license.name}</button> `)}</p>`}`}</main>
		<footer><div class="frame"><a href="#/help">Help</a>${key && html`<a href="#/developers">For developers</a>`}<a href="docs">Documentation</a><a href="openapi.json">OpenAPI</a>${contact && html`<a href=${contact}>Contact</a>`}</div></footer><//>`;
}

const contact = document.querySelector('meta[name=medfeed-contact]')?.content;

readDemo().then(async demo => {
	const kept = demo ? null : await openKeep();
	const place = document.getElementById('app');
	place.textContent = '';
	render(html`<${App} demo=${demo?.licenses.length ? demo : null} why=${demo?.why} kept=${kept} />`, place);
});
