// What a developer needs: the same requests with curl, the feed, the exports.
import {html} from '../preact.js';
import {target} from '../api.js';
import {Choice, Curl, link} from '../parts.js';

const PAGES = [['exports', 'Exports'], ['feed/conferences', 'Conference feed'], ['feed/journals', 'Journal feed']];

/** The links between the developers' pages. */
export const Developers = ({current}) => html`<${Choice} label="For developers" current=${current} of=${PAGES.map(([path, text]) => [link(path), text])} />`;

/** The fold below a list: the nearest request of the API, the way to the feed, and the copy's sync token. */
export const ForDevelopers = ({dataset, params, token}) => html`<details class="developers"><summary>For developers</summary>
	<p>This page keeps a copy of the export and follows the change feed. The API answers the same question as far as its filters go:</p>
	<${Curl} of=${{url: target(dataset, params), method: 'GET'}} />
	${token && html`<p>This copy's sync token: <code class="token">${token}</code></p>`}
	<p><a href=${link(`feed/${dataset}`)}>Change feed</a>, <a href=${link('exports')}>exports</a>, <a href="docs">documentation</a>, <a href="openapi.json">OpenAPI</a></p></details>`;
