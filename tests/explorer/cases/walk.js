// A long random walk: whatever happens at the server, the copy becomes equal to the export.

const EDITS = 400;
const SEED = 20270102;
const COUNTRIES = ['Germany', 'Japan', 'Spain', 'United States'];
const TODAY = '2027-01-01';

/** Random numbers below `most`, the same for each run (mulberry32). */
function randomizer(seed) {
	return most => {
		seed = seed + 0x6D2B79F5 | 0;
		let mixed = Math.imul(seed ^ seed >>> 15, 1 | seed);
		mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
		return ((mixed ^ mixed >>> 14) >>> 0) % most;
	};
}

/** A service with one license. Tokens hold the history, the scope and the position. */
class Service {
	constructor(random) {
		Object.assign(this, {random, records: new Map(), organizations: ['ASCO', 'ESMO', 'JSMO'], moved: new Map(), seq: 1, scope: 1, history: 1, countries: null, edits: 0, newest: 0});
		for (let at = 0; at < 60; at++) this.add();
		this.saved = this.save();
	}

	pick(list) {
		return list[this.random(list.length)];
	}

	day() {
		return this.random(5) ? `2027-0${1 + this.random(9)}-1${this.random(10)}` : null;
	}

	isVisible(record) {
		return !this.countries || this.countries.includes(record.country);
	}

	/** The record as the license sees it; null for none. */
	shown(id) {
		const record = this.records.get(id);
		if (!record || !this.isVisible(record)) return null;
		return {...record, organizations: record.organizations.map(at => ({id: at + 1, name: this.organizations[at]}))};
	}

	list() {
		return [...this.records.keys()].sort((one, other) => one - other).map(id => this.shown(id)).filter(Boolean);
	}

	/** Runs an edit of some records. Those that the license saw or sees move to the end of the feed. */
	change(ids, edit) {
		const before = ids.map(id => this.shown(id));
		edit();
		this.seq++;
		ids.forEach((id, at) => {
			const after = this.shown(id);
			if ((before[at] || after) && JSON.stringify(before[at]) !== JSON.stringify(after)) this.moved.set(id, this.seq);
		});
	}

	add() {
		const id = ++this.newest;
		this.change([id], () => this.records.set(id, {id, name: `Congress ${this.random(50)}`, country: this.pick(COUNTRIES), therapy_areas: this.random(2) ? ['Oncology'] : [],
			abstract_due_date: this.day(), abstract_due_date_status: 'confirmed', organizations: [this.random(3)], tags: [], factor: this.random(1000) / 1e8, updated_at: `${this.seq}`}));
	}

	save() {
		return {records: new Map(this.records), organizations: [...this.organizations]};
	}

	edit() {
		this.edits++;
		const all = [...this.records.keys()], id = this.pick(all), update = fields => this.records.set(id, {...this.records.get(id), ...fields, updated_at: `${this.seq}`});
		switch (this.random(12)) {
			case 0: case 1: return this.add();
			case 2: return all.length > 20 && this.change([id], () => this.records.delete(id));
			case 3: return this.change([id], () => update({country: this.pick(COUNTRIES)}));
			case 4: case 5: return this.change([id], () => update({abstract_due_date: this.day()}));
			case 6: {
				const at = this.random(3);
				return this.change(all.filter(id => this.records.get(id).organizations.includes(at)), () => { this.organizations[at] = `Society ${this.random(100)}`; });
			}
			case 7: if (!this.random(5)) {
				this.change(all, () => { this.countries = this.random(3) ? COUNTRIES.filter(() => this.random(2)) : null; });
				this.scope = this.seq;
				// A server may not know the difference between two licenses.
				if (!this.random(4)) this.history++;
				return;
			}
			case 8: if (!this.random(8)) {
				if (this.random(3)) this.saved = this.save();
				else {
					Object.assign(this, this.saved, {moved: new Map(), history: this.history + 1, seq: this.seq + 1});
					this.saved = this.save();
				}
				return;
			}
			default: return this.change([id], () => update({name: `Congress ${this.random(50)}`}));
		}
	}

	token() {
		return JSON.stringify([this.history, this.seq]);
	}

