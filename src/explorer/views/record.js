// One record, and a few side by side.
import {html, useMemo, useState} from '../preact.js';
import {target, useAsk} from '../api.js';
import {Answer, Copy, Curl, DATASETS, Out, Status, Table, Title, Toggle, Unlicensed, count, link, texts} from '../parts.js';
import {STATUS, date, todayOf} from '../model/deadlines.js';
import {FORMATS} from '../model/facets.js';
import {describe, isUnlicensed, usesCopy} from '../model/follower.js';
import {jsonOf} from '../model/json.js';
import {readIds} from '../model/question.js';
import {useCopy} from '../session.js';
import {Days, metric, shortName, weeks} from './columns.js';
import {AddToCalendar, Print} from './files.js';
import {CompareLink, MAX_COMPARED, Star, compareLink, useStars} from './shortlist.js';
import {Back} from './way.js';

const STEPS = {submit_to_first_decision: 'Submission to first decision', online_submit_to_accept: 'Online submission to acceptance',
	accept_to_online: 'Acceptance to publication online', accept_to_print: 'Acceptance to print'};

const isGiven = text => text != null && text !== false && text !== '';
const area = text => html`<a class="tag" href=${link('conferences', {area: text})}><bdi>${text}</bdi></a> `;
const website = ({url}) => ['Website', url, url && html`<${Out} href=${url} />`];
const list = (term, values, shown) => [term, values.sort().join(', '), values.length ? shown : null];

/** A date with its status. A deadline, which has no last day, says how far it is. */
const due = (term, status, from, to) => [term, `${from} ${to} ${status}`, html`${date(from, to) || 'No date'} ${from && to === undefined && html`<${Days} today=${todayOf()} day=${from} /> `}<span class="sure"><${Status} of=${status} /></span> <span class="soft meaning">${STATUS[status]?.[1]}</span>`];

/** The formats that are known: those that a record has, and has not. */
function formats(given) {
	const known = Object.entries(FORMATS).map(([key, text]) => [key, text, given[key]]).filter(([,, has]) => has != null);
	return ['Formats', known.map(([key,, has]) => `${key} ${has}`).join(), known.length > 0 && html`<ul class="ticks">${known.map(([, text, has]) => html`<li class=${has ? 'yes' : 'no'}><span class="hidden">${has ? 'yes: ' : 'no: '}</span>${text}</li>`)}</ul>`];
}

/**
 * The facts of a record below headings: {heading: [[term, value, shown]]}, `shown` as a reader sees the value. Records of a dataset have
 * the same terms.
 */
const FACTS = {
	conferences: record => ({
		Dates: [
			due('Abstracts due', record.abstract_due_date_status, record.abstract_due_date),
			due('Late-breaking abstracts due', record.late_breaking_due_date_status, record.late_breaking_due_date),
			due('Meeting', record.start_date_status, record.start_date, record.end_date ?? null)],
		About: [
			list('Therapy areas', [...record.therapy_areas], record.therapy_areas.map(area)),
			formats(record.formats),
			website(record)],
	}),
	journals: ({publishing: {access, content_license, apc_usd, embargo_months}, timelines, ...record}) => ({
		Metrics: [
			['Impact factor', record.impact_factor != null && [metric(record.impact_factor), record.impact_factor_year && `(${record.impact_factor_year})`].join(' ')],
			['CiteScore', metric(record.citescore)], ['SCImago Journal Rank', metric(record.sjr)], ['h-index', record.h_index]],
		Publishing: [
			['Access', access], ['Content license', content_license],
			['Article fee', apc_usd != null && `${apc_usd.toLocaleString('en')} US dollars`],
			['Embargo', embargo_months != null && count(embargo_months, 'month')],
			...Object.entries(STEPS).map(([key, text]) => [text, weeks(timelines[key])]),
			['ISSN, print', record.issn_print], ['ISSN, online', record.issn_online], website(record)],
	}),
};

