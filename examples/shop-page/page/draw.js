/**
 * How the draw of a queue can be checked: what binds the shop before the draw, what is public after it, and the buyer's own entry.
 * docs/internals/draw.md has the rules.
 */
import { $, say } from './elements.js';
import { buyerId, saleId } from './shop.js';

/** Told once, and wanted long after the tab is closed: `number` and `salt` of the buyer's entry, later its `rank`. */
const kept = {
  name: `entry:${saleId}`,
  get: () => JSON.parse(localStorage.getItem(kept.name) ?? 'null'),
  set: (entry) => localStorage.setItem(kept.name, JSON.stringify(entry)),
};

let shown = '';

/** Keeps what the answer about a place tells of its entry. */
export function noteEntry({ number, salt, rank }) {
  const known = kept.get();
  const isSame = known?.number === number && known.buyer === buyerId();
  if (salt !== undefined) kept.set({ number, salt, rank, buyer: buyerId() });
  else if (isSame && rank !== undefined && known.rank !== rank) kept.set({ ...known, rank });
}

/** @param place the buyer's; `undefined` if there is none, or the purchase has ended it */
export function showDraw(sale, place) {
  const draw = sale?.queue?.draw;
  $('draw').hidden = !draw;
  if (!draw) return;
  const entry = entryOf(draw, place);
  const isDrawn = draw.seed !== undefined;
  const facts = [
    ['Commitment', draw.commitment],
    ['Seed', draw.seed],
    ['Entries', draw.entries?.toLocaleString()],
    ['Hash of all entries', draw.entriesHash],
    ['Your number', entry.number?.toLocaleString()],
    ['Your place', isDrawn ? entry.rank?.toLocaleString() : undefined],
    ['Your salt', entry.salt],
  ].filter(([, value]) => value !== undefined);
  if (JSON.stringify(facts) === shown) return;
  shown = JSON.stringify(facts);
  say($('draw-text'), isDrawn ? DRAWN : COMING);
  $('draw-facts').replaceChildren(...facts.map(row));
  $('draw-how').replaceChildren(...(isDrawn ? howToCheck(draw, entry) : [whatToKeep(entry)]));
}

/** An entry of another buyer, or an older one, must not be taken for this one. */
function entryOf({ entries }, place) {
  const known = kept.get();
  const isOwn = known !== null && known.buyer === (buyerId() ?? known.buyer);
  const entry = isOwn && (!place || place.number === known.number) ? known : (place ?? {});
  const takesPart = entries === undefined || entry.number <= entries;
  return takesPart ? { buyer: buyerId(), ...entry, rank: place?.rank ?? entry.rank } : {};
}

const COMING =
  'When the sale opens, a secret number draws the places: the seed. It is chosen already. The commitment is its SHA-256, so nobody can exchange the seed any more. Note the commitment before the draw.';
const DRAWN =
  'The places are drawn, and the seed is public. The SHA-256 of the seed’s bytes must be the commitment that you noted before the draw.';

function whatToKeep({ number, salt }) {
  if (number === undefined)
    return 'When you have a place, its number is shown here, and a salt that proves that it is yours.';
  return salt === undefined
    ? 'The salt, which proves that the number is yours, is in the browser in which you got your place.'
    : 'The salt proves that the number is yours. This browser keeps both for you.';
}

function howToCheck({ commitment }, { number, salt, buyer }) {
  const file = [
    'The shop publishes a file with all entries. This checks it: ',
    code(`stockade queue check FILE --commitment ${commitment}`),
  ];
  if (salt === undefined || buyer === undefined) return file;
  const digest = `printf '%s' '${salt} ${saleId} ${number} ${buyer}' | sha256sum`;
  return [...file, ` At number ${number} the file must have the digest that this prints: `, code(digest)];
}

function code(text) {
  const made = document.createElement('code');
  made.textContent = text;
  return made;
}

function row([name, value]) {
  const made = document.createElement('div');
  const term = document.createElement('dt');
  const told = document.createElement('dd');
  term.textContent = name;
  told.textContent = value;
  made.append(term, told);
  return made;
}
