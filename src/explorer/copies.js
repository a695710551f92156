// The copies that the page keeps for the present key: records, index, follower and changes of each dataset.
import {ask, requester} from './api.js';
import {Saver} from './keep.js';
import {Copy} from './model/copy.js';
import {ChangeLog} from './model/changes.js';
import {setRegions} from './model/facets.js';
import {Follower, isUnlicensed, sleep} from './model/follower.js';
import {DATASETS} from './model/lists.js';
import {readExport} from './model/load.js';
import {Index} from './model/search.js';
import {REGIONS} from './regions.js';

/** Of a dataset with more records the page keeps no copy. */
export const MAX_RECORDS = 100000;
/** The records that are added to the index at once. More would delay a keystroke. */
const SLICE = 2000;
/** A copy that is older is shown only after the service has answered: the key may have ended since. */
const OLD_MS = 30 * 86400000;
/** The longest time for an answer: the follower's wait, and what a slow connection needs. */
const ASK_MS = 75000;

setRegions(REGIONS);

/** Resolves when the page is visible: a page in the background keeps no connection. */
const awake = signal => new Promise(resolve => {
	const look = () => {
		if (document.hidden && !signal.aborted) return;
		document.removeEventListener('visibilitychange', look);
		signal.removeEventListener('abort', look);
		resolve();
	};
	document.addEventListener('visibilitychange', look);
	signal.addEventListener('abort', look);
	look();
});

/**
 * The copy of one dataset. `state` is the follower's, `version` rises with each change that a view shows. `isFull`: the copy
 * could not be stored on this computer.
 */
class Kept {
	constructor(key, dataset, notify, keep) {
		Object.assign(this, {key, dataset, notify, request: requester(key), version: 0, state: {name: 'loading', records: 0, total: null}, isReady: false});
		this.copy = new Copy(dataset);
		this.index = new Index(dataset);
		this.log = new ChangeLog();
		this.follower = new Follower({dataset, copy: this.copy, awake,
			ask: (path, params, signal) => this.ask(path, params, signal),
			load: (signal, onProgress) => this.load(signal, onProgress),
			onChanges: (changes, {loaded}) => this.changed(changes, loaded),
			onState: state => this.stated(state)});
		for (const name of ['online', 'offline']) addEventListener(name, () => this.follower.hurry(), {signal: this.follower.stopping.signal});
		keep ? this.open(keep) : this.follower.run();
	}

	/** Begins with the copy that this computer keeps, if there is one. */
	async open(keep) {
		const stored = await keep.read(this.dataset);
		if (stored && Date.now() - stored.at > OLD_MS) this.old = stored;
		else if (stored) {
			this.copy.load(stored.records);
			this.log = new ChangeLog(stored);
			this.asOf = stored.at;
			await this.changed([]);
			this.follower.resume(stored.token);
			this.tell({state: {name: 'kept', asOf: this.asOf}});
		}
		this.saveTo(keep, stored);
		this.follower.run();
	}

	/** Keeps the copy on this computer from now on. `stored`: what is kept there already. */
	saveTo(keep, stored) {
		if (this.follower.isStopped) return;
		this.saver = new Saver(keep, this, stored);
		if (this.state.name === 'current') this.saver.current();
	}

	stated(state) {
		if (state.name === 'current') {
			this.asOf = Date.now();
			this.saver?.current();
		}
		// A refusal for another reason, such as the address of this computer, may end.
		if (isUnlicensed(state) || state.name === 'too-many') this.saver?.remove();
		this.tell({state: {...state, asOf: this.asOf, isAlone: globalThis.navigator?.onLine === false}});
	}

	tell(news, changes = []) {
		Object.assign(this, news);
		this.version++;
		this.notify(this, changes);
	}

	async ask(path, params, signal) {
		// A connection that broke without a word, such as that of a laptop that slept, ends after a time.
		const limit = new AbortController(), timer = setTimeout(() => limit.abort(), ASK_MS);
		signal.addEventListener('abort', () => limit.abort(), {signal: limit.signal});
		const answer = await ask(this.key, path, params, 'GET', limit.signal);
		clearTimeout(timer);
		limit.abort();
		return answer;
	}

	async load(signal, onProgress) {
		const response = await this.request(`exports/${this.dataset}`, {}, {signal});
		if (!response.ok) return {status: response.status, headers: response.headers, problem: await response.json() ?? {}};
		const loaded = await readExport(response, {max: MAX_RECORDS, onProgress});
		if (this.old && loaded.records) {
			// Now the reader may see what changed since.
			this.copy.load(this.old.records);
			this.log = new ChangeLog(this.old);
			[this.follower.isLoaded, this.old] = [true, null];
		}
		return loaded;
	}

	async changed(changes, loaded) {
		if (this.isReady) this.index.apply(changes);
		else {
			const records = this.copy.list();
			for (let at = 0; at < records.length; at += SLICE) {
				this.index.add(records.slice(at, at + SLICE));
				// A timer waits four milliseconds at least.
				await (globalThis.scheduler?.yield?.() ?? sleep(0));
			}
			this.isReady = true;
		}
		this.log.add(changes);
		this.saver?.change(changes, loaded);
		this.tell({}, changes);
	}
}

/** Whether a key belongs to the license of some tokens {dataset: token}: the server takes a token of the same license only. */
export async function isSameLicense(key, tokens) {
	for (const [dataset, since] of Object.entries(tokens ?? {})) {
		const {status} = await ask(key, `${dataset}/changes`, {since, resync: 'diff', limit: 1});
		if (status === 200 || status === 410) return status === 200;
	}
	return false;
}

/** The copies of one key. A dataset is loaded when it is first asked for. */
export class Copies {
	/** `keep`: what is kept on this computer, if the reader says so. */
	constructor(key, keep = null) {
		Object.assign(this, {key, keep});
		this.kept = new Map();
		this.listeners = new Set();
	}

	/** The copy of a dataset: {state, isReady, copy, index, log, version}. */
	of(dataset) {
		if (!this.kept.has(dataset)) this.kept.set(dataset, new Kept(this.key, dataset, (kept, changes) => this.notify(kept, changes), this.keep));
		return this.kept.get(dataset);
	}

	/** Keeps the copies on this computer from now on. */
	saveTo(keep) {
		this.keep = keep;
		for (const kept of this.kept.values()) kept.saveTo(keep);
	}

	/** Calls a listener with each copy that changed and the changes that just arrived. Returns a function that ends this. */
	subscribe(listener) {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	notify(kept, changes) {
		// A kept license is kept with all of its datasets. A dataset of the last visit may have changed, or left the license.
		if (this.keep && kept.state.name === 'current') DATASETS.forEach(dataset => this.of(dataset));
		for (const listener of this.listeners) listener(kept, changes);
	}

	/** The position of each copy in its feed, by which a key of the same license is known. */
	get tokens() {
		return Object.fromEntries([...this.kept.values()].filter(({follower}) => follower.token).map(({dataset, follower}) => [dataset, follower.token]));
	}

	/** Takes another key of the same license, and follows on from where it is. */
	replaceKey(key) {
		this.key = key;
		for (const kept of this.kept.values()) {
			Object.assign(kept, {key, request: requester(key)});
			// A request with the key before it is waiting. Its refusal would end the new one.
			kept.follower.hurry();
		}
	}

	/** Ends all requests, when the key is forgotten. */
	stop() {
		for (const kept of this.kept.values()) kept.follower.stop();
		this.listeners.clear();
	}
}
