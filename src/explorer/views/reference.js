// The reference lists.
import {html} from '../preact.js';
import {useAsk} from '../api.js';
import {Answer, Choice, Out, Table, Title, count, link} from '../parts.js';
import {area} from './record.js';

const REFERENCE = {
	'therapy-areas': ['Therapy areas', [['Therapy area', row => area(row.name), 'wide'], ['Conferences', row => row.conferences, 'number']]],
	tags: ['Tags', [['Tag', row => row.name, 'wide'], ['Category', row => row.category], ['Records', row => row.records, 'number']]],
	organizations: ['Organizations', [['Organization', row => html`<${Out} href=${row.url}>${row.name}<//>`, 'wide'], ['Short', row => row.abbv], ['Type', row => row.type], ['Records', row => row.records, 'number']]],
};

export function Reference({kind, params}) {
	const [title, columns] = REFERENCE[kind];
	const given = kind === 'therapy-areas' ? params : {dataset: 'conferences', ...params};
	const answer = useAsk(`reference/${kind}`, given);
	const find = row => html`<a href=${link(given.dataset, {q: row.name})}>Search<span class="hidden"> ${given.dataset} of ${row.name}</span></a>`;
	const type = row => html`<a href=${link('reference/tags', {...given, type: row.type})}>${row.type}</a>`;
	const shown = {tags: [columns[0], ['Type', type], ...columns.slice(1), ['Records with it', find]],
		organizations: [...columns, ['Records with it', find]]}[kind] ?? columns;
	return html`<${Title}>${title}<//>
		<${Choice} label="Reference lists" current=${title} of=${Object.entries(REFERENCE).map(([path, [text]]) => [link(`reference/${path}`), text])} />
		${given.dataset && html`<${Choice} label="Dataset" current=${given.dataset} of=${['conferences', 'journals'].map(dataset => [link(`reference/${kind}`, {...params, dataset}), dataset])} />`}
		${given.type && html`<p>Only of the type <strong>${given.type}</strong>. <a href=${link('reference/tags', {dataset: given.dataset})}>All types</a></p>`}
		<${Answer} of=${answer}>${({data}) => html`<h2 class="results"><span role="status">${count(data.length, 'entry', 'entries')}</span></h2>
			${data.length > 0 && html`<${Table} label=${title} rows=${data} columns=${shown.map(([name, cell, kind]) => ({name, cell, kind}))} />`}`}<//>`;
}
