// The state of the copy, and what changed in it.
import {html, useEffect, useMemo, useRef, useState} from '../preact.js';
import {LEFT_NOTES, changeRows, fitsChoice, told} from '../model/changes.js';
import {csv} from '../model/csv.js';
import {FIRST_DAY, addDays, date, isDay, todayOf} from '../model/deadlines.js';
import {isUnlicensed} from '../model/follower.js';
import {Badge, Datasets, Fields, Segments, Status, Toggle, Unlicensed, clock, count, focusTitle, link, save, useWindowTitle} from '../parts.js';
import {useCopy, useSession} from '../session.js';
import {shortName} from './columns.js';
import {Print} from './files.js';
import {WHO} from './key.js';
import {useStars} from './shortlist.js';

const SHOWN = 200;
const PERIODS = [7, 30];

/** The changes since the last visit, or since the page was opened. They are found again when the copy changes. */
export const useNews = ({log, copy, version}) => useMemo(() => log.since(log.visit ?? log.opened, copy.records, true), [log, copy, version]);

const from = text => html`<del><span class="hidden">was </span>${text}</del> <span aria-hidden="true">→</span> `;
const dateOrText = text => isDay(text) ? date(text) : text;

/** A date or figure that changed: old beside new, how far it moved, and how sure it is. */
const Figure = ({of: {what, from: old, to, days, was, confidence}}) => html`<div><dt>${what}</dt><dd>${old !== to && (old ? from(dateOrText(old)) : html`<span class="soft">new: </span>`)}
	${to ? html`<ins><span class="hidden">is now </span>${dateOrText(to)}</ins>` : html`<span class="soft">removed</span>`}
	${days !== 0 && html` ${count(Math.abs(days), 'day')} ${days > 0 ? 'later' : 'earlier'}`}
	${confidence && html` <${Status} of=${confidence} />`}${was && was !== confidence && html`<span class="soft">, was <${Status} of=${was} /></span>`}</dd></div>`;

function Changed({dataset, before, after}) {
	const {figures, fields} = told(dataset, before, after);
	return html`${figures.length > 0 && html`<dl class="changes">${figures.map(of => html`<${Figure} of=${of} />`)}</dl>`}<${Fields} of=${fields} />`;
}

/** A change: what kind, of which record, and its fields, old beside new. */
export const Change = ({dataset, of: {id, kind, before, after, at}, badge = kind, when = clock}) => html`<li class="entry"><p><${Badge} kind=${badge} />
		${after ? html`<a href=${link(`${dataset}/${id}`)}><bdi>${shortName(after)}</bdi></a>${after.abbv && after.abbv !== after.name && html` <bdi class="soft">${after.name}</bdi>`}` : html`<bdi>${shortName(before)}</bdi>`} ${at && html`<time>${when(at)}</time>`}</p>
	${kind === 'changed' ? html`<${Changed} dataset=${dataset} before=${before} after=${after} />` : kind !== 'updated' && html`<p class="soft">${after ? 'It came into the license.' : 'It was removed or left the license.'}</p>`}</li>`;

const when = time => `${date(todayOf(time))}, ${clock(time).slice(0, 5)}`;

/** Offers to keep key and copies on this computer. */
function KeepHere() {
	const {key, keepHere} = useSession(), [busy, setBusy] = useState(false);
	const press = () => {
		setBusy(true);
		// The button goes. The focus moves to the title.
		keepHere(key).then(() => setBusy(false)).then(focusTitle);
	};
	return html`<p><button disabled=${busy} onClick=${press} aria-describedby="who">Keep the key and the records on this computer</button></p>
		<p id="who" class="soft">Then the page remembers old values, opens at once, and needs no key. ${WHO}</p>`;
}

/** Which changes are listed: all, or those of starred records, of a therapy area, of dates. */
const Choice = ({choice, areas, stars, onChange}) => html`<${Toggle} on=${choice.isStarred} disabled=${!stars && !choice.isStarred} onChange=${() => onChange({...choice, isStarred: !choice.isStarred})}>Only starred<//>
	${areas.length > 0 && html`<${Toggle} on=${choice.isDates} onChange=${() => onChange({...choice, isDates: !choice.isDates})}>Only dates<//>
		<select aria-label="Therapy area" value=${choice.area} onChange=${({target}) => onChange({...choice, area: target.value})}><option value="">All therapy areas</option>${areas.map(area => html`<option>${area}</option>`)}</select>`}`;

