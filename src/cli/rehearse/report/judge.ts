/**
 * Go or no-go, with reasons. Each reason has a name, says what was found with its values, and what to do. They are ordered by
 * weight: what was sold wrongly, what the stores may lose, what the crowd met, what was not measured.
 */
import type { VerifyReport } from '../../../operations/verify-report.ts';
import type { Check } from '../../doctor/check.ts';
import { isLagging, REPLICA_ADVICE, replicaText } from '../../doctor/redis-replicas.ts';
import { number, plural } from '../../terminal/output.ts';
import { type Fault, isExcused } from '../crowd/fault.ts';
import type { Plan } from '../crowd/plan.ts';
import { NO_ANSWER } from '../crowd/protocol.ts';
import type { Books } from '../stage/books.ts';
import type { Look } from '../stage/watch.ts';
import { LIMITED, type Second, SOLD, type Totals } from './figures.ts';

export interface Reason {
  readonly name: string;
  readonly what: string;
  readonly advice: string;
}

/** What the rush showed; missing if it was not begun because a check failed. */
export interface Rush {
  readonly seconds: readonly Second[];
  readonly totals: Totals;
  readonly looks: readonly Look[];
  readonly books: Books;
  readonly verify: VerifyReport;
  readonly buyersAsked: number;
  readonly remaining: number | undefined;
  /** From the last answer until all orders were in Postgres; `undefined`: not within the limit. */
  readonly drainSeconds: number | undefined;
  readonly faults: readonly Fault[];
  /** Why nodes of the rehearsal have ended, although it did not end them. */
  readonly failures: readonly string[];
}

/** A crowd that is this late has not sent the wanted rate. */
const MAX_LATE_MS = 100;
/** Up to this share of requests a buyer may have to ask twice. */
const MAX_REPEATED_SHARE = 0.01;
/** How a request of the crowd may end. What is too many of them is judged by itself. */
const EXPECTED = [...SOLD, ...LIMITED, 'sold_out', 'limit_reached', NO_ANSWER];
/** Checks whose warnings are a no-go for a rush. */
const GRAVE_WARNINGS = ['clocks difference', 'postgres connections'];

export function judge(plan: Plan, checks: readonly Check[], rush: Rush | undefined): Reason[] {
  return [...(rush ? ofBooks(plan, rush) : []), ...ofChecks(checks), ...(rush ? ofRush(plan, rush) : [])];
}

/** Checks that are a no-go: the crowd is not sent then. */
export function ofChecks(checks: readonly Check[]): Reason[] {
  return checks.flatMap(({ group, name, status, found, advice = '' }) => {
    const id = `${group} ${name}`;
    const isGrave = status === 'fail' || (status === 'warn' && GRAVE_WARNINGS.includes(id));
    return isGrave ? { name: id, what: `${group}: ${name}: ${found}.`, advice } : [];
  });
}

const REPORT_IT = 'Do not open a sale. Keep this report and the logs of the nodes, and ask for help.';

