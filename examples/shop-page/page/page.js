/** The page: what is left, buying, and the buyer's orders. All texts about outcomes are in outcomes.js. */

import { purchaseToken } from './admission.js';
import { BuyerClient } from './client/index.js';
import { OUTCOMES, STATUSES, UNSETTLED } from './outcomes.js';

const PHASES = { scheduled: 'Not open yet', open: 'Open', paused: 'Paused', ended: 'Over' };
/** A lost answer is asked for so often before the buyer has to press a button. */
const ASKS = 2;
const POLL_MS = 2_000;
/** A token is renewed so long before it runs out. */
const MARGIN_MS = 30_000;
const MOST_LISTED = 10;

const $ = (id) => document.getElementById(id);
const { shopUrl, saleId } = await (await fetch('config')).json();

let session;
async function authorization() {
  if (!session || performance.now() > session.until) {
    const { token, seconds } = await (await fetch('session', { method: 'POST' })).json();
    session = { token, until: performance.now() + seconds * 1_000 - MARGIN_MS };
  }
  return { authorization: `Bearer ${session.token}` };
}

const client = new BuyerClient({ url: shopUrl, headers: authorization, deadlineMs: 5_000 });

/** A purchase that is not settled survives a reload of the page: with its key, it can't be bought twice. */
const pending = {
  name: `purchase:${saleId}`,
  get: () => JSON.parse(sessionStorage.getItem(pending.name) ?? 'null'),
  set: (purchase) => sessionStorage.setItem(pending.name, JSON.stringify(purchase)),
  clear: () => sessionStorage.removeItem(pending.name),
};

let sale;
let isBuying = false;
let orders = [];

/** Changes the text only if it is another one, so that a screen reader says it once. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showSale() {
  if (!sale) return;
  const { title, state, remaining, soldOut, priceMinor, currency } = sale;
  say($('title'), title || sale.id);
  document.title = title || sale.id;
  say($('state'), state === 'open' && soldOut ? 'Sold out' : PHASES[state]);
  const units =
    remaining === undefined ? 'The stock can’t be read now' : `${remaining.toLocaleString()} left`;
  say($('stock'), state === 'ended' ? 'The sale is over' : units);
  const price =
    priceMinor === undefined || !currency
      ? ''
      : new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(priceMinor / 100);
  say($('price'), price);
  showQuantities();
  showButton();
  tick();
}

function showQuantities() {
  const { perBuyerLimit } = sale;
  $('amount').hidden = perBuyerLimit === 1;
  const options = Math.min(perBuyerLimit, MOST_LISTED);
  if ($('quantity').length === options) return;
  $('quantity').replaceChildren(...Array.from({ length: options }, (_, i) => new Option(String(i + 1))));
}

/**
 * The button stays usable while the page believes that the sale is sold out: the node knows better. The quantity of a purchase
 * that is not settled can't be changed.
 */
function showButton() {
  const button = $('buy');
  const unsettled = pending.get();
  if (unsettled) $('quantity').value = String(unsettled.quantity);
  $('quantity').disabled = isBuying || unsettled !== null;
  button.disabled = isBuying || !sale || sale.state !== 'open';
  say(button, isBuying ? 'One moment …' : 'Buy');
}

function show({ tone, title, text, again }, outcome = {}) {
  const box = document.createElement('div');
  box.className = tone;
  const heading = document.createElement('h2');
  heading.textContent = title;
  const said = document.createElement('p');
  said.textContent = typeof text === 'function' ? text(outcome) : text;
  box.append(heading, said);
  if (again) box.append(button('Try again', () => buy()));
  $('outcome').replaceChildren(box);
}

function button(text, onClick) {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.addEventListener('click', onClick);
  return made;
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
    if (outcome.code === 'unauthenticated') session = undefined;
    show(OUTCOMES[outcome.code] ?? { tone: 'bad', title: outcome.title ?? outcome.code, text: '' }, outcome);
    await readOrders();
  } catch (error) {
    console.warn(error);
    show(OUTCOMES.unknown);
  } finally {
    isBuying = false;
    showButton();
  }
}

async function settled({ key, quantity }) {
  let token = sessionStorage.getItem(`token:${saleId}`) ?? undefined;
  for (let asked = 1; ; asked++) {
    const outcome = await client.purchase({ saleId, quantity, key, purchaseToken: token });
    if (asked >= ASKS) return outcome;
    if (outcome.code === 'token_required' || outcome.code === 'token_invalid') {
      show({ tone: 'info', title: 'You are being admitted', text: 'This takes a few seconds.' });
      const admitted = await purchaseToken(client, saleId);
      if (admitted.code !== 'issued') return admitted;
      token = admitted.token;
      sessionStorage.setItem(`token:${saleId}`, token);
    } else if (outcome.code === 'unknown' || outcome.code === 'internal') {
      show({ tone: 'info', title: 'The answer got lost', text: 'Asking again. You will not buy twice.' });
    } else return outcome;
  }
}

