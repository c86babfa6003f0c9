/** The report of a rehearsal: one object, which `--json` prints, and its text. page.ts makes a page of it. */
import type { Check } from '../../doctor/check.ts';
import { columns, number, plural } from '../../terminal/output.ts';
import { faultText } from '../crowd/fault.ts';
import type { Plan } from '../crowd/plan.ts';
import type { Second, Totals } from './figures.ts';
import { brokeFirst, countsText, judge, type Reason, type Rush } from './judge.ts';
import { type Size, sizesOf } from './size.ts';

/** What was rehearsed on. */
export interface Stage {
  readonly saleId: string | undefined;
  /** Whether the sale was removed at the end. */
  readonly isRemoved: boolean;
  /** ISO 8601. */
  readonly begunAt: string;
  readonly nodes: readonly string[];
  readonly backend: string | undefined;
  readonly database: string | undefined;
  /** Whether all ran in one process with embedded stores. */
  readonly embedded: boolean;
}

/** Scripts rely on its fields, so they must not change. */
export interface RehearsalReport extends Stage {
  readonly go: boolean;
  readonly reasons: readonly Reason[];
  /** What does not stop the sale, and should be known. */
  readonly remarks: readonly string[];
  readonly brokeFirst: string | undefined;
  readonly plan: Plan;
  readonly sold:
    | { readonly orders: number; readonly left: number | undefined; readonly buyersAsked: number }
    | undefined;
  readonly totals: Totals | undefined;
  readonly drainSeconds: number | undefined;
  readonly sizes: readonly Size[];
  readonly seconds: readonly Second[];
  readonly checks: readonly Check[];
}

export function reportOf(
  stage: Stage,
  plan: Plan,
  checks: readonly Check[],
  rush: Rush | undefined,
): RehearsalReport {
  const reasons = judge(plan, checks, rush);
  return {
    go: reasons.length === 0,
    ...{ reasons, remarks: remarksOf(stage, plan, checks, rush), ...stage, plan, checks },
    brokeFirst: rush && brokeFirst(plan, rush),
    sold: rush && {
      ...{ orders: rush.books.stored, left: rush.remaining, buyersAsked: rush.buyersAsked },
    },
    totals: rush?.totals,
    drainSeconds: rush?.drainSeconds,
    sizes: rush ? sizesOf(plan, rush.totals, rush.books.stored) : [],
    seconds: rush?.seconds ?? [],
  };
}

function remarksOf(
  { embedded, saleId, isRemoved }: Stage,
  plan: Plan,
  checks: readonly Check[],
  rush: Rush | undefined,
): string[] {
  return [
    ...(rush ? [] : ['The crowd was not sent, because a check failed.']),
    ...(embedded
      ? [
          'Everything ran in one process with embedded stores: this is no size for a real sale. Set REDIS_URL and DATABASE_URL to rehearse one.',
        ]
      : []),
    ...(rush?.faults.map(faultText) ?? []),
    ...(rush && plan.nodes > 0
      ? ['The crowd ran on the same machine as the nodes, so its own work is part of every figure.']
      : []),
    ...(rush && plan.nodes === 0 && rush.looks.every(({ nodes }) => nodes.length === 0)
      ? ['The metrics of the nodes were not seen: set OPS_URL and OPS_TOKEN.']
      : []),
    ...(rush && rush.buyersAsked < plan.stock
      ? [
          `The crowd was too small to sell out: ${plural(rush.buyersAsked, 'buyer')} asked for ${plural(plan.stock, 'unit')}, and ${number(rush.books.stored)} were sold.`,
        ]
      : []),
    ...(rush
      ? [
          'Events of the orders were written to Postgres, but not sent to the stream or the webhook: their load was not rehearsed.',
        ]
      : []),
    ...(rush && saleId !== undefined && !isRemoved
      ? [`The sale ${saleId} could not be removed: run \`stockade rehearse --clean\`.`]
      : []),
    ...(rush && saleId !== undefined && isRemoved && !embedded
      ? [
          `The sale is deleted with its orders. As after every deleted sale, a row in deleted_sales stays, and a tombstone in Redis for a day.`,
        ]
      : []),
    ...checks.flatMap(({ group, name, status, found, advice }) =>
      status === 'warn' ? [`${group} ${name}: ${found}. ${advice}`] : [],
    ),
  ];
}

export function reportText(report: RehearsalReport): string {
  const { go, reasons, totals, sold, sizes, drainSeconds, remarks } = report;
  const verdict = go ? 'GO' : `NO-GO: ${plural(reasons.length, 'reason')}`;
  return [
    verdict,
    ...reasons.flatMap(({ what, advice }, i) => [`${i + 1}. ${what}`, `   -> ${advice}`]),
    ...(totals && sold
      ? [
          '',
          columns([
            [
              'requests',
              `${number(totals.requests)}, up to ${number(report.plan.rate)}/s, by ${plural(sold.buyersAsked, 'buyer')}`,
            ],
            [
              'sold',
              `${plural(sold.orders, 'order')}; ${sold.left === undefined ? 'units left not known' : `${number(sold.left)} left`}`,
            ],
            ['answers', countsText(totals.ended)],
            ['asked again', countsText(totals.repeated) || 'never'],
            ['latency', `p50 ${ms(totals.p50Ms)}, p99 ${ms(totals.p99Ms)}, longest ${ms(totals.maxMs)}`],
            [
              'drain',
              drainSeconds === undefined
                ? 'not finished in time'
                : `${drainSeconds.toFixed(1)} s until all orders were in Postgres`,
            ],
            ['broke first', report.brokeFirst ?? 'nothing'],
            ...sizes.map(({ what, text }) => [what, text]),
          ]),
        ]
      : []),
    ...(remarks.length === 0 ? [] : ['', ...remarks.map((remark) => `- ${remark}`)]),
  ].join('\n');
}

export function ms(value: number | undefined): string {
  if (value === undefined) return 'not measured';
  return `${value < 10 ? value.toFixed(1) : number(Math.round(value))} ms`;
}
