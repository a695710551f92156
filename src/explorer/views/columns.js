// The columns of lists: one fact in each.
import {html} from '../preact.js';
import {byMonth, date, daysBetween, lastDayOf} from '../model/deadlines.js';
import {fraction} from '../model/json.js';
import {Badge, Status, Table, inDays, link, texts} from '../parts.js';

/** The days of a row's line, from today. */
const AXIS = 420;
const LINE = {width: 96, height: 12};
/** A deadline in fewer days than these is urgent. */
const URGENT = 14;

/** The short name of a record, with its year. Two years of a congress have two names. */
export const shortName = ({abbv, name, year}) => [abbv || name, year].filter(Boolean).join(' ');

/** A metric as a text, such as `5.0`. */
export const metric = number => number == null ? null : fraction(number);

/** A range of weeks in words. */
export function weeks(range) {
	const ends = [...new Set([range?.min_weeks, range?.max_weeks])].filter(end => end != null);
	return ends.length ? `${ends.join(' to ')} ${ends.at(-1) === 1 ? 'week' : 'weeks'}` : null;
}

/** How far a day is, urgent if it is near. */
export const Days = ({today, day}) => day && html`<span class=${day >= today && daysBetween(today, day) < URGENT ? 'urgent' : 'soft'}>${inDays(today, day)}</span>`;

/** A deadline and the meeting on one axis, which begins today. January begins at a stroke. */
export function Line({record, due, today}) {
	const at = day => Math.max(2, Math.min(LINE.width - 2, daysBetween(today, day) / AXIS * LINE.width)), start = record.start_date;
	return html`<svg class="line" width=${LINE.width} height=${LINE.height} aria-hidden="true">
		${due?.date >= today && start > due.date && html`<path d="M${at(due.date)} 6H${at(start)}" />`}
		${due?.date >= today && html`<circle cx=${at(due.date)} cy="6" r="2.5" />`}
		${start && lastDayOf(record) >= today && html`<rect x=${at(start) - 1} y="2" width=${Math.max(3, at(lastDayOf(record)) - at(start))} height="8" rx="1" />`}</svg>`;
}

const name = (text, dataset, {id}, mark) => html`<a href=${link(`${dataset}/${id}`)}><bdi>${text}</bdi></a>${mark && html` <${Badge} kind=${mark} />`}`;
const other = text => text ? html`<bdi title=${text}>${text}</bdi>` : '';

/** The columns of rows {record, due}, where `due` is a deadline that a row shows, or none. `marks`: the kinds of changes by id. */
export function columnsOf(dataset, {day, marks, isPrinting}) {
	const mark = ({id}) => marks?.get(id);
	return dataset === 'conferences' ? [
		{name: 'Conference', sort: 'name', kind: 'short', cell: ({record}) => name(shortName(record), dataset, record, mark(record))},
		{name: 'Full name', kind: 'full', cell: ({record}) => other(record.abbv && record.abbv !== record.name && record.name)},
		{name: 'Next deadline', sort: 'deadline', kind: 'due', cell: ({due}) => due && html`<span class=${due.date >= day ? null : 'soft'}>${date(due.date) ?? 'No date'}</span>`},
		{name: 'Confidence of the deadline', kind: 'sure', isNamed: true, cell: ({due}) => due ? html`<${Status} of=${due.confidence} />` : ''},
		{name: 'Due', kind: 'days', isNamed: true, cell: ({due}) => due?.date ? html`<${Days} today=${day} day=${due.date} />` : ''},
		{name: 'Kind', kind: 'of', cell: ({due}) => due ? html`<span class="soft">${due.kind === 'abstract' ? 'Abstracts' : 'Late-breaking'}</span>` : ''},
		...isPrinting ? [] : [{name: 'Until the meeting', kind: 'span', isNamed: true, cell: ({record, due}) => html`<${Line} record=${record} due=${due} today=${day} />`}],
		{name: 'Meeting', sort: 'start', kind: 'meet', cell: ({record}) => date(record.start_date, record.end_date)},
		{name: 'Confidence of the meeting', kind: 'sure', isNamed: true, cell: ({record}) => html`<${Status} of=${record.start_date_status} />`},
		{name: 'Place', sort: 'place', kind: 'place', cell: ({record}) => texts([record.city, record.country])},
		{name: 'Area', kind: 'area', cell: ({record}) => texts(record.therapy_areas)},
	] : [
		{name: 'Journal', sort: 'name', kind: 'journal', cell: ({record}) => name(record.name, dataset, record, mark(record))},
		{name: 'Short', kind: 'abbv', cell: ({record}) => other(record.abbv !== record.name && record.abbv)},
		{name: 'Publisher', sort: 'publisher', kind: 'publisher', cell: ({record}) => texts([record.publisher])},
		{name: 'Access', sort: 'access', kind: 'access', cell: ({record}) => record.publishing.access},
		{name: 'Fee (USD)', sort: 'fee', kind: 'number', cell: ({record}) => record.publishing.apc_usd?.toLocaleString('en')},
		{name: 'Impact factor', sort: 'impact', kind: 'number', cell: ({record}) => metric(record.impact_factor)},
		{name: 'To acceptance', sort: 'acceptance', kind: 'weeks', cell: ({record}) => weeks(record.timelines.online_submit_to_accept)},
	];
}

const month = text => new Date(text).toLocaleDateString('en-GB', {month: 'long', year: 'numeric', timeZone: 'UTC'});

/** Deadlines by month, with the number of each month, and the first `most` of them. `columns` are those of the lists. */
export const Deadlines = ({of, most = of.length, columns}) => byMonth(of).filter(({from}) => from < most).map(({month: name, from, deadlines}) => html`<section class="month" key=${name}>
	<h3>${month(name)} <span class="count">${deadlines.length.toLocaleString('en')}</span></h3>
	<${Table} label="Deadlines in ${month(name)}" rows=${deadlines.slice(0, most - from).map(due => ({record: due.record, due}))} columns=${columns} /></section>`);
