export const cases = [
	['the digest of records', async ({prove: {digest}}, is) => {
		// printf '{"id":1}\n' | openssl dgst -sha256 -binary | base64
		is(await digest([{id: 1}]), 'sha-256=:UbxRMRNUjgYq2mKwPv6hU8riq99GsFHFUcPmKk37iM8=:');
		is(await digest([]), 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:');
		const many = Array.from({length: 2500}, (_, id) => ({id}));
		is(await digest(many) === await digest(many.slice(1)), false);
		is(await digest([{id: 1}], null), null, 'without Web Crypto');
	}],
	['numbers have no exponent, texts stay', ({prove: {jsonOf}}, is) => {
		for (const json of [
			'{"x":0.0000001}', '{"x":1234567890123456800000}', '{"x":0.00000012345}', '{"x":1000000000000000000000}', '{"x":[0.5,12,0,1.25e-7]}', '{"x":"1e-7 \\" 2e+30"}',
			'{"x":"\\\\","y":0.0000001}', '{"x":"\\u0001\\n ß\u2028"}',
		]) is(jsonOf(JSON.parse(json)), json.replace('1.25e-7', '0.000000125'), json);
	}],

	['the digest covers every record, also at the seams of its parts', async ({prove: {digest, jsonOf}}, is) => {
		for (const count of [999, 1000, 1001, 2000, 2001]) {
			const records = Array.from({length: count}, (_, id) => ({id, name: `Congreß ${id}`}));
			const bytes = new TextEncoder().encode(records.map(record => jsonOf(record) + '\n').join(''));
			const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
			is(await digest(records), `sha-256=:${btoa(String.fromCharCode(...hash))}:`, `${count}`);
		}
	}],
	['small numbers below zero have no exponent either', ({prove: {jsonOf}}, is) => {
		for (const json of ['{"x":-0.0000001}', '{"x":-0.00000025,"y":-1.5}', '{"x":-1500000000000000000000}', '{"a\\"1e-7":0.0000003}']) is(jsonOf(JSON.parse(json)), json, json);
	}],
];
