// A client that asks a feed every few seconds, as the developers' page and the demo show it.
import {useEffect} from '../preact.js';
import {ask} from '../api.js';
import {differences} from '../model/changes.js';

const POLL_MS = 2000;

/** Runs a task again and again until it returns false or the view is left. */
export function useLoop(task, on, deps) {
	useEffect(() => {
		if (!on) return;
		let timer, live = true;
		const turn = async () => {
			const go = await task(() => live);
			if (live && go !== false) timer = setTimeout(turn, POLL_MS);
		};
		turn();
		return () => {
			live = false;
			clearTimeout(timer);
		};
	}, deps);
}

/** Follows one feed with one key, and keeps a copy of the records that it has received. */
export class Poller {
	constructor(key, dataset, copy = new Map()) {
		Object.assign(this, {key, dataset, copy, token: null, last: null});
	}

	/** Takes the token of the present moment. */
	async begin() {
		return this.read({});
	}

	/** Reads the list into the copy. Returns the answer that failed, if any. */
	async load() {
		let cursor;
		do {
			const answer = await ask(this.key, this.dataset, {limit: 500, cursor});
			if (answer.problem) return answer;
			for (const record of answer.data.data) this.copy.set(record.id, record);
			cursor = answer.data.next_cursor;
		} while (cursor);
	}

	/** Reads everything since the token: the last answer, with entries [{entry, before, changes}]. */
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
