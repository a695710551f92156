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

const NAME = 'medfeed-key';

/** Returns what a function returns of the tab's storage; null if the storage is switched off. */
export const inTab = use => {
	try {
		return use(sessionStorage);
	} catch {
		return null;
	}
};

/** Returns the key that the reader keeps in this tab, or ''. */
export const keptKey = () => inTab(storage => storage.getItem(NAME)) ?? '';

/** Keeps the key in this tab, until the tab is closed. */
export const keepKey = key => inTab(storage => storage.setItem(NAME, key));

/** Removes the key from this tab. */
export const dropKey = () => inTab(storage => storage.removeItem(NAME));

/** The name of the kept key that this tab shows, so that a reload shows it again. */
export const keptName = () => inTab(storage => storage.getItem('medfeed-kept'));
export const keepName = name => inTab(storage => name ? storage.setItem('medfeed-kept', name) : storage.removeItem('medfeed-kept'));

/** Removes whatever the page has stored in this tab. */
export const clearTab = () => inTab(storage => Object.keys(storage).filter(name => name.startsWith('medfeed-')).forEach(name => storage.removeItem(name)));
