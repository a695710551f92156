// The reader's lists: their records with notes, in their order, and lists that others shared.
import {html, useRef, useState} from '../preact.js';
import {date, shownDeadline, todayOf} from '../model/deadlines.js';
import {isUnlicensed} from '../model/follower.js';
import {Failure} from '../model/load.js';
import {DATASETS, MAX_FILE, added, fileOf, fullWords, fromFile, fromLink, isEmpty, linkOf, listOf, moved, named, removed, withNote} from '../model/lists.js';
import {Copy, DATASETS as NAMES, Status, Title, count, link, save, useWindowTitle} from '../parts.js';
import {useCopy} from '../session.js';
import {allLists, setLists, setStars, starsOf} from '../shortlist.js';
import {shortName} from './columns.js';
import {Print} from './files.js';
import {useLists} from './shortlist.js';

/** How many records of a list the license shows, and which. */
function useShown(list, dataset) {
	const {copy, isReady, state} = useCopy(dataset), ids = list[dataset], known = ids.filter(({id}) => copy.records.has(id));
	return {copy, known, isReady: isReady || isUnlicensed(state), missing: ids.length - known.length};
}

/** A record's days, its next or last deadline, and its place or publisher. */
function Facts({dataset, record}) {
	const day = todayOf(), due = dataset === 'conferences' && shownDeadline(record, day, {from: day});
	const place = [record.city, record.country, record.publisher].filter(Boolean).join(', ');
	const facts = [date(record.start_date, record.end_date), due?.date && html`${due.date < day ? 'was due' : 'due'} ${date(due.date)} <${Status} of=${due.confidence} />`, place && html`<bdi>${place}</bdi>`];
	return html`<span class="soft">${facts.filter(Boolean).map((fact, at) => html`${at ? ' · ' : ''}${fact}`)}</span>`;
}

/** A record of the reader's list, with its note. */
function Entry({dataset, record, note, at, last}) {
	const {id} = record, name = shortName(record), move = step => setLists(moved(allLists(), dataset, id, step));
	const drop = () => setStars(dataset, starsOf(dataset).filter(one => one !== id));
	return html`<li class="entry listed"><p><a href=${link(`${dataset}/${id}`)}><bdi>${name}</bdi></a> <${Facts} dataset=${dataset} record=${record} /></p>
		<textarea rows="1" aria-label=${`Note on ${name}`} placeholder="Note" value=${note} onChange=${({target}) => setLists(withNote(allLists(), dataset, id, target.value))} />${note && html`<p class="paper note">${note}</p>`}
		<div class="buttons"><button class="quiet" aria-label=${`Move ${name} up`} disabled=${!at} onClick=${() => move(-1)}>↑</button><button class="quiet" aria-label=${`Move ${name} down`} disabled=${last} onClick=${() => move(1)}>↓</button><button class="quiet" aria-label=${`Remove ${name}`} onClick=${drop}>Remove</button></div></li>`;
}

function Part({list, dataset}) {
	const {copy, known, isReady, missing} = useShown(list, dataset);
	return list[dataset].length > 0 && html`<section><h2>${NAMES[dataset][0]} <span class="count">${known.length.toLocaleString('en')}</span></h2>
		${isReady && missing > 0 && html`<p class="soft" role="status">${missing.toLocaleString('en')} of ${count(list[dataset].length, 'record')} ${missing === 1 ? 'is' : 'are'} not in this license, or removed.</p>`}
		<ol translate="no">${known.map(({id, note}, at) => html`<${Entry} key=${id} dataset=${dataset} record=${copy.records.get(id)} note=${note} at=${at} last=${at === known.length - 1} />`)}</ol>
		<p class="row"><a href=${link(dataset, {ids: list[dataset].map(({id}) => id).join()})}>Show them in the table</a></p></section>`;
}

/** Adds a list, if there is room for it. */
function add(list) {
	const full = fullWords(allLists());
	if (full) throw new Failure(full);
	setLists(added(allLists(), list));
}

/** Runs what may fail, and passes on why: '' if it did not. */
async function attempt(act, onError) {
	try {
		await act();
		onError('');
	} catch (error) {
		onError(error instanceof Failure ? error.message : 'This file cannot be read.');
	}
}