async function readOrders() {
  const found = await client.ordersOf(saleId);
  if (found.code !== 'found') return;
  orders = found.orders;
  showOrders();
}

function showOrders() {
  $('orders').hidden = orders.length === 0;
  const focused = document.activeElement?.dataset?.does;
  $('list').replaceChildren(...orders.map(orderItem));
  if (focused) document.querySelector(`[data-does="${focused}"]`)?.focus();
  tick();
}

function orderItem({ orderId, quantity, status, expiresAt, refundDue }) {
  const item = document.createElement('li');
  const line = document.createElement('p');
  line.className = 'row';
  const name = document.createElement('span');
  name.textContent = `Order ${orderId}, ${quantity}\u00a0${quantity === 1 ? 'unit' : 'units'}`;
  const badge = document.createElement('span');
  badge.className = `badge is-${status}`;
  badge.textContent = STATUSES[status];
  line.append(name, badge);
  item.append(line);
  if (refundDue) item.append(text('The money is paid back to you.'));
  if (status === 'unpaid') {
    if (expiresAt) {
      const until = text('');
      until.dataset.until = expiresAt;
      item.append(until);
    }
    const actions = document.createElement('p');
    actions.className = 'actions';
    actions.append(
      action('Pay', orderId, () => pay(orderId)),
      action('Cancel', orderId, () => cancel(orderId)),
    );
    item.append(actions);
  }
  return item;
}

function action(verb, orderId, run) {
  const made = button(verb, run);
  made.dataset.does = `${verb}-${orderId}`;
  made.setAttribute('aria-label', `${verb} order ${orderId}`);
  return made;
}

function text(said) {
  const made = document.createElement('p');
  made.className = 'soft';
  made.textContent = said;
  return made;
}

async function pay(orderId) {
  const answer = await fetch(`orders/${orderId}/pay`, { method: 'POST' });
  const { code } = answer.ok ? {} : await answer.json().catch(() => ({}));
  if (answer.ok) say($('said'), `Order ${orderId} is paid. Thank you!`);
  else if (code === 'expired')
    say($('said'), `Order ${orderId} was not paid in time, and its units are gone.`);
  else say($('said'), `Order ${orderId} could not be paid. Try again.`);
  await readOrders();
}

async function cancel(orderId) {
  const { code } = await client.cancel(orderId);
  say(
    $('said'),
    code === 'done' ? `Order ${orderId} is cancelled.` : `Order ${orderId} can’t be cancelled now.`,
  );
  await readOrders();
}

/** What depends on the time. The node decides when the sale opens; the page only counts down to it. */
function tick() {
  for (const element of document.querySelectorAll('[data-until]')) {
    const left = Date.parse(element.dataset.until) - Date.now();
    say(element, left > 0 ? `Pay within ${duration(left)}` : 'The time to pay is over');
  }
  if (!sale) return;
  const { state, startsAt, endsAt } = sale;
  const to = state === 'scheduled' ? startsAt : endsAt;
  const left = to === undefined ? 0 : Date.parse(to) - Date.now();
  if (state === 'ended' || to === undefined) say($('window'), '');
  else if (state === 'scheduled') say($('window'), left > 0 ? `Opens in ${duration(left)}` : 'Opens now …');
  else say($('window'), left > 0 ? `Ends in ${duration(left)}` : '');
}

function duration(ms) {
  const seconds = Math.ceil(ms / 1_000);
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit));
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** Orders that the node is about to change by itself: it confirms them, or their time to pay is over. */
function isMoving({ status, expiresAt }) {
  return status === 'accepted' || (status === 'unpaid' && expiresAt && Date.parse(expiresAt) < Date.now());
}

async function follow() {
  for await (const update of client.followSale(saleId)) {
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
        show(OUTCOMES.unknown_sale);
        showButton();
      }
    }
  }
}

$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  void buy();
});
setInterval(tick, 1_000);
setInterval(() => {
  if (orders.some(isMoving)) readOrders().catch(console.warn);
}, POLL_MS);
follow().catch((error) => {
  console.error(error);
  say($('live'), 'not live');
});
await readOrders().catch(console.warn);
if (pending.get()) {
  show({ tone: 'info', title: 'You were buying', text: 'Asking how it ended.' });
  await buy();
}
