// Keeps a copy current: loads the export, then follows the change feed.

/** How long the server holds an empty page back, in seconds. */
const WAIT_S = 30;
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
		this.stopping = new AbortController();
	}

	/** Stops: no request is open afterwards, and `run` returns. */
	stop() {
		this.stopping.abort();
	}

	get isStopped() {
		return this.stopping.signal.aborted;
	}

	/** Runs until it is stopped, the key is refused, or there are too many records. */
	async run() {
		const {signal} = this.stopping;
		while (!this.isStopped) {
			await this.awake(signal);
			if (this.isStopped) return;
			const goesOn = this.token ? await this.read(signal) : await this.reload(signal);
			if (!goesOn) return;
		}
	}

	/** Loads the export. Returns whether to go on. */
	async reload(signal) {
		this.state({name: 'loading', records: 0, total: null});
		let loaded;
		try {
			loaded = await this.load(signal, (records, total) => this.state({name: 'loading', records, total}));
		} catch (error) {
			loaded = {problem: {title: 'No answer', detail: String(error?.message ?? error)}};
		}
		if (this.isStopped) return false;
		if (loaded.tooMany) return this.end({name: 'too-many', count: loaded.tooMany});
		if (loaded.problem) return this.failed(loaded, signal);
		const wasLoaded = this.isLoaded;
		const changes = wasLoaded ? this.copy.replace(loaded.records) : (this.copy.load(loaded.records), []);
		[this.isLoaded, this.token] = [true, loaded.token];
		await this.onChanges(changes, {loaded: true});
		if (!this.failures) this.state({name: 'current'});
		return !this.isStopped;
	}

	/** Reads and applies a page of the feed. Returns whether to go on. */
	async read(signal) {
		// After a failure the answer comes at once, so that the state is right.
		const wait = this.failures ? {} : {wait: WAIT_S};
		const answer = await this.ask(`${this.dataset}/changes`, {since: this.token, resync: 'diff', limit: 1000, ...wait}, signal);
		if (this.isStopped) return false;
		if (!answer.problem && !Array.isArray(answer.data?.data)) return this.failed({problem: {detail: 'The answer is no page of the feed.'}}, signal);
		if (answer.problem) {
			// The token is of no use: the server was restored from a backup, or holds other data.
			if (answer.status !== 410 && answer.status !== 400) return this.failed(answer, signal);
			this.token = null;
			return this.failures++ ? this.wait(signal) : true;
		}
		const {data, has_more, next_sync_token} = answer.data;
		const changes = data.map(entry => this.copy.apply(entry)).filter(Boolean);
		this.token = next_sync_token;
		this.failures = 0;
		if (changes.length) await this.onChanges(changes, {loaded: false});
		if (!has_more) {
			this.state({name: 'current'});
			await this.pause(REST_MS, signal);
		}
		return !this.isStopped;
	}

	/** A failure that passes is waited out; any other ends it. */
	async failed(answer, signal) {
		const {status, headers, problem} = answer;
		if (status && status < 500 && status !== 408 && status !== 429) return this.end({name: 'refused', status, problem});
		const after = Number(headers?.get('retry-after') ?? NaN);
		this.failures++;
		return this.wait(signal, after * 1000, {name: status === 429 ? 'limited' : 'offline', status, problem});
	}

	/** Pauses for the time that the server names, or for a growing time with a random part. */
	async wait(signal, after = NaN, state = null) {
		const most = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.failures - 1, 10));
		const ms = after >= 0 ? after + Math.random() * FIRST_PAUSE_MS : most / 2 + Math.random() * most / 2;
		if (state) this.state({...state, retryMs: ms});
		await this.pause(ms, signal);
		return !this.isStopped;
	}

	end(state) {
		this.state(state);
		return false;
	}

	state(state) {
		if (!this.isStopped) this.onState(state);
	}
}

const number = value => value.toLocaleString('en');

/** A state in words. */
export function describe(state) {
	switch (state.name) {
		case 'loading': return state.total ? `Loading ${number(state.records)} of ${number(state.total)} records …` : 'Loading …';
		case 'current': return 'Current';
		case 'limited': return 'The key has used up its requests for this minute. The next one follows soon.';
		case 'offline': return 'The server does not answer. The page shows the last state that it has, and tries again.';
		case 'refused': return `The server refuses the key: ${state.problem.detail}`;
		case 'too-many': return `${number(state.count)} records are too many for a copy in the browser. The page asks the server instead.`;
		default: return '';
	}
}
