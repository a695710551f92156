// The change feed of one license.
import {html, useEffect, useRef, useState} from '../preact.js';
import {ask, target} from '../api.js';
import {Badge, Curl, Fields, Problem, Title, clock, count, link} from '../parts.js';
import {useSession} from '../session.js';
import {Developers} from './developers.js';
import {Poller, useLoop} from './poller.js';

const MAX_SHOWN = 100;

/** An entry in words. */
export function Entry({dataset, item: {entry, before, changes, at}, heading}) {
	const kind = entry.deleted ? 'tombstone' : changes.length ? 'changed' : 'record';
	const known = entry.name ? entry : before;
	const name = known && [known.name, known.year].join(' ');
	return html`<li class="entry"><p><${Badge} kind=${heading ?? kind} />
			${entry.deleted ? html`<span>${name ? `${name}: ` : ''}id ${entry.id} was removed or left the license. Delete your copy.</span>`
				: html`<a href=${link(`${dataset}/${entry.id}`)}>${name}</a>`}
			${at && html` <time class="soft">${at}</time>`}</p>
		<${Fields} of=${changes} />
		${entry.deleted && html`<p class="soft"><code>${JSON.stringify(entry)}</code></p>`}</li>`;
}

export function Feed({dataset, start}) {
	const {key, copies, onAnswer} = useSession();
	const [follower, setFollower] = useState(null);
	const [on, setOn] = useState(false);
	const [entries, setEntries] = useState([]);
	const [last, setLast] = useState(null);
	const input = useRef();

	const begin = async token => {
		// The page's copy tells what a record was before.
		const made = new Poller(key, dataset, new Map(copies.of(dataset).copy.records));
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
			// A rate limit and an outage pass. Other problems stay.
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
		<${Developers} current=${dataset === 'journals' ? 'Journal feed' : 'Conference feed'} />
		<p class="lead">Take a token. From then on each record that changes for this license arrives here in its present state, or as a tombstone.</p>
		<div class="start">
			<button type="button" onClick=${() => begin()}>Take a token now</button>
			<form class="row" onSubmit=${use}><label for="token">or continue from</label>
				<input id="token" ref=${input} required autocomplete="off" spellcheck="false" placeholder="a sync token" /><button class="quiet">Follow</button></form>
		</div>
		${follower?.token && html`<p class="row watching"><span role="status">${on ? 'Watching, every 2 seconds.' : 'Stopped.'}</span>
			${last?.at && html`<span class="soft">last asked ${clock(last.at)}</span>`}
			<button type="button" class="quiet" onClick=${() => setOn(!on)}>${on ? 'Stop' : 'Continue'}</button></p>
			<p class="soft">Token to save: <code class="token">${follower.token}</code></p>`}
		${last?.problem && html`<${Problem} of=${last}>${last.status === 410 && html`<p><strong>What to do:</strong> load the export again, replace your copy with it, and continue from its token.</p>
			<p><button type="button" onClick=${resync}>Take the export's token</button></p>`}<//>`}
		<section aria-label="Entries"><div role="log"><ul class="entries">
			${entries.map((item, at) => html`<${Entry} key=${entries.length - at} dataset=${dataset} item=${item} />`)}</ul></div>
			${on && !entries.length && html`<p class="soft">Nothing has changed yet.</p>`}
			${entries.length > 0 && html`<p class="soft">${count(entries.length, 'entry', 'entries')}, newest first.</p>`}</section>
		<${Curl} of=${request} />`;
}
