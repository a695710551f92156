const ids = list => list.conferences.map(({id}) => id).join();

export const cases = [
	['whatever was stored, linked or opened is a list within bounds', ({lists: {listsOf, listOf, fromLink, fromFile}}, is) => {
		for (const value of [undefined, null, 7, 'x', [], {}, {lists: []}, {lists: 7}, {lists: [null]}, {current: 3}]) is(listsOf(value), {lists: [{name: 'Shortlist', owner: '', conferences: [], journals: []}], current: 0}, JSON.stringify(value));
		// The first release kept one list of ids.
		is(listsOf({conferences: [7, '8', 7, -1, 1e99], journals: {}}).lists[0].conferences, [{id: 7, note: ''}]);
		const long = listOf({name: 'n'.repeat(500), owner: ' a\u0000\nb ', conferences: Array.from({length: 5000}, (_, at) => ({id: at + 1, note: 'x'.repeat(5000)}))});
		is([long.name.length, long.owner, long.conferences.length, long.conferences[0].note.length], [100, 'a b', 2000, 2000]);
		is(listOf({conferences: [{id: 1, note: 'a\r\nb\u0007'}, {id: 1, note: 'again'}]}).conferences, [{id: 1, note: 'a\nb '}]);
		is(fromLink({name: 'Zolg', conferences: '3,1,x,3', journals: ''}), {name: 'Zolg', owner: '', conferences: [{id: 3, note: ''}, {id: 1, note: ''}], journals: []});
		is(fromLink({}).name, 'Shared list');
		for (const text of ['', '{', '[]', 'null', '{}', '{"medfeed":"other"}']) {
			let failure = null;
			try {
				fromFile(text);
			} catch (error) {
				failure = error.message;
			}
			is(/^This is not a file of a list/.test(failure), true, text);
		}
	}],
	['a link holds name and ids; a file holds the notes and the owner too', ({lists: {fileOf, fromFile, fromLink, linkOf, listOf}}, is) => {
		const list = listOf({name: 'Zolg & co', owner: 'Ann', conferences: [{id: 5, note: 'first author\nJane'}, {id: 2}], journals: [{id: 9, note: '“x”'}]});
		is(fromFile(fileOf(list)), list);
		is(fromLink(linkOf(list)), listOf({name: 'Zolg & co', conferences: [5, 2], journals: [9]}));
		is(JSON.stringify(linkOf(list)).includes('Jane'), false);
	}],
	['stars, notes and order of the current list', ({lists: {added, areEmpty, listsOf, moved, named, removed, withIds, withNote}}, is) => {
		let state = withIds(listsOf(), 'conferences', [1, 2, 3]);
		state = withNote(state, 'conferences', 2, 'two');
		state = moved(moved(state, 'conferences', 2, -1), 'conferences', 2, -1);
		is(state.lists[0].conferences, [{id: 2, note: 'two'}, {id: 1, note: ''}, {id: 3, note: ''}], 'it stays at the top');
		state = moved(state, 'conferences', 2, 1);
		is(ids(state.lists[0]), '1,2,3');
		state = withIds(state, 'conferences', [3, 2]);
		is(state.lists[0].conferences, [{id: 3, note: ''}, {id: 2, note: 'two'}], 'a note stays with its record');
		state = added(state, {name: 'Shortlist', conferences: [9]});
		is([state.current, state.lists.map(({name}) => name)], [1, ['Shortlist', 'Shortlist 2']]);
		state = withIds(named(state, {name: ' Client A ', owner: 'Bo'}), 'journals', [4]);
		is([state.lists[1].name, state.lists[1].owner, ids(state.lists[0]), state.lists[1].journals.length], ['Client A', 'Bo', '3,2', 1]);
		state = removed(state);
		is([state.lists.length, ids(state.lists[0])], [1, '3,2']);
		is([areEmpty(removed(state)), areEmpty(state), areEmpty(named(listsOf(), {owner: 'Bo'}))], [true, false, false]);
		let many = listsOf();
		for (let at = 0; at < 80; at++) many = added(many, {name: 'x', conferences: [1]});
		is([many.lists.length, new Set(many.lists.map(({name}) => name)).size], [50, 50]);
	}],
	['the lists of two places become one of each name', ({lists: {joined, listsOf}}, is) => {
		const state = listsOf({lists: [{name: 'A', conferences: [{id: 1, note: 'kept'}]}, {name: 'B', conferences: [2]}], current: 1});
		const both = joined(state, listsOf({lists: [{name: 'A', owner: 'Bo', conferences: [{id: 1, note: 'other'}, 7]}, {name: 'C', journals: [3]}]}));
		is([both.lists.map(({name, owner, conferences}) => [name, owner, conferences.map(({id}) => id)]), both.current], [[['A', 'Bo', [1, 7]], ['B', '', [2]], ['C', '', []]], 1]);
		is(both.lists[0].conferences[0].note, 'kept');
		is(joined(listsOf(), listsOf({conferences: [5]})).lists.map(({name, conferences}) => [name, conferences.length]), [['Shortlist', 1]]);
	}],
];
