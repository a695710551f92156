// Keeps a copy current: loads the export, then follows the change feed.
import {Failure} from './load.js';

/** How long the server holds an empty page back, in seconds. */
const WAIT_S = 45;
/** The pause between two pages, unless more are waiting. */
const REST_MS = 1000;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60000;

/** Resolves after a time, or at once when the signal aborts. */
export const sleep = (ms, signal) => new Promise(resolve => {
	const done = () => {
		clearTimeout(timer);
		signal?.removeEventListener('abort', done);
		resolve();
	};
	const timer = setTimeout(done, ms);
	signal?.aborted ? done() : signal?.addEventListener('abort', done);
});

/**
 * Follows one dataset. What it needs is passed in:
 * - `ask(path, params, signal)`: a request; {status, headers, data} or {status, headers, problem}. It never throws.
 * - `load(signal, onProgress)`: the export; {token, records}, {tooMany: count} or {status, problem}. It may throw.
 * - `onChanges(changes, {loaded})`: after each change of the copy. It may be asynchronous.
 * - `onState(state)`: {name, …}, see `describe`.
 * - `pause(ms, signal)`, and `awake(signal)`, which resolves when the page is visible.
 */
export class Follower {
	constructor({ask, load, dataset, copy, token = null, onChanges = () => {}, onState = () => {}, pause = sleep, awake = () => {}}) {
		Object.assign(this, {ask, load, dataset, copy, token, onChanges, onState, pause, awake});
		this.isLoaded = Boolean(token);
		this.failures = 0;
		[this.isRefused, this.isHurried] = [false, false];
		this.stopping = new AbortController();
	}

	/** Asks at once, such as when the network has gone or returned: ends a pause, or a request that waits for news. */
	hurry() {
		this.isHurried = true;
		this.failures = Math.min(this.failures, 1);
		this.turn?.abort();
	}

	/** Continues from a token of a copy that is there already. The first answer comes at once. */
	resume(token) {
		[this.token, this.isLoaded, this.isHurried] = [token, true, true];
	}

	/** Stops: no request is open afterwards, and `run` returns. */
	stop() {
		this.stopping.abort();
	}

	get isStopped() {
		return this.stopping.signal.aborted;
	}

	/** Runs until it is stopped, the key is refused for good, or there are too many records. */
	async run() {
		const {signal} = this.stopping;
		do await this.awake(signal);
		while (!this.isStopped && await this.next(signal));
	}

	/** Loads the export, or reads a page of the feed. Returns whether to go on. */
	async next(stopping) {
		const turn = this.turn = new AbortController(), stop = () => turn.abort();
		stopping.addEventListener('abort', stop);
		const goesOn = await (this.token ? this.read(turn.signal) : this.reload(turn.signal));
		stopping.removeEventListener('abort', stop);
		return goesOn;
	}

	/** Loads the export. It ends only when the follower stops; the signal ends the pause after a failure. */
	async reload(signal) {
		const onProgress = (records, total) => this.isRefused || this.tell({name: 'loading', records, total});
		onProgress(0, null);
		const loaded = await Promise.resolve(this.load(this.stopping.signal, onProgress)).catch(error => ({problem: {detail: error instanceof Failure ? error.message : null}}));
		if (this.isStopped) return false;
		if (loaded.tooMany) return this.tell({name: 'too-many', count: loaded.tooMany});
		if (loaded.problem) return this.failed(loaded, signal);
		const changes = this.isLoaded ? this.copy.replace(loaded.records) : (this.copy.load(loaded.records), []);
		[this.isLoaded, this.token] = [true, loaded.token];
		await this.onChanges(changes, {loaded: true});
		if (!this.failures) this.tell({name: 'current'});
		return true;
	}

