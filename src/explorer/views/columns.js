// The columns of lists.
import {html} from '../preact.js';
import {KINDS, byMonth, shownDeadline} from '../model/deadlines.js';
import {fraction} from '../model/json.js';
import {Badge, Status, Table, date, inDays, link, texts} from '../parts.js';

export const place = record => texts([record.city, record.country]);
export const days = record => date(record.start_date, record.end_date);

/** A record's name as a link, with its abbreviation and year. */
const nameOf = (dataset, record) => html`<a href=${link(`${dataset}/${record.id}`)}><bdi>${record.name}</bdi></a>
	<span class="soft"> <bdi>${[record.abbv !== record.name && record.abbv, record.year].filter(Boolean).join(' ')}</bdi></span>`;

/** A metric as a text, such as `5.0`. */
export const metric = number => number == null ? null : fraction(number);

/** A range of weeks in words. */
export function weeks(range) {
	const ends = [...new Set([range?.min_weeks, range?.max_weeks])].filter(end => end != null);
	return ends.length ? `${ends.join(' to ')} ${ends.at(-1) === 1 ? 'week' : 'weeks'}` : null;
}

/** The deadline of a record that fits the list's question. */
function due(record, day, period) {
	const one = shownDeadline(record, day, period), isAhead = one?.date >= day;
	return one && html`<span class=${isAhead ? '' : 'soft'}>${one.date ? `${isAhead ? '' : 'closed '}${date(one.date)}` : 'No date'}</span> <${Status} of=${one.confidence} />
		<div class="soft">${one.kind === 'abstract' ? 'Abstracts' : 'Late-breaking'}${one.date && `, ${inDays(day, one.date)}`}</div>`;
}

/** The columns of a dataset. The column of deadlines shows one of `period`. `marks`: the kinds of changes by id. */
export function columnsOf(dataset, {day, period = {from: day}, marks}) {
	const name = record => html`${nameOf(dataset, record)}${marks?.has(record.id) && html` <${Badge} kind=${marks.get(record.id)} />`}
		${record.therapy_areas && html`<div class="soft">${texts(record.therapy_areas)}</div>`}`;
	return dataset === 'conferences' ? [
		{name: 'Conference', sort: 'name', kind: 'wide', cell: name},
		{name: 'Next deadline', sort: 'deadline', cell: record => due(record, day, period)},
		{name: 'Meeting', sort: 'start', cell: record => html`${days(record)}<div><${Status} of=${record.start_date_status} /></div>`},
		{name: 'Place', sort: 'place', cell: place},
	] : [
		{name: 'Journal', sort: 'name', kind: 'wide', cell: name},
		{name: 'Publisher', sort: 'publisher', kind: 'broad', cell: record => texts([record.publisher])},
		{name: 'Access', sort: 'access', cell: record => record.publishing.access},
		{name: 'Fee (USD)', sort: 'fee', kind: 'number', cell: record => record.publishing.apc_usd?.toLocaleString('en')},
		{name: 'Impact factor', sort: 'impact', kind: 'number', cell: record => metric(record.impact_factor)},
		{name: 'To acceptance', sort: 'acceptance', cell: record => weeks(record.timelines.online_submit_to_accept)},
	];
}

const month = text => new Date(text).toLocaleDateString('en-GB', {month: 'long', year: 'numeric', timeZone: 'UTC'});

/** Deadlines by month, with the number of each month, and the first `most` of them. `before`: columns before their own. */
export const Deadlines = ({of, most = of.length, day, before = []}) => byMonth(of).filter(({from}) => from < most).map(({month: name, from, deadlines}) => html`<section class="month" key=${name}>
	<h3>${month(name)} <span class="count">${deadlines.length.toLocaleString('en')}</span></h3>
	<${Table} label="Deadlines in ${month(name)}" rows=${deadlines.slice(0, most - from)} columns=${[...before,
		{name: 'Conference', kind: 'wide', cell: ({record}) => nameOf('conferences', record)},
		{name: 'Due', cell: one => html`${date(one.date)} <${Status} of=${one.confidence} />`},
		{name: 'Deadline', cell: one => html`${KINDS[one.kind]}<div class="soft">${inDays(day, one.date)}</div>`},
		{name: 'Place', cell: ({record}) => place(record)}]} /></section>`);