function ofBooks({ stock }: Plan, { books, verify, remaining, totals, drainSeconds }: Rush): Reason[] {
  const { doubled, untold, refused, stored } = books;
  // If every unit is accounted for, orders that are not in Postgres yet are still on their way: see `drain`.
  const lost = drainSeconds === undefined && verify.ok ? [] : books.lost;
  const soldOut = totals.ended.sold_out ?? 0;
  const unanswered = totals.ended[NO_ANSWER] ?? 0;
  const few = (ids: readonly string[]) => ids.slice(0, 5).join(', ');
  return [
    ...(stored > stock
      ? [
          {
            name: 'oversold',
            what: `${number(stored)} orders were sold of ${plural(stock, 'unit')}.`,
            advice: REPORT_IT,
          },
        ]
      : []),
    ...(lost.length > 0
      ? [
          {
            name: 'lost orders',
            what: `${plural(lost.length, 'order')} that buyers were told of are not in Postgres: ${few(lost)}.`,
            advice:
              'Look at the durability of Redis and Postgres (stockade doctor), and at restarts during the rush.',
          },
        ]
      : []),
    ...(doubled.length > 0
      ? [
          {
            name: 'double orders',
            what: `${plural(doubled.length, 'buyer')} got more than one order: ${few(doubled)}.`,
            advice: REPORT_IT,
          },
        ]
      : []),
    ...(untold.length > 0
      ? [
          {
            name: 'untold orders',
            what: `${plural(untold.length, 'order')} exist that no buyer was told of: ${few(untold)}.`,
            advice: REPORT_IT,
          },
        ]
      : []),
    ...(refused.length > 0
      ? [
          {
            name: 'wrong limits',
            what: `${plural(refused.length, 'buyer')} without an order were answered limit_reached: ${few(refused)}.`,
            advice: REPORT_IT,
          },
        ]
      : []),
    ...(remaining !== undefined && remaining > 0 && soldOut > 0 && unanswered === 0
      ? [
          {
            name: 'undersold',
            what: `${plural(remaining, 'unit')} are left, although ${plural(soldOut, 'request')} were refused as sold out.`,
            advice: REPORT_IT,
          },
        ]
      : []),
    ...(verify.ok
      ? []
      : [
          {
            name: 'verify',
            what: `verify found: ${verify.findings.join('; ')}.`,
            advice: 'Run stockade verify on your sales, and read what it says of each finding.',
          },
        ]),
  ];
}

function ofRush(plan: Plan, rush: Rush): Reason[] {
  return [
    ...limits(rush),
    ...lateCrowd(rush),
    ...missingFaults(plan, rush),
    ...endedNodes(rush),
    ...replicas(rush),
    ...answers(plan, rush),
    ...drain(rush),
  ];
}

function missingFaults({ faults: wanted }: Plan, { faults }: Rush): Reason[] {
  const missing = wanted.filter((kind) => !faults.some((fault) => fault.kind === kind));
  if (missing.length === 0) return [];
  return [
    {
      name: 'missing faults',
      what: `The rush had ended before ${missing.join(' and ')} was done.`,
      advice: 'Choose a longer time with --for.',
    },
  ];
}

function endedNodes({ failures }: Rush): Reason[] {
  return failures.map((why) => ({
    name: 'a node ended',
    what: `A node of the rehearsal ended during the rush, and nobody had ended it: ${why}.`,
    advice: 'Look at what ends processes on this machine (memory, limits), and at the reason above.',
  }));
}

function limits({ totals }: Rush): Reason[] {
  const named = LIMITED.filter((code) => (totals.ended[code] ?? 0) > 0);
  if (named.length === 0) return [];
  const found = named.map((code) => `${number(totals.ended[code]!)} ${code}`).join(', ');
  return [
    {
      name: 'limits of admission',
      what: `Admission refused requests of the crowd: ${found} of ${number(totals.requests)}. The whole crowd comes from one address, so this says nothing about the engine.`,
      advice:
        'Rehearse with a RATE_LIMIT_ADDRESS and RATE_LIMIT_CONNECTIONS that one address may use up, or let the crowd’s address pass. Do not raise them for the sale because of this.',
    },
  ];
}

function lateCrowd({ seconds }: Rush): Reason[] {
  const late = seconds.filter(({ lateMs }) => lateMs > MAX_LATE_MS);
  if (late.length === 0) return [];
  const worst = Math.max(...late.map(({ lateMs }) => lateMs));
  return [
    {
      name: 'the crowd was late',
      what: `The crowd itself could not keep up: in ${plural(late.length, 'second')} it sent requests up to ${number(Math.round(worst))} ms late. So this rehearsal says nothing about the nodes at this rate.`,
      advice:
        'Run the rehearsal on a machine of its own, with more cores than the crowd needs, and send it to running nodes with --url; or lower --rate.',
    },
  ];
}

function replicas({ looks }: Rush): Reason[] {
  const lagging = looks.flatMap((look) => look.redis.flatMap((one) => one.replicas)).filter(isLagging);
  if (lagging.length === 0) return [];
  const worst = lagging.reduce((one, other) => (other.silentSeconds > one.silentSeconds ? other : one));
  return [
    {
      name: 'redis replicas',
      what: `During the rush a replica of Redis fell behind: ${replicaText(worst)}.`,
      advice: REPLICA_ADVICE,
    },
  ];
}

