// Whether the page's copy is current, and what changed in it.
import {html} from '../preact.js';
import {describe} from '../model/follower.js';
import {count, link} from '../parts.js';

/** The state of the copy in a line, with a link to the changes. */
export function Standing({dataset, kept: {state, log}, isLinked = true}) {
	return html`<p class="standing"><span class="dot ${state.name}" aria-hidden="true"></span>
		<span role="status">${describe(state)}.</span>
		${isLinked && log.size > 0 && html` <a href=${link(`changes/${dataset}`)}>${count(log.size, 'change')} since you opened this</a>`}</p>`;
}
