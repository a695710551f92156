// The key, and what the views share.
import {createContext, useContext, useEffect, useState} from './preact.js';

/** What views share: the key, the copies that follow it, what is kept on this computer, and how to change them. */
export const Session = createContext(null);
export const useSession = () => useContext(Session);

/** The present key's copy of a dataset. The view is drawn again when the copy or its state changes. */
export function useCopy(dataset) {
	const {copies} = useSession();
	const [, draw] = useState(0);
	const kept = copies.of(dataset);
	useEffect(() => {
		draw(kept.version);
		return copies.subscribe(one => one === kept && draw(kept.version));
	}, [kept]);
	return kept;
}

/** Returns what a function returns of the tab's storage; null if the storage is switched off. */
export const inTab = use => {
	try {
		return use(sessionStorage);
	} catch {
		return null;
	}
};

/** Keeps a text in this tab, until the tab is closed. An empty one leaves nothing there. */
export const keepInTab = (name, text) => inTab(storage => text ? storage.setItem(name, text) : storage.removeItem(name));

/** The key that the reader keeps in this tab, or ''. */
export const keptKey = () => inTab(storage => storage.getItem('medfeed-key')) ?? '';
export const keepKey = key => keepInTab('medfeed-key', key);

/** The name of the kept key that this tab shows, so that a reload shows it again. */
export const keptName = () => inTab(storage => storage.getItem('medfeed-kept'));
export const keepName = name => keepInTab('medfeed-kept', name);

/** The positions of the tab's copies in their feeds: lists of a key that a reload has lost are known by them. */
export const tabTokens = () => inTab(storage => JSON.parse(storage.getItem('medfeed-tokens')));
export const keepTokens = tokens => keepInTab('medfeed-tokens', tokens && JSON.stringify(tokens));

/** Removes whatever the page has stored in this tab. */
export const clearTab = () => inTab(storage => Object.keys(storage).filter(name => name.startsWith('medfeed-')).forEach(name => storage.removeItem(name)));