function answers({ goodMs, rate }: Plan, { totals, seconds: all, faults }: Rush): Reason[] {
  const seconds = all.filter(({ second }) => !isExcused(second, faults));
  const unanswered = totals.ended[NO_ANSWER] ?? 0;
  const repeated = seconds.reduce((sum, second) => sum + second.repeated, 0);
  const due = seconds.reduce((sum, second) => sum + second.due, 0);
  const slow = seconds.filter(({ p99Ms }) => (p99Ms ?? 0) > goodMs);
  const worst = Math.max(0, ...slow.map(({ p99Ms }) => p99Ms ?? 0));
  const strange = Object.entries(totals.ended).filter(([code]) => !EXPECTED.includes(code));
  return [
    ...strange.map(([code, times]) => ({
      name: `answers ${code}`,
      what: `${plural(times, 'request')} were answered ${code}, which no buyer of a sale should see.`,
      advice:
        'Look at who has changed the sale meanwhile, at what stands before the nodes (a gateway, a firewall), and at how buyers are identified (BUYER_AUTH).',
    })),
    ...(unanswered > 0
      ? [
          {
            name: 'requests without an answer',
            what: `${plural(unanswered, 'request')} got no definite answer, although their buyers asked again and again.`,
            advice: 'Look at the logs of the nodes, and at the stores in these seconds.',
          },
        ]
      : []),
    ...(repeated > MAX_REPEATED_SHARE * due
      ? [
          {
            name: 'overload',
            what: `Buyers had to ask again ${number(repeated)} times in ${plural(due, 'request')} (in all: ${countsText(totals.repeated)}).`,
            advice: `At ${number(rate)} requests/s this is too small: add nodes or workers where Node is busy, segments or primaries where Redis is.`,
          },
        ]
      : []),
    ...(slow.length > 0
      ? [
          {
            name: 'slow answers',
            what: `In ${plural(slow.length, 'second')} of ${seconds.length}, the slowest hundredth of the answers took longer than ${number(goodMs)} ms (up to ${number(Math.round(worst))} ms).`,
            advice:
              'See in the report what was busy in these seconds: the nodes, Redis, or the way to Postgres (orders behind).',
          },
        ]
      : []),
  ];
}

function drain({ drainSeconds, books }: Rush): Reason[] {
  if (drainSeconds !== undefined) return [];
  return [
    {
      name: 'slow drain',
      what: `After the rush, not all orders came into Postgres in time: ${plural(books.lost.length, 'order')} that buyers were told of are missing.`,
      advice: 'Look at sync: Postgres may be too slow, or no process runs sync (SYNC=off).',
    },
  ];
}

export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([code, times]) => `${number(times)} ${code}`)
    .join(', ');
}

/** The first second in which something left its bounds, in one sentence; `undefined`: nothing did. */
export function brokeFirst(
  { goodMs }: Plan,
  { seconds, faults }: Pick<Rush, 'seconds' | 'faults'>,
): string | undefined {
  for (const one of seconds) {
    if (isExcused(one.second, faults)) continue;
    const what = brokenIn(one, goodMs);
    if (what.length > 0)
      return `In second ${one.second + 1}, at ${number(one.due)} requests/s, ${what.join('; ')}.`;
  }
  return undefined;
}

function brokenIn(one: Second, goodMs: number): string[] {
  return [
    ...(one.lateMs > MAX_LATE_MS ? [`the crowd itself was ${Math.round(one.lateMs)} ms late`] : []),
    ...(one.limited > 0 ? [`admission refused ${plural(one.limited, 'request')}`] : []),
    ...(one.open > 0 ? [`${plural(one.open, 'request')} never got a definite answer`] : []),
    ...(one.repeated > MAX_REPEATED_SHARE * one.due
      ? [`buyers had to ask again ${plural(one.repeated, 'time')}`]
      : []),
    ...((one.p99Ms ?? 0) > goodMs
      ? [`1 in 100 answers took longer than ${number(Math.round(one.p99Ms!))} ms`]
      : []),
  ];
}
