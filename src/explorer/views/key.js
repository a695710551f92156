// The form for the key.
import {html, useEffect, useRef, useState} from '../preact.js';
import {ask} from '../api.js';
import {keptKeys} from '../keep.js';
import {listsOf} from '../model/lists.js';
import {reasonOf} from '../model/follower.js';
import {isNarrowed, parse, titleOf} from '../model/question.js';
import {Title, Words, focusTitle} from '../parts.js';
import {useSession} from '../session.js';

/** Who can read what is kept on this computer. */
export const WHO = 'Anyone who uses this account of this computer, and on a shared computer anyone who sits down at it, can read the records and use the key.';

/** Whether an answer says that the key is right. What the license or the address of this computer may not see is a view's to show. */
export const isAccepted = ({status}) => status === 200 || status === 403;

/** A kept key as its reader knows it: by its name, its last characters, or its lists. */
export const nameOf = keep => [keep.get('title'), keep.key ? `key …${keep.key.slice(-4)}` : `lists of a key that ended: ${listsOf(keep.get('lists')).lists.map(({name}) => name).join(', ')}`].filter(Boolean).join(', ');

/** Asks whether the `lists` of this tab go with another key, or which of the kept `keys` it replaces. */
export function Question({lists, keys, onAnswer}) {
	useEffect(focusTitle, []);
	if (lists) return html`<div class="welcome"><${Title}>Is this key for the same client?<//>
		<p role="alert">Your lists were made with another key: <strong><bdi>${lists.map(({name}) => name).join(', ')}</bdi></strong>. This key may show other records. The records of the other key are removed here.</p>
		<div class="row"><button onClick=${() => onAnswer(true)}>Yes, keep the lists</button><button class="quiet" onClick=${() => onAnswer(false)}>No, remove the lists</button></div></div>`;
	return html`<div class="welcome"><${Title}>Does this key replace another one?<//>
		<p role="alert">This computer keeps other keys. If this one is for another client, its lists and records are kept apart. If it replaces a key, it takes over the lists and notes, and the records are loaded again.</p>
		<div class="row"><button onClick=${() => onAnswer()}>No, it is for another client</button>${keys.map(one => html`<button class="quiet" onClick=${() => onAnswer(one)}>It replaces <bdi>${nameOf(one)}</bdi></button>`)}<button class="quiet" onClick=${() => onAnswer(null)}>Cancel</button></div></div>`;
}

/** Asks for a key, and takes it once the server has accepted it. Any other key stays in the field. `onDone`: it was taken, or none is wanted. */
export function KeyForm({why, onDone}) {
	const {key: present, keep, keepHere, earlier, enter, change, removeLists} = useSession(), [kept, setKept] = useState([]);
	const [tab, here, input] = [useRef(), useRef(), useRef()];
	const [error, setError] = useState(why);
	const [busy, setBusy] = useState(false);
	useEffect(() => { if (!present && keepHere) keptKeys().then(setKept); }, []);
	const refuse = text => {
		setError(text);
		input.current.focus();
		input.current.select();
	};
	const send = async event => {
		event.preventDefault();
		const key = input.current.value.trim(), isInTab = tab.current.checked, isHere = here.current?.checked;
		if (/[^!-~]/.test(key)) return refuse('A key has letters, digits and signs, and no blanks. Copy it again.');
		setBusy(true);
		const answer = await ask(key, 'reference/therapy-areas');
		if (isAccepted(answer)) await enter(key, isInTab, isHere);
		setBusy(false);
		isAccepted(answer) ? onDone() : refuse(reasonOf(answer.problem));
	};
	const others = kept.filter(({name}) => name !== earlier?.name), target = parse(location.hash), isNamed = target && (isNarrowed(target) || target.mode === 'deadlines');
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
			${keepHere && html`<label class="check"><input type="checkbox" ref=${here} defaultChecked=${Boolean(keep || earlier?.name)} aria-describedby="who" /> Keep the key and the records on this computer</label>
				<p id="who" class="soft">Then the page opens at once, without a key and without a network. ${WHO}</p>`}
			<p class="soft">Otherwise the key is gone when you reload the page. It is never part of an address.</p>
		</form>
		${earlier && !present && html`<p><button class="quiet" onClick=${removeLists}>Remove my lists too</button></p>`}
		${others.length > 0 && html`<p>On this computer: ${others.map(one => html`<button class="quiet" onClick=${() => change(one.name)}><bdi>${nameOf(one)}</bdi></button> `)}</p>`}
		<p class="soft">No key? Ask the operator of this service, who makes one with <code>medfeed key create</code>. <a href="docs">The documentation</a> needs none.</p></div>`;
}
