const NOW = new Date('2027-01-01T12:30:45.678Z');
const record = {id: 7, name: 'Congress; "A, B" \\ C\nnext', abbv: 'CAB', year: 2027, start_date: '2027-05-30', start_date_status: 'confirmed', end_date: '2027-06-01', abstract_due_date: '2027-02-28',
	abstract_due_date_status: 'estimated', late_breaking_due_date: null, late_breaking_due_date_status: 'not_found', country: 'Spain', city: 'Madrid', venue: null, url: 'https://example.org/7',
	therapy_areas: ['Hematology', 'Oncology'], organizations: [{id: 1, name: 'ESMO'}], tags: [{id: 2, type: 'Audience', name: 'Nurses'}], formats: {oral: true, poster: false, encore: null}, updated_at: '2027-01-01T00:00:00Z'};

/** The logical lines of a calendar. */
const unfold = text => text.replace(/\r\n /g, '').split('\r\n');

export const cases = [
	['a calendar', ({calendar: {calendar, eventsOf}}, is) => {
		const text = calendar(eventsOf(record), {now: NOW, name: 'Oncology, Europe'}), lines = unfold(text);
		is(lines.slice(0, 5), ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//medfeed//explorer//EN', 'CALSCALE:GREGORIAN', 'X-WR-CALNAME:Oncology\\, Europe']);
		is(lines.slice(5, 18), ['BEGIN:VEVENT', 'UID:conferences-7-abstract_due_date@medfeed', 'DTSTAMP:20270101T123045Z', 'SEQUENCE:1798761600', 'LAST-MODIFIED:20270101T000000Z', 'DTSTART;VALUE=DATE:20270228', 'DTEND;VALUE=DATE:20270301',
			'SUMMARY:Abstracts due: Congress\\; "A\\, B" \\\\ C\\nnext (CAB) 2027 (estimated)',
			'DESCRIPTION:Date estimated: projected from earlier editions until the organizer announces it.\\nHematology\\; Oncology\\nhttps://example.org/7',
			'LOCATION:Madrid\\, Spain', 'URL:https://example.org/7', 'STATUS:TENTATIVE', 'TRANSP:TRANSPARENT']);
		is(lines.filter(line => /^(UID|DTSTART|DTEND|STATUS)/.test(line)).slice(4), ['UID:conferences-7-start_date@medfeed', 'DTSTART;VALUE=DATE:20270530', 'DTEND;VALUE=DATE:20270602', 'STATUS:CONFIRMED']);
		is(lines.slice(-2), ['END:VCALENDAR', '']);
		is(calendar([], {now: NOW}).split('\r\n').length, 7, 'no events');
		// A reminder before each event, if the reader chose one.
		const reminded = unfold(calendar(eventsOf(record), {now: NOW, days: 7}));
		is(reminded.filter(line => /VALARM|TRIGGER|ACTION/.test(line)).slice(0, 4), ['BEGIN:VALARM', 'ACTION:DISPLAY', 'TRIGGER:-P7D', 'END:VALARM']);
		is(reminded.filter(line => line === 'BEGIN:VALARM').length, 2);
	}],
	['calendar lines are at most 75 bytes, and characters stay whole', ({calendar: {calendar, eventsOf}}, is) => {
		const encoder = new TextEncoder(), decoder = new TextDecoder('utf-8', {fatal: true});
		for (const letter of ['a', 'é', '癌', '🧬']) for (let length = 1; length < 120; length++) {
			const text = calendar(eventsOf({...record, name: letter.repeat(length), abbv: null, year: null}), {now: NOW});
			for (const line of text.split('\r\n')) if (encoder.encode(line).length > 75 || decoder.decode(encoder.encode(line)) !== line) throw new Error(line);
			is(unfold(text).filter(line => line === `SUMMARY:${letter.repeat(length)}`).length, 1, `${length} ${letter}`);
			is(text.replace(/\r\n/g, '').includes('\n'), false, 'line ends');
		}
	}],
	['a calendar of many events calls no encoder', ({calendar: {calendar, eventsOf}}, is) => {
		// A call for each letter kept browsers busy for half a minute.
		const {encode} = TextEncoder.prototype;
		let calls = 0;
		TextEncoder.prototype.encode = function (text) {
			calls++;
			return encode.call(this, text);
		};
		const text = calendar(Array.from({length: 100}, (_, id) => eventsOf({...record, id})).flat(), {now: NOW});
		TextEncoder.prototype.encode = encode;
		is([text.split('BEGIN:VEVENT').length, calls], [201, 0]);
	}],
	['a hostile record stays within its properties', ({calendar: {calendar, eventsOf}}, is) => {
		const hostile = 'x\r\nEND:VEVENT\r\nBEGIN:VALARM\u0000\u2028';
		const text = calendar(eventsOf({...record, name: hostile, abbv: hostile, city: hostile, url: 'javascript:alert(1)', therapy_areas: [hostile]}), {now: NOW});
		is(text.split('\r\n').filter(line => /^(BEGIN|END):V(EVENT|ALARM)/.test(line)).length, 4);
		is(/javascript/.test(text), false);
	}],
	['CSV of records', ({csv: {csv}}, is) => {
		is(csv([record]), '\ufeffid,name,abbv,year,start_date,start_date_status,end_date,abstract_due_date,abstract_due_date_status,late_breaking_due_date,late_breaking_due_date_status,country,city,venue,url,'
			+ 'therapy_areas,organizations,tags,formats_oral,formats_poster,formats_encore,updated_at\r\n'
			+ '7,"Congress; ""A, B"" \\ C\nnext",CAB,2027,2027-05-30,confirmed,2027-06-01,2027-02-28,estimated,,not_found,Spain,Madrid,,https://example.org/7,'
			+ '"Hematology; Oncology",ESMO,Audience: Nurses,TRUE,FALSE,,2027-01-01T00:00:00Z\r\n');
		is(csv([]).length, 3, 'no records');
		is(csv([{a: 1.5, b: 'x;y', c: '1.5'}], ';'), '\ufeffa;b;c\r\n1,5;"x;y";1.5\r\n', 'for readers whose numbers have commas');
	}],
	['CSV has the numbers of the server', ({csv: {csv}}, is) => {
		const row = {impact_factor: 5, impact_factor_year: 2024, sjr: 1e21, publishing: {apc_usd: 1e-7, embargo_months: 12}, timelines: {accept_to_print: {min_weeks: 1.5, max_weeks: null}}};
		is(csv([row]).split('\r\n')[1], '5.0,2024,1000000000000000000000.0,0.0000001,12,1.5,');
		is(csv([{text: '-1', low: -1, none: null, end: 0}]), "\ufefftext,low,none,end\r\n'-1,-1,,0\r\n");
	}],
	['CSV of deadlines', ({csv: {csv}, deadlines: {deadlinesOf}}, is) => {
		is(csv(deadlinesOf(record)).split('\r\n')[1].slice(0, 33), 'abstract,2027-02-28,estimated,7,"');
	}],

	['the last day of an event, and its texts', ({calendar: {calendar, eventsOf}}, is) => {
		const plain = {id: 1, name: 'A', start_date: '2026-12-31', start_date_status: 'confirmed'};
		const lines = (fields, at = 0) => unfold(calendar([eventsOf({...plain, ...fields})[at]], {now: NOW}));
		const end = fields => lines(fields).find(line => line.startsWith('DTEND')).slice(-8);
		// The end is the day after the last day.
		for (const [fields, expected] of [
			[{}, '20270101'], [{end_date: null}, '20270101'], [{end_date: '2026-12-31'}, '20270101'], [{end_date: '2027-01-01'}, '20270102'], [{end_date: '2026-12-30'}, '20270101'],
			[{start_date: '2028-02-28', end_date: '2028-02-28'}, '20280229'], [{start_date: '2027-03-13', end_date: '2027-03-14'}, '20270315'],
		]) is(end(fields), expected, JSON.stringify(fields));
		is(end({start_date: '9999-12-29', end_date: '9999-12-30'}), '99991231');
		is(lines({start_date: '9999-12-31', end_date: '9999-12-31'}).filter(line => line.startsWith('DT')).slice(1), ['DTSTART;VALUE=DATE:99991231'], 'no day comes after the last one');
		// A deadline lasts for a day, however long the meeting is.
		is(end({end_date: '2027-01-09', abstract_due_date: '2026-10-01', abstract_due_date_status: 'copied'}), '20261002');
		const late = {late_breaking_due_date: '2026-11-01', late_breaking_due_date_status: 'check'};
		is(lines(late).find(line => line.startsWith('SUMMARY')), 'SUMMARY:Late-breaking abstracts due: A (in check)');
		is(lines(late).find(line => line.startsWith('STATUS')), 'STATUS:TENTATIVE');
		is(lines({}).filter(line => /^(SUMMARY|STATUS|LOCATION|URL|DESCRIPTION)/.test(line)),
			['SUMMARY:A', 'DESCRIPTION:Date confirmed: published by the organizer and checked against the official source.', 'STATUS:CONFIRMED']);
		is(eventsOf({...plain, start_date: null}).length, 0, 'no dates, no events');
		const all = eventsOf({...plain, ...late, abstract_due_date: '2026-11-01'});
		is(new Set(unfold(calendar(all, {now: NOW})).filter(line => line.startsWith('UID'))).size, 3, 'each event has an id of its own');
	}],
	['marks of a calendar are escaped once', ({calendar: {calendar, eventsOf}}, is) => {
		for (const [name, expected] of [
			['a,b;c', 'a\\,b\\;c'], ['\\', '\\\\'], ['\\n', '\\\\n'], ['\\,', '\\\\\\,'], ['a\nb', 'a\\nb'], ['a\r\nb', 'a\\nb'], ['a\rb', 'a\\nb'], ['a\n\nb', 'a\\n\\nb'], ["Crohn's & \"Colitis\": 5 %", "Crohn's & \"Colitis\": 5 %"],
			['a\u0007\u007fb', 'ab'],
		]) {
			const text = calendar(eventsOf({id: 1, name, start_date: '2027-05-01', start_date_status: 'confirmed', venue: name, city: 'x'}), {now: NOW, name});
			const value = property => unfold(text).find(line => line.startsWith(`${property}:`)).slice(property.length + 1);
			is(['SUMMARY', 'LOCATION', 'X-WR-CALNAME'].map(value), [expected, `${expected}\\, x`, expected], JSON.stringify(name));
		}
	}],
	['only a web address without blanks is the address of an event', ({calendar: {calendar, eventsOf}}, is) => {
		for (const [url, expected] of [
			['https://example.org/?a=1,2;b', 'https://example.org/?a=1,2;b'], ['HTTP://EXAMPLE.ORG', 'HTTP://EXAMPLE.ORG'], ['xhttps://example.org', undefined], ['https://a b', undefined], ['https://', undefined],
			['ftp://example.org', undefined], ['https://a\nATTENDEE:x', undefined], [null, undefined], ['https://a\u0000b', 'https://ab'],
		]) {
			const text = calendar(eventsOf({id: 1, name: 'A', start_date: '2027-05-01', start_date_status: 'confirmed', url}), {now: NOW});
			is(unfold(text).find(line => line.startsWith('URL:'))?.slice(4), expected, url);
			is(text.includes('\r\nATTENDEE'), false);
		}
	}],
	['CSV has a column for each field of any row', ({csv: {csv}}, is) => {
		is(csv([{id: 1, a: 'x'}, {id: 2, b: {c: ['y', "it's; z"]}}]), "\ufeffid,a,b_c\r\n1,x,\r\n2,,\"y; it's; z\"\r\n");
		is(csv([{a: 'x\ry'}, {a: 'x"y'}, {a: "'"}, {a: ['=1', '=2']}, {a: false}, {a: []}]), '\ufeffa\r\n"x\ry"\r\n"x""y"\r\n\'\r\n"\'=1; =2"\r\nFALSE\r\n\r\n');
	}],
	['deadlines of CSV have the record behind them', ({csv: {csv}}, is) => {
		is(csv([{record: {id: 3, name: 'A, B'}, kind: 'late_breaking', date: '2027-01-01', confidence: 'copied'}]), '\ufeffdeadline,date,confidence,id,name\r\nlate_breaking,2027-01-01,copied,3,"A, B"\r\n');
	}],
	['lists and files have future meetings, and past ones only on request', (model, is) => {
		const statuses = {start_date_status: 'confirmed', abstract_due_date_status: 'confirmed', late_breaking_due_date_status: 'estimated'};
		// [name, fields, events with the past, events from today on, whether a row is there from today on]
		const table = [
			['over', {year: 2026, start_date: '2026-05-01', end_date: '2026-05-03', abstract_due_date: '2026-01-01'}, 2, 0, false],
			['ended yesterday', {year: 2026, start_date: '2026-12-28', end_date: '2026-12-31'}, 1, 0, false],
			['ends today', {year: 2026, start_date: '2026-12-28', end_date: '2027-01-01', abstract_due_date: '2026-10-01'}, 2, 1, true],
			['one day, today', {year: 2027, start_date: '2027-01-01', end_date: null}, 1, 1, true],
			['an end before its start', {year: 2027, start_date: '2027-01-01', end_date: '2026-12-01'}, 1, 1, true],
			['to come', {year: 2027, start_date: '2027-05-01', abstract_due_date: '2027-01-01', late_breaking_due_date: '2026-12-31'}, 3, 2, true],
			['no date yet', {year: 2027, start_date: null, abstract_due_date: '2026-12-01'}, 1, 0, true],
			['no date and no year', {year: null, start_date: null}, 0, 0, true],
			['no date, of last year', {year: 2026, start_date: null, abstract_due_date: '2026-02-01'}, 1, 0, false],
			['no date, of last year, but due', {year: 2026, start_date: null, abstract_due_date: '2027-02-01'}, 1, 1, true],
		];
		const records = table.map(([name, fields], at) => ({id: at + 1, name, ...statuses, ...fields})), {filesOf} = model.files;
		const ask = (dataset, records, given) => {
			const index = new model.search.Index(dataset), question = {...model.question.firstQuestion(dataset), ...given};
			index.add(records);
			const found = model.select.select(index, question, '2027-01-01'), files = filesOf(question, found, '2027-01-01');
			is(files.counts, {events: files.events().length, rows: files.rows().length}, `the counts of ${records[0].name}`);
			return [files.events().length, files.rows().length, found.total, found.past];
		};
		for (const past of ['', 'no', 'yes']) for (const [at, [name, , all, ahead, isAhead]] of table.entries()) {
			const expected = past === 'yes' ? [all, 1, 1, 0] : isAhead ? [ahead, 1, 1, 0] : [0, 0, 0, 1];
			is(ask('conferences', [records[at]], {past}), expected, `${name}, past: ${past}`);
		}
		// A year has all dates of a past meeting, and only the future ones of other meetings.
		is([ask('conferences', records.slice(0, 1), {facets: {year: ['2026']}}), ask('conferences', records.slice(5, 6), {facets: {year: ['2027']}})], [[2, 1, 1, 0], [2, 1, 1, 0]]);
		is(ask('conferences', records.slice(5, 6), {ranges: {start_date_from: '2027-02-01'}}), [2, 1, 1, 0]);
		// A starred record stays when its meeting is over. Its calendar begins today.
		is(ask('conferences', records.slice(0, 1), {ids: [1]}), [0, 1, 1, 0]);
		is(ask('conferences', records.slice(5, 6), {ids: [6]}), [2, 1, 1, 0]);
		is(ask('journals', [{id: 1, name: 'J', publishing: {}}], {}), [0, 1, 1, 0], 'journals have no past');
	}],
	['the names of a view and of its files', ({files: {fileName}, question: {parse, titleOf}}, is) => {
		const key = 'mfk_dAauJTndd4ktqrW8xVsqk9CML16YA01vAdR15U';
		for (const [address, title, name] of [
			['#/conferences', 'Conferences: to come', 'conferences-to-come-2027-01-01.ics'],
			['#/conferences?past=yes', 'Conferences: with past ones', null],
			['#/conferences?year=2027&past=yes', 'Conferences: 2027', null],
			['#/conferences?year=2027&past=no', 'Conferences: 2027, to come', null],
			['#/conferences?ids=12,40&start_date_from=2027-03-01&start_date_to=2027-06-30&due_from=2026-12-24&due_to=9999-12-31&unknown=yes',
				'Conferences: 2 starred, begins from Mon 1 Mar 2027, begins until Wed 30 Jun 2027, due from Thu 24 Dec 2026, due until Fri 31 Dec 9999, or not announced', null],
			['#/conferences?due_to=2027-01-31&unknown=yes', 'Conferences: due until Sun 31 Jan 2027', null],
			['#/journals?impact_min=2.5&fee_max=999999999&weeks_max=1&area=Urology', 'Journals: Urology, impact factor of at least 2.5, fee of at most 999,999,999 US dollars, at most 1 week to acceptance', null],
			['#/journals?access=&fee=1000-2500&license=', 'Journals: Access: not announced, Above 1,000 to 2,500 US dollars, Content license: not announced', 'journals-access-not-announced-above-1-000-to-2-500-us-dollars-content-license-no-2027-01-01.ics'],
			['#/conferences?q=lung+cancer&area=Oncology&region=Europe&deadline=abstract&within=120', 'Conferences: “lung cancer”, Oncology, Europe, Abstracts, due in the next 120 days', 'conferences-lung-cancer-oncology-europe-abstracts-due-in-the-next-120-days-2027-01-01.ics'],
			['#/conferences?view=deadlines&confidence=not_found&dates=confirmed&tag=&within=1', 'Conference deadlines: Confidence of deadlines: not found, Confidence of meeting dates: confirmed, No tag, due in the next day', null],
			['#/conferences?country=C%C3%B4te+d%27Ivoire&q=..%2F..%2F%E2%80%AE%00', 'Conferences: “../../\u202e\u0000”, Côte d\'Ivoire, to come', 'conferences-cote-divoire-to-come-2027-01-01.ics'],
			['#/conferences?q=' + '癌'.repeat(200), null, `conferences-${'癌'.repeat(68)}-2027-01-01.ics`],
			['#/conferences?q=' + '🧬'.repeat(9), null, 'conferences-to-come-2027-01-01.ics'],
		]) {
			const question = parse(address);
			if (title) is(titleOf(question), title, address);
			if (name) is(fileName(question, '2027-01-01', 'ics'), name, address);
		}
		for (const [words, title] of [[key, 'Conferences: API key, to come'], [`heart ${key}`, 'Conferences: “heart”, to come']]) {
			const question = {...parse('#/conferences'), words};
			is([titleOf(question), /mfk_/i.test(fileName(question, '2027-01-01', 'csv'))], [title, false], words);
		}
	}],
];
