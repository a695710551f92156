// The export files.
import {html, useState} from '../preact.js';
import {requester, useAsk} from '../api.js';
import {Answer, Title, count, save} from '../parts.js';
import {useSession} from '../session.js';
import {Developers} from './developers.js';
import {fact, facts} from './record.js';

function Export({dataset, format, follow}) {
	const {key, onAnswer} = useSession();
	const answer = useAsk(`exports/${dataset}`, {format}, 'HEAD');
	const [state, setState] = useState('');
	const file = dataset + (format === 'csv' ? '.csv' : '.jsonl.gz');
	const download = async () => {
		setState('Loading …');
		try {
			const response = await requester(key)(`exports/${dataset}`, {format});
			onAnswer(response);
			if (!response.ok) return setState((await response.json()).detail);
			const named = /filename="([^"]+)"/.exec(response.headers.get('content-disposition'))?.[1] ?? file;
			const blob = await response.blob();
			save(named, blob);
			setState(`${named}: ${count(blob.size, 'byte')}`);
		} catch {
			setState('The file did not arrive. Try again.');
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
	<${Developers} current="Exports" />
	<p class="lead">All records of the license in one file, with the sync token from which the change feed continues.</p>
	${['conferences', 'journals'].map(dataset => ['jsonl', 'csv'].map(format => html`<${Export} key=${dataset + format} dataset=${dataset} format=${format} follow=${follow} />`))}`;
