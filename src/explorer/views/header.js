// The header: the views, the state of the copy, and a menu of what is the reader's own.
import {html, useState} from '../preact.js';
import {keptKeys} from '../keep.js';
import {describe} from '../model/follower.js';
import {DATASETS, areEmpty} from '../model/lists.js';
import {Menu, Segments, count, link} from '../parts.js';
import {inTab, keepInTab, useCopy, useSession} from '../session.js';
import {allLists} from '../shortlist.js';
import {useNews} from './changes.js';
import {nameOf} from './key.js';
import {useLists, useStars} from './shortlist.js';

const NAV = [['conferences', 'Conferences'], ['journals', 'Journals'], ['changes', 'Changes'], ['lists', 'Lists']];
const ROWS = 'medfeed-rows';

/** Sets how high the rows of lists are: `compact` or `comfortable`. */
const setRows = rows => {
	document.documentElement.dataset.rows = rows;
	keepInTab(ROWS, rows);
};
document.documentElement.dataset.rows = inTab(storage => storage.getItem(ROWS)) ?? 'compact';

/** The state of a copy: a dot, and its words. */
function State({dataset}) {
	const {state, isFull} = useCopy(dataset);
	return html`<p class="standing state ${state.name}" translate="no"><span class="dot ${state.name}" aria-hidden="true"></span><span role="status">${describe(state)}</span></p>
	${isFull && html`<p class="standing full" role="alert">A copy of the ${dataset} could not be stored. This computer may have no room. The records are loaded again when you open the page.</p>`}`;
}

/** The number of changes since the last visit, or since the page was opened. */
function News({dataset}) {
	const kept = useCopy(dataset), {log} = kept, {length} = useNews(kept);
	return length > 0 && html` <span class="count" title=${`${count(length, 'change')} ${log.visit ? 'since your last visit' : 'since you opened this'}`}>${length.toLocaleString('en')}</span>`;
}

/** The keys of this computer: the name of this one, and a choice of another one. `all`: what is kept. */
function Keys({all, onNamed}) {
	const {key, keep, change} = useSession(), others = all.filter(({name}) => name !== keep?.name);
	return html`${keep && html`<label for="title">Name of this key</label><input id="title" maxlength="60" value=${keep.get('title') ?? ''} onChange=${({target}) => { keep.put('title', target.value.trim()); onNamed(); }} />`}
		${others.length > 0 && (keep || areEmpty(allLists())) && html`<label for="keys">Key</label><select id="keys" onChange=${({target}) => change(target.value)}><option>${keep ? nameOf(keep) : `…${key.slice(-4)}`}</option>${others.map(one => html`<option value=${one.name}>${nameOf(one)}</option>`)}</select>`}`;
}

/** What is the reader's own: the height of rows, help, the key. */
function Own({demo, onForget, onForgetAll, onReplace}) {
	const {key, keep, keepHere, setKey} = useSession(), [rows, choose] = useState(document.documentElement.dataset.rows), isDemo = demo?.licenses.some(license => license.key === key);
	const [all, setAll] = useState([]), isOne = !all.some(({name}) => name !== keep?.name), change = rows => {
		setRows(rows);
		choose(rows);
	};
	const lists = areEmpty(useLists()) ? '' : ' and lists';
	return html`<${Menu} onOpen=${() => { if (keepHere) keptKeys().then(setAll); }} name=${isDemo ? demo.licenses.find(license => license.key === key).name : keep?.get('title') || html`Key <code>…${key.slice(-4)}</code>`}>
		<${Segments} label="Rows" value=${rows} options=${[['compact', 'Compact rows'], ['comfortable', 'Comfortable']]} onChange=${change} />
		${demo && html`<a href="#/">Side by side</a>`}<a href="#/lists">Lists and notes</a><a href="#/help">Help</a><a href="#/developers">For developers</a><a href="docs">Documentation</a>
		${isDemo ? html`<label for="license">License</label><select id="license" value=${key} onChange=${({target}) => target.value ? setKey(target.value) : onReplace()}>
			${demo.licenses.map(license => html`<option value=${license.key}>${license.name}</option>`)}<option value="">another key …</option></select>`
			: html`<${Keys} all=${all} onNamed=${() => setAll([...all])} /><button class="quiet" onClick=${onReplace}>Use another key</button><button class="quiet" onClick=${onForget}>${!keep ? 'Forget key' : isOne ? 'Forget this computer' : 'Remove this key'}${lists}</button>
			${!isOne && html`<button class="quiet" onClick=${onForgetAll}>Forget this computer</button>`}`}<//>`;
}

/** The header. The heading of a list is in it: the view's own name. */
export function Header({at: {path}, demo, ...own}) {
	const {key} = useSession(), [first = demo ? '' : 'conferences', second] = path, dataset = [first, second].find(part => DATASETS.includes(part)) ?? '', hasStars = useStars('conferences').length + useStars('journals').length > 0;
	// A reader without lists has one stop of the Tab key less. The menu leads there too.
	const views = NAV.filter(([name]) => name !== 'lists' || first === name || hasStars);
	const linkTo = (name, text) => {
		const isHere = first === name, isView = isHere && (name === 'changes' ? dataset : !second), to = name === 'changes' ? `changes/${dataset || 'conferences'}` : name;
		const words = html`${text}${name === 'changes' && key && dataset && html`<${News} dataset=${dataset} />`}`;
		return isView ? html`<h1 tabindex="-1">${words}</h1>` : html`<a href=${link(to)} aria-current=${isHere ? 'true' : null}>${words}</a>`;
	};
	return html`<header class="top"><div class="frame">
		<a class="brand" href="#/" tabindex=${key ? -1 : null}><img src="favicon.svg" alt="" width="22" height="22" />medfeed</a>
		${key && html`<nav aria-label="Views">${views.map(([name, text]) => linkTo(name, text))}</nav>
			${dataset && html`<${State} key=${dataset} dataset=${dataset} />`}<${Own} key=${key} demo=${demo} ...${own} />`}</div></header>`;
}
