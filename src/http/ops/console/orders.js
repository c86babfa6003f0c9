// Orders of a sale, with a search; and one order with all that is known of it.
import { call, saleUrl } from './api.js';
import { labelled, show } from './dialogs.js';
import { el, facts, setText, table } from './dom.js';
import { number, time } from './format.js';
import { queryOf, saleHash } from './hash.js';

const PAGE = 50;
const STATUSES = ['offered', 'unpaid', 'paid', 'redeemed', 'cancelled', 'expired', 'refunded', 'rejected'];
const ORDER_ID = /^\d{1,19}$/;

export function ordersTab(saleId, query) {
  const results = el('div', {}, el('p', { class: 'note' }, 'Reading the orders …'));
  readPage(saleId, query, results).catch((error) =>
    results.replaceChildren(el('p', { class: 'refused' }, error.message)),
  );
  return el('div', {}, searchForm(saleId, query), results);
}

function searchForm(saleId, query) {
  const buyer = el('input', { id: 'search-buyer', name: 'buyer', autocomplete: 'off', spellcheck: 'false' });
  const reference = el('input', {
    id: 'search-reference',
    name: 'reference',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 200,
  });
  const status = el(
    'select',
    { id: 'search-status', name: 'status' },
    el('option', { value: '' }, 'any'),
    ...STATUSES.map((name) => el('option', { value: name }, name)),
  );
  const since = el('input', { id: 'search-since', name: 'since', type: 'datetime-local', step: 1 });
  const until = el('input', { id: 'search-until', name: 'until', type: 'datetime-local', step: 1 });
  const id = el('input', {
    id: 'search-id',
    inputmode: 'numeric',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  buyer.value = query.buyer ?? '';
  reference.value = query.reference ?? '';
  status.value = query.status ?? '';
  since.value = localTime(query.since);
  until.value = localTime(query.until);
  const refused = el('p', { class: 'refused', role: 'alert' });
  const form = el(
    'form',
    { class: 'filter', 'aria-label': 'Search orders' },
    labelled(buyer, 'Buyer'),
    labelled(reference, 'Reference'),
    labelled(status, 'Status'),
    labelled(since, 'Bought from'),
    labelled(until, 'Bought before'),
    labelled(id, 'Or order id'),
    el('button', { type: 'submit' }, 'Search'),
    refused,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    setText(refused, '');
    const orderId = id.value.trim();
    if (orderId === '') {
      location.hash = saleHash(saleId, 'orders', {
        buyer: buyer.value.trim(),
        reference: reference.value,
        status: status.value,
        since: isoTime(since.value),
        until: isoTime(until.value),
      });
      return;
    }
    if (!ORDER_ID.test(orderId)) setText(refused, 'An order id has digits only.');
    else await showOrder(orderId).catch((error) => setText(refused, error.message));
  });
  return form;
}

async function readPage(saleId, query, results) {
  const url = `${saleUrl(saleId)}/orders${queryOf({ ...query, limit: PAGE })}`;
  const { orders, next } = await call('GET', url);
  const isFiltered = Object.keys(query).some((name) => name !== 'after');
  const link = (text, more) =>
    el('a', { class: 'button', href: saleHash(saleId, 'orders', { ...query, ...more }) }, text);
  const nothing =
    next !== undefined
      ? 'No match among the orders that were read for this page. Older ones follow.'
      : isFiltered || query.after
        ? 'No order matches.'
        : 'No orders are in Postgres yet.';
  results.replaceChildren(
    orders.length === 0
      ? el('p', { class: 'note' }, nothing)
      : orderTable('Orders, the newest first', orders),
    el(
      'p',
      { class: 'pages' },
      query.after ? link('Newest orders', { after: undefined }) : undefined,
      next === undefined ? undefined : link('Older orders', { after: next }),
    ),
  );
}

/** @param {boolean} withSale whether the orders may be of several sales */
export function orderTable(caption, orders, withSale = false) {
  const headings = [
    'Order',
    ...(withSale ? ['Sale'] : []),
    { text: 'Buyer', class: 'long' },
    { text: 'Units', class: 'n' },
    'Status',
    'In Postgres since',
    { text: 'Reference', class: 'long' },
  ];
  return table(caption, headings, orders, (order) => [
    orderButton(order.orderId),
    ...(withSale ? [el('a', { href: saleHash(order.saleId, 'orders') }, order.saleId)] : []),
    order.buyerId,
    number(order.quantity),
    order.refundDue ? `${order.status}, refund due` : order.status,
    time(order.committedAt),
    order.reference ?? '',
  ]);
}

export function orderButton(orderId) {
  const button = el('button', { type: 'button', class: 'link' }, orderId);
  button.addEventListener('click', () => {
    showOrder(orderId).catch((error) =>
      show(`Order ${orderId}`, el('p', { class: 'refused' }, error.message)),
    );
  });
  return button;
}

async function showOrder(orderId) {
  const order = await call('GET', `v1/orders/${orderId}`);
  const { changes = [] } = order;
  show(
    `Order ${orderId}`,
    facts([
      ['Sale', el('a', { href: saleHash(order.saleId) }, order.saleId)],
      ['Buyer', order.buyerId],
      ['Units', number(order.quantity)],
      ['Status', order.refundDue ? `${order.status}, refund due` : order.status],
      ['Paid by', order.payType],
      ['In Postgres since', time(order.committedAt)],
      ['Expires if unpaid', time(order.expiresAt)],
      ['Paid', time(order.paidAt)],
      ['Redeemed', time(order.redeemedAt)],
      ['Cancelled', time(order.cancelledAt)],
      ['Expired', time(order.expiredAt)],
      ['Refunded', time(order.refundedAt)],
      ['Replaced by order', order.retakenBy],
      ['Reference', order.reference],
      ['Metadata', order.metadata && JSON.stringify(order.metadata)],
    ]),
    changes.length === 0
      ? el('p', { class: 'note' }, 'No operator has changed it.')
      : table('Changes by operators', ['When', 'What', 'Who', 'Reason'], changes, (change) => [
          time(change.at),
          change.change,
          change.actor,
          change.reason,
        ]),
  );
}

const isoTime = (local) => (local === '' ? undefined : new Date(local).toISOString());

/** A time in the form of an input of type datetime-local, in the zone of the browser. */
function localTime(iso) {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return '';
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