const linked = (dataset, {organizations, tags, updated_at}) => ({Linked: [
	list('Organizations', organizations.map(({name}) => name), html`<ul>${organizations.map(one => html`<li><${Out} href=${one.url}><bdi>${one.name}</bdi><//>${one.abbv && html` (<bdi>${one.abbv}</bdi>)`}</li>`)}</ul>`),
	list('Tags', tags.map(({type, name}) => `${type}: ${name}`), html`<ul>${tags.map(tag => html`<li><a href=${link(dataset, {tag: `${tag.type}: ${tag.name}`})}><bdi>${tag.type}: ${tag.name}</bdi></a></li>`)}</ul>`),
	['Last change', `${date(updated_at)}, ${updated_at.slice(11, 19)} UTC`]]});

const factsOf = (dataset, record) => ({...FACTS[dataset](record), ...linked(dataset, record)});
/** The place of a conference, the publisher of a journal. */
const whereOf = ({venue, city, country, publisher}) => [venue, city, country, publisher];

/** What is known of a record, in two columns. `request` is one that gives it. */
export const whole = (dataset, record, request) => html`
	<div class="facts-of">${Object.entries(factsOf(dataset, record)).map(([heading, facts]) => html`<section><h2>${heading}</h2><dl class="facts">${facts.map(([term, value, shown = value]) =>
		isGiven(shown) && html`<div><dt>${term}</dt><dd>${shown}</dd></div>`)}</dl></section>`)}</div>
	<details class="developers"><summary>For developers</summary>${request && html`<${Curl} of=${request} />`}
		<pre tabindex="0" role="group" aria-label="The record as JSON"><code>${jsonOf(record, 2)}</code></pre></details>`;

/** The other years of a congress in a copy, by year. */
function editionsOf(copy, record) {
	const isSame = ({abbv, name}) => record.abbv ? abbv === record.abbv : !abbv && name === record.name;
	return record.year ? copy.list().filter(one => one.year && isSame(one)).sort((one, other) => one.year - other.year || one.id - other.id) : [];
}

/** The years of a congress, each a link, and the way to see the newest side by side. */
function Editions({copy, record}) {
	const all = useMemo(() => editionsOf(copy, record), [copy, record]);
	return all.length > 1 && html`<nav class="editions" aria-label="Years"><div class="segments">${all.map(({id, year}) => html`<a key=${id} href=${link(`conferences/${id}`)} aria-current=${id === record.id ? 'page' : null}>${year}</a>`)}</div>
		<${CompareLink} dataset="conferences" ids=${[record.id, ...all.map(({id}) => id).filter(id => id !== record.id).reverse()].slice(0, MAX_COMPARED)} /></nav>`;
}

/** The head of a record: its short name, what leads on, its name and place, and its line. */
function Head({dataset, record, copy}) {
	const isMeeting = dataset === 'conferences', title = isMeeting ? shortName(record) : record.name;
	return html`<div class="head"><${Title}>${title}<//><div class="row own"><${Star} dataset=${dataset} record=${record}>Star<//><${Print} />${isMeeting && html`<${AddToCalendar} record=${record} />`}</div></div>
		<p class="lead">${texts([isMeeting ? record.abbv && record.abbv !== record.name && record.name : record.abbv !== record.name && record.abbv, ...whereOf(record)])}</p>
		${isMeeting && copy && html`<${Editions} copy=${copy} record=${record} />`}`;
}

/** Facts that are always another record's own. */
const OWN = ['Website', 'ISSN, print', 'ISSN, online', 'Last change'];

/** Which of some dates {value: 'YYYY-MM-DD …'} is before all others; -1 if none is, or they are no dates. */
function earliest(facts) {
	const days = facts.map(([, value]) => /^\d{4}-\d\d-\d\d/.exec(value)?.[0] ?? '~'), first = [...days].sort()[0];
	return first !== '~' && days.some(day => day > first && day !== '~') && days.indexOf(first) === days.lastIndexOf(first) ? days.indexOf(first) : -1;
}

/** The facts of records side by side: [{term, shown, first, differs}], `shown` by record, `first` the earliest date. Those that no record has are left out. */
export function compare(dataset, records) {
	const lists = records.map(record => [[dataset === 'journals' ? 'Publisher' : 'Place', whereOf(record).filter(Boolean).join(', '), texts(whereOf(record))], ...Object.values(factsOf(dataset, record)).flat()]);
	return lists[0].map(([term], at) => {
		const facts = lists.map(list => list[at]);
		return {term, shown: facts.map(([, value, shown = value]) => isGiven(shown) ? shown : null), first: earliest(facts), differs: facts.some(([, value]) => String(value ?? '') !== String(facts[0][1] ?? ''))};
	}).filter(({term, shown}) => !OWN.includes(term) && shown.some(one => one !== null));
}

/** A record of the copy, as it changes. A record that is not in the copy is asked for. */
export function Record({dataset, id}) {
	const {copy, state} = useCopy(dataset);
	const kept = usesCopy(state) ? copy.records.get(+id) : null;
	const path = `${dataset}/${id}`;
	const answer = useAsk(kept || state.name === 'loading' ? null : path);
	const record = kept ?? answer?.data?.data;
	return html`<${Back} dataset=${dataset} />${record ? html`<${Head} dataset=${dataset} record=${record} copy=${kept && copy} />` : html`<${Title}>${DATASETS[dataset][0].slice(0, -1)} ${id}<//>`}
		${kept ? whole(dataset, kept, {url: target(path), method: 'GET'}) : html`<${Answer} of=${answer} dataset=${dataset}>${({data}) => whole(dataset, data)}<//>`}`;
}

/** The records of an address side by side. */
export function Compare({dataset, params}) {
	const kept = useCopy(dataset), {copy, state} = kept, stars = useStars(dataset), [only, setOnly] = useState(false);
	const given = readIds(params.ids ?? ''), ids = given.slice(0, MAX_COMPARED), name = `${DATASETS[dataset][0]} side by side`;
	const records = kept.isReady ? ids.map(id => copy.records.get(id)).filter(Boolean) : [], missing = kept.isReady ? ids.length - records.length : 0, offered = new Set([...ids, ...stars]);
	if (isUnlicensed(state)) return html`<${Title}>${name}<//><${Unlicensed} dataset=${dataset} />`;
	if (!usesCopy(state)) return html`<${Title}>${name}<//><p class="problem" role="alert">${describe(state)}</p>`;
	const toggle = id => { location.hash = compareLink(dataset, ids.includes(id) ? ids.filter(one => one !== id) : [...ids, id]); };
	const columns = [{name: 'Fact', kind: 'fact', cell: ({term, differs}) => html`${term}${differs && html`<span class="hidden"> differs</span>`}`},
		...records.map((record, at) => ({name: html`<a href=${link(`${dataset}/${record.id}`)}><bdi>${shortName(record)}</bdi></a> <${Star} dataset=${dataset} record=${record} />`, label: shortName(record),
			cell: ({shown, differs, first}) => shown[at] && html`<span class=${differs ? first === at ? 'earliest' : null : 'soft'}>${shown[at]}${first === at && html` <span class="tag">earliest</span>`}</span>`}))];
	return html`<${Back} dataset=${dataset} /><div class="head"><${Title} full=${[...records.map(shortName), name].join(', ')}>${name}<//>
		${records.length > 1 && html`<div class="row own"><${Toggle} on=${only} onChange=${() => setOnly(!only)}>Only where they differ<//><${Copy} text=${location.href}>Copy link<//><${Print} /></div>`}</div>
		${given.length > MAX_COMPARED && html`<p role="status">At most ${MAX_COMPARED} stand side by side. The address names ${given.length.toLocaleString('en')}.</p>`}
		${missing > 0 && html`<p role="status">Not in this license, or removed: ${count(missing, 'record')} of ${ids.length}.</p>`}
		${offered.size > ids.length && html`<div class="row own" role="group" aria-label="Starred records">${[...offered].map(id => copy.records.get(id)).filter(Boolean).map(record => html`<${Toggle} key=${record.id}
			on=${ids.includes(record.id)} disabled=${!ids.includes(record.id) && ids.length >= MAX_COMPARED} onChange=${() => toggle(record.id)}><bdi>${shortName(record)}</bdi><//>`)}</div>`}
		${records.length > 1 ? html`<div class="compare"><${Table} label=${name} rows=${[...dataset === 'conferences' ? [{term: 'Name', shown: records.map(({name}) => html`<bdi>${name}</bdi>`), first: -1, differs: true}] : [], ...compare(dataset, records)].filter(({differs}) => differs || !only)} columns=${columns} /></div>`
			: kept.isReady && html`<p class="empty">Star two to ${MAX_COMPARED} ${dataset} in the list, and choose “Compare side by side”.</p>`}`;
}
