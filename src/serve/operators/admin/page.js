// Loads the page again every 15 seconds, unless it is hidden, or a part of it has the focus or is selected.
const PAUSE_MS = 15000;
const box = document.getElementById('live');
box.parentElement.hidden = false;

/** Whether the page stays as it is. */
function isBusy() {
	const inUse = document.activeElement !== document.body && document.activeElement !== box;
	const busy = document.hidden || !box.checked || inUse || !getSelection().isCollapsed;
	return busy;
}

async function refresh() {
	if (isBusy()) return;
	try {
		// A server that accepts the request and never responds is shown as one that does not answer.
		const answer = await fetch('/', {signal: AbortSignal.timeout(PAUSE_MS)});
		if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
		const text = await answer.text();
		// A reader may have selected something meanwhile.
		if (isBusy()) return;
		const next = new DOMParser().parseFromString(text, 'text/html');
		document.title = next.title;
		for (const part of ['header', 'main', 'footer time']) {
			document.querySelector(part).replaceWith(document.importNode(next.querySelector(part), true));
		}
		document.body.classList.remove('stale');
	} catch {
		// The figures stay, and say of when they are.
		document.title = 'medfeed: no answer';
		document.body.classList.add('stale');
	}
}

setInterval(refresh, PAUSE_MS);
