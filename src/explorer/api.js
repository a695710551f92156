// Requests as any caller makes them, and the curl lines that say the same.
import {useEffect, useState} from './preact.js';
import {Failure} from './model/load.js';
import {hasKey, withoutKeys} from './model/question.js';
import {useSession} from './session.js';

/** The address of the page, without its view. */
export const root = new URL('.', location.href.split('#')[0]).href;

/** A text percent-encoded for a URL, the marks too that encodeURIComponent leaves. */
const encode = text => encodeURIComponent(text).replace(/[!'()*]/g, mark => '%' + mark.charCodeAt().toString(16).toUpperCase());

// A position is random text. It may hold the letters with which keys begin, but hardly at the start.
const isKey = (name, value) => name === 'since' ? /^mfk_/i.test(value) : hasKey(value);

/** A query as text, without empty values and without keys: it becomes part of an address. */
export const query = params => Object.entries(params ?? {}).filter(([, value]) => value != null)
	.map(([name, value]) => [name, isKey(name, value) ? withoutKeys(value) : value]).filter(([, value]) => value !== '')
	.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');

/** The absolute URL of a path under /v1. */
export const target = (path, params) => root + 'v1/' + path.split('/').map(encode).join('/') + (query(params) && '?' + query(params));

/** The error of a redirect. The browser does not say where it points. */
class Redirected extends Failure {
	message = 'The server redirects to another address. The page does not follow it, so that the key is sent to nobody else. Ask the operator for the address, and open the page there.';
}

/** Returns a function that requests a path with a key: (path, params, {method, signal}) → Response. It follows no redirect, and no answer stays in the browser's cache. */
export const requester = key => async (path, params, options = {}) => {
	const response = await fetch(target(path, params), {...options, redirect: 'manual', cache: 'no-store', headers: key ? {Authorization: `Bearer ${key}`} : {}});
	if (response.type === 'opaqueredirect') throw new Redirected();
	return response;
};

/** Asks the API: {url, method, path, status, headers, data} or {..., problem}. It never throws. */
export async function ask(key, path, params, method = 'GET', signal) {
	const asked = {url: target(path, params), method, path};
	try {
		const response = await requester(key)(path, params, {method, signal});
		const {status, ok, headers} = response;
		// A refused HEAD has no body. A GET gets the reason.
		if (!ok && method === 'HEAD') return {...await ask(key, path, params), method};
		const body = method === 'HEAD' ? null : await response.json();
		return {...asked, status, headers, ...(ok ? {data: body} : {problem: body ?? {}})};
	} catch (error) {
		return {...asked, problem: error instanceof Redirected ? {title: 'Redirect', detail: error.message} : {title: 'No answer'}};
	}
}

/** A POSIX shell's word for a text, whatever it holds. */
const word = text => `'${text.replace(/'/g, `'\\''`)}'`;

/** The curl line of a request. Without a key the shell takes it from MEDFEED_KEY. */
export const curl = ({url, method}, key, options = '') =>
	`curl ${method === 'HEAD' ? '-I ' : ''}-H ${key == null ? '"Authorization: Bearer $MEDFEED_KEY"' : word(`Authorization: Bearer ${key}`)} ${options}${word(url)}`;

/** Asks once per key, request and turn. The last answer stays, as stale, until the next arrives. Without a path it asks nothing. */
export function useAsk(path, params, method, turn) {
	const {key} = useSession(), [state, setState] = useState(null), asked = path && [key, method, target(path, params)].join(' ');
	useEffect(() => {
		if (!path) return;
		let wanted = true;
		ask(key, path, params, method).then(answer => {
			if (wanted) setState({asked, answer});
		});
		return () => { wanted = false; };
	}, [asked, turn]);
	return state && {...state.answer, stale: state.asked !== asked};
}
