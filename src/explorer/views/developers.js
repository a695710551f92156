// For developers: the same requests with curl, the exports, the feed.
import {html, useEffect, useRef, useState} from '../preact.js';
import {requester, useAsk} from '../api.js';
import {isUnlicensed, reasonOf} from '../model/follower.js';
import {jsonOf} from '../model/json.js';
import {Answer, Badge, Datasets, Table, Title, Unlicensed, count, link, save} from '../parts.js';
import {useCopy, useSession} from '../session.js';

function Export({dataset, format, follow}) {
	const {key} = useSession(), answer = useAsk(`exports/${dataset}`, {format}, 'HEAD'), [state, setState] = useState('');
	const file = dataset + (format === 'csv' ? '.csv' : '.jsonl.gz');
	const download = async () => {
		setState('Loading …');
		try {
			const response = await requester(key)(`exports/${dataset}`, {format});
			if (!response.ok) return setState(reasonOf(await response.json()));
			const blob = await response.blob();
			save(/filename="([^"]+)"/.exec(response.headers.get('content-disposition'))?.[1] ?? file, blob);
			setState(count(blob.size, 'byte'));
		} catch {
			setState('The file did not arrive. Try again.');
		}
	};
	const token = answer?.headers?.get('x-sync-token');
	return html`<section><h2>Export, ${format === 'csv' ? 'CSV' : 'JSON Lines'}</h2>
		<${Answer} of=${answer && {...answer, method: 'GET'}} dataset=${dataset} options=${format === 'csv' ? `--compressed -o ${file} ` : `-D headers.txt -o ${file} `}>${() => html`
			<p>${count(+answer.headers.get('x-record-count'), 'record')}, sync token <code class="token">${token}</code></p>
			<p class="row"><button class="quiet" onClick=${download}>Download</button>
				<button class="quiet" onClick=${() => follow(token)}>Ask the feed from here</button> <span role="status">${state}</span></p>`}<//></section>`;
}

function Feed({dataset, since, ask}) {
	const {follower} = useCopy(dataset), [refused, setRefused] = useState(''), input = useRef();
	// The reader may type while the page is drawn again. So the token is put into the box only when it is asked for.
	useEffect(() => {
		if (since) input.current.value = since.since;
	}, [since]);
	const answer = useAsk(since && `${dataset}/changes`, since, 'GET', since);
	const send = event => {
		event.preventDefault();
		const token = input.current.value.trim();
		setRefused(/^mfk_/i.test(token) ? 'This looks like an API key, not a sync token. It was sent nowhere.' : '');
		if (!/^mfk_/i.test(token)) ask(token);
	};
	return html`<section id="feed"><h2>Change feed</h2>
		<p>Each record that changed since a token arrives once, in its present state, or as a tombstone. <a href=${link(`changes/${dataset}`)}>This page's copy follows the feed</a> and is at <code class="token">${follower.token}</code>.</p>
		<form class="row" onSubmit=${send}><label for="token">Sync token</label>
			<input id="token" ref=${input} required autocomplete="off" spellcheck="false" /><button class="quiet">Ask the feed</button> <span role="status">${refused}</span></form>
		${since && html`<${Answer} of=${answer} dataset=${dataset}>${({data, next_sync_token, has_more}) => html`
			<p role="status">${count(data.length, 'entry', 'entries')}${has_more && ', more follow'}. Next token: <code class="token">${next_sync_token}</code></p>
			<ul>${data.map(({id, name, deleted}) => html`<li><${Badge} kind=${deleted ? 'tombstone' : 'record'} />${deleted ? `Delete your copy of ${id}.` : html`<a href=${link(`${dataset}/${id}`)}>${name}</a>`}</li>`)}</ul>
			<details><summary>As JSON</summary><pre tabindex="0"><code>${jsonOf(data, 2)}</code></pre></details>
			<p><button class="quiet" onClick=${() => ask(next_sync_token)}>Ask with the next token</button></p>`}<//>`}
		${answer?.status === 410 && html`<p><strong>What to do:</strong> load the export again, replace your copy with it, and continue from its token.</p>`}</section>`;
}

const LISTS = ['therapy-areas', 'tags', 'organizations'];

/** A reference list, with the columns that its rows have. */
function List({list, dataset}) {
	const answer = useAsk(`reference/${list}`, list === 'therapy-areas' ? {} : {dataset});
	return html`<h2>${list.replace('-', ' ')}</h2><${Answer} of=${answer} dataset=${dataset}>${({data}) => data.length > 0 && html`<${Table} label=${list} rows=${data}
		columns=${Object.keys(data[0]).filter(name => !['id', 'url'].includes(name)).map(name => ({name, cell: row => row[name]}))} />`}<//>`;
}

/** The reference lists of a dataset. */
export const Reference = ({dataset}) => html`<${Title}>Reference lists<//><${Datasets} at="reference" dataset=${dataset} />
	${LISTS.map(list => (dataset === 'conferences' || list !== LISTS[0]) && html`<${List} key=${list} list=${list} dataset=${dataset} />`)}`;

/** The exports and the feed of a dataset. */
export function Developers({dataset}) {
	const {state} = useCopy(dataset);
	const [since, setSince] = useState(null);
	// Each press asks again, with the same token too.
	const ask = token => setSince({since: token});
	return html`<${Title}>For developers<//>
		<${Datasets} at="developers" dataset=${dataset} />
		<p class="lead">An export holds all records of the license. The change feed continues from its sync token. <a href=${link(`reference/${dataset}`)}>Reference lists</a> name what records link to. <a href="docs">The documentation</a> describes them.</p>
		${isUnlicensed(state) ? html`<${Unlicensed} dataset=${dataset} />` : html`${['jsonl', 'csv'].map(format => html`<${Export} key=${format} dataset=${dataset} format=${format} follow=${token => {
			ask(token);
			document.getElementById('token').focus();
		}} />`)}
		<${Feed} dataset=${dataset} since=${since} ask=${ask} />`}`;
}
