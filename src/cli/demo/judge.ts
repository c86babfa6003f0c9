/**
 * The verdict on a run. Three things must agree: the orders in Postgres, the answers that the crowd got, and what had to be
 * sold by the stock and the number of different buyers.
 */
import type { VerifyReport } from '../../operations/sale-operations.ts';
import { number, plural } from '../terminal/output.ts';
import type { CrowdResult } from './tally.ts';
import { NO_ANSWER } from './tally.ts';

/** Whether an answer leaves open whether there is an order. */
const isOpen = (code: string) => ['unknown', 'internal', NO_ANSWER].includes(code) || /^http_5/.test(code);
/** Whether a buyer with this answer was not served, and may ask again. Nobody in this crowd does. */
const isPutOff = (code: string) => isOpen(code) || ['busy', 'unavailable'].includes(code);
const isSale = (code: string) => ['committed', 'accepted'].includes(code);

export interface Verdict {
  readonly requests: number;
  /** Orders in Postgres. */
  readonly committed: number;
  /** Different buyers who have an order in Postgres. */
  readonly distinctBuyers: number;
  /** Units that could be sold: the stock, or one for each buyer who asked, whichever is less. */
  readonly expected: number;
  readonly oversold: number;
  readonly undersold: number;
  readonly verify: 'ok' | 'failed';
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers with an order: `committed` (201) and `accepted` (202) together. */
  readonly accepted: number;
  /** The other answers, by code. */
  readonly refused: Readonly<Record<string, number>>;
  readonly answersAgree: boolean;
  readonly holds: boolean;
  /** What does not hold, in words; empty if all does. */
  readonly failures: readonly string[];
}

export function judge(stock: number, requests: number, crowd: CrowdResult, report: VerifyReport): Verdict {
  // One unit per buyer and per order: orders are units.
  const { committedOrders: committed, distinctBuyers } = report;
  const expected = Math.min(stock, crowd.buyersAsked);
  const accepted = count(crowd.answers, isSale);
  const mustBeSold = Math.min(expected, Math.max(0, crowd.buyersAsked - count(crowd.answers, isPutOff)));
  const oversold = Math.max(0, committed - expected);
  const undersold = Math.max(0, mustBeSold - committed);
  const disagreements = compareAnswers(accepted, crowd, report);
  const failures = [
    ...(oversold > 0 ? [`${number(oversold)} more units sold than the ${number(expected)} for sale`] : []),
    ...(undersold > 0
      ? [`${number(undersold)} of ${plural(mustBeSold, 'unit')} not sold although buyers asked`]
      : []),
    ...(distinctBuyers === committed
      ? []
      : [`${plural(committed, 'order')} belong to only ${plural(distinctBuyers, 'buyer')}`]),
    ...(crowd.requests === requests
      ? []
      : [`only ${number(crowd.requests)} of ${plural(requests, 'request')} ended`]),
    ...(report.ok ? [] : ['verify failed']),
    ...disagreements,
  ];
  return {
    requests: crowd.requests,
    committed,
    distinctBuyers,
    expected,
    oversold,
    undersold,
    verify: report.ok ? 'ok' : 'failed',
    requestsPerSecond: Math.round(crowd.requests / crowd.seconds),
    p50Ms: round(crowd.p50Ms),
    p99Ms: round(crowd.p99Ms),
    accepted,
    refused: Object.fromEntries(Object.entries(crowd.answers).filter(([code]) => !isSale(code))),
    answersAgree: disagreements.length === 0,
    holds: failures.length === 0,
    failures,
  };
}

/**
 * Compares the answers with Postgres. Every order that an answer named must be there, and no other, except for one order per
 * answer that left the outcome open.
 */
function compareAnswers(accepted: number, crowd: CrowdResult, report: VerifyReport): string[] {
  const open = count(crowd.answers, isOpen);
  const { committedOrders, distinctBuyers, rejectedOrders } = report;
  const promised =
    open === 0 ? plural(accepted, 'order') : `${number(accepted)} to ${number(accepted + open)} orders`;
  return [
    ...(committedOrders >= accepted && committedOrders <= accepted + open
      ? []
      : [`answers promise ${promised}, Postgres has ${number(committedOrders)}`]),
    ...(distinctBuyers >= crowd.buyersServed && distinctBuyers <= crowd.buyersServed + open
      ? []
      : [
          `answers promise an order to ${plural(crowd.buyersServed, 'buyer')}, in Postgres ${number(distinctBuyers)} have one`,
        ]),
    ...(crowd.orders === accepted
      ? []
      : [`${plural(accepted, 'answer')} name only ${plural(crowd.orders, 'different order')}`]),
    ...(rejectedOrders === 0
      ? []
      : [`${plural(rejectedOrders, 'order')} taken and then rejected by Postgres`]),
  ];
}

function count(answers: Readonly<Record<string, number>>, counts: (code: string) => boolean): number {
  return Object.entries(answers).reduce((sum, [code, times]) => sum + (counts(code) ? times : 0), 0);
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
