// What changed since the reader opened the page.
import {html} from '../preact.js';
import {Badge, DATASETS, Fields, Title, clock, count, link} from '../parts.js';
import {useCopy} from '../session.js';
import {Standing} from './standing.js';

const SHOWN = 200;
const WORDS = {added: 'It came into the license.', removed: 'It was removed or left the license.'};

/** The changed records, newest first, old beside new. */
export function Changes({dataset}) {
	const kept = useCopy(dataset);
	const entries = kept.log.list();
	return html`<p class="back"><a href=${link(dataset)}>All ${dataset}</a></p><${Title}>Changes since you opened this<//>
		<${Standing} dataset=${dataset} kept=${kept} isLinked=${false} />
		${entries.length ? html`<ul class="log">${entries.slice(0, SHOWN).map(({id, kind, before, after, fields, at}) => html`<li class="entry" key=${id}>
			<p><${Badge} kind=${kind} /> ${after ? html`<a href=${link(`${dataset}/${id}`)}>${after.name} ${after.year}</a>` : `${before.name} ${before.year ?? ''}`}
				<time class="soft"> ${clock(at)}</time></p>
			${kind === 'changed' ? html`<${Fields} of=${fields} />` : html`<p class="soft">${WORDS[kind]}</p>`}</li>`)}</ul>
			${entries.length > SHOWN && html`<p class="soft">The newest ${SHOWN} of ${count(entries.length, 'change')} are shown.</p>`}`
		: html`<p class="empty">No ${DATASETS[dataset][1]} has changed yet. Changes appear here by themselves.</p>`}`;
}
