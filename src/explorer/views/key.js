// The form for the key.
import {html, useRef, useState} from '../preact.js';
import {ask} from '../api.js';
import {reasonOf} from '../model/follower.js';
import {isNarrowed, parse, titleOf} from '../model/question.js';
import {Title, Words} from '../parts.js';
import {useSession} from '../session.js';

/** Who can read what is kept on this computer. */
export const WHO = 'Anyone who uses this account of this computer, and on a shared computer anyone who sits down at it, can read the records and use the key.';

/** Whether an answer says that the key is right. What the license or the address of this computer may not see is a view's to show. */
export const isAccepted = ({status}) => status === 200 || status === 403;

/** Asks for a key, and takes it once the server has accepted it. Any other key stays in the field. */
export function KeyForm({why}) {
	const {setKey, keepHere} = useSession();
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
		if (isAccepted(answer)) return here.current?.checked ? keepHere(key) : setKey(key, tab.current.checked);
		refuse(reasonOf(answer.problem));
	};
	const asked = parse(location.hash), isNamed = asked && (isNarrowed(asked) || asked.mode === 'deadlines');
	return html`<div class="welcome"><${Title}>Congresses and journals, with every deadline<//>
		<p class="lead">Find the next abstract deadlines, see how sure each date is, and take your shortlist into your calendar.</p>
		${isNamed && html`<p class="behind">Behind this link: <strong>${titleOf(asked)}</strong></p>`}
		<form class="key" onSubmit=${send}>
			<input hidden readonly autocomplete="username" value=${`API key of ${location.host}`} />
			<label for="key">Your key</label>
			<div class="row"><input id="key" ref=${input} type="password" autocomplete="current-password" spellcheck="false" placeholder="mfk_…" required
				aria-invalid=${error ? 'true' : null} aria-describedby=${error ? 'key-error' : null} />
			<button disabled=${busy}>Explore</button></div>
			<p id="key-error" class="error" role="alert">${error && html`<${Words} of=${error} />`}</p>
			<label class="check"><input type="checkbox" ref=${tab} /> Keep the key in this tab</label>
			${keepHere && html`<label class="check"><input type="checkbox" ref=${here} aria-describedby="who" /> Keep the key and the records on this computer</label>
				<p id="who" class="soft">Then the page opens at once, without a key and without a network. ${WHO}</p>`}
			<p class="soft">Otherwise the key is gone when you reload the page. It is never part of an address.</p>
		</form>
		<p class="soft">No key? Ask the operator of this service, who makes one with <code>medfeed key create</code>. <a href="docs">The documentation</a> needs none.</p></div>`;
}
