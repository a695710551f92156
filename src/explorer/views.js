// Lists, records, reference lists and exports.
import {html, useEffect, useRef, useState} from './preact.js';
import {target, useAsk, useSession} from './api.js';
import {FILTERS} from './filters.js';
import {Answer, Choice, Out, STATUS, Status, Table, Title, count, date, link} from './parts.js';

const name = dataset => record => html`<a href=${link(`${dataset}/${record.id}`)}>${record.name}</a>${record.abbv && html` <span class="soft">${record.abbv}</span>`}`;
const due = field => record => html`${date(record[field])} <${Status} of=${record[`${field}_status`]} />`;

const days = record => date(record.start_date, record.end_date);

function weeks({min_weeks, max_weeks}) {
	const ends = [...new Set([min_weeks, max_weeks])].filter(end => end != null);
	return ends.length ? `${ends.join(' to ')} weeks` : null;
}

const area = text => html`<a class="tag" href=${link('conferences', {therapy_area: text})}>${text}</a> `;

const COLUMNS = {
	conferences: [
		['Conference', name('conferences'), 'wide'],
		['Year', record => record.year],
		['Meeting', record => html`${days(record)} <${Status} of=${record.start_date_status} />`],
		['Abstracts due', due('abstract_due_date')],
		['Late-breaking due', due('late_breaking_due_date')],
		['Place', record => [record.city, record.country].filter(Boolean).join(', ') || null],
		['Therapy areas', record => record.therapy_areas.length ? record.therapy_areas.map(area) : null],
	],
	journals: [
		['Journal', name('journals'), 'wide'],
		['Publisher', record => record.publisher],
		['Access', record => record.publishing.access],
		['Fee (USD)', record => record.publishing.apc_usd?.toLocaleString('en'), 'number'],
		['Impact factor', record => record.impact_factor, 'number'],
		['Submission to acceptance', record => weeks(record.timelines.online_submit_to_accept)],
	],
};

// Texts all: the API judges them.
const BOXES = dataset => [...FILTERS[dataset], {name: 'updated_since', label: 'Changed since', example: '2026-03-15'},
	{name: 'limit', label: 'Per page', example: '100'}];

function Filters({dataset, params}) {
	const {seen, areas} = useSession();
	const form = useRef();
	useEffect(() => {
		for (const input of form.current.querySelectorAll('input')) input.value = params[input.name] ?? '';
	}, [JSON.stringify(params)]);
	const apply = event => {
		event.preventDefault();
		const given = Object.fromEntries(new FormData(form.current));
		// Of a filter that it does not know the API says so.
		const unknown = Object.entries(params).filter(([name]) => name !== 'cursor' && !(name in given));
		location.hash = link(dataset, {...Object.fromEntries(unknown), ...given});
	};
	const clear = event => {
		event.preventDefault();
		location.hash = link(dataset);
	};
	// Beside the therapy areas, which are asked for, the values that were seen.
	const known = field => field === 'therapy_areas' ? areas
		: [...new Set([...seen[dataset].values()].flatMap(record => record[field] ?? []))].filter(value => typeof value === 'string').sort();
	return html`<form class="filters" ref=${form} onSubmit=${apply} onReset=${clear} aria-label="Filters">
		${BOXES(dataset).map(({name, label, example, field}) => html`<div class="field ${name}" key=${name}><label for=${name}>${label}</label>
			<input id=${name} name=${name} placeholder=${example} autocomplete="off" list=${field && `${name}-known`} />
			${field && html`<datalist id="${name}-known">${known(field).map(text => html`<option value=${text} />`)}</datalist>`}</div>`)}
		<div class="row"><button>Apply</button><button type="reset" class="quiet">Clear</button></div>
	</form>`;
}

export function List({dataset, params}) {
	const {seen} = useSession();
	const answer = useAsk(dataset, params);
	const results = useRef();
	useEffect(() => {
		// Who sets a filter stays in the form.
		if (answer && !answer.stale && params.cursor) results.current?.focus();
	}, [answer?.url, answer?.stale]);
	return html`<${Title}>${dataset === 'conferences' ? 'Conferences' : 'Journals'}<//>
		<${Filters} dataset=${dataset} params=${params} />
		<${Answer} of=${answer}>${({data, has_more, next_cursor}) => {
			for (const record of data) seen[dataset].set(record.id, record);
			const {cursor, ...first} = params;
			return html`<h2 class="results" ref=${results} tabindex="-1"><span role="status">
					${data.length ? `${count(data.length, 'record')}${cursor ? ' on this page' : ''}${has_more ? ', more follow' : cursor ? ', the last ones' : ''}` : 'No record fits.'}</span></h2>
				${data.length > 0 && html`<${Table} label=${dataset} columns=${COLUMNS[dataset]} rows=${data} />`}
				${(cursor || has_more) && html`<nav class="pages" aria-label="Pages">
					${cursor && html`<a class="button quiet" href=${link(dataset, first)}>First page</a>`}
					${has_more && html`<a class="button" href=${link(dataset, {...first, cursor: next_cursor})}>Next page</a>`}</nav>`}`;
		}}<//>`;
}

