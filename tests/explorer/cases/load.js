const records = Array.from({length: 500}, (_, at) => ({id: at + 1, name: `Congreß ${at}`, organizations: [{id: at % 3, name: 'Society'}], tags: []}));
const linesOf = records => records.map(record => JSON.stringify(record) + '\n').join('');

/** The response of an export that arrives in pieces of some bytes. */
async function response({of = records, text = linesOf(of), piece = 1000, count = of.length, gzip = true, cut = 0} = {}) {
	let bytes = new TextEncoder().encode(text);
	if (gzip) bytes = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer());
	bytes = bytes.slice(0, bytes.length - cut);
	const body = new ReadableStream({
		start(controller) {
			for (let at = 0; at < bytes.length; at += piece) controller.enqueue(bytes.slice(at, at + piece));
			controller.close();
		},
	});
	return new Response(body, {headers: {'Content-Type': gzip ? 'application/gzip' : 'application/jsonl', 'X-Record-Count': count, 'X-Sync-Token': 'token'}});
}

export const cases = [
	['an export in pieces of any size', async ({load: {readExport}}, is) => {
		for (const options of [{}, {piece: 1, of: records.slice(0, 60)}, {piece: 1e6}, {gzip: false, piece: 7}]) {
			const seen = [];
			const loaded = await readExport(await response(options), {onProgress: (count, total) => seen.push(count, total)});
			is(loaded.token, 'token');
			const {of = records, piece} = options;
			is(loaded.records, of, `pieces of ${piece}`);
			is(seen.slice(-2), [of.length, of.length]);
			is(loaded.records[0].organizations[0] === loaded.records[3].organizations[0], true, 'equal links are shared');
		}
		is((await readExport(await response({of: []}))).records, [], 'an empty export');
	}],
	['too many records are not read', async ({load: {readExport}}, is) => {
		is(await readExport(await response(), {max: 499}), {tooMany: 500});
		is((await readExport(await response(), {max: 500})).records.length, 500);
	}],
	['an export that breaks off is an error in words', async ({load: {Failure, readExport}}, is) => {
		for (const options of [{cut: 20}, {count: 501}, {count: 499}, {gzip: false, cut: 10}, {gzip: false, text: linesOf(records) + '{"id":'}]) {
			const told = await readExport(await response(options)).then(() => 'read', error => error instanceof Failure && error.message);
			is(/^The export broke off: \d+ of \d+ records arrived\.$/.test(told), true, `${JSON.stringify(options)}: ${told}`);
		}
	}],

	['the token comes with the records, and a count need not', async ({load: {readExport}}, is) => {
		const text = '{"id":1}\n{"id":2}\n';
		const plain = headers => new Response(text, {headers: {'Content-Type': 'application/jsonl', ...headers}});
		const loaded = await readExport(plain({'X-Sync-Token': 't'}));
		is([loaded.token, loaded.records.map(({id}) => id)], ['t', [1, 2]]);
		is(await readExport(plain({}), {max: 1}), {tooMany: 2}, 'too many without a count');
		is(await readExport(plain({'X-Record-Count': '2'}), {max: 2}).then(({records}) => records.length), 2, 'exactly the most');
	}],
	['links of one id and kind are shared only where they are equal', async ({load: {readExport}}, is) => {
		const link = (id, name) => ({id, name});
		const given = [
			{id: 1, organizations: [link(1, 'A'), link(2, 'B')], tags: [link(1, 'A')]}, {id: 2, organizations: [link(1, 'A')], tags: [link(1, 'A')]},
			{id: 3, organizations: [link(1, 'A2')], tags: [link(1, 'C')]}, {id: 4, organizations: [link(1, 'A2'), link(2, 'B')], tags: [link(1, 'A')]},
		];
		const {records} = await readExport(await response({of: given}));
		is(records, given);
		is([records[0].organizations[0] === records[1].organizations[0], records[2].organizations[0] === records[3].organizations[0], records[0].tags[0] === records[0].organizations[0]], [true, true, false]);
	}],
];
