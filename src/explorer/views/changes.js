// The state of the copy, and what changed in it since the reader opened the page.
import {html} from '../preact.js';
import {describe, isUnlicensed} from '../model/follower.js';
import {Badge, Fields, Title, Unlicensed, clock, count, link} from '../parts.js';
import {useCopy} from '../session.js';

const SHOWN = 200;

/** The state of the copy in a line. */
export const Standing = ({kept: {state}, children}) => html`<p class="standing"><span class="dot ${state.name}" aria-hidden="true"></span>
	<span role="status">${describe(state)}</span> ${children}</p>`;

/** A change: what kind, of which record, and its fields, old beside new. */
export const Change = ({dataset, of: {id, kind, before, after, fields, at}, badge = kind}) => html`<li class="entry"><p><${Badge} kind=${badge} />
		${after ? html`<a href=${link(`${dataset}/${id}`)}><bdi>${after.name}</bdi> ${after.year}</a>` : html`<bdi>${before.name}</bdi> ${before.year ?? ''}`} ${at && html`<time>${clock(at)}</time>`}</p>
	${kind === 'changed' ? html`<${Fields} of=${fields} />` : html`<p class="soft">${after ? 'It came into the license.' : html`It was removed or left the license: <code>${`{"id":${id},"deleted":true}`}</code>`}</p>`}</li>`;

/** The changed records, newest first. */
export function Changes({dataset}) {
	const kept = useCopy(dataset), changes = kept.log.list();
	if (isUnlicensed(kept.state)) return html`<${Title}>Changes since you opened this<//><${Unlicensed} dataset=${dataset} />`;
	return html`<p class="back"><a href=${link(dataset)}>All ${dataset}</a></p><${Title}>Changes since you opened this<//><${Standing} kept=${kept} />
		${changes.length ? html`<ul>${changes.slice(0, SHOWN).map(change => html`<${Change} key=${change.id} dataset=${dataset} of=${change} />`)}</ul>`
			: html`<p class="empty">Nothing has changed yet. Changes appear here by themselves.</p>`}
		${changes.length > SHOWN && html`<p class="soft">The newest ${SHOWN} of ${count(changes.length, 'change')} are shown.</p>`}`;
}