const FORMATS = {oral: 'Oral presentations', poster: 'Posters', e_poster: 'Electronic posters', published_abstract: 'Published abstracts', encore: 'Encores'};
const STEPS = {submit_to_first_decision: 'Submission to first decision', online_submit_to_accept: 'Online submission to acceptance',
	accept_to_online: 'Acceptance to publication online', accept_to_print: 'Acceptance to print'};

const fact = (term, text) => text != null && text !== '' && html`<div><dt>${term}</dt><dd>${text}</dd></div>`;
const facts = list => html`<dl class="facts">${list}</dl>`;

const inWords = (term, day, status) => html`<div><dt>${term}</dt><dd>${day || 'No date'} <${Status} of=${status} />
	<span class="soft">${STATUS[status]?.[1]}</span></dd></div>`;

const conference = record => html`
	<p class="lead">${[record.abbv, record.year].filter(Boolean).join(' ')}${record.city || record.country ? `, ${[record.venue, record.city, record.country].filter(Boolean).join(', ')}` : ''}</p>
	<h2>Dates</h2>${facts([
		inWords('Meeting', days(record), record.start_date_status),
		inWords('Abstracts due', date(record.abstract_due_date), record.abstract_due_date_status),
		inWords('Late-breaking abstracts due', date(record.late_breaking_due_date), record.late_breaking_due_date_status)])}
	<h2>About</h2>${facts([
		fact('Therapy areas', record.therapy_areas.length ? record.therapy_areas.map(area) : null),
		fact('Formats', Object.entries(FORMATS).filter(([key]) => record.formats[key] != null)
			.map(([key, text]) => `${text}: ${record.formats[key] ? 'yes' : 'no'}`).join(', ')),
		fact('Website', record.url && html`<${Out} href=${record.url} />`)])}`;

const journal = record => html`
	<p class="lead">${[record.abbv !== record.name && record.abbv, record.publisher].filter(Boolean).join(', ')}</p>
	<h2>Metrics</h2>${facts([
		fact('Impact factor', record.impact_factor && `${record.impact_factor}${record.impact_factor_year ? ` (${record.impact_factor_year})` : ''}`),
		fact('CiteScore', record.citescore), fact('SCImago Journal Rank', record.sjr), fact('h-index', record.h_index)])}
	<h2>Publishing</h2>${facts([
		fact('Access', record.publishing.access), fact('Content license', record.publishing.content_license),
		fact('Article fee', record.publishing.apc_usd != null && `${record.publishing.apc_usd.toLocaleString('en')} US dollars`),
		fact('Embargo', record.publishing.embargo_months != null && count(record.publishing.embargo_months, 'month')),
		...Object.entries(STEPS).map(([key, text]) => fact(text, weeks(record.timelines[key]))),
		fact('ISSN', [record.issn_print && `${record.issn_print} (print)`, record.issn_online && `${record.issn_online} (online)`].filter(Boolean).join(', ')),
		fact('Website', record.url && html`<${Out} href=${record.url} />`)])}`;

