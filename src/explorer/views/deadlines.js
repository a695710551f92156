// Deadlines by month.
import {html} from '../preact.js';
import {KINDS, byMonth} from '../model/deadlines.js';
import {Status, Table, date, inDays} from '../parts.js';
import {nameOf, place} from './columns.js';

const month = text => new Date(text).toLocaleDateString('en-GB', {month: 'long', year: 'numeric', timeZone: 'UTC'});

export const Deadlines = ({of, day}) => byMonth(of).map(({month: name, deadlines}) => html`<section class="month" key=${name}>
	<h3>${month(name)} <span class="count">${deadlines.length}</span></h3>
	<${Table} label="Deadlines in ${month(name)}" rows=${deadlines.map(one => ({...one, id: `${one.record.id} ${one.kind}`}))} columns=${[
		{name: 'Conference', kind: 'wide', cell: ({record}) => nameOf('conferences', record)},
		{name: 'Due', cell: one => html`<strong class="nowrap">${date(one.date)}</strong> <span class="soft nowrap">${inDays(day, one.date)}</span>`},
		{name: 'Confidence', cell: one => html`<${Status} of=${one.confidence} />`},
		{name: 'Deadline', cell: one => KINDS[one.kind]},
		{name: 'Place', cell: ({record}) => place(record)}]} /></section>`);
