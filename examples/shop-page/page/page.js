/** The page: what is left, and buying. All texts about outcomes are in outcomes.js; the buyer's place in a queue is in queue.js. */

import { admitted } from './admission.js';
import { $, duration, say, showOutcome } from './elements.js';
import { readOrders, tickOrders, unitsHeld } from './orders.js';
import { OUTCOMES, UNSETTLED } from './outcomes.js';
import { isAskingForPlace, join, placeState, queueOf, tickQueue } from './queue.js';
import { client, forgetSession, now, saleId } from './shop.js';

const PHASES = { scheduled: 'Not open yet', open: 'Open', paused: 'Paused', ended: 'Over' };
/** How often the page asks for a lost answer before the buyer has to press a button. */
const ASKS = 2;
const MOST_LISTED = 10;
/** How often a page that can't listen to the sale reads it. */
const READ_MS = 5_000;

/** A purchase that is not settled survives a reload of the page: with its key, it can't be bought twice. */
const pending = {
  name: `purchase:${saleId}`,
  get: () => JSON.parse(sessionStorage.getItem(pending.name) ?? 'null'),
  set: (purchase) => sessionStorage.setItem(pending.name, JSON.stringify(purchase)),
  clear: () => sessionStorage.removeItem(pending.name),
};

let sale;
/** Whether the page hears nothing of the sale at the moment. */
let isLost = false;
/** Whether the shop answers nothing at all then. */
let isOutOfReach = false;
let nextRead;
let isBuying = false;

function showSale() {
  if (isOutOfReach) {
    say($('state'), 'Not reachable');
    say($('stock'), 'The shop can’t be reached at the moment');
    say($('window'), '');
    return;
  }
  if (!sale) return;
  const { title, state, remaining, soldOut, priceMinor, currency, queue } = sale;
  say($('title'), title || sale.id);
  say($('state'), state === 'open' && soldOut && !queue ? 'Sold out' : PHASES[state]);
  say($('stock'), state === 'ended' ? 'The sale is over' : stockWords(remaining, queue));
  say($('price'), priceMinor === undefined || !currency ? '' : money(priceMinor, currency));
  showQuantities();
  queueOf(sale);
  tick();
}

/** A currency has 0 to 3 decimals: 4900 are 49 euros and 4,900 yen. */
function money(minor, currency) {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
  return format.format(minor / 10 ** format.resolvedOptions().maximumFractionDigits);
}

function stockWords(remaining, queue) {
  if (remaining === undefined) return 'The stock can’t be read now';
  return queue && remaining === 0
    ? 'All are sold, or set aside for buyers'
    : `${remaining.toLocaleString()} left`;
}

function showQuantities() {
  const { perBuyerLimit } = sale;
  $('amount').hidden = perBuyerLimit === 1;
  const options = Math.min(perBuyerLimit, MOST_LISTED);
  if ($('quantity').length === options) return;
  $('quantity').replaceChildren(...Array.from({ length: options }, (_, i) => new Option(String(i + 1))));
}

/**
 * Without a queue, the button stays usable while the page believes that the sale is sold out: the node knows better. The quantity of a
 * purchase that is not settled can't be changed. With a queue, the button gets a place, also before the sale opens.
 */
function showButton() {
  const unsettled = pending.get();
  const isWorking = isBuying || isAskingForPlace();
  const wantsPlace = Boolean(sale?.queue) && !unsettled;
  const hasAll = wantsPlace && unitsHeld() >= sale.perBuyerLimit;
  $('form').hidden = placeState() === 'moving' || hasAll || (wantsPlace && sale.state === 'ended');
  if (unsettled) $('quantity').value = String(unsettled.quantity);
  $('quantity').disabled = isWorking || unsettled !== null;
  $('buy').disabled = isWorking || !sale || !(wantsPlace || sale.state === 'open');
  const verb = wantsPlace ? `Get a ${placeState() === 'over' ? 'new ' : ''}place in the queue` : 'Buy';
  say($('buy'), isWorking ? 'One moment …' : verb);
}

