export const cases = [
	['numbers have no exponent, texts stay', ({json: {jsonOf}}, is) => {
		for (const json of [
			'{"sjr":0.0000001}', '{"sjr":1234567890123456800000.0}', '{"sjr":0.00000012345}', '{"apc_usd":1000000000000000000000.0}', '{"publishing":{"apc_usd":0.0,"embargo_months":12}}',
			'{"timelines":{"accept_to_print":{"min_weeks":1.0,"max_weeks":2.5}}}', '{"impact_factor":5.0,"impact_factor_year":2024,"citescore":null,"h_index":5}', '{"sjr":12345678901234567000.0}',
			'{"id":1,"name":"1e-7 \\" 2e+30","sjr":10.0}', '{"name":"\\"sjr\\":5,","abbv":"\\\\","sjr":0.1}', '{"name":"\\u0001\\n ß"}', '{"name":"sjr","abbv":"5"}',
			'{"sjr":-0.0000001}', '{"sjr":-0.00000025,"citescore":-1.5}', '{"sjr":-1500000000000000000000.0}',
		]) is(jsonOf(JSON.parse(json)), json, json);
		is(jsonOf({name: '\u0085a\u2028\u2029\u0084\u202a', abbv: '\\u2028'}), '{"name":"\\u0085a\\u2028\\u2029\u0084\u202a","abbv":"\\\\u2028"}');
		is(jsonOf({sjr: 5, name: null}, 2), '{\n  "sjr": 5.0,\n  "name": null\n}', 'in lines');
		is(jsonOf([{sjr: 1.25e-7}, {deleted: true}]), '[{"sjr":0.000000125},{"deleted":true}]');
	}],
];
