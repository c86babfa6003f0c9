/** Prints the queue of a sale, and its places. */
import {
  COUNTED_OFFERS,
  HEAD_SILENCE_S,
  type PlaceStatus,
  type QueuePhase,
  type QueueStatus,
} from '../../operations/queue/queue-operations.ts';
import { columns, number, plural } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import { ORDERS, settingRows } from './setting-rows.ts';

const PHASES: Readonly<Record<Exclude<QueuePhase, 'stopped' | 'no-head'>, string>> = {
  off: 'none: the queue is off',
  closed: 'none: the sale is closed',
  before: 'none yet: the window of the sale has not opened',
  ended: 'none: the window of the sale has ended',
  paused: 'none: the sale is paused',
  offering: 'free units go to the next places',
};

export function queueSheet(queue: QueueStatus): string {
  const { counts, hopelessFrom, freeUnits, perMinute, draw } = queue;
  const rows: [string, string | number | undefined][] = [
    ['sale', queue.saleId],
    ['queue', queue.order === 'off' ? 'off: buyers buy without a place' : ORDERS[queue.order]],
    ['offers', offersText(queue)],
    [
      'pace',
      perMinute === undefined
        ? 'as many as there are units'
        : `at most ${plural(perMinute, 'offer')} a minute`,
    ],
    ...settingRows(queue),
    ['last minute', lastMinuteText(queue.offersLastMinute)],
    ['places given', number(queue.places)],
    ['waiting', waitingText(queue)],
    ['offered', counts && number(counts.offered)],
    ['bought', counts && number(counts.bought)],
    ['lapsed', counts && number(counts.lapsed)],
    ['left', counts && number(counts.left)],
    [
      'head',
      queue.head === 0 ? 'before the first place' : `rank ${number(queue.head)}: no place up to it waits`,
    ],
    [
      'hopeless',
      hopelessFrom && `rank ${number(hopelessFrom)} and all behind: those before can take every unit`,
    ],
    ['free units', freeUnits === undefined ? 'not known yet' : number(freeUnits)],
    ['offers so far', number(queue.offersMade)],
    ['told at', queue.toldAt],
    ['commitment', queue.order === 'draw' || draw.drawnAt !== undefined ? draw.commitment : undefined],
    [
      'drawn',
      draw.drawnAt === undefined ? undefined : `${draw.drawnAt}, ${plural(draw.entries ?? 0, 'place')}`,
    ],
  ];
  return columns(rows.filter(([, value]) => value !== undefined));
}

function offersText(queue: QueueStatus): string {
  const { phase, stopped, toldAt, freeUnits = 0, waitsForUnits } = queue;
  if (waitsForUnits) {
    const next = `place ${number(waitsForUnits.number)} is next and wants ${plural(waitsForUnits.quantity, 'unit')}`;
    return `${next}; ${number(freeUnits)} ${freeUnits === 1 ? 'is' : 'are'} free, and it waits for more (fit wait)`;
  }
  if (phase === 'stopped') return stopText(queue);
  // An operator who has stopped the offers must see that before they would begin.
  if (stopped && (phase === 'before' || phase === 'paused'))
    return `${PHASES[phase]}. They are ${stopText(queue)}`;
  if (phase === 'no-head') {
    const since = toldAt === undefined ? 'no node has ever told of this queue' : `the last told at ${toldAt}`;
    return `no node makes offers: ${since}. A node that runs does so within ${HEAD_SILENCE_S} s; start one`;
  }
  return PHASES[phase];
}

function stopText({ allowed }: QueueStatus): string {
  return allowed === 0 ? 'stopped' : `stopped; ${plural(allowed, 'more offer')} may still be made`;
}

function waitingText({ counts, behindHead, maxWaiting = Infinity }: QueueStatus): string {
  const text = counts ? number(counts.waiting) : `at most ${number(behindHead)}; to count: --count`;
  return behindHead < maxWaiting ? text : `${text}. The queue is full: new buyers are refused`;
}

function lastMinuteText(offers: number): string {
  return offers < COUNTED_OFFERS ? plural(offers, 'offer') : `at least ${plural(offers, 'offer')}`;
}

/** The columns for these places: `ahead` only if it is known of one. */
export function placeColumns(places: readonly PlaceStatus[]): readonly Column<PlaceStatus>[] {
  const isAheadKnown = places.some(({ ahead }) => ahead !== undefined);
  return [
    { head: 'place', of: (place) => number(place.number), align: 'right' },
    { head: 'buyer', of: ({ buyerId }) => buyerId, isId: true },
    { head: 'units', of: ({ quantity }) => number(quantity), align: 'right', spare: 4 },
    { head: 'state', of: stateText },
    ...(isAheadKnown ? [AHEAD] : []),
    { head: 'given', of: ({ givenAt }) => givenAt, spare: 1 },
    { head: 'ended', of: endText, spare: 3 },
    { head: 'order', of: ({ orderId }) => orderId ?? '', spare: 2 },
  ];
}

const AHEAD: Column<PlaceStatus> = {
  head: 'ahead',
  of: ({ ahead }) => (ahead === undefined ? '' : number(ahead)),
  align: 'right',
};

/** Who had an offer, and has left because that was asked for, has given it back. */
function stateText({ state, reason, orderId }: PlaceStatus): string {
  if (reason === undefined) return state;
  return `${state} (${reason === 'asked' && orderId !== undefined ? 'offer given back' : reason})`;
}

function endText({ offeredUntil, endedAt }: PlaceStatus): string {
  return offeredUntil === undefined ? (endedAt ?? '') : `until ${offeredUntil}`;
}
