// Keeps the key, the copies, small values and the page's own files on this computer, if the reader says so.
import {root} from './api.js';
import {sleep} from './model/follower.js';
import {Chunks, FORMAT, fromRows} from './model/kept.js';

/** The name of the database, of the channel between tabs, and the beginning of the worker's caches: one for each address. */
const NAME = `medfeed ${new URL(root).pathname}`;
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

/** Opens the database; without `create` it is null if there is none. */
function connect(create) {
	const request = indexedDB.open(NAME, 1);
	request.onupgradeneeded = () => create ? request.result.createObjectStore(STORE) : request.transaction.abort();
	return done(request).catch(error => {
		if (error.name !== 'AbortError') throw error;
	});
}

/** Asks for the response that clears the browser's own files too: deleted rows stay in them for a while. Data of other services of the host is left alone. */
async function wipe() {
	const others = (await indexedDB.databases?.() ?? []).filter(({name}) => name !== NAME), caches = await globalThis.caches?.keys() ?? [];
	if (others.length || caches.some(name => !name.startsWith(`${NAME} `))) return;
	await fetch(`${root}forget`, {method: 'POST', redirect: 'error'});
}

/** Clears the browser's files, unless this computer keeps a key. */
export async function wipeUnlessKept() {
	if (canKeep() && !(await indexedDB.databases?.() ?? [{}]).length) await Promise.race([wipe(), sleep(OPEN_MS)]).catch(() => {});
}

/** Removes the database, the worker and its files. A tab that does not close its connection at once delays this, and has empty rows. */
export async function removeAll() {
	for (const remove of [removeDatabase, removeFiles, wipe]) await Promise.race([remove(), sleep(OPEN_MS)]).catch(() => {});
}

const removeDatabase = async () => done(indexedDB.deleteDatabase(NAME));

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
 * Calls a function with what other tabs do: {forgotten: key, isEnded}, or {of: key, name, value} for a small value that was put. Returns a
 * function that ends this.
 */
export function onOtherTabs(listener) {
	if (!canKeep()) return () => {};
	tabs().onmessage = ({data}) => listener(data);
	return () => { tabs().onmessage = null; };
}

/** What is kept on this computer; null if there is nothing. What has an unexpected form is removed. After another failure it stays. */
export async function openKeep() {
	if (!canKeep()) return null;
	let keep, isUnusable = true;
	try {
		// A browser may hold a database back, such as while other tabs close it. The page opens without it.
		const opening = connect(false), db = await Promise.race([opening, sleep(OPEN_MS).then(() => 'late')]);
		if (db === 'late') {
			opening.then(db => db?.close()).catch(() => {});
			return null;
		}
		if (!db) {
			// The worker may have been installed after the reader said *forget*.
			removeFiles().catch(() => {});
			return null;
		}
		keep = new Keep(db);
		await keep.begin();
		// The lists of a key that ended wait for the next one.
		if (keep.key || keep.get('lists')) return keep;
	} catch ({name}) {
		// A newer page's database, or one without rows. Other errors may pass: the browser may be busy, or the disk full.
		isUnusable = ['VersionError', 'NotFoundError'].includes(name);
	}
	keep?.close();
	if (isUnusable) await removeAll();
	return null;
}

/** Keeps a key and the reader's lists on this computer, in place of another key and its copies. Null if this browser keeps nothing. */
export async function createKeep(key, lists) {
	if (!canKeep()) return null;
	try {
		const keep = new Keep(await connect(true));
		await keep.begin(key, lists);
		return keep;
	} catch {
		return null;
	}
}

/** A kept key, with its copies and small values. */
class Keep {
	constructor(db) {
		Object.assign(this, {key: '', values: {}, isGone: false, isClosed: false, onLost: () => {}});
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

	/** Reads what is kept, or keeps a key with lists: the rows of another key go in the same transaction. */
	async begin(key, lists) {
		await this.transact('readwrite', async store => {
			const found = await done(store.get(['key']));
			if (key && found !== key) {
				store.clear();
				if (lists) store.put(this.values.lists = lists, ['value', 'lists']);
				await done(store.put(key, ['key']));
			} else {
				const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll(range('value')))]);
				this.values = Object.fromEntries(keys.filter(([kind]) => kind === 'value').map(([, name], at) => [name, values[at]]));
			}
			this.key = key ?? (typeof found === 'string' ? found : '');
		});
		if (this.key) navigator.serviceWorker?.register(`${root}worker.js`).then(({active}) => active?.postMessage('fill')).catch(() => {});
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
			const again = this.db === db ? await connect(false) : null;
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
		this.key = key;
	}

	/** Removes a key that ended, with its copies, here and in other tabs. The lists stay, with the tokens by which a key of the same license is known. */
	async end(lists, tokens) {
		tabs().postMessage({forgotten: this.key, isEnded: true});
		await this.own('readwrite', async store => {
			store.clear();
			store.put(lists, ['value', 'lists']);
			await done(store.put(tokens, ['value', 'tokens']));
		}).catch(() => {});
		this.close();
		await removeFiles().catch(() => {});
	}

	/** Removes everything from this computer, here and in other tabs. */
	async forget() {
		const {key} = this;
		tabs().postMessage({forgotten: key});
		await this.transact('readwrite', store => done(store.clear())).catch(() => {});
		this.close();
		// The key and the records are gone. A browser may take its time with the rest.
		await removeAll();
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
