// Opens the page without a network. It runs only while the reader keeps a copy on this computer. It has the page's own files and
// never a response under /v1. A server that responds comes first: its files may be newer, or another program may have its address.
// `VERSION` and `FILES` stand before this text.
const scope = self.registration.scope, database = `medfeed ${new URL(scope).pathname}`, prefix = `${database} `;
/** The time for an answer, before the page opens with the files that are here. */
const PATIENCE_MS = 4000;
/** Whether the last page came from here. Its scripts then come from here too: nobody waits again, and those of another release would not fit. */
let isAway = false;

async function fill() {
	const cache = await caches.open(prefix + VERSION);
	await cache.addAll(FILES.map(file => new Request(scope + file, {cache: 'reload'})));
	// The reader may have said *forget* meanwhile. The page removes the database first, then the files that it finds. Firefox
	// before 126 has no list of databases. There the page removes late files when it is opened again.
	const databases = await indexedDB.databases?.() ?? [{name: database}];
	if (databases.some(({name}) => name === database || name.startsWith(prefix))) return;
	await caches.delete(prefix + VERSION);
	// This waits for the end of the installation, so the installation must not wait for it.
	self.registration.unregister();
}

self.addEventListener('install', event => {
	self.skipWaiting();
	event.waitUntil(fill());
});

// A worker that was unregistered while its page was open works on if it is registered again, and is not installed. Its files are gone.
self.addEventListener('message', event => event.waitUntil(caches.has(prefix + VERSION).then(has => has || fill())));

self.addEventListener('activate', event => event.waitUntil(caches.keys().then(names =>
	Promise.all(names.filter(name => name.startsWith(prefix) && name !== prefix + VERSION).map(name => caches.delete(name))))));

self.addEventListener('fetch', event => {
	const url = event.request.url.split(/[?#]/)[0];
	if (event.request.method === 'GET' && url.startsWith(scope) && FILES.includes(url.slice(scope.length))) event.respondWith(answer(event.request, url));
});

async function answer(request, url) {
	const isPage = request.mode === 'navigate', limit = new AbortController(), timer = isPage && setTimeout(() => limit.abort(), PATIENCE_MS);
	if (isPage || !isAway) try {
		const response = await fetch(request, {signal: limit.signal});
		// A proxy answers for a server that is away.
		if (response.status < 500) {
			if (isPage) isAway = false;
			return response;
		}
	} catch {} finally {
		clearTimeout(timer);
	}
	if (isPage) isAway = true;
	return await caches.match(url, {ignoreVary: true}) ?? Response.error();
}