/** What changed since a time, newest first. `since`: a number of days, a day, or nothing for the last visit. */
export function Changes({dataset, since}) {
	const {keep, keepHere} = useSession(), kept = useCopy(dataset), {log, copy, version, isReady} = kept;
	const news = useNews(kept), today = todayOf(), first = log.visit ? 'Since your last visit' : 'Since you opened this';
	const day = isDay(since ?? '') ? since : PERIODS.includes(+since) ? addDays(today, -since) : '';
	const [choice, choose] = useState({isStarred: false, isDates: false, area: ''}), stars = useStars(dataset);
	const all = useMemo(() => day ? log.since(+new Date(`${day}T00:00`), copy.records) : news, [news, day, log, copy, version]);
	const changes = all.filter(change => fitsChoice(change, {...choice, ids: choice.isStarred && new Set(stars)}));
	const areas = useMemo(() => dataset === 'conferences' ? [...new Set(all.flatMap(({after}) => after?.therapy_areas ?? []))].sort() : [], [all]);
	const isUnknown = changes.some(({kind}) => kind === 'updated');
	const [shown, setShown] = useState(SHOWN), list = useRef();
	// The button for more goes with the last changes. The focus moves on to the first of them.
	useEffect(() => {
		const next = shown > SHOWN && changes.length <= shown && list.current?.children[shown - SHOWN];
		if (next) Object.assign(next, {tabIndex: -1}).focus();
	}, [shown]);
	const go = since => { location.hash = link(`changes/${dataset}`, {since}); };
	// Some browsers pass on each digit of a year: 0002, 0020, 0202.
	const pick = ({target: {value, validity}}) => validity.rangeUnderflow || go(value);
	useWindowTitle(`What changed: ${dataset}`);
	if (isUnlicensed(kept.state)) return html`<${Datasets} at="changes" dataset=${dataset} /><${Unlicensed} dataset=${dataset} />`;
	return html`<div class="toolbar"><${Datasets} at="changes" dataset=${dataset} />
		<${Segments} label="Since" value=${!day ? '' : isDay(since) ? null : since} options=${[['', first], ...PERIODS.map(days => [`${days}`, `${days} days`])]} onChange=${go} />
			<div class="row"><label for="since">Since</label><input id="since" class="day" type="date" value=${isDay(since ?? '') ? since : ''} min=${FIRST_DAY} max=${today} onChange=${pick} /></div>
			<${Choice} choice=${choice} areas=${areas} stars=${stars.length} onChange=${choose} />
			<button class="quiet" disabled=${!changes.length} onClick=${() => save(`changes-${dataset}-${today}.csv`, new Blob([csv(changeRows(changes))], {type: 'text/csv'}))}>CSV</button><${Print} size=${count(Math.min(shown, changes.length), 'change')} /></div>
		${isReady && html`<h2 class="results" aria-live="polite" translate="no">${count(changes.length, 'change')} ${day ? `since ${date(day)}` : log.visit ? `since your last visit, ${when(new Date(log.visit))}` : `since you opened this, ${when(new Date(log.opened))}`}</h2>
			${isUnknown && html`<p class="soft">A record marked <${Badge} kind="updated" /> is new, or changed before ${keep ? 'this computer kept a copy' : 'the page was opened'}, or before the newest ${LEFT_NOTES.toLocaleString('en')} changes. Its old values are not known. Records that were removed before that are not listed.</p>`}
			${!keep && keepHere && html`<${KeepHere} />`}
			${changes.length ? html`<ul ref=${list} translate="no">${changes.slice(0, shown).map(change => html`<${Change} key=${change.id} dataset=${dataset} of=${change} when=${when} />`)}</ul>`
				: html`<p class="empty">${all.length ? 'No change fits this choice.' : 'Nothing has changed. New changes appear here by themselves.'}</p>`}
			${changes.length > shown && html`<p class="row"><button class="quiet" onClick=${() => setShown(shown + SHOWN)}>Show more</button><span class="soft" role="status">The newest ${shown.toLocaleString('en')} of ${count(changes.length, 'change')} are shown.</span></p>`}`}`;
}
