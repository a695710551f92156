// The columns of lists.
import {html} from '../preact.js';
import {deadlinesOf} from '../model/deadlines.js';
import {Badge, Status, date, inDays, link} from '../parts.js';

export const place = record => [record.city, record.country].filter(Boolean).join(', ') || null;
export const days = record => date(record.start_date, record.end_date);

/** A record's name as a link, with its abbreviation and year. */
export const nameOf = (dataset, record) => html`<a href=${link(`${dataset}/${record.id}`)}>${record.name}</a>
	<span class="soft"> ${[record.abbv !== record.name && record.abbv, record.year].filter(Boolean).join(' ')}</span>`;

/** A range of weeks in words. */
export function weeks(range) {
	const ends = [...new Set([range?.min_weeks, range?.max_weeks])].filter(end => end != null);
	return ends.length ? `${ends.join(' to ')} weeks` : null;
}

const SHORT = {abstract: 'Abstracts', late_breaking: 'Late-breaking'};

/** The next deadline of the period, or the last one that has passed. */
function due(record, day, period) {
	const [next] = deadlinesOf(record, period ?? {from: day});
	const one = next ?? deadlinesOf(record, {to: day}).at(-1);
	return one && html`<span class=${next ? 'nowrap' : 'soft'}>${next ? '' : 'closed '}${date(one.date)}</span> <${Status} of=${one.confidence} />
		<div class="soft">${SHORT[one.kind]}, ${inDays(day, one.date)}</div>`;
}

/** The columns of a dataset. A record that changed since the page was opened is marked. */
export function columnsOf(dataset, {day, period, log}) {
	const name = record => html`${nameOf(dataset, record)}${log.byId.has(record.id) && html` <${Badge} kind=${log.byId.get(record.id).kind} />`}
		${record.therapy_areas && html`<div class="soft">${record.therapy_areas.join(', ')}</div>`}`;
	return {
		conferences: [
			{name: 'Conference', sort: 'name', kind: 'wide', cell: name},
			{name: 'Next deadline', sort: 'deadline', cell: record => due(record, day, period)},
			{name: 'Meeting', sort: 'start', cell: record => html`<span class="nowrap">${days(record)}</span> <${Status} of=${record.start_date_status} />`},
			{name: 'Place', sort: 'place', cell: place},
		],
		journals: [
			{name: 'Journal', sort: 'name', kind: 'wide', cell: name},
			{name: 'Publisher', sort: 'publisher', cell: record => record.publisher},
			{name: 'Access', sort: 'access', cell: record => record.publishing.access},
			{name: 'Fee (USD)', sort: 'fee', kind: 'number', cell: record => record.publishing.apc_usd?.toLocaleString('en')},
			{name: 'Impact factor', sort: 'impact', kind: 'number', cell: record => record.impact_factor},
			{name: 'Submission to acceptance', sort: 'acceptance', cell: record => weeks(record.timelines.online_submit_to_accept)},
		],
	}[dataset];
}
