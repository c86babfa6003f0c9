/** What the page says about a place in the queue, and about a request for one. */
import { duration } from './elements.js';

const PEOPLE = { one: 'person is ahead of you', many: 'people are ahead of you' };
const BEHIND = 'If you still want it, get a new place. It is behind all others.';
const [MINUTE_S, HOUR_S] = [60, 3_600];
/** An estimate is told in a unit that it has at least two of. */
const STEPS = [
  { from: 2 * HOUR_S, seconds: HOUR_S, one: 'hour', many: 'hours' },
  { from: 2 * MINUTE_S, seconds: MINUTE_S, one: 'minute', many: 'minutes' },
  { from: 0, seconds: 1, one: 'second', many: 'seconds', round: 10 },
];

const people = (count, { one, many } = PEOPLE) => ({ figure: count, what: count === 1 ? one : many });
export const units = (count) => (count === 1 ? '1 unit' : `${count.toLocaleString()} units`);

/** @returns for example "about 3 minutes, give or take 1" */
export function estimateWords(estimateSeconds, errorSeconds) {
  const { seconds, one, many, round = 1 } = STEPS.find(({ from }) => estimateSeconds >= from);
  const inSteps = (value) => Math.max(round, Math.round(value / seconds / round) * round);
  const count = inSteps(estimateSeconds);
  const error = errorSeconds === undefined ? '' : `, give or take ${inSteps(errorSeconds)}`;
  return `about ${count} ${count === 1 ? one : many}${error}`;
}

/**
 * @typedef {{ tone: 'good' | 'info' | 'warn', title: string, text: string, hint?: string, figure?: number | string,
 *   what?: string, waits?: boolean }} PlaceWords
 *   `figure` and `what`: a number in large type, and what it counts. `waits`: the place can be left
 * @param place as the node tells it
 * @param sale as the node tells it; `undefined` if it is gone
 * @param leftMs until the offer ends
 * @returns {PlaceWords}
 */
export function placeWords(place, sale, leftMs) {
  return WORDS[place.state](place, sale, leftMs);
}

const WORDS = {
  waiting: (place, sale) => (sale?.state === 'scheduled' ? lobby(place, sale) : waiting(place, sale)),

  hopeless: ({ ahead }, sale) => ({
    tone: 'warn',
    title: 'It may not be enough for you',
    ...people(ahead),
    text: 'As things are, nothing will be left when it is your turn. Stay if you want what others give back.',
    hint: keepOpen(sale),
    waits: true,
  }),

  offered: ({ quantity, offer }, sale, leftMs) => ({
    tone: 'good',
    title: 'It is your turn',
    ...(leftMs !== undefined && offerTime(leftMs, sale)),
    text:
      offer.quantity < quantity
        ? `You asked for ${quantity}. ${units(offer.quantity)} could be set aside for you. Buy in time, or give back.`
        : `${units(offer.quantity)} ${offer.quantity === 1 ? 'is' : 'are'} set aside for you. Buy in time, or the next person gets the chance.`,
    hint: sale?.state === 'paused' ? 'The sale is paused. Your time does not run out before it goes on.' : '',
    waits: true,
  }),

  bought: () => ({
    tone: 'good',
    title: 'You have bought',
    text: 'Your turn is over. Your order is below.',
  }),

  lapsed: () => ({
    tone: 'warn',
    title: 'Your time to buy is over',
    text: `You did not buy in time, so the next person got the chance. You have bought nothing. ${BEHIND}`,
  }),

  left: ({ reason }) => LEFT[reason] ?? LEFT.asked,

  closed: (_, sale) =>
    sale === undefined || sale.state === 'ended'
      ? {
          tone: 'info',
          title: 'The sale ended before it was your turn',
          text: 'You have bought nothing, and need not do anything. Thank you for waiting.',
        }
      : {
          tone: 'info',
          title: 'The queue has been removed',
          text: 'Everybody can buy at once now, and so can you.',
        },
};

