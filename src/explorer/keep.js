// Keeps the key, the copies, small values and the page's own files on this computer, if the reader says so.
import {root} from './api.js';
import {sleep} from './model/follower.js';
import {Chunks, FORMAT, fromRows} from './model/kept.js';
import {DATASETS} from './model/lists.js';

/** The name of the first database, of the channel between tabs, and the beginning of the worker's caches: one for each address. */
const NAME = `medfeed ${new URL(root).pathname}`;
/** Each key has a database of its own, with its copies, lists and small values. */
const NAMES = Array.from({length: 20}, (_, at) => at ? `${NAME} ${at + 1}` : NAME);
const STORE = 'rows';
/** Changes of this time are written together. */
const GATHER_MS = 500;
/** While nothing changes, the age of a copy is written this often. */
const AGE_MS = 60000;
/** The longest time for the database to open, and to be removed. */
const OPEN_MS = 5000;
/** A tab that has written nothing for this time is hidden or closed. */
const LEASE_MS = 180000;

/** Whether the page may keep something: it came over HTTPS or from this machine, so nobody in between has put a script in it. */
export function canKeep({isSecureContext, indexedDB, location: {protocol, hostname}} = globalThis) {
	return Boolean(isSecureContext && indexedDB) && (protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname));
}

const done = request => new Promise((resolve, reject) => {
	request.onsuccess = () => resolve(request.result);
	request.onerror = () => reject(request.error);
});
const range = (...key) => IDBKeyRange.bound(key, [...key, []]);

/** Opens a database; without `create` it is undefined if there is none. */
function connect(name, create) {
	const request = indexedDB.open(name, 1);
	request.onupgradeneeded = () => create ? request.result.createObjectStore(STORE) : request.transaction.abort();
	return done(request).catch(error => {
		if (error.name !== 'AbortError') throw error;
	});
}

/** The names of the databases that are here. Firefox before 126 has no list of them. */
async function namesHere() {
	const all = await indexedDB.databases?.();
	return all ? NAMES.filter(name => all.some(one => one.name === name)) : NAMES;
}

/** Asks for the response that clears the browser's own files too: deleted rows stay in them for a while. Data of other services of the host is left alone. */
async function wipe() {
	const others = (await indexedDB.databases?.() ?? []).filter(({name}) => !NAMES.includes(name)), caches = await globalThis.caches?.keys() ?? [];
	if (others.length || caches.some(name => !name.startsWith(`${NAME} `))) return;
	await fetch(`${root}forget`, {method: 'POST', redirect: 'error'});
}

/** Clears the browser's files, unless this computer keeps a key. */
export async function wipeUnlessKept() {
	if (canKeep() && !(await indexedDB.databases?.() ?? [{}]).length) await Promise.race([wipe(), sleep(OPEN_MS)]).catch(() => {});
}

/** Removes all databases, the worker and its files. A tab that does not close its connection at once delays this, and has empty rows. */
async function removeAll() {
	for (const remove of [removeDatabases, removeFiles, wipe]) await Promise.race([remove(), sleep(OPEN_MS)]).catch(() => {});
}

const removeDatabases = async () => Promise.all((await namesHere()).map(name => done(indexedDB.deleteDatabase(name))));

/** Removes the database of one key. After the last one, everything else goes too. */
export async function removeKept(name) {
	await Promise.race([done(indexedDB.deleteDatabase(name)), sleep(OPEN_MS)]).catch(() => {});
	if (!(await keptKeys()).length) await removeAll();
}

/** Forgets all keys with their lists, here and in other tabs. */
export async function forgetAll() {
	for (const keep of await openAll()) await keep?.clear();
	await removeAll();
}

async function removeFiles() {
	const names = await globalThis.caches?.keys() ?? [];
	await Promise.all(names.filter(name => name.startsWith(`${NAME} `)).map(name => caches.delete(name)));
	// A busy Chromium may end this only when the page is opened again. The worker has no files then.
	const workers = await navigator.serviceWorker?.getRegistrations() ?? [];
	await Promise.all(workers.filter(({scope}) => scope === root).map(worker => worker.unregister()));
}

