/** The buyer's orders in the sale: paying and cancelling them, and what their status means. */
import { $, button, duration, say, softText } from './elements.js';
import { STATUSES } from './outcomes.js';
import { client, now, saleId } from './shop.js';

const POLL_MS = 2_000;
/** Orders that count for the limit. */
const HELD = ['accepted', 'unpaid', 'paid', 'redeemed'];

/** The node pays or cancels an order once, however often it is asked. */
const AGAIN = 'Look below, and try again.';

let orders = [];

/** @returns how many units the buyer holds, as the page knows it */
export function unitsHeld() {
  return orders.reduce((sum, { status, quantity }) => sum + (HELD.includes(status) ? quantity : 0), 0);
}

export async function readOrders() {
  const found = await client.ordersOf(saleId);
  if (found.code !== 'found') return;
  // An offer is shown as the buyer's turn, and is no order before it is accepted.
  orders = found.orders.filter(({ status }) => status !== 'offered');
  showOrders();
}

function showOrders() {
  $('orders').hidden = orders.length === 0;
  const focused = document.activeElement?.dataset?.does;
  $('list').replaceChildren(...orders.map(orderItem));
  if (focused) document.querySelector(`[data-does="${focused}"]`)?.focus();
  tickOrders();
  dispatchEvent(new Event('orders'));
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
  if (refundDue) item.append(softText('The money is paid back to you.'));
  if (status === 'unpaid') {
    if (expiresAt) {
      const until = softText('');
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

async function pay(orderId) {
  say($('said'), await paying(orderId).catch(() => `No answer came: order ${orderId} may be paid. ${AGAIN}`));
  await readOrders();
}

/** @returns what became of it */
async function paying(orderId) {
  const answer = await fetch(`orders/${orderId}/pay`, { method: 'POST' });
  const told = await answer.json().catch(() => ({}));
  if (answer.ok && told.orderId && told.orderId !== orderId)
    return `Order ${orderId} was paid late. Order ${told.orderId} takes its place and is paid. Thank you!`;
  if (answer.ok) return `Order ${orderId} is paid. Thank you!`;
  if (told.code === 'expired') return `Order ${orderId} was not paid in time, and its units are gone.`;
  return `Order ${orderId} could not be paid. Try again.`;
}

async function cancel(orderId) {
  const { code } = await client.cancel(orderId);
  const said =
    code === 'done'
      ? `Order ${orderId} is cancelled.`
      : code === 'unknown'
        ? `No answer came: order ${orderId} may be cancelled. ${AGAIN}`
        : `Order ${orderId} can’t be cancelled now.`;
  say($('said'), said);
  await readOrders();
}

/** The time to pay. */
export function tickOrders() {
  for (const element of document.querySelectorAll('[data-until]')) {
    const left = Date.parse(element.dataset.until) - now();
    say(element, left > 0 ? `Pay within ${duration(left)}` : 'The time to pay is over');
  }
}

/** Orders that the node is about to change by itself: it confirms them, or their time to pay is over. */
function isMoving({ status, expiresAt }) {
  return status === 'accepted' || (status === 'unpaid' && expiresAt && Date.parse(expiresAt) < now());
}

setInterval(() => {
  if (orders.some(isMoving)) readOrders().catch(console.warn);
}, POLL_MS);
