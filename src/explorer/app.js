// The page: who looks, at what, and the frame around it.
import {html, render, useEffect, useLayoutEffect, useMemo, useRef, useState} from './preact.js';
import {Copies, isSameLicense} from './copies.js';
import {canKeep, createKeep, forgetAll, keptKeys, onOtherTabs, openKeep, removeKept, wipeUnlessKept} from './keep.js';
import {isUnlicensed, reasonOf} from './model/follower.js';
import {DATASETS, areEmpty, listsOf} from './model/lists.js';
import {hasKey, withoutKeys} from './model/question.js';
import {Title, focusTitle} from './parts.js';
import {Session, clearTab, keepKey, keepName, keepTokens, keptKey, keptName, tabTokens} from './session.js';
import {allLists, clearLists, keepLists, loadLists, moveLists, subscribe, takeLists} from './shortlist.js';
import {Changes} from './views/changes.js';
import {SideBySide, readDemo} from './views/demo.js';
import {Developers, Reference} from './views/developers.js';
import {Paper, forgetPaper} from './views/files.js';
import {Header} from './views/header.js';
import {Help} from './views/help.js';
import {KeyForm, Question} from './views/key.js';
import {List, forgetWords} from './views/list.js';
import {Lists, Shared} from './views/lists.js';
import {Compare, Record} from './views/record.js';
import {forgetLists} from './views/way.js';