let channel;
const tabs = () => channel ??= new BroadcastChannel(NAME);

/**
 * Calls a function with what other tabs do: {forgotten: key, isEnded}, {replaced: key, key: the new one, isSame}, or {of: key, name, value} for
 * a small value that was put. Returns a function that ends this.
 */
export function onOtherTabs(listener) {
	if (!canKeep()) return () => {};
	tabs().onmessage = ({data}) => listener(data);
	return () => { tabs().onmessage = null; };
}

/** Opens what is kept in a database. Undefined if there is nothing, null if it cannot be read. What has an unexpected form is removed. */
async function open(name) {
	let keep, isUnusable = true;
	try {
		// A browser may hold a database back, such as while other tabs close it. The page opens without it.
		const opening = connect(name, false), db = await Promise.race([opening, sleep(OPEN_MS).then(() => 'late')]);
		if (db === 'late') {
			opening.then(db => db?.close()).catch(() => {});
			return null;
		}
		if (!db) return;
		keep = new Keep(name, db);
		await keep.transact('readonly', store => keep.load(store));
		// The lists of a key that ended wait for the next one.
		if (keep.key || keep.get('lists')) return keep;
	} catch (error) {
		// A newer page's database, or one without rows. Other errors may pass: the browser may be busy, or the disk full.
		isUnusable = ['VersionError', 'NotFoundError'].includes(error.name);
	}
	keep?.close();
	if (isUnusable) await Promise.race([done(indexedDB.deleteDatabase(name)), sleep(OPEN_MS)]).catch(() => {});
	return isUnusable ? undefined : null;
}

async function openAll() {
	return canKeep() ? Promise.all((await namesHere()).map(open)) : [];
}

/** The keys that this computer keeps, and those that ended while their lists wait. */
export async function keptKeys() {
	const all = (await openAll()).filter(Boolean);
	for (const keep of all) keep.close();
	return all;
}

/** Opens a kept key: this one, else that of a name, else the one that was used last. Null if there is none. */
export async function openKeep(key, name) {
	const opened = await openAll(), all = opened.filter(Boolean), latest = [...all].sort((one, other) => (other.get('used') ?? 0) - (one.get('used') ?? 0))[0];
	// The worker may have been installed after the reader said *forget*.
	if (opened.every(one => one === undefined)) removeFiles().catch(() => {});
	const chosen = key ? all.find(keep => keep.key === key) : all.find(keep => keep.name === name) ?? latest;
	for (const keep of all) if (keep !== chosen) keep.close();
	chosen?.use();
	return chosen ?? null;
}

/**
 * Keeps a key on this computer. `into` is the name of a kept key whose place it takes, with its lists. `isSame`: the copies stay too, as
 * both keys are of one license. Null if this browser keeps nothing.
 */
export async function createKeep(key, into, isSame) {
	if (!canKeep()) return null;
	try {
		for (const name of into ? [into] : NAMES) {
			const keep = new Keep(name, await connect(name, true));
			if (await keep.begin(key, into, isSame)) return keep;
			keep.close();
		}
	} catch {}
	return null;
}

/** A kept key, with its copies and small values. */
class Keep {
	constructor(name, db) {
		Object.assign(this, {name, key: '', values: {}, isGone: false, isClosed: false, onLost: () => {}});
		this.attach(db);
	}

	attach(db) {
		this.db = db;
		// Another tab removes the database.
		db.onversionchange = () => {
			this.isGone = true;
			this.close();
		};
	}

	/** Reads the key, its small values, and the tokens by which a key of the same license is known. */
	async load(store) {
		const [key, keys, values, ...heads] = await Promise.all([done(store.get(['key'])), done(store.getAllKeys(range('value'))), done(store.getAll(range('value'))), ...DATASETS.map(dataset => done(store.get([dataset, 'head'])))]);
		this.key = typeof key === 'string' ? key : '';
		this.values = Object.fromEntries(keys.map(([, name], at) => [name, values[at]]));
		this.tokens = this.get('tokens') ?? Object.fromEntries(DATASETS.map((dataset, at) => [dataset, heads[at]?.token]).filter(([, token]) => token));
	}

