// The reference lists.
import {html} from '../preact.js';
import {useAsk} from '../api.js';
import {Answer, Choice, Out, Table, Title, count, link} from '../parts.js';
import {area} from './record.js';

const column = (name, cell, kind) => ({name, cell, kind});
const records = column('Records', row => row.records ?? row.conferences, 'number');

/** The lists: their title, and their columns with links(params) for cells. */
const REFERENCE = {
	'therapy-areas': ['Therapy areas', () => [column('Therapy area', row => area(row.name), 'wide'), records]],
	tags: ['Tags', ({type, find}) => [column('Tag', row => row.name, 'wide'), column('Type', type), column('Category', row => row.category), records, column('Find', find)]],
	organizations: ['Organizations', ({find}) => [column('Organization', row => html`<${Out} href=${row.url}>${row.name}<//>`, 'wide'), column('Short', row => row.abbv),
		column('Type', row => row.type), records, column('Find', find)]],
};

export function Reference({kind, params}) {
	const [title, columns] = REFERENCE[kind];
	const given = kind === 'therapy-areas' ? params : {dataset: 'conferences', ...params};
	const answer = useAsk(`reference/${kind}`, given);
	const find = row => html`<a href=${link(given.dataset, {q: row.name})}>Records<span class="hidden"> of ${row.name}</span></a>`;
	const type = row => html`<a href=${link('reference/tags', {...given, type: row.type})}>${row.type}</a>`;
	return html`<${Title}>${title}<//>
		<${Choice} label="Reference lists" current=${title} of=${Object.entries(REFERENCE).map(([path, [text]]) => [link(`reference/${path}`), text])} />
		${given.dataset && html`<${Choice} label="Dataset" current=${given.dataset} of=${['conferences', 'journals'].map(dataset => [link(`reference/${kind}`, {...params, dataset}), dataset])} />`}
		${given.type && html`<p>Only of the type <strong>${given.type}</strong>. <a href=${link('reference/tags', {dataset: given.dataset})}>All types</a></p>`}
		<${Answer} of=${answer}>${({data}) => html`<h2 class="results"><span role="status">${count(data.length, 'entry', 'entries')}</span></h2>
			${data.length > 0 && html`<${Table} label=${title} rows=${data} columns=${columns({type, find})} />`}`}<//>`;
}