/** The view that the fragment names: {path: [...], params: {...}}. */
function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const given = [...new URLSearchParams(query ?? '')], isKey = ([, value]) => hasKey(value);
	// Somebody pasted a key into the address.
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
		case 'lists': if (!second) return html`<${Lists} />`; break;
		case 'list': if (!second) return html`<${Shared} params=${params} />`; break;
		case 'help': if (!second) return html`<${Help} />`; break;
		case 'compare': if (DATASETS.includes(second)) return html`<${Compare} key=${second} dataset=${second} params=${params} />`; break;
		case 'changes': if (DATASETS.includes(second)) return html`<${Changes} key=${second} dataset=${second} since=${params.since} />`; break;
		case 'reference': if (DATASETS.includes(second)) return html`<${Reference} key=${second} dataset=${second} />`; break;
		case 'developers': if (DATASETS.includes(second ??= 'conferences')) return html`<${Developers} key=${second} dataset=${second} />`; break;
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
	// `earlier`: {name, lists, tokens} of a key that ended, or that this tab has lost. A key of the same license is known by its tokens.
	const [{key, refused, keep, isUnkept, earlier}, setLicense] = useState(() => {
		const key = keptKey() || (kept?.key || (demo?.licenses[0].key ?? '')), lists = allLists();
		const earlier = kept ? {name: kept.name, lists: kept.get('lists'), tokens: kept.tokens} : areEmpty(lists) ? null : {lists, tokens: tabTokens()};
		return {key, refused: why, keep: key && kept?.key === key ? kept : null, earlier: key ? null : earlier};
	});
	const held = useRef(null), copies = useMemo(() => !key ? null : held.current?.key === key ? held.current : new Copies(key, keep), [key]);
	held.current = copies;
	const [isAsking, ask] = useState(false), [question, setQuestion] = useState(null);
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
		focusTitle();
		scrollTo(0, 0);
	}, [place]);

	const setKey = (key, isInTab, refused) => {
		key ? keepKey(isInTab && key) : clearTab();
		if (!key) for (const forget of [clearLists, forgetLists, forgetPaper, forgetWords]) forget();
		setLicense({key, refused});
	};
	/** Asks the reader something, and resolves to the answer. */
	const choose = props => new Promise(resolve => setQuestion({...props, onAnswer: answer => {
		setQuestion(null);
		resolve(answer);
	}}));
	/** The positions by which another key of this license is known. */
	const tokensOf = () => ({...keep?.tokens, ...copies.tokens});
	/** Whether the lists are in this tab only. */
	const isTabs = !keep && !earlier?.name;
	/** Keeps the key, which may be a new one, and its copies on this computer: with the lists of a kept key of the same license, or apart. */
	const keepHere = async key => {
		const all = await keptKeys();
		let into = all.find(one => one.key === key), isSame = true;
		for (const one of all) if (!into && await isSameLicense(key, one.tokens)) into = one;
		if (!into && all.length) [into, isSame] = [await choose({keys: all}), false];
		if (into === null) return;
		const next = await createKeep(key, into?.name, isSame);
		if (next && copies?.key === key) copies.saveTo(next);
		if (next && isTabs) moveLists(next);
		if (next) {
			keep?.close();
			keepKey('');
		}
		keepName(next?.name);
		setLicense({key, keep: next, isUnkept: !next});
	};
	/** Takes a key that the service has accepted. Lists go with it if it is of the same license, or if the reader says so. */
	const enter = async (next, isInTab, isHere) => {
		const tokens = copies ? tokensOf() : earlier?.tokens, isSame = tokens && await isSameLicense(next, tokens);
		if (isTabs && !isSame && !areEmpty(allLists()) && !await choose({lists: allLists().lists})) clearLists();
		if (isSame && copies) await replaceKey(next);
		if (isHere && !(isSame && keep)) return keepHere(next);
		if (isSame && copies) return;
		if (!isTabs && !isSame) loadLists();
		setKey(next, isInTab);
	};
	/** Opens the page with another key of this computer, once everything is written. */
	const change = async name => {
		await keep?.own('readonly', () => {}).catch(() => {});
		keepKey('');
		keepName(name);
		location.reload();
	};
	/** Takes another key. One of the same license keeps copies and lists as they are. */
	const replaceKey = async key => {
		copies.replaceKey(key);
		await keep?.replaceKey(key).catch(() => {});
		if (keptKey()) keepKey(key);
		setLicense({key, keep});
	};
	/** Ends the use of a key that is no longer accepted. The reader's lists wait for the next key. */
	const end = async (refused, isDone) => {
		const lists = allLists(), tokens = tokensOf();
		if (areEmpty(lists)) return forget(refused, isDone);
		copies.stop();
		await (isDone ? keep?.close() : keep?.end(lists, tokens));
		keepKey('');
		for (const forget of [forgetLists, forgetPaper, forgetWords]) forget();
		setLicense({key: '', refused, earlier: {name: keep?.name, lists, tokens}});
	};
	/** Removes the lists of a key that ended. */
	const removeLists = async () => {
		if (!mayRemove(earlier.lists)) return;
		setKey('');
		if (earlier.name) await removeKept(earlier.name);
	};
	/** Ends the use of the key, and removes what is kept of it, unless another window has done that. */
	const forget = async (refused, isDone) => {
		copies.stop();
		await (isDone ? keep?.close() : keep?.removeKey());
		setKey('', false, refused);
		if (!keep) await wipeUnlessKept();
	};
	/** Forgets every key of this computer. */
	const forgetHere = async () => {
		const all = await keptKeys();
		if (!mayRemove(allLists(), ...all.map(one => one.get('lists')))) return;
		copies?.stop();
		await forgetAll();
		setKey('');
	};
	useEffect(() => () => copies?.stop(), [copies]);
	useEffect(() => {
		keepLists(keep);
		if (earlier) takeLists(earlier.lists);
	}, [keep]);
	const [isLost, setLost] = useState(false);
	useEffect(() => { if (keep) keep.onLost = () => setLost(true); }, [keep]);
	useLayoutEffect(() => {
		if (!copies) return;
		const leave = isEnded => (isEnded || !keep ? end : forget)('Another window has removed this key from this computer.', true);
		if (keep?.isGone) leave();
		const unheard = onOtherTabs(({forgotten, isEnded, replaced, key: next, isSame, of, name, value}) => {
			if (forgotten === key) leave(isEnded);
			if (keep && replaced === key) {
				if (isSame) copies.replaceKey(next);
				keep.key = next;
				setLicense({key: next, keep});
			}
			if (keep && of === key) keep.values[name] = value;
			if (keep && of === key && name === 'lists') takeLists(value);
		});
		const identify = () => keep || keepTokens(!areEmpty(allLists()) && copies.tokens), unlisted = subscribe(identify);
		const unsubscribe = copies.subscribe(({dataset, state}) => {
			identify();
			if (state.name === 'refused' && state.status === 401) end(`This key is no longer accepted, so its records are removed here. ${areEmpty(allLists()) ? '' : 'Your lists and notes stay: enter the new key. '}${reasonOf(state.problem)}`);
			// A license without conferences opens on journals.
			if (dataset === 'conferences' && isUnlicensed(state) && !location.hash) location.replace('#/journals');
		});
		return () => {
			for (const end of [unheard, unlisted, unsubscribe]) end();
		};
	}, [copies, keep, key]);
	const session = {key, setKey, enter, change, copies, earlier, removeLists, keep, keepHere: !demo && canKeep() ? keepHere : null, showKey, setShowKey};
	const isDemo = demo && !at.path.length, isHelp = at.path[0] === 'help';
	return html`<${Session.Provider} value=${session}>
		<a class="skip" href="#main" onClick=${event => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to the content</a>
		<${Header} at=${at} demo=${demo} onForget=${() => mayRemove(allLists()) && forget()} onForgetAll=${forgetHere} onReplace=${() => ask(true)} />
		<main id="main" tabindex="-1" class="frame">${key || isDemo || isHelp ? html`${isUnkept && html`<p class="problem" role="alert">This browser keeps nothing on this computer. The key is gone when you close or reload the page.</p>`}${isLost && html`<p class="problem" role="alert">This browser keeps nothing more on this computer. What you star now is gone when you close or reload the page. Make room on the disk, or reload the page to try again.</p>`}<div key=${key}>${key && html`<${Paper} />`}${question ? html`<${Question} ...${question} />` : isAsking ? html`<${KeyForm} onDone=${() => ask(false)} />` : view(at, demo)}</div>` : question ? html`<${Question} ...${question} />` : html`<${KeyForm} why=${refused} onDone=${() => ask(false)} />
			${demo && html`<p>Or a key of the demo: ${demo.licenses.map(license => html`<button class="quiet" onClick=${() => setKey(license.key)}>${license.name}</button> `)}</p>`}`}</main>
		<footer><div class="frame"><a href="#/help">Help</a>${key && html`<a href="#/developers">For developers</a>`}<a href="docs">Documentation</a><a href="openapi.json">OpenAPI</a>${contact && html`<a href=${contact}>Contact</a>`}</div></footer><//>`;
}

/** Asks before lists of the reader's are removed. */
const mayRemove = (...states) => states.every(state => !state || areEmpty(listsOf(state))) || confirm('Your lists and notes are removed too, here and in other tabs. Save a list as a file to keep it.');

const contact = document.querySelector('meta[name=medfeed-contact]')?.content;

readDemo().then(async demo => {
	const kept = demo ? null : await openKeep(keptKey(), keptName());
	keepName(kept?.name);
	const place = document.getElementById('app');
	place.textContent = '';
	render(html`<${App} demo=${demo?.licenses.length ? demo : null} why=${demo?.why} kept=${kept} />`, place);
});