	/** Puts a key here, unless something else is kept here. `takes`: it takes the place of that. */
	async begin(key, takes, isSame) {
		let before;
		const isBegun = await this.transact('readwrite', async store => {
			await this.load(store);
			before = this.key;
			if (before === key) return true;
			if (!takes && (before || this.get('lists'))) return false;
			if (!isSame) for (const dataset of DATASETS) store.delete(range(dataset));
			store.delete(['value', 'tokens']);
			await done(store.put(this.key = key, ['key']));
			return true;
		});
		if (isBegun && before && before !== key) tabs().postMessage({replaced: before, key, isSame});
		if (isBegun) this.use();
		return isBegun;
	}

	/** Uses the key in this tab. */
	use() {
		if (!this.key) return;
		this.put('used', Date.now());
		navigator.serviceWorker?.register(`${root}worker.js`).then(({active}) => active?.postMessage('fill')).catch(() => {});
	}

	/**
	 * Runs a function with the rows, in one transaction: either all of its changes are kept or none. A connection that the browser has
	 * closed, as it may in the background, is opened again once.
	 */
	async transact(mode, use) {
		const {db} = this;
		try {
			return await this.attempt(mode, use);
		} catch (error) {
			if (this.isClosed || !['InvalidStateError', 'AbortError', 'UnknownError'].includes(error?.name)) throw error;
			// Another write may have opened it again.
			const again = this.db === db ? await connect(this.name, false) : null;
			if (again) this.attach(again);
			if (this.db === db) throw error;
			return this.attempt(mode, use);
		}
	}

	async attempt(mode, use) {
		const transaction = this.db.transaction(STORE, mode), store = transaction.objectStore(STORE);
		const end = new Promise((resolve, reject) => {
			transaction.oncomplete = resolve;
			transaction.onabort = () => reject(transaction.error);
		});
		try {
			const result = await use(store);
			await end;
			return result;
		} catch (error) {
			end.catch(() => {});
			try {
				transaction.abort();
			} catch {}
			throw transaction.error ?? error;
		}
	}

	/** Runs a function with the rows if they are still those of this key: what was forgotten is not written again. */
	own(mode, use) {
		return this.transact(mode, async store => await done(store.get(['key'])) === this.key ? use(store) : null);
	}

	/** The copy of a dataset, as `fromRows` returns it; null if there is none. Damaged rows are removed. */
	async read(dataset) {
		try {
			const rows = await this.own('readonly', store => Promise.all([done(store.get([dataset, 'head'])), done(store.getAll(range(dataset, 'records'))), done(store.getAll(range(dataset, 'notes')))]));
			const copy = rows?.[0] ? fromRows(...rows) : null;
			if (rows?.[0] && !copy) await this.remove(dataset);
			return copy;
		} catch {
			return null;
		}
	}

	/** Removes the copy of a dataset. */
	remove(dataset) {
		return this.own('readwrite', store => done(store.delete(range(dataset)))).catch(() => {});
	}

	/** A small value of this name, as it was put last; undefined if there is none. */
	get(name) {
		return this.values[name];
	}

	/** Keeps a small value, such as the list of starred records. It goes with the key. */
	put(name, value) {
		this.values[name] = value;
		tabs().postMessage({of: this.key, name, value});
		return this.own('readwrite', store => done(store.put(value, ['value', name]))).catch(() => this.isClosed || this.onLost());
	}

	/** Takes another key of the same license: its copies and lists stay. */
	async replaceKey(key) {
		await this.own('readwrite', store => done(store.put(key, ['key'])));
		tabs().postMessage({replaced: this.key, key, isSame: true});
		this.key = key;
	}