export function Record({dataset, id}) {
	const {seen} = useSession();
	const answer = useAsk(`${dataset}/${id}`);
	const record = answer?.data?.data;
	return html`<p class="back"><a href=${link(dataset)}>All ${dataset}</a></p>
		<${Title}>${record?.name ?? `${dataset === 'journals' ? 'Journal' : 'Conference'} ${id}`}<//>
		<${Answer} of=${answer}>${({data}) => {
			seen[dataset].set(data.id, data);
			return html`${(dataset === 'journals' ? journal : conference)(data)}
				<h2>Linked</h2>${facts([
					fact('Organizations', data.organizations.length ? html`<ul>${data.organizations.map(one => html`<li><${Out} href=${one.url}>${one.name}<//>${one.abbv && ` (${one.abbv})`}</li>`)}</ul>` : null),
					fact('Tags', data.tags.length ? html`<ul>${data.tags.map(tag => html`<li><a href=${link('reference/tags', {dataset, type: tag.type})}>${tag.type}</a>: ${tag.name}</li>`)}</ul>` : null),
					fact('Last change', `${date(data.updated_at)}, ${data.updated_at.slice(11, 19)} UTC`)])}
				<details><summary>As JSON</summary><pre tabindex="0"><code>${JSON.stringify(data, null, 2)}</code></pre></details>`;
		}}<//>`;
}

const REFERENCE = {
	'therapy-areas': ['Therapy areas', [['Therapy area', row => area(row.name), 'wide'], ['Conferences', row => row.conferences, 'number']]],
	tags: ['Tags', [['Tag', row => row.name, 'wide'], ['Category', row => row.category], ['Records', row => row.records, 'number']]],
	organizations: ['Organizations', [['Organization', row => html`<${Out} href=${row.url}>${row.name}<//>`, 'wide'], ['Short', row => row.abbv], ['Type', row => row.type], ['Records', row => row.records, 'number']]],
};

export function Reference({kind, params}) {
	const [title, columns] = REFERENCE[kind];
	const given = kind === 'therapy-areas' ? params : {dataset: 'conferences', ...params};
	const answer = useAsk(`reference/${kind}`, given);
	const find = (dataset, row) => html`<a href=${link(dataset, {q: [...(row.abbv?.length > 1 ? row.abbv : row.name)].slice(0, 100).join('')})}>Search<span class="hidden"> ${dataset} named like ${row.name}</span></a>`;
	const type = row => html`<a href=${link('reference/tags', {...given, type: row.type})}>${row.type}</a>`;
	const shown = {tags: [columns[0], ['Type', type], ...columns.slice(1)],
		organizations: [...columns, ['By name', row => find(given.dataset, row)]]}[kind] ?? columns;
	return html`<${Title}>${title}<//>
		<${Choice} label="Reference lists" current=${title} of=${Object.entries(REFERENCE).map(([path, [text]]) => [link(`reference/${path}`), text])} />
		${given.dataset && html`<${Choice} label="Dataset" current=${given.dataset} of=${['conferences', 'journals'].map(dataset => [link(`reference/${kind}`, {...params, dataset}), dataset])} />`}
		${given.type && html`<p>Only of the type <strong>${given.type}</strong>. <a href=${link('reference/tags', {dataset: given.dataset})}>All types</a></p>`}
		<${Answer} of=${answer}>${({data}) => html`<h2 class="results"><span role="status">${count(data.length, 'entry', 'entries')}</span></h2>
			${data.length > 0 && html`<${Table} label=${title} columns=${shown} rows=${data} />`}`}<//>`;
}

function Export({dataset, format, follow}) {
	const {key, onAnswer} = useSession();
	const answer = useAsk(`exports/${dataset}`, {format}, 'HEAD');
	const [state, setState] = useState('');
	const file = dataset + (format === 'csv' ? '.csv' : '.jsonl.gz');
	const download = async () => {
		setState('Loading …');
		try {
			const response = await fetch(target(`exports/${dataset}`, {format}), {headers: {Authorization: `Bearer ${key}`}});
			onAnswer(response);
			if (!response.ok) return setState((await response.json()).detail);
			const named = /filename="([^"]+)"/.exec(response.headers.get('content-disposition'))?.[1] ?? file;
			const blob = await response.blob();
			const anchor = Object.assign(document.createElement('a'), {href: URL.createObjectURL(blob), download: named});
			anchor.click();
			setTimeout(() => URL.revokeObjectURL(anchor.href), 60000);
			setState(`${named}: ${count(blob.size, 'byte')}`);
		} catch {
			setState('The file did not come through. Try again.');
		}
	};
	const token = answer?.headers?.get('x-sync-token');
	return html`<section class="export"><h2>${dataset}, ${format === 'csv' ? 'CSV' : 'JSON Lines'}</h2>
		<${Answer} of=${answer && {...answer, method: 'GET'}} options=${format === 'csv' ? `--compressed -o ${file} ` : `-D headers.txt -o ${file} `}>${() => html`
			${facts([fact('Records', (+answer.headers.get('x-record-count')).toLocaleString('en')),
						fact('Sync token', html`<code class="token">${token}</code>`)])}
			<p class="row"><button type="button" onClick=${download}>Download</button>
				<button type="button" class="quiet" onClick=${() => follow(dataset, token)}>Follow the feed from here</button>
				<span role="status">${state}</span></p>`}<//></section>`;
}

export const Exports = ({follow}) => html`<${Title}>Exports<//>
	<p class="lead">All records of the license in one file, and the sync token with which the change feed goes on from it.</p>
	${['conferences', 'journals'].map(dataset => ['jsonl', 'csv'].map(format => html`<${Export} key=${dataset + format} dataset=${dataset} format=${format} follow=${follow} />`))}`;
