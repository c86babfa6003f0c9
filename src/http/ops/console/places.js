// Places of a queue, page by page, and those of one buyer.
import { call, saleUrl } from './api.js';
import { labelled } from './dialogs.js';
import { el, table } from './dom.js';
import { number, time } from './format.js';
import { queryOf, saleHash } from './hash.js';
import { orderButton } from './orders.js';

const PAGE = 50;
/** `left` alone could be read as units that are left. */
const WORDS = { left: 'left the queue' };
const STATES = ['waiting', 'offered', 'bought', 'lapsed', 'left'];

/**
 * @param {object} queue as it was when the list was opened
 * @param {Record<string, string>} query from the address
 */
export function placesPanel(queue, query) {
  const { saleId } = queue;
  const results = el('div', {}, el('p', { class: 'note' }, 'Reading the places …'));
  const read = () =>
    readPage(queue, query, results).catch((error) =>
      results.replaceChildren(el('p', { class: 'refused' }, error.message)),
    );
  void read();
  return el('div', {}, el('h2', {}, 'Places'), searchForm(saleId, query, read), results);
}

/** @param {() => void} again shows the same places as they are now */
function searchForm(saleId, query, again) {
  const buyer = el('input', { id: 'place-buyer', name: 'buyer', autocomplete: 'off', spellcheck: 'false' });
  const state = el(
    'select',
    { id: 'place-state', name: 'state' },
    ...STATES.map((name) => el('option', { value: name }, WORDS[name] ?? name)),
    el('option', { value: 'any' }, 'any'),
  );
  buyer.value = query.buyer ?? '';
  state.value = STATES.includes(query.state) || query.state === 'any' ? query.state : STATES[0];
  const form = el(
    'form',
    { class: 'filter', 'aria-label': 'Search places' },
    labelled(state, 'State'),
    labelled(buyer, 'Or all places of a buyer'),
    el('button', { type: 'submit' }, 'Show'),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const who = buyer.value.trim();
    const hash = saleHash(saleId, 'queue', who === '' ? { state: state.value } : { buyer: who });
    if (hash === location.hash) again();
    else location.hash = hash;
  });
  return form;
}

async function readPage(queue, { buyer, state = STATES[0], after }, results) {
  const { saleId } = queue;
  const asked = buyer === undefined ? { state: state === 'any' ? undefined : state } : { buyer };
  // In a queue that is not drawn, nobody waits up to the head.
  const first = asked.state === 'waiting' && queue.order === 'fifo' ? queue.head : undefined;
  const url = `${saleUrl(saleId)}/queue/places${queryOf({ ...asked, after: after ?? first, limit: PAGE })}`;
  const { places, next } = await call('GET', url);
  const link = (text, more) =>
    el('a', { class: 'button', href: saleHash(saleId, 'queue', { buyer, state, ...more }) }, text);
  results.replaceChildren(
    places.length === 0
      ? el('p', { class: 'note' }, nothing(buyer, next))
      : placeTable(
          buyer === undefined ? 'Places, as they were given' : `Places of ${buyer}, the newest first`,
          places,
        ),
    el(
      'p',
      { class: 'pages' },
      after === undefined ? undefined : link('First places', {}),
      next === undefined ? undefined : link('Next places', { after: next }),
    ),
  );
}

function nothing(buyer, next) {
  if (buyer !== undefined) return 'This buyer has no place.';
  return next === undefined
    ? 'There are no such places.'
    : 'There are no such places on this page. Others follow.';
}

function placeTable(caption, places) {
  const isAheadKnown = places.some(({ ahead }) => ahead !== undefined);
  const headings = [
    { text: 'Place', class: 'n' },
    { text: 'Buyer', class: 'long' },
    { text: 'Units', class: 'n' },
    'State',
    ...(isAheadKnown ? [{ text: 'Waiting before it', class: 'n' }] : []),
    'Given',
    'Ended',
    'Order',
  ];
  return table(caption, headings, places, (place) => [
    number(place.number),
    place.buyerId,
    number(place.quantity),
    stateText(place),
    ...(isAheadKnown ? [place.ahead === undefined ? '' : number(place.ahead)] : []),
    time(place.givenAt),
    place.offeredUntil === undefined ? time(place.endedAt) : `until ${time(place.offeredUntil)}`,
    place.orderId === undefined ? '' : orderButton(place.orderId),
  ]);
}

/** Who had an offer, and has left because that was asked for, has given it back. */
function stateText({ state, reason, orderId }) {
  if (reason === undefined) return state;
  return `${WORDS[state]} (${reason === 'asked' && orderId !== undefined ? 'offer given back' : reason})`;
}
