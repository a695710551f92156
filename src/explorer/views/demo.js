// Two licenses side by side, while a curator edits.
import {html, useEffect, useState} from '../preact.js';
import {target} from '../api.js';
import {Copies} from '../copies.js';
import {differences} from '../model/changes.js';
import {describe} from '../model/follower.js';
import {Badge, Curl, Title, clock} from '../parts.js';
import {useSession} from '../session.js';
import {Change} from './changes.js';

const DATASET = 'conferences';
const TURN_MS = 1000;
/** The time in which an edit reaches every license that sees it, and its words reach the page. */
const ARRIVAL_MS = 3000;
const MAX_ROWS = 20;
const MAX_ENTRIES = 3;
const KINDS = {added: 'enters', changed: 'changed', removed: 'tombstone'};

/** What the server says of a demo; null elsewhere. */
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

/** The rows of the log: the curator's edits, each with the changes that every license received. */
export class Rows {
	constructor(sides) {
		Object.assign(this, {sides, rows: [], waiting: [], seen: null});
	}

	add(edit, now) {
		const row = {edit, at: now, sides: this.sides.map(() => [])};
		this.rows.unshift(row);
		this.rows.length = Math.min(this.rows.length, MAX_ROWS);
		return row;
	}

	/** Takes new edits, and puts each waiting change to its edit. A change without words is somebody else's edit. */
	turn(edits, now) {
		for (const edit of edits) if (edit.number > (this.seen ??= edits.at(-1).number)) {
			this.seen = edit.number;
			this.add(edit, now);
		}
		this.seen ??= 0;
		let other;
		this.waiting = this.waiting.filter(({side, change, at}) => {
			let row = this.rows.findLast(row => row.edit?.ids.includes(change.id) && at - row.at < ARRIVAL_MS);
			if (!row && now - at > ARRIVAL_MS) row = other ??= this.add(null, now);
			row?.sides[side].push({...change, fields: differences(change.before, change.after)});
			return !row;
		});
	}
}

/** What an edit is for one license. */
const Side = ({license, changes, isDone}) => html`<section class="side"><h3>${license.name}</h3>
	${changes.length ? html`<ul>${changes.slice(0, MAX_ENTRIES).map(change => html`<${Change} key=${change.id} dataset=${DATASET} of=${change} badge=${KINDS[change.kind]} />`)}</ul>
		${changes.length > MAX_ENTRIES && html`<p class="soft">and ${changes.length - MAX_ENTRIES} more</p>`}`
	: html`<p><${Badge} kind=${isDone ? 'nothing' : 'waiting'} /> ${isDone && html`<span class="soft">This license never sees it.</span>`}</p>`}</section>`;

export function SideBySide({demo}) {
	const {setKey} = useSession(), {licenses, curating} = demo, [, draw] = useState(0);
	const [copies] = useState(() => licenses.map(license => new Copies(license.key)));
	const [log] = useState(() => new Rows(licenses));
	const [lost, setLost] = useState(false);
	useEffect(() => {
		let timer, live = true;
		const turn = async () => {
			clearTimeout(timer);
			const told = document.hidden ? null : await readDemo();
			if (!live) return;
			if (told) {
				log.turn(told.edits, Date.now());
				setLost(told.lost);
			}
			draw(Date.now());
			clearTimeout(timer);
			timer = setTimeout(turn, TURN_MS);
		};
		copies.forEach((one, side) => {
			one.of(DATASET);
			one.subscribe((kept, changes) => {
				for (const change of changes) log.waiting.push({side, change, at: Date.now()});
				changes.length ? turn() : draw(kept.version);
			});
		});
		turn();
		return () => {
			live = false;
			clearTimeout(timer);
			for (const one of copies) one.stop();
		};
	}, []);
	const kept = copies.map(one => one.of(DATASET));
	const bad = kept.find(({state}) => !['loading', 'current'].includes(state.name));
	return html`<${Title}>Two licenses, side by side<//>
		<p class="lead">${curating ? 'A curator edits the data every few seconds.' : 'Import a change, and watch.'} Both columns follow the same change feed, each with its own key. A record that leaves a license arrives as a tombstone.</p>
		<div class="pair licenses">${licenses.map((license, at) => html`<section class="license" aria-label=${license.name}><h2>${license.name}</h2>
			<p>sees ${license.shows}</p>
			<p class="size"><strong>${kept[at].isReady ? kept[at].copy.size : '…'}</strong> conferences</p>
			<p><a href="#/conferences" onClick=${() => setKey(license.key)}>Explore with this key</a></p></section>`)}</div>
		${(lost || bad) && html`<p class="problem" role="alert">${lost ? 'The demo has ended. Start it again, and reload this page.' : describe(bad.state)}</p>`}
		<h2>What happens</h2>
		<div role="log" aria-label="Edits and what each license gets">${log.rows.map(({edit, at, sides}) => html`<article class="edit" key=${edit?.number ?? at}>
			<p class="words"><time>${clock(edit?.at ?? at)}</time> ${edit?.words ?? 'Another edit, not the demo\'s own'}</p>
			<div class="pair">${licenses.map((license, side) => html`<${Side} license=${license} changes=${sides[side]} isDone=${Date.now() - at > ARRIVAL_MS} />`)}</div></article>`)}</div>
		${!log.rows.length && html`<p class="soft">Waiting for the next edit …</p>`}
		<details class="developers"><summary>For developers</summary><p>The same feeds with curl, from the tokens that the columns have reached:</p>
			${licenses.map((license, at) => html`<${Curl} of=${{url: target(`${DATASET}/changes`, {since: kept[at].follower.token}), method: 'GET'}} as=${license.key} />`)}</details>`;
}