/** One purchase, with the same key until its outcome is known. */
async function buy() {
  if (isBuying) return;
  isBuying = true;
  showButton();
  const purchase = pending.get() ?? { key: crypto.randomUUID(), quantity: Number($('quantity').value || 1) };
  pending.set(purchase);
  try {
    const outcome = await settled(purchase);
    if (!UNSETTLED.includes(outcome.code)) pending.clear();
    if (outcome.code === 'unauthenticated') forgetSession();
    const words = OUTCOMES[outcome.code] ?? { tone: 'bad', title: outcome.title ?? outcome.code, text: '' };
    showOutcome(words, outcome, buy);
    await readOrders();
  } catch (error) {
    console.warn(error);
    showOutcome(OUTCOMES.unknown, {}, buy);
  } finally {
    isBuying = false;
    showButton();
  }
}

async function settled({ key, quantity }) {
  const ask = (purchaseToken) => client.purchase({ saleId, quantity, key, purchaseToken });
  for (let asked = 1; ; asked++) {
    const outcome = await admitted(client, saleId, ask, () =>
      showOutcome({ tone: 'info', title: 'You are being admitted', text: 'This takes a few seconds.' }),
    );
    if (asked >= ASKS || (outcome.code !== 'unknown' && outcome.code !== 'internal')) return outcome;
    showOutcome({
      tone: 'info',
      title: 'The answer got lost',
      text: 'Asking again. You will not buy twice.',
    });
  }
}

/** What depends on the time. The node decides when the sale opens; the page only counts down to it. */
function tick() {
  tickOrders();
  tickQueue();
  if (!sale || isOutOfReach) return;
  const { state, startsAt, endsAt } = sale;
  const to = state === 'scheduled' ? startsAt : endsAt;
  const left = to === undefined ? 0 : Date.parse(to) - now();
  if (state === 'ended' || to === undefined) say($('window'), '');
  else if (state === 'scheduled') say($('window'), left > 0 ? `Opens in ${duration(left)}` : 'Opens now …');
  else say($('window'), left > 0 ? `Ends in ${duration(left)}` : '');
}

/** A node or gateway that has no room for another listener still answers reads. If it does not, the page says so. */
async function readMeanwhile() {
  const read = await client.sale(saleId).catch(console.warn);
  if (!isLost) return;
  // A shop that refuses an answer for now is there.
  isOutOfReach = read === undefined || read.code === 'unavailable';
  if (read?.code === 'found') sale = read.sale;
  showSale();
  clearTimeout(nextRead);
  nextRead = setTimeout(() => isLost && readMeanwhile(), READ_MS);
}

async function follow() {
  for await (const update of client.followSale(saleId)) {
    if (update.code === 'found' && isLost) readOrders().catch(console.warn);
    isLost = update.code === 'interrupted';
    if (isLost) void readMeanwhile();
    else isOutOfReach = false;
    $('live').classList.toggle('is-live', update.code === 'found');
    if (update.code === 'found') {
      sale = update.sale;
      say($('live'), 'live');
      showSale();
    } else if (update.code === 'interrupted') say($('live'), 'not live, connecting again');
    else {
      say($('live'), 'not live');
      if (update.reason !== 'closed') {
        sale = undefined;
        say($('state'), 'No such sale');
        say($('stock'), '');
        showOutcome(OUTCOMES.unknown_sale);
        queueOf(undefined);
      }
    }
  }
}

$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  if (sale.queue && !pending.get()) void join(Number($('quantity').value || 1));
  else void buy();
});
for (const change of ['place', 'orders']) addEventListener(change, showButton);
setInterval(tick, 1_000);
follow().catch((error) => {
  console.error(error);
  say($('live'), 'not live');
});
await readOrders().catch(console.warn);
if (pending.get()) {
  showOutcome({ tone: 'info', title: 'You were buying', text: 'Asking how it ended.' });
  await buy();
}
