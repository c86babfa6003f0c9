/**
 * What the page says to the buyer about each outcome of a purchase.
 *
 * `again`: whether the same purchase may be tried again, by a button. `text` may be a function of the outcome, whose members
 * depend on its code.
 */
const time = (iso) => new Date(iso).toLocaleString();

/** @type {Record<string, { tone: 'good' | 'info' | 'warn' | 'bad', title: string, text: string | ((outcome: any) => string), again?: boolean }>} */
export const OUTCOMES = {
  committed: {
    tone: 'good',
    title: 'It is yours',
    text: ({ quantity, orderId }) =>
      `${quantity === 1 ? 'One unit' : `${quantity} units`}, order ${orderId}.`,
  },
  accepted: {
    tone: 'good',
    title: 'Your order is accepted',
    text: ({ orderId }) => `Order ${orderId} is being confirmed. You need not do anything.`,
  },
  sold_out: {
    tone: 'warn',
    title: 'Sold out',
    text: 'Nothing is left at the moment. If an order is cancelled, this page shows it at once.',
  },
  insufficient_stock: {
    tone: 'warn',
    title: 'Not enough left',
    text: ({ remaining }) => `Only ${remaining} left. Choose a smaller quantity.`,
  },
  limit_reached: {
    tone: 'info',
    title: 'You have all that one buyer may have',
    text: ({ limit }) => `This sale allows ${limit} to each buyer. Your orders are below.`,
  },
  not_started: {
    tone: 'info',
    title: 'Not open yet',
    text: ({ startsAt }) => `The sale opens at ${time(startsAt)}.`,
  },
  paused: {
    tone: 'warn',
    title: 'The sale is paused',
    text: 'The shop has stopped selling for a moment. This page shows when it goes on.',
  },
  ended: {
    tone: 'info',
    title: 'The sale is over',
    text: ({ endedAt }) => (endedAt ? `It ended at ${time(endedAt)}.` : 'The shop has closed it.'),
  },
  unknown_sale: { tone: 'bad', title: 'There is no such sale', text: 'It may have been removed.' },
  busy: {
    tone: 'warn',
    title: 'Very many people are here',
    text: 'Your request was not handled, and nothing was bought. Try again in a moment.',
    again: true,
  },
  unavailable: {
    tone: 'warn',
    title: 'The shop can’t be reached at the moment',
    text: 'Nothing was bought by this request. Try again in a moment.',
    again: true,
  },
  rate_limited: {
    tone: 'warn',
    title: 'Too many attempts',
    text: 'Wait a moment, then try again. Nothing was bought.',
    again: true,
  },
  unknown: {
    tone: 'warn',
    title: 'We do not know yet whether you got it',
    text: 'The answer got lost. Ask again: you will not buy twice.',
    again: true,
  },
  internal: {
    tone: 'warn',
    title: 'We do not know yet whether you got it',
    text: 'Something went wrong in the shop. Ask again: you will not buy twice.',
    again: true,
  },
  token_required: {
    tone: 'bad',
    title: 'You were not admitted',
    text: 'The shop has not let you in yet. Try again.',
    again: true,
  },
  token_invalid: {
    tone: 'bad',
    title: 'Your admission is no longer valid',
    text: 'Try again to be admitted anew.',
    again: true,
  },
  offer_required: {
    tone: 'info',
    title: 'This sale has a queue',
    text: 'Take a place. You can buy when it is your turn.',
  },
  offer_ended: {
    tone: 'bad',
    title: 'The offer has ended',
    text: 'It was not accepted in time. Take another place.',
  },
  challenge_required: {
    tone: 'bad',
    title: 'The check could not be done',
    text: 'This browser could not solve the task by which the shop keeps out programs.',
    again: true,
  },
  challenge_failed: {
    tone: 'bad',
    title: 'The check was not passed',
    text: 'It took too long, or went wrong. Try again.',
    again: true,
  },
  refused: { tone: 'bad', title: 'The shop has refused this order', text: ({ detail }) => detail ?? '' },
  unauthenticated: {
    tone: 'bad',
    title: 'You are not signed in',
    text: 'Your session has ended. Try again to begin a new one.',
    again: true,
  },
  forbidden: { tone: 'bad', title: 'This is not allowed', text: ({ detail }) => detail ?? '' },
  operators_only: { tone: 'bad', title: 'This is not allowed', text: ({ detail }) => detail ?? '' },
  invalid_request: { tone: 'bad', title: 'The order was not understood', text: ({ detail }) => detail ?? '' },
  payload_too_large: { tone: 'bad', title: 'The order was not understood', text: 'It is too long.' },
  idempotency_mismatch: {
    tone: 'info',
    title: 'You have bought already',
    text: ({ quantity, orderId }) => `Your earlier order ${orderId} is for ${quantity}.`,
  },
};

/** What may still turn out to be an order: the page keeps the key, and asks again with it. */
export const UNSETTLED = ['unknown', 'internal', 'busy', 'unavailable', 'rate_limited', 'unauthenticated'];

/** What the page says about an order, by its status. */
export const STATUSES = {
  accepted: 'being confirmed',
  offered: 'offered to you',
  unpaid: 'to be paid',
  paid: 'paid',
  redeemed: 'used',
  cancelled: 'cancelled',
  expired: 'not paid in time',
  refunded: 'refunded',
  rejected: 'not accepted',
};