/** A button that opens a file of a list. */
function Open({onError}) {
	const input = useRef();
	const read = async ({target: {files: [file]}}) => {
		await attempt(async () => {
			if (file?.size > MAX_FILE) throw new Failure('This file is too large for a list.');
			if (file) add(fromFile(await file.text()));
		}, onError);
		input.current.value = '';
	};
	return html`<button class="quiet" onClick=${() => input.current.click()}>Open a file</button><input ref=${input} type="file" accept=".json" hidden onChange=${read} />`;
}

/** The reader's lists. Stars are the records of the chosen one. */
export function Lists() {
	const state = useLists(), {lists, current} = state, list = lists[current], [error, setError] = useState('');
	useWindowTitle('Lists');
	const remove = () => (isEmpty(list) || confirm(`“${list.name}” is removed, with its records and notes. Save it as a file to keep it.`)) && setLists(removed(allLists()));
	const rename = names => setLists(named(allLists(), names));
	return html`<div class="lists"><div class="toolbar"><label for="list">List</label><select id="list" value=${current} onChange=${({target}) => setLists({...allLists(), current: +target.value})}>
			${lists.map(({name}, at) => html`<option value=${at}>${name}</option>`)}</select>
			<button class="quiet" onClick=${() => attempt(() => add(listOf({}, 'New list')), setError)}>New list</button><${Open} onError=${setError} />
			<button class="quiet" disabled=${isEmpty(list)} onClick=${() => save(`${list.name.replace(/[^\p{L}\p{N}]+/gu, '-')}.json`, new Blob([fileOf(list)], {type: 'application/json'}))}>Save as a file</button>
			<${Copy} text=${new URL(link('list', linkOf(list)), location.href).href}>Copy link<//><${Print} />
			<button class="quiet" onClick=${remove}>Delete this list</button></div>
		${error && html`<p class="problem" role="alert">${error}</p>`}
		<p class="paper"><strong><bdi>${list.name}</bdi></strong>${list.owner && html`, <bdi>${list.owner}</bdi>`}</p>
		<div class="row screen"><label for="list-name">Name</label><input id="list-name" maxlength="100" value=${list.name} onChange=${({target}) => rename({name: target.value})} />
			<label for="list-owner">Owner (optional)</label><input id="list-owner" maxlength="100" value=${list.owner} onChange=${({target}) => rename({owner: target.value})} /></div>
		<p class="soft screen">Stars put records on this list. A link holds its name and records; a file holds the notes too.</p>
		${isEmpty(list) ? html`<p class="empty">Nothing is on this list yet. Star a conference or a journal.</p>` : DATASETS.map(dataset => html`<${Part} key=${dataset} list=${list} dataset=${dataset} />`)}</div>`;
}

function SharedPart({list, dataset}) {
	const {copy, known, isReady} = useShown(list, dataset), all = list[dataset].length;
	return all > 0 && isReady && html`<section><h2>${NAMES[dataset][0]}</h2><p role="status">Your license shows ${known.length.toLocaleString('en')} of ${count(all, 'record')}.</p>
		<ul translate="no">${known.map(({id}) => html`<li class="entry"><p><a href=${link(`${dataset}/${id}`)}><bdi>${shortName(copy.records.get(id))}</bdi></a> <${Facts} dataset=${dataset} record=${copy.records.get(id)} /></p></li>`)}</ul></section>`;
}

/** A list that somebody shared by a link. */
export function Shared({params}) {
	const list = fromLink(params), [error, setError] = useState(''), take = () => attempt(() => {
		add(list);
		location.hash = link('lists');
	}, setError);
	return html`<div class="head"><${Title}>${list.name}<//><div class="row own"><button onClick=${take} disabled=${isEmpty(list)}>Add to my lists</button></div></div>
		${error && html`<p class="problem" role="alert">${error}</p>`}
		<p class="lead">Somebody shared this list with you.</p>${DATASETS.map(dataset => html`<${SharedPart} key=${dataset} list=${list} dataset=${dataset} />`)}`;
}
