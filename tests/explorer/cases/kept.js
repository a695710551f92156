const record = (id, name = 'x') => ({id, name, organizations: [], tags: []});
const DAY = 86400000;

/** The rows of a copy with these records, written at once. */
function rowsOf({kept: {Chunks, FORMAT}}, records, head = {}) {
	const chunks = new Chunks(), byId = new Map(records.map(one => [one.id, one]));
	chunks.change(byId.keys());
	const texts = [...chunks.changed].map(chunk => chunks.write(chunk, byId));
	return [{format: FORMAT, token: 't', at: 1000, visit: null, revision: 'r', count: chunks.count, ...head}, texts, []];
}

export const cases = [
	['a copy comes back from its rows', (model, is) => {
		const records = [0, 1, 255, 256, 257, 100000].map(id => record(id, `ü ${id}`)), [head, texts] = rowsOf(model, records);
		is(texts.length, 3, 'a row for each chunk');
		const note = {id: 1, at: 5, on: 5, old: null};
		is(model.kept.fromRows(head, texts, [JSON.stringify([note])], 2000), {records, notes: [note], token: 't', at: 1000, revision: 'r', visit: 1000});
		is(model.kept.fromRows(...rowsOf(model, []), 2000).records, [], 'an empty dataset');
	}],
	['only changed chunks are written, and an empty one has no text', ({kept: {Chunks}}, is) => {
		const byId = new Map([1, 2, 300].map(id => [id, record(id)])), chunks = new Chunks(byId.values());
		is([chunks.count, chunks.changed.size], [3, 0]);
		byId.delete(300);
		byId.set(3, record(3));
		chunks.change([300, 3, 1]);
		is([...chunks.changed], [1, 0]);
		is(chunks.write(1, byId), '');
		is(JSON.parse(chunks.write(0, byId)).map(({id}) => id), [1, 2, 3]);
		is([chunks.count, chunks.changed.size], [3, 0]);
	}],
	['a damaged copy, or one of another version, is no copy', (model, is) => {
		const [head, texts] = rowsOf(model, [record(1), record(300)]), {fromRows} = model.kept;
		is(fromRows(head, texts, [], 2000).records.length, 2);
		for (const [title, ...rows] of [
			['no head', undefined, texts, []], ['another version', {...head, format: 0}, texts, []], ['a newer version', {...head, format: 2}, texts, []], ['no token', {...head, token: ''}, texts, []],
			['a token that is no text', {...head, token: {}}, texts, []], ['no time', {...head, at: undefined}, texts, []], ['another count', {...head, count: 3}, texts, []], ['a missing chunk', head, texts.slice(1), []],
			['a cut text', head, [texts[0], texts[1].slice(0, -1)], []], ['a text without a list', head, ['{}', texts[1]], []], ['no records', head, ['[null]', texts[1]], []], ['a record twice', head, [texts[0], texts[0]], []],
			['an id that is a text', head, ['[{"id":"1"}]', texts[1]], []], ['notes without a time', head, texts, ['[{"id":1,"old":null}]']], ['notes without a value', head, texts, ['[{"id":1,"at":1}]']], ['a cut note', head, texts, ['[']],
		]) is(fromRows(...rows, 2000), null, title);
	}],
	['a visit ends when the page was away for half an hour', (model, is) => {
		for (const [away, visit, expected] of [[29 * 60000, 7, 7], [29 * 60000, null, 1000], [31 * 60000, 7, 1000], [DAY, null, 1000]]) {
			is(model.kept.fromRows(...rowsOf(model, [], {visit}), 1000 + away).visit, expected, `${away}`);
		}
	}],
];