	/** Removes a key that ended, with its copies, here and in other tabs. The lists stay, with the tokens by which a key of the same license is known. */
	async end(lists, tokens) {
		tabs().postMessage({forgotten: this.key, isEnded: true});
		await this.own('readwrite', async store => {
			store.clear();
			await Promise.all(Object.entries({...this.values, lists, tokens}).map(([name, value]) => done(store.put(value, ['value', name]))));
		}).catch(() => {});
		this.close();
		if (!(await keptKeys()).some(({key}) => key)) await removeFiles().catch(() => {});
	}

	/** Removes all rows, here and in other tabs. */
	async clear() {
		tabs().postMessage({forgotten: this.key});
		await this.transact('readwrite', store => done(store.clear())).catch(() => {});
		this.close();
	}

	/** Removes the key with its copies and lists, and nothing of other keys. A browser may take its time after the rows are gone. */
	async removeKey() {
		await this.clear();
		await removeKept(this.name);
	}

	/** Keeps nothing more, without removing anything. */
	close() {
		this.isClosed = true;
		this.db.close();
	}
}

/**
 * Writes the copy of a dataset shortly after it changed. `kept` is {dataset, copy, log, follower, asOf}; `stored` is the copy that was
 * read.
 *
 * No row is older than the token that is written with it. So a copy that is read later becomes right: the feed delivers again what a
 * newer row has already. Of several tabs one writes. Another one finds a revision that it did not read or write, and leaves the rows
 * alone, or writes all of them if the first one has written nothing for a while.
 */
export class Saver {
	constructor(keep, kept, stored) {
		Object.assign(this, {keep, kept, chunks: new Chunks(stored?.records), revision: stored?.revision, savedAt: stored?.at ?? 0});
	}

	/** Records have changed. They are written once the copy is current. `loaded`: the export was loaded anew, with another token. */
	change(changes, loaded) {
		this.chunks.change(changes.map(({id}) => id));
		if (loaded) this.savedAt = 0;
	}

	/** The copy is current. */
	current() {
		if (this.timer || this.kept.isFull || !(this.chunks.changed.size || this.revision === undefined || Date.now() - this.savedAt > AGE_MS)) return;
		this.timer = setTimeout(() => {
			this.timer = null;
			this.write();
		}, GATHER_MS);
	}

	/** Removes the copy, which the license no longer has. */
	remove() {
		clearTimeout(this.timer);
		[this.timer, this.revision] = [null, undefined];
		return this.keep.remove(this.kept.dataset);
	}

	async write() {
		if (this.isWriting) return;
		this.isWriting = true;
		try {
			await this.keep.own('readwrite', store => this.writeRows(store));
		} catch (error) {
			// Another tab that forgets the key closes the database. Otherwise there is no room.
			if (!this.kept.follower.isStopped && !this.keep.isClosed) {
				this.kept.tell({isFull: true});
				this.remove();
			}
		}
		this.isWriting = false;
	}

	async writeRows(store) {
		const {kept: {dataset, copy, log, follower, asOf}, chunks} = this, time = Date.now();
		const head = await done(store.get([dataset, 'head'])), {token} = follower, isOther = head?.revision !== this.revision;
		// The export is being loaded anew, or another tab writes.
		if (!token || head && isOther && Math.abs(time - head.at) < LEASE_MS) return;
		const isAll = !head || isOther;
		if (isAll) {
			store.delete(range(dataset));
			chunks.sizes.clear();
			chunks.change(copy.records.keys());
		}
		// From here on rows may get newer than the token. A chunk that changes meanwhile is written again.
		for (const chunk of chunks.changed) {
			const text = chunks.write(chunk, copy.records), key = [dataset, 'records', chunk];
			await done(text ? store.put(text, key) : store.delete(key));
		}
		const {isCut, notes} = log.take(isAll);
		if (isCut) store.delete(range(dataset, 'notes'));
		if (notes.length) store.put(JSON.stringify(notes), [dataset, 'notes', time]);
		const revision = crypto.randomUUID();
		await done(store.put({format: FORMAT, token, at: asOf, visit: log.visit, count: chunks.count, revision}, [dataset, 'head']));
		[this.revision, this.savedAt] = [revision, time];
	}
}
