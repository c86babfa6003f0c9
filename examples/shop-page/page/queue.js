/**
 * The buyer's place in the queue: getting it, how it stands, accepting its offer, leaving. All texts are in queue-words.js.
 *
 * Two things change what is shown: the node tells another state, and the time goes on. A screen reader is told neither each second:
 * it hears changes of state, every tenth person, and the last minute of an offer (`speak`). Each change of the place is an event
 * `place` of the window.
 */
import { admitted } from './admission.js';
import { noteEntry, showDraw } from './draw.js';
import { $, say, showOutcome } from './elements.js';
import { readOrders } from './orders.js';
import { OUTCOMES } from './outcomes.js';
import { PLACE_REFUSALS, placeWords, units } from './queue-words.js';
import { client, forgetSession, now, saleId, wasNew } from './shop.js';

/** A screen reader hears of the place each time that this many people fewer are ahead. */
const SPOKEN_PEOPLE = 10;
/** Seconds before the end of an offer at which a screen reader hears of it. */
const SPOKEN_S = [60, 30, 10];
const RETRY_MS = 2_000;
/** A shorter loss of the connection is not worth a word. */
const LOST_MS = 3_000;
/** A place in one of these states can still become an order. */
const MOVING = ['waiting', 'hopeless', 'offered'];

/** The place survives a reload of the page. `from`: how many people were ahead when it was new. */
const kept = {
  name: `place:${saleId}`,
  get: () => JSON.parse(sessionStorage.getItem(kept.name) ?? 'null'),
  set: (placeToken, from) => sessionStorage.setItem(kept.name, JSON.stringify({ placeToken, from })),
  clear: () => sessionStorage.removeItem(kept.name),
};

let sale;
let place;
let isAsking = false;
/** When the connection was lost; `undefined` while it stands. */
let lostAt;
let following = new AbortController();
const SILENT = { title: '', ahead: 0, seconds: Number.POSITIVE_INFINITY, isLost: false };
let spoken = SILENT;

const isMoving = ({ state }) => MOVING.includes(state);
const isLost = () => lostAt !== undefined && performance.now() - lostAt >= LOST_MS;

/** @returns `none`, `moving` (it may still become an order) or `over` */
export function placeState() {
  if (!place) return 'none';
  return isMoving(place) ? 'moving' : 'over';
}

export const isAskingForPlace = () => isAsking;

/** @param told the sale now, `undefined` if it is gone */
export function queueOf(told) {
  const isFirst = sale === undefined;
  sale = told;
  // The buyer may have a place from before, or from another page.
  if (isFirst && (sale?.queue || kept.get())) follow();
  showPlace();
}

export async function join(quantity) {
  await asking(async () => {
    const ask = (purchaseToken) => client.takePlace(saleId, { quantity, purchaseToken });
    const outcome = await admitted(client, saleId, ask, () =>
      showOutcome({ tone: 'info', title: 'You are being admitted', text: 'This takes a few seconds.' }),
    );
    if (outcome.code !== 'found') return refuse(outcome, () => join(quantity));
    kept.clear();
    take(outcome.place);
    $('queue-title').focus();
  });
}

async function accept() {
  await asking(async () => {
    const { offer } = place;
    const outcome = await client.purchase({ saleId, quantity: offer.quantity, purchaseToken: offer.token });
    await readOrders();
    if (outcome.code === 'committed' || outcome.code === 'accepted') {
      forgetPlace();
      showOutcome(OUTCOMES[outcome.code], outcome);
      $('outcome').focus();
      return;
    }
    // The answer may be out of date, or about a request before it. The place tells what is true now.
    const read = await client.place(saleId, place.placeToken);
    if (read.code === 'found') take(read.place);
    if (place?.state === 'offered') refuse(outcome, accept);
  });
}

async function leave() {
  await asking(async () => {
    const outcome = await client.leave(saleId, place.placeToken);
    if (outcome.code !== 'found') return refuse(outcome, leave);
    take(outcome.place);
    $('queue-title').focus();
  });
}

/** One request of the buyer at a time. */
async function asking(work) {
  if (isAsking) return;
  isAsking = true;
  $('outcome').replaceChildren();
  showPlace();
  try {
    await work();
  } catch (error) {
    console.warn(error);
    showOutcome(PLACE_REFUSALS.unknown);
  } finally {
    isAsking = false;
    showPlace();
  }
}

function refuse(outcome, again) {
  if (outcome.code === 'unauthenticated') forgetSession();
  if (outcome.code === 'no_place') forgetPlace();
  const isPurchase = again === accept;
  const words = (isPurchase ? undefined : PLACE_REFUSALS[outcome.code]) ?? OUTCOMES[outcome.code];
  showOutcome(words ?? { tone: 'bad', title: outcome.title ?? outcome.code, text: '' }, outcome, again);
}

/** Shows the place, and follows it as long as it may change. */
function take(taken) {
  following.abort();
  show(taken);
  if (isMoving(taken)) follow();
}

function follow() {
  following.abort();
  following = new AbortController();
  const { signal } = following;
  listen(signal).catch((error) => {
    if (!signal.aborted) console.error(error);
  });
}

