// Two licenses side by side, while a curator edits.
import {html, useState} from '../preact.js';
import {target} from '../api.js';
import {Badge, Curl, Problem, Title, clock} from '../parts.js';
import {useSession} from '../session.js';
import {Entry} from './feed.js';
import {Poller, useLoop} from './poller.js';

const DATASET = 'conferences';
const MAX_ROWS = 20;
const MAX_ENTRIES = 3;

/** What the server tells in a demo; null elsewhere. */
export async function readDemo() {
	const path = document.querySelector('meta[name=medfeed-demo]').content;
	if (!path) return null;
	try {
		const told = await (await fetch(path)).json();
		return told.licenses ? told : {licenses: [], edits: [], lost: true, why: told.detail};
	} catch {
		return {licenses: [], edits: [], lost: true};
	}
}

/** What an edit came to for one license. */
function Side({license, items, done}) {
	return html`<section class="side"><h3>${license.name}</h3>
		${items.length ? html`<ul class="entries">${items.slice(0, MAX_ENTRIES).map(item => html`<${Entry} key=${item.entry.id} dataset=${DATASET} item=${item}
				heading=${item.entry.deleted ? 'tombstone' : item.before ? 'changed' : 'enters'} />`)}</ul>
			${items.length > MAX_ENTRIES && html`<p class="soft">and ${items.length - MAX_ENTRIES} more</p>`}`
		: html`<p><${Badge} kind=${done ? 'nothing' : 'waiting'} /> ${done && html`<span class="soft">This license sees none of it, before or after.</span>`}</p>`}</section>`;
}

export function SideBySide({demo}) {
	const {onAnswer, setKey} = useSession();
	const [state, setState] = useState({sides: [], rows: [], problem: null, ready: false});

	const [memory] = useState(() => ({followers: null, rows: [], stray: [], seen: 0}));
	useLoop(async isLive => {
		const show = problem => isLive() && setState({rows: [...memory.rows], problem, ready: true,
			sides: memory.followers.map(one => ({size: one.copy.size, last: one.last}))});
		if (!memory.followers) {
			const followers = demo.licenses.map(license => new Poller(license.key, DATASET));
			// The token first, then the list: what changes in between comes by the feed.
			const answers = await Promise.all(followers.map(async one => (await one.begin()).problem ? one.last : await one.load()));
			memory.followers = followers;
			const bad = answers.find(answer => answer?.problem);
			if (bad) {
				show(bad);
				memory.followers = null;
				return;
			}
			memory.seen = (await readDemo()).edits.at(-1)?.number ?? 0;
			return show();
		}
		// The words first: whatever they tell of is in the feeds by then.
		const told = await readDemo();
		for (const edit of told.edits.filter(edit => edit.number > memory.seen)) {
			memory.seen = edit.number;
			memory.rows.unshift({edit, sides: demo.licenses.map(() => []), done: false});
		}
		const polled = await Promise.all(memory.followers.map(one => one.poll()));
		// What comes without words waits a turn for them; then it is somebody else's edit, such as an import by hand.
		const [waited, stray] = [memory.stray, []];
		let other;
		const put = (side, item, late) => {
			const row = memory.rows.find(({edit, done}) => !done && edit.ids.includes(item.entry.id));
			if (row) row.sides[side].push(item);
			else if (late) (other ??= {at: new Date(), sides: demo.licenses.map(() => []), done: true}).sides[side].push(item);
			else stray.push([side, item]);
		};
		for (const [side, item] of waited) put(side, item, true);
		polled.forEach((answer, side) => answer.entries?.forEach(item => put(side, item)));
		memory.stray = stray;
		for (const row of memory.rows) row.done = true;
		if (other) memory.rows.unshift(other);
		for (const [side, answer] of polled.entries()) if (answer.status === 410) {
			const one = memory.followers[side];
			one.copy.clear();
			await one.begin();
			await one.load();
		}
		memory.rows.length = Math.min(memory.rows.length, MAX_ROWS);
		onAnswer(polled[0]);
		show(told.lost ? {problem: {title: 'No answer', detail: 'The demo has ended. Start it again, and reload this page.'}} : polled.find(answer => answer.problem));
	}, true, []);

	return html`<${Title}>Two licenses, side by side<//>
		<p class="lead">${demo.curating ? 'A curator edits the data every few seconds.' : 'Import a change, and watch.'} Both columns poll the same change feed, each with its own key: what a license may not see never reaches it, and what leaves it arrives as a tombstone.</p>
		<div class="pair">${demo.licenses.map((license, at) => {
			const side = state.sides[at];
			return html`<section class="license" aria-label=${license.name}><h2>${license.name}</h2>
				<p>sees ${license.shows}</p>
				<p class="size"><strong>${side ? side.size : '…'}</strong> conferences in its copy</p>
				<p><a href="#/conferences" onClick=${() => setKey(license.key, license.name)}>Explore with this key</a></p>
				<${Curl} of=${side?.last ?? {url: target(`${DATASET}/changes`), method: 'GET'}} as=${license.key} /></section>`;
		})}</div>
		${state.problem && html`<${Problem} of=${state.problem}>${state.problem.status === 401 && html`<p>Was the demo started anew? Then reload this page.</p>`}<//>`}
		<h2>What happens</h2>
		<div role="log" aria-label="Edits and what each license gets">
			${state.rows.map(row => html`<article class="edit" key=${row.edit?.number ?? +row.at}>
				<p class="words">${row.edit ? html`<time>${clock(row.edit.at)}</time> ${row.edit.words}` : html`<time>${clock(row.at)}</time> Another edit, not the demo's own`}</p>
				<div class="pair">${demo.licenses.map((license, at) => html`<${Side} license=${license} items=${row.sides[at]} done=${row.done} />`)}</div>
			</article>`)}</div>
		${state.ready && !state.rows.length && html`<p class="soft">Waiting for the next edit …</p>`}`;
}
