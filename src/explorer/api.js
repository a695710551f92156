// Requests as any caller makes them, and the curl lines that say the same.
import {createContext, useContext, useEffect, useState} from './preact.js';

/** What views share: the key, what was seen with it, and how to change them. */
export const Session = createContext(null);
export const useSession = () => useContext(Session);

const root = new URL('.', location.href.split('#')[0]).href;

/** A text percent-encoded for a URL, the marks too that encodeURIComponent leaves. */
const encode = text => encodeURIComponent(text).replace(/[!'()*]/g, mark => '%' + mark.charCodeAt().toString(16).toUpperCase());

/** A query as text, without empty values. */
export const query = params => Object.entries(params ?? {}).filter(([, value]) => value !== '' && value != null)
	.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');

/** The absolute URL of a path under /v1. */
export const target = (path, params) => root + 'v1/' + path.split('/').map(encode).join('/') + (query(params) && '?' + query(params));

/** Asks the API: {url, method, path, status, headers, data} or {..., problem}. It never throws. */
export async function ask(key, path, params, method = 'GET') {
	const url = target(path, params), asked = {url, method, path};
	try {
		const response = await fetch(url, {method, headers: key ? {Authorization: `Bearer ${key}`} : {}});
		const {status, ok, headers} = response;
		// A refused HEAD says why to a GET.
		if (!ok && method === 'HEAD') return {...await ask(key, path, params), method};
		const data = method === 'HEAD' ? null : await response.json();
		return {...asked, status, headers, ...(ok ? {data} : {problem: data})};
	} catch {
		const detail = 'The server gave no answer that can be read. Check that it runs, and try again.';
		return {...asked, problem: {title: 'No answer', detail}};
	}
}

/** A POSIX shell's word for a text, whatever it holds. */
const word = text => `'${text.replace(/'/g, `'\\''`)}'`;

/** The curl line that asks the same. Without a key the shell takes it from MEDFEED_KEY. */
export const curl = ({url, method}, key, options = '') =>
	`curl ${method === 'HEAD' ? '-I ' : ''}-H ${key == null ? '"Authorization: Bearer $MEDFEED_KEY"' : word(`Authorization: Bearer ${key}`)} ${options}${word(url)}`;

/** Asks once per key and request; the last answer stays, as stale, until the next is there. */
export function useAsk(path, params, method) {
	const {key, onAnswer} = useSession();
	const [state, setState] = useState(null);
	const asked = [key, method, target(path, params)].join(' ');
	useEffect(() => {
		let wanted = true;
		ask(key, path, params, method).then(answer => {
			if (!wanted) return;
			onAnswer(answer);
			setState({asked, answer});
		});
		return () => { wanted = false; };
	}, [asked]);
	return state && {...state.answer, stale: state.asked !== asked};
}

/** A record's fields, each as a list of texts, for comparing two states of it. */
function flatten(value, path = '', fields = {}) {
	if (Array.isArray(value)) fields[path] = value.map(item => path === 'tags' ? `${item.type}: ${item.name}` : item.name ?? item);
	else if (value && typeof value === 'object') for (const name in value) flatten(value[name], path + (path && '.') + name, fields);
	else fields[path] = value == null ? [] : [String(value)];
	return fields;
}

/** The fields in which two states of a record differ, with what went and what came: [{field, from, to}]. */
export function differences(before, after) {
	const [old, now] = [flatten(before), flatten(after)];
	const less = (some, others) => some.filter(text => !others.includes(text)).join(', ');
	return Object.keys(now).filter(field => field !== 'updated_at')
		.map(field => ({field, from: less(old[field] ?? [], now[field]), to: less(now[field], old[field] ?? [])}))
		.filter(({from, to}) => from || to);
}

/** Follows one feed of one key, and keeps a copy of what it has heard of. */
export class Follower {
	constructor(key, dataset, copy = new Map()) {
		Object.assign(this, {key, dataset, copy, token: null, last: null});
	}

	/** Takes the token of the present moment. */
	async begin() {
		return this.read({});
	}

	/** Reads the list into the copy. */
	async load() {
		let cursor;
		do {
			const answer = await ask(this.key, this.dataset, {limit: 500, cursor});
			if (answer.problem) return answer;
			for (const record of answer.data.data) this.copy.set(record.id, record);
			cursor = answer.data.next_cursor;
		} while (cursor);
	}

	/** Everything since the token, with what was known before. */
	async poll() {
		const entries = [];
		let answer;
		do {
			answer = await this.read({since: this.token});
			if (answer.problem) return answer;
			for (const entry of answer.data.data) {
				const before = this.copy.get(entry.id);
				entries.push({entry, before, changes: before && !entry.deleted ? differences(before, entry) : []});
				entry.deleted ? this.copy.delete(entry.id) : this.copy.set(entry.id, entry);
			}
		} while (answer.data.has_more);
		return {...answer, entries};
	}

	async read(params) {
		this.last = await ask(this.key, `${this.dataset}/changes`, params);
		if (!this.last.problem) this.token = this.last.data.next_sync_token;
		return this.last;
	}
}
