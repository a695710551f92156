// One record.
import {html} from '../preact.js';
import {target, useAsk} from '../api.js';
import {Answer, Curl, DATASETS, Out, Status, Title, count, date, inDays, link, texts} from '../parts.js';
import {STATUS, todayOf} from '../model/deadlines.js';
import {FORMATS} from '../model/facets.js';
import {usesCopy} from '../model/follower.js';
import {jsonOf} from '../model/json.js';
import {useCopy} from '../session.js';
import {days, metric, weeks} from './columns.js';

const STEPS = {submit_to_first_decision: 'Submission to first decision', online_submit_to_accept: 'Online submission to acceptance',
	accept_to_online: 'Acceptance to publication online', accept_to_print: 'Acceptance to print'};

const isGiven = text => text != null && text !== false && text !== '';
const fact = (term, text) => isGiven(text) && html`<div><dt>${term}</dt><dd>${text}</dd></div>`;
const facts = list => html`<dl class="facts">${list}</dl>`;

const area = text => html`<a class="tag" href=${link('conferences', {area: text})}><bdi>${text}</bdi></a> `;

const inWords = (term, day, status, due) => html`<div><dt>${term}</dt><dd>${day || 'No date'} ${due && html`<span class="soft">${inDays(todayOf(), due)}</span> `}<${Status} of=${status} />
	<span class="soft">${STATUS[status]?.[1]}</span></dd></div>`;

const conference = record => html`
	<p class="lead">${texts([[record.abbv, record.year].filter(Boolean).join(' '), record.venue, record.city, record.country])}</p>
	<h2>Dates</h2>${facts([
		inWords('Abstracts due', date(record.abstract_due_date), record.abstract_due_date_status, record.abstract_due_date),
		inWords('Late-breaking abstracts due', date(record.late_breaking_due_date), record.late_breaking_due_date_status, record.late_breaking_due_date),
		inWords('Meeting', days(record), record.start_date_status)])}
	<h2>About</h2>${facts([
		fact('Therapy areas', record.therapy_areas.length ? record.therapy_areas.map(area) : null),
		fact('Formats', Object.entries(FORMATS).filter(([key]) => record.formats[key] != null)
			.map(([key, text]) => `${text}: ${record.formats[key] ? 'yes' : 'no'}`).join(', ')),
		fact('Website', record.url && html`<${Out} href=${record.url} />`)])}`;

const journal = ({publishing: {access, content_license, apc_usd, embargo_months}, timelines, ...record}) => html`
	<p class="lead">${texts([record.abbv !== record.name && record.abbv, record.publisher])}</p>
	<h2>Metrics</h2>${facts([
		fact('Impact factor', record.impact_factor != null && [metric(record.impact_factor), record.impact_factor_year && `(${record.impact_factor_year})`].join(' ')),
		fact('CiteScore', metric(record.citescore)), fact('SCImago Journal Rank', metric(record.sjr)), fact('h-index', record.h_index)])}
	<h2>Publishing</h2>${facts([
		fact('Access', access), fact('Content license', content_license),
		fact('Article fee', apc_usd != null && `${apc_usd.toLocaleString('en')} US dollars`),
		fact('Embargo', embargo_months != null && count(embargo_months, 'month')),
		...Object.entries(STEPS).map(([key, text]) => fact(text, weeks(timelines[key]))),
		fact('ISSN, print', record.issn_print), fact('ISSN, online', record.issn_online),
		fact('Website', record.url && html`<${Out} href=${record.url} />`)])}`;

/** What is known of a record. */
export const whole = (dataset, record) => html`${(dataset === 'journals' ? journal : conference)(record)}
	<h2>Linked</h2>${facts([
		fact('Organizations', record.organizations.length ? html`<ul>${record.organizations.map(one => html`<li><${Out} href=${one.url}><bdi>${one.name}</bdi><//>${one.abbv && html` (<bdi>${one.abbv}</bdi>)`}</li>`)}</ul>` : null),
		fact('Tags', record.tags.length ? html`<ul>${record.tags.map(tag => html`<li><a href=${link(dataset, {tag: `${tag.type}: ${tag.name}`})}><bdi>${tag.type}: ${tag.name}</bdi></a></li>`)}</ul>` : null),
		fact('Last change', `${date(record.updated_at)}, ${record.updated_at.slice(11, 19)} UTC`)])}
	<details><summary>As JSON</summary><pre tabindex="0"><code>${jsonOf(record, 2)}</code></pre></details>`;

/** A record of the copy, as it changes. A record that is not in the copy is asked for, and each one if the copy is not used. */
export function Record({dataset, id}) {
	const {copy, state} = useCopy(dataset);
	const kept = usesCopy(state) ? copy.records.get(+id) : null;
	const path = `${dataset}/${id}`;
	const answer = useAsk(kept || state.name === 'loading' ? null : path);
	const record = kept ?? answer?.data?.data;
	return html`<p class="back"><a href=${link(dataset)}>All ${dataset}</a></p>
		<${Title}>${record?.name ?? `${DATASETS[dataset][0].slice(0, -1)} ${id}`}<//>
		${kept ? html`${whole(dataset, kept)}<${Curl} of=${{url: target(path), method: 'GET'}} />`
			: html`<${Answer} of=${answer} dataset=${dataset}>${({data}) => whole(dataset, data)}<//>`}`;
}