	async export() {
		const text = this.list().map(record => JSON.stringify(record) + '\n').join('');
		const body = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
		return new Response(body, {headers: {'Content-Type': 'application/gzip', 'X-Sync-Token': this.token(), 'X-Record-Count': this.list().length}});
	}

	changes(since) {
		const [history, seq] = JSON.parse(since);
		if (history !== this.history) return {status: 410, problem: {detail: 'resync_required'}};
		// A record may come twice.
		const from = this.random(10) ? seq : seq - 1;
		const moved = [...this.moved].filter(([, at]) => at > from).sort((one, other) => one[1] - other[1]);
		let size = Math.min(moved.length, 1 + this.random(9));
		// Records that moved together stay together, since a token has one position.
		while (size && size < moved.length && moved[size][1] === moved[size - 1][1]) size++;
		const rest = moved.length > size, end = rest ? moved[size - 1][1] : this.seq;
		return {status: 200, data: {has_more: rest, next_sync_token: JSON.stringify([this.history, end]),
			data: moved.slice(0, size).map(([id]) => this.shown(id) ?? {id, deleted: true, changed_at: TODAY})}};
	}
}

export const cases = [
	[`after ${EDITS} edits, changes of the license and restores the copy equals the export`, async (model, is) => {
		const {copy: {Copy}, changes: {ChangeLog}, follower: {Follower}, load: {readExport}, search: {Index}, question, select: {select}} = model;
		model.facets.setRegions({Europe: 'Germany|Spain', Asia: 'Japan', Americas: 'United States'});
		const random = randomizer(SEED), service = new Service(random), seen = {loads: 0, changes: 0, failures: 0, compared: 0};
		const copy = new Copy('conferences'), log = new ChangeLog();
		let index = new Index('conferences'), first = null;

		const compare = async () => {
			seen.compared++;
			is(copy.list(), service.list(), `after ${service.edits} edits`);
			if (seen.compared % 10) return;
			const fresh = new Index('conferences');
			fresh.add(copy.list());
			for (const given of [{words: 'congress 1'}, {facets: {region: ['Europe']}, sort: 'name'}, {within: 60, facets: {area: ['Oncology']}}, {mode: 'deadlines', sort: 'deadline', descending: true}]) {
				const asked = {...question.firstQuestion('conferences'), ...given};
				is(select(index, asked, TODAY), select(fresh, asked, TODAY), JSON.stringify(given));
			}
			// The log leaves out changes back and new times, so only the times may differ from the first state.
			const timeless = record => record && {...record, updated_at: ''};
			for (const {id, before, after} of log.since(log.opened, copy.records, true)) is([before?.isGone || timeless(before), after], [before?.isGone || timeless(first.get(id) ?? null), copy.records.get(id) ?? null], `the log's record ${id}`);
		};
		const follower = new Follower({
			dataset: 'conferences', copy, pause: async () => {},
			ask: async (path, {since}) => {
				if (!random(20)) service.edit();
				if (!random(12)) {
					seen.failures++;
					return [{problem: {detail: 'no answer'}}, {status: 503, headers: new Headers({'Retry-After': '1'}), problem: {}}, {status: 429, problem: {}}, {status: 403, problem: {}}][random(4)];
				}
				const answer = service.changes(since);
				if (answer.problem || answer.data.data.length || answer.data.has_more) return answer;
				await compare();
				if (service.edits >= EDITS) follower.stop();
				for (let left = 1 + random(6); left; left--) service.edit();
				return answer;
			},
			load: async () => {
				seen.loads++;
				if (!random(4)) throw new Error('broke off');
				const response = await service.export();
				if (!random(2)) service.edit();
				return readExport(response);
			},
			onChanges: (changes, {loaded}) => {
				seen.changes += changes.length;
				if (first) index.apply(changes);
				else {
					first = new Map(copy.records);
					index.add(copy.list());
				}
				log.add(changes);
			},
		});
		await follower.run();
		for (const [name, least] of [['loads', 3], ['changes', EDITS / 2], ['failures', 20], ['compared', 100]]) if (!(seen[name] >= least)) throw new Error(`${name}: ${seen[name]}`);
	}],
];