const LEFT = {
  asked: {
    tone: 'info',
    title: 'You have left the queue',
    text: `You have bought nothing. ${BEHIND}`,
  },
  absent: {
    tone: 'warn',
    title: 'Your turn came while you were away',
    text: `This page was closed or not connected, so the next person got the chance. ${BEHIND} Keep this page open.`,
  },
  limit: {
    tone: 'info',
    title: 'You have all that one buyer may have',
    text: 'So your place went to the next person. Your orders are below.',
  },
};

function lobby({ rank, ahead, entries }, sale) {
  const hint =
    sale.queue?.presenceSeconds === 0
      ? 'You keep your place if you close this page.'
      : 'You keep your place if you close this page. Be back when the sale opens.';
  if (rank === undefined)
    return {
      tone: 'info',
      title: 'You take part in the draw',
      ...people(entries ?? 1, { one: 'person takes part so far', many: 'people take part so far' }),
      text: 'Your place will be drawn when the sale opens. Everybody has the same chance, however early they came.',
      hint,
      waits: true,
    };
  return {
    tone: 'info',
    title: `You have place ${rank.toLocaleString()}`,
    ...(ahead > 0 && people(ahead)),
    text: ahead > 0 ? 'It will be your turn after them, when the sale is open.' : 'You are the first.',
    hint,
    waits: true,
  };
}

function waiting({ rank, ahead, estimateSeconds, estimateErrorSeconds }, sale) {
  const words = { tone: 'info', title: 'You are in the queue', hint: keepOpen(sale), waits: true };
  if (rank === undefined) return { ...words, text: 'The places are being drawn.' };
  if (sale?.state === 'paused')
    return { ...words, ...people(ahead), text: 'The sale is paused. You keep your place until it goes on.' };
  if (ahead === 0)
    return { ...words, title: 'You are next', text: 'What becomes free now is offered to you first.' };
  const text =
    estimateSeconds === undefined
      ? 'It is too early to say how long it will take.'
      : `It will be your turn in ${estimateWords(estimateSeconds, estimateErrorSeconds)}.`;
  return { ...words, ...people(ahead), text };
}

function keepOpen(sale) {
  const seconds = sale?.queue?.presenceSeconds ?? 0;
  return seconds === 0
    ? 'You keep your place if you close this page. Look in again: when it is your turn, you have limited time.'
    : 'Keep this page open. Whoever is away when it is their turn is passed over.';
}

function offerTime(leftMs, sale) {
  if (sale?.state === 'paused') return {};
  return leftMs > 0
    ? { figure: duration(leftMs), what: 'left to buy' }
    : { figure: '0 s', what: 'left: your time is ending' };
}

/**
 * What the page says if a place is not given, read or left. All other codes are in outcomes.js.
 * @type {Record<string, { tone: 'info' | 'warn', title: string, text: string, again?: boolean }>}
 */
export const PLACE_REFUSALS = {
  queue_full: {
    tone: 'warn',
    title: 'The queue is full',
    text: 'No more people can wait at the moment. Try again in half a minute: somebody may have left.',
    again: true,
  },
  limit_reached: {
    tone: 'info',
    title: 'That would be more than one buyer may have',
    text: 'With the units that you have already, these are too many. If one buyer may have more than you have, choose fewer.',
  },
  no_queue: {
    tone: 'info',
    title: 'There is no queue any more',
    text: 'You can buy without a place now.',
  },
  no_place: {
    tone: 'warn',
    title: 'You have no place any more',
    text: 'The shop has removed it. You can get a new one.',
  },
  busy: {
    tone: 'warn',
    title: 'Very many people are here',
    text: 'Your request was not handled. Try again in a moment: a place that you have stays yours.',
    again: true,
  },
  unavailable: {
    tone: 'warn',
    title: 'The shop can’t be reached at the moment',
    text: 'Try again in a moment. A place that you have stays yours.',
    again: true,
  },
  unknown: {
    tone: 'warn',
    title: 'The answer got lost',
    text: 'Try again. You get one place, however often you ask.',
    again: true,
  },
  internal: {
    tone: 'warn',
    title: 'Something went wrong in the shop',
    text: 'Try again. You get one place, however often you ask.',
    again: true,
  },
  rate_limited: {
    tone: 'warn',
    title: 'Too many attempts',
    text: 'Wait a moment, then try again. A place that you have stays yours.',
    again: true,
  },
};
