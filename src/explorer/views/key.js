// The form for the key.
import {html, useRef, useState} from '../preact.js';
import {ask} from '../api.js';
import {isSameLicense} from '../copies.js';
import {areEmpty} from '../model/lists.js';
import {reasonOf} from '../model/follower.js';
import {isNarrowed, parse, titleOf} from '../model/question.js';
import {Title, Words} from '../parts.js';
import {useSession} from '../session.js';
import {allLists, clearLists} from '../shortlist.js';

/** Who can read what is kept on this computer. */
export const WHO = 'Anyone who uses this account of this computer, and on a shared computer anyone who sits down at it, can read the records and use the key.';

/** Whether an answer says that the key is right. What the license or the address of this computer may not see is a view's to show. */
export const isAccepted = ({status}) => status === 200 || status === 403;

/** Asks whether the lists of another key go with a new one. */
const SameClient = ({onKeep, onRemove}) => html`<div class="welcome"><${Title}>Is this key for the same client?<//>
	<p role="alert">Your lists were made with a key of another license: <strong><bdi>${allLists().lists.map(({name}) => name).join(', ')}</bdi></strong>. This key shows other records. The records of the other key are removed here.</p>
	<div class="row"><button onClick=${onKeep}>Yes, keep the lists</button><button class="quiet" onClick=${onRemove}>No, remove the lists</button></div></div>`;

/** Asks for a key, and takes it once the server has accepted it. Any other key stays in the field. `onDone`: it was taken, or none is wanted. */
export function KeyForm({why, onDone}) {
	const {key: present, setKey, keep, keepHere, earlier, replaceKey, removeLists} = useSession(), [asked, askFor] = useState(null);
	const [tab, here, input] = [useRef(), useRef(), useRef()];
	const [error, setError] = useState(why);
	const [busy, setBusy] = useState(false);
	const refuse = text => {
		setError(text);
		input.current.focus();
		input.current.select();
	};
	const send = async event => {
		event.preventDefault();
		const key = input.current.value.trim();
		if (/[^!-~]/.test(key)) return refuse('A key has letters, digits and signs, and no blanks. Copy it again.');
		setBusy(true);
		const answer = await ask(key, 'reference/therapy-areas');
		setBusy(false);
		if (!isAccepted(answer)) return refuse(reasonOf(answer.problem));
		const isHere = keep || here.current?.checked, isInTab = tab.current.checked;
		const take = () => {
			isHere ? keepHere(key) : setKey(key, isInTab);
			onDone();
		}, isSame = earlier && await isSameLicense(key, earlier);
		if (isSame && replaceKey) await replaceKey(key);
		else if (earlier && !isSame && !areEmpty(allLists())) return askFor({take});
		else return take();
		onDone();
	};
	const target = parse(location.hash), isNamed = target && (isNarrowed(target) || target.mode === 'deadlines');
	const drop = () => {
		clearLists();
		asked.take();
	};
	if (asked) return html`<${SameClient} onKeep=${asked.take} onRemove=${drop} />`;
	return html`<div class="welcome"><${Title}>Congresses and journals, with every deadline<//>
		<p class="lead">Find the next abstract deadlines, see how sure each date is, and take your shortlist into your calendar.</p>
		${isNamed && html`<p class="behind">Behind this link: <strong>${titleOf(target)}</strong></p>`}
		<form class="key" onSubmit=${send}>
			<input hidden readonly autocomplete="username" value=${`API key of ${location.host}`} />
			<label for="key">Your key</label>
			<div class="row"><input id="key" ref=${input} type="password" autocomplete="current-password" spellcheck="false" placeholder="mfk_…" required
				aria-invalid=${error ? 'true' : null} aria-describedby=${error ? 'key-error' : null} />
			<button disabled=${busy}>Explore</button>${present && html`<button type="button" class="quiet" onClick=${onDone}>Cancel</button>`}</div>
			<p id="key-error" class="error" role="alert">${error && html`<${Words} of=${error} />`}</p>
			<label class="check"><input type="checkbox" ref=${tab} /> Keep the key in this tab</label>
			${keepHere && html`<label class="check"><input type="checkbox" ref=${here} aria-describedby="who" /> Keep the key and the records on this computer</label>
				<p id="who" class="soft">Then the page opens at once, without a key and without a network. ${WHO}</p>`}
			<p class="soft">Otherwise the key is gone when you reload the page. It is never part of an address.</p>
		</form>
		${earlier && !present && html`<p><button class="quiet" onClick=${removeLists}>Remove my lists too</button></p>`}
		<p class="soft">No key? Ask the operator of this service, who makes one with <code>medfeed key create</code>. <a href="docs">The documentation</a> needs none.</p></div>`;
}
