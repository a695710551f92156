const NOW = new Date('2027-01-01T12:30:45.678Z');
const record = {id: 7, name: 'Congress; "A, B" \\ C\nnext', abbv: 'CAB', year: 2027, start_date: '2027-05-30', start_date_status: 'confirmed', end_date: '2027-06-01', abstract_due_date: '2027-02-28',
	abstract_due_date_status: 'estimated', late_breaking_due_date: null, late_breaking_due_date_status: 'not_found', country: 'Spain', city: 'Madrid', venue: null, url: 'https://example.org/7',
	therapy_areas: ['Hematology', 'Oncology'], organizations: [{id: 1, name: 'ESMO'}], tags: [{id: 2, type: 'Audience', name: 'Nurses'}], formats: {oral: true, poster: false, encore: null}, updated_at: '2027-01-01T00:00:00Z'};

/** The logical lines of a calendar. */
const unfold = text => text.replace(/\r\n /g, '').split('\r\n');

export const cases = [
	['a calendar', ({calendar: {calendar, eventsOf}}, is) => {
		const text = calendar(eventsOf(record), {now: NOW, host: 'feed.example.org', name: 'Oncology, Europe'}), lines = unfold(text);
		is(lines.slice(0, 5), ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//medfeed//explorer//EN', 'CALSCALE:GREGORIAN', 'X-WR-CALNAME:Oncology\\, Europe']);
		is(lines.slice(5, 16), ['BEGIN:VEVENT', 'UID:conference-7-abstract@feed.example.org', 'DTSTAMP:20270101T123045Z', 'DTSTART;VALUE=DATE:20270228', 'DTEND;VALUE=DATE:20270301',
			'SUMMARY:Abstracts due: Congress\\; "A\\, B" \\\\ C\\nnext (CAB) 2027 (estimated)',
			'DESCRIPTION:Date estimated: projected from earlier editions until the organizer announces it.\\nHematology\\; Oncology\\nhttps://example.org/7',
			'LOCATION:Madrid\\, Spain', 'URL:https://example.org/7', 'STATUS:TENTATIVE', 'TRANSP:TRANSPARENT']);
		is(lines.filter(line => /^(UID|DTSTART|DTEND|STATUS)/.test(line)).slice(4), ['UID:conference-7-meeting@feed.example.org', 'DTSTART;VALUE=DATE:20270530', 'DTEND;VALUE=DATE:20270602', 'STATUS:CONFIRMED']);
		is(lines.slice(-2), ['END:VCALENDAR', '']);
		is(calendar([], {now: NOW}).split('\r\n').length, 7, 'no events');
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
	['a hostile record stays within its properties', ({calendar: {calendar, eventsOf}}, is) => {
		const hostile = 'x\r\nEND:VEVENT\r\nBEGIN:VALARM\u0000\u2028';
		const text = calendar(eventsOf({...record, name: hostile, abbv: hostile, city: hostile, url: 'javascript:alert(1)', therapy_areas: [hostile]}), {now: NOW, host: 'h'});
		is(text.split('\r\n').filter(line => /^(BEGIN|END):V(EVENT|ALARM)/.test(line)).length, 4);
		is(/javascript/.test(text), false);
	}],
	['CSV of records', ({csv: {csv}}, is) => {
		is(csv([record]), '\ufeffid,name,abbv,year,start_date,start_date_status,end_date,abstract_due_date,abstract_due_date_status,late_breaking_due_date,late_breaking_due_date_status,country,city,venue,url,'
			+ 'therapy_areas,organizations,tags,formats_oral,formats_poster,formats_encore,updated_at\r\n'
			+ '7,"Congress; ""A, B"" \\ C\nnext",CAB,2027,2027-05-30,confirmed,2027-06-01,2027-02-28,estimated,,not_found,Spain,Madrid,,https://example.org/7,'
			+ 'Hematology; Oncology,ESMO,Audience: Nurses,TRUE,FALSE,,2027-01-01T00:00:00Z\r\n');
		is(csv([]).length, 3, 'no records');
	}],
	['CSV of deadlines', ({csv: {csv}, deadlines: {deadlinesOf}}, is) => {
		is(csv(deadlinesOf(record)).split('\r\n')[1].slice(0, 33), 'abstract,2027-02-28,estimated,7,"');
	}],
	['a spreadsheet runs no cell', ({csv: {csv}}, is) => {
		for (const [text, cell] of [
			['=1+1', "'=1+1"], ['+1', "'+1"], ['-1', "'-1"], ['@x', "'@x"], ['\tx', "'\tx"], ['\rx', '"\'\rx"'], ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
			['a=1', 'a=1'], [' =1', ' =1'], ["'=1", "'=1"], [-1, '-1'], [0, '0'], [null, ''],
		]) is(csv([{text, end: 0}]), `\ufefftext,end\r\n${cell},0\r\n`, JSON.stringify(text));
	}],
];
