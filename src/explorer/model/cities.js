// Cities where congresses meet, with other names that readers type: `München` finds Munich, and the other way round.
import {lettersOf} from './fold.js';

const CITIES = ['Athens,Athen', 'Antwerp,Antwerpen,Anvers', 'Basel,Bâle', 'Beijing,Peking', 'Brussels,Brüssel,Bruxelles', 'Bucharest,Bukarest', 'Cologne,Köln',
	'Copenhagen,Kopenhagen,København', 'Cracow,Kraków,Krakau', 'Florence,Florenz,Firenze', 'Geneva,Genf,Genève', 'Gothenburg,Göteborg', 'Hanover,Hannover',
	'Kyiv,Kiev', 'Lisbon,Lissabon,Lisboa', 'Milan,Mailand,Milano', 'Moscow,Moskau', 'Mumbai,Bombay', 'Munich,München', 'Naples,Neapel,Napoli', 'Nice,Nizza',
	'Nuremberg,Nürnberg', 'Prague,Prag,Praha', 'Rome,Rom,Roma', 'Seville,Sevilla', 'The Hague,Den Haag', 'Turin,Torino', 'Venice,Venedig,Venezia',
	'Vienna,Wien', 'Warsaw,Warschau,Warszawa'].map(names => names.split(','));
const named = new Map(CITIES.flatMap(names => names.map(name => [lettersOf(name), names])));

/** All names of a city that is known by several. */
export const namesOfCity = city => named.get(lettersOf(city ?? '')) ?? [];
