// The change feed of one license.
import {html, useEffect, useRef, useState} from './preact.js';
import {Follower, ask, target, useSession} from './api.js';
import {Badge, Changes, Choice, Curl, Problem, Title, clock, count, link} from './parts.js';

const POLL_MS = 2000;
const MAX_SHOWN = 100;

/** Runs a task again and again until it returns false or the view is left. */
export function useLoop(task, on, deps) {
	useEffect(() => {
		if (!on) return;
		let timer, live = true;
		const turn = async () => {
			const go = await task(() => live);
			if (live && go !== false) timer = setTimeout(turn, POLL_MS);
		};
		turn();
		return () => {
			live = false;
			clearTimeout(timer);
		};
	}, deps);
}

/** An entry in words. */
export function Entry({dataset, item: {entry, before, changes, at}, heading}) {
	const kind = entry.deleted ? 'tombstone' : changes.length ? 'changed' : 'record';
	const known = entry.name ? entry : before;
	const name = known && [known.name, known.year].join(' ');
	return html`<li class="entry"><p><${Badge} kind=${heading ?? kind} />
			${entry.deleted ? html`<span>${name ? `${name}: ` : ''}id ${entry.id} was removed or left the license. Delete your copy.</span>`
				: html`<a href=${link(`${dataset}/${entry.id}`)}>${name}</a>`}
			${at && html` <time class="soft">${at}</time>`}</p>
		<${Changes} of=${changes} />
		${entry.deleted && html`<p class="soft"><code>${JSON.stringify(entry)}</code></p>`}</li>`;
}

export function Feed({dataset, start}) {
	const {key, seen, onAnswer} = useSession();
	const [follower, setFollower] = useState(null);
	const [on, setOn] = useState(false);
	const [entries, setEntries] = useState([]);
	const [last, setLast] = useState(null);
	const input = useRef();

	const begin = async token => {
		const made = new Follower(key, dataset, seen[dataset]);
		made.token = token;
		const answer = token ? null : await made.begin();
		if (answer) {
			onAnswer(answer);
			setLast(answer);
		}
		setFollower(made);
		setOn(!answer?.problem);
	};
	useEffect(() => {
		setOn(false);
		setEntries([]);
		setLast(null);
		setFollower(null);
		if (start?.dataset === dataset) begin(start.token);
	}, [key, dataset]);

	useLoop(async isLive => {
		const answer = await follower.poll();
		if (!isLive()) return false;
		onAnswer(answer);
		setLast({...answer, at: new Date()});
		if (answer.problem) {
			// A limit passes by itself, and so does an outage; whatever else is wrong stays so.
			const passes = !answer.status || answer.status === 429 || answer.status >= 500;
			if (!passes) setOn(false);
			return passes;
		}
		const at = clock(new Date());
		if (answer.entries.length) setEntries(shown => [...answer.entries.map(item => ({...item, at})).reverse(), ...shown].slice(0, MAX_SHOWN));
	}, on && follower, [on, follower]);

	const resync = async () => {
		const answer = await ask(key, `exports/${dataset}`, {}, 'HEAD');
		onAnswer(answer);
		if (answer.problem) return setLast(answer);
		begin(answer.headers.get('x-sync-token'));
	};
	const use = event => {
		event.preventDefault();
		begin(input.current.value.trim());
	};
	const request = last ?? {url: target(`${dataset}/changes`), method: 'GET'};
	return html`<${Title}>Change feed<//>
		<${Choice} label="Dataset" current=${dataset} of=${['conferences', 'journals'].map(one => [link(`feed/${one}`), one])} />
		<p class="lead">Take a token; from then on everything that changes for this license arrives here once, in its present state, or as a tombstone.</p>
		<div class="start">
			<button type="button" onClick=${() => begin()}>Take a token now</button>
			<form class="row" onSubmit=${use}><label for="token">or go on from</label>
				<input id="token" ref=${input} required autocomplete="off" spellcheck="false" placeholder="a sync token" /><button class="quiet">Follow</button></form>
		</div>
		${follower?.token && html`<p class="row watching"><span role="status">${on ? 'Watching, every 2 seconds.' : 'Stopped.'}</span>
			${last?.at && html`<span class="soft">last asked ${clock(last.at)}</span>`}
			<button type="button" class="quiet" onClick=${() => setOn(!on)}>${on ? 'Stop' : 'Go on'}</button></p>
			<p class="soft">Token to save: <code class="token">${follower.token}</code></p>`}
		${last?.problem && html`<${Problem} of=${last}>${last.status === 410 && html`<p><strong>What to do:</strong> load the export anew, replace your copy by it, and go on from its token.</p>
			<p><button type="button" onClick=${resync}>Take the export's token</button></p>`}<//>`}
		<section aria-label="Entries"><div role="log"><ul class="entries">
			${entries.map((item, at) => html`<${Entry} key=${entries.length - at} dataset=${dataset} item=${item} />`)}</ul></div>
			${on && !entries.length && html`<p class="soft">Nothing has changed yet.</p>`}
			${entries.length > 0 && html`<p class="soft">${count(entries.length, 'entry', 'entries')}, newest first.</p>`}</section>
		<${Curl} of=${request} />`;
}