async function listen(signal) {
  const known = kept.get()?.placeToken;
  // The node would answer 404, which a browser reports as an error.
  if (!known && (await wasNew())) return;
  for await (const update of client.followPlace(saleId, known, { signal })) {
    // A place that was over before this page knew of it is no news.
    if (update.code === 'found' && (known || place || isMoving(update.place))) show(update.place);
    else if (update.code === 'interrupted') lostAt ??= performance.now();
    else if (update.code === 'no_place' || update.code === 'unknown_sale') {
      if (place) refuse(update);
      forgetPlace();
    } else if (update.code === 'unauthenticated') {
      forgetSession();
      setTimeout(() => signal.aborted || follow(), RETRY_MS);
    }
  }
}

function forgetPlace() {
  following.abort();
  kept.clear();
  [place, lostAt, spoken] = [undefined, undefined, SILENT];
  // What was said of the place is on the page, and a screen reader may find it there.
  say($('spoken'), '');
  showPlace();
}

function show(told) {
  const isOther = place?.state !== told.state;
  [place, lostAt] = [told, undefined];
  noteEntry(place);
  kept.set(place.placeToken, Math.max(kept.get()?.from ?? 0, place.ahead ?? 0));
  // A buyer who was about to leave the queue must not give back an offer with that click.
  if (isOther) $('sure').close();
  if (isOther && place.state === 'bought') readOrders().catch(console.warn);
  showPlace();
}

function showPlace() {
  $('queue').hidden = !place;
  if (place) {
    const words = placeWords(place, sale, timeLeft());
    showWords(words);
    showProgress();
    showActions(words);
    speak(words);
  }
  showDraw(sale, place);
  showTitle();
  dispatchEvent(new Event('place'));
}

function timeLeft() {
  const expiresAt = place?.offer?.expiresAt;
  return expiresAt === undefined ? undefined : Date.parse(expiresAt) - now();
}

function showWords({ tone, title, figure, what, text, hint }) {
  $('queue').className = `queue ${tone}`;
  say($('queue-title'), title);
  $('queue-figure').hidden = figure === undefined;
  say($('queue-number'), typeof figure === 'number' ? figure.toLocaleString() : (figure ?? ''));
  say($('queue-what'), what ?? '');
  // What was advice is out of date when nobody can say how the place stands. An offer stands all the same.
  const isOld = isLost() && place.state !== 'offered';
  say($('queue-text'), isOld ? '' : text);
  say($('queue-hint'), isOld ? '' : (hint ?? ''));
  $('queue-lost').hidden = !isLost();
}

function showProgress() {
  const { state, ahead, rank } = place;
  const from = kept.get()?.from ?? 0;
  const isMeasured = state === 'waiting' && rank !== undefined && sale?.state === 'open' && from > 0;
  $('queue-progress').hidden = !isMeasured;
  if (!isMeasured) return;
  $('queue-progress').max = from;
  $('queue-progress').value = from - ahead;
}

function showActions({ waits }) {
  const isOffered = place.state === 'offered';
  $('queue-actions').hidden = !waits;
  $('accept').hidden = !isOffered;
  $('accept').disabled = isAsking || sale?.state === 'paused';
  say($('accept'), isAsking ? 'One moment …' : `Buy ${units(place.offer?.quantity ?? place.quantity)}`);
  $('leave').disabled = isAsking;
  say($('leave'), isOffered ? 'No, give it back' : 'Leave the queue');
}

/** The buyer often looks at another tab, and sees only the title of this one. */
function showTitle() {
  const name = sale?.title || saleId;
  if (place?.state === 'offered') document.title = `Your turn! ${name}`;
  else if (!isLost() && placeState() === 'moving' && place.ahead !== undefined)
    document.title = `(${place.ahead.toLocaleString()}) ${name}`;
  else document.title = name;
}

function speak({ title, figure, what, text }) {
  const { state, ahead = 0 } = place;
  const count = typeof figure === 'number' ? `${figure} ${what}. ` : '';
  const seconds = state === 'offered' ? (timeLeft() ?? Number.POSITIVE_INFINITY) / 1_000 : spoken.seconds;
  if (isLost() !== spoken.isLost)
    say($('spoken'), isLost() ? $('queue-lost').textContent : `Connected again. ${title}`);
  else if (title !== spoken.title) say($('spoken'), `${title}. ${count}${text}`);
  else if (count && ahead <= spoken.ahead - SPOKEN_PEOPLE) say($('spoken'), count);
  else {
    const step = SPOKEN_S.find((each) => seconds <= each && each < spoken.seconds);
    if (step === undefined) return;
    say($('spoken'), `${Math.max(0, Math.ceil(seconds))} seconds left to buy.`);
  }
  spoken = { title, ahead, seconds, isLost: isLost() };
}

$('accept').addEventListener('click', () => void accept());
$('leave').addEventListener('click', () => {
  const isOffered = place.state === 'offered';
  say($('sure-title'), isOffered ? 'Give it back?' : 'Leave the queue?');
  say(
    $('sure-text'),
    isOffered
      ? 'The next person gets the chance to buy. If you come again, your new place is behind all others.'
      : 'You lose your place. If you come again, your new place is behind all others.',
  );
  say($('sure-yes'), isOffered ? 'Give it back' : 'Leave');
  $('sure').showModal();
});
$('sure-no').addEventListener('click', () => $('sure').close());
$('sure-yes').addEventListener('click', () => {
  $('sure').close();
  void leave();
});

// The pause before the next attempt may be long, and the browser knows sooner that it is online.
addEventListener('online', () => {
  if (lostAt !== undefined) follow();
});

/** What depends on the time. */
export function tickQueue() {
  if (placeState() === 'moving') showPlace();
}