	/** Reads and applies a page of the feed. Returns whether to go on. */
	async read(signal) {
		// After a failure or a hurry the answer comes at once, so that the state is right.
		const wait = this.failures || this.isHurried ? {} : {wait: WAIT_S};
		this.isHurried = false;
		const answer = await this.ask(`${this.dataset}/changes`, {since: this.token, resync: 'diff', limit: 1000, ...wait}, signal);
		if (this.isStopped) return false;
		if (this.isHurried && !answer.status) return true;
		if (answer.status === 410 || answer.status === 400) {
			// The token is of no use: the server was restored from a backup, or holds other data.
			this.token = null;
			if (this.failures++) await this.rest(signal);
			return true;
		}
		const page = answer.data;
		if (!Array.isArray(page?.data)) return this.failed(answer, signal);
		const changes = page.data.map(entry => this.copy.apply(entry)).filter(Boolean);
		this.token = page.next_sync_token;
		this.failures = 0;
		if (changes.length) await this.onChanges(changes, {loaded: false});
		if (!page.has_more) {
			this.isRefused = false;
			this.tell({name: 'current'});
			await this.pause(REST_MS, signal);
		}
		return true;
	}

	/** Waits until a failure may have passed. Returns whether to go on: most refusals are final. */
	async failed({status, headers, problem}, signal) {
		const isForbidden = status === 403;
		if (status >= 400 && status < 500 && !isForbidden && status !== 408 && status !== 429) return this.tell({name: 'refused', status, problem});
		this.failures++;
		// The operator may change the license or the allowed addresses back. The state stays until the copy is current again.
		this.isRefused ||= isForbidden;
		if (isForbidden || !this.isRefused) this.tell({name: isForbidden ? 'refused' : 'offline', status, problem, isLoaded: this.isLoaded});
		await this.rest(signal, isForbidden ? MAX_PAUSE_MS / 1000 : headers?.get('retry-after'));
		return true;
	}

	/** Pauses for the seconds that the server names, or for a growing time; a random part keeps clients apart. */
	rest(signal, afterS) {
		const most = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
		return this.pause(afterS > 0 ? (+afterS + Math.random()) * 1000 : most * (1 + Math.random()) / 2, signal);
	}

	/** Tells a state, and returns false: most states that are told by `return` are final. */
	tell(state) {
		if (!this.isStopped) this.onState(state);
		return false;
	}
}

const number = value => value?.toLocaleString('en');

/** Whether views answer from the copy in a state. A key that is no longer accepted leads to the form. */
export const usesCopy = ({name, status}) => name !== 'too-many' && (name !== 'refused' || status === 401);

/** Whether a state or an answer says that the license does not have a dataset. */
export const isUnlicensed = ({problem}) => /\/dataset_not_licensed$/.test(problem?.type);

/** Why a request failed, as the API words it. Others, such as a gateway, may answer without a reason. */
export const reasonOf = problem => String(problem?.detail ?? 'The server gave no answer that can be read. Check that it runs, and try again.');

const moment = time => new Date(time).toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'short'});

/** A state in words. `isAlone`: the browser says that there is no network. `asOf`: when the copy was current last. */
export const describe = ({name, records, total, problem, isLoaded, isAlone, count, asOf}) => ({
	loading: total ? `Loading ${number(records)} of ${number(total)} records …` : 'Loading …',
	kept: `As of ${moment(asOf)}. Looking for changes …`,
	current: 'Current',
	offline: `${isAlone ? 'This computer has no network.' : problem?.detail ?? 'The server gives no answer that can be read.'} ${isLoaded ? `You see the last known records${asOf ? ` (as of ${moment(asOf)})` : ''}, and the page` : 'The page'} tries again.`,
	refused: /\/ip_not_allowed$/.test(problem?.type) ? `This key may not be used from here. Use the network that it was issued for, or ask the operator to allow this one. The page tries again every minute. The server says: ${reasonOf(problem)}` : `The server refuses the key: ${reasonOf(problem)}`,
	'too-many': `${number(count)} records are too many for this page. Ask the operator for a license of a part of them, or use the API.`,
})[name];
