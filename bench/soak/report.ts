/** The results of a soak, as a table and as one object, with a verdict on each figure. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type SoakParameters } from './options.ts';
import type { Soak } from './run-all.ts';
import type { Sample } from './samples.ts';
import { type Sampled, type Trend, trendOf } from './trend.ts';

const MB = 1024 * 1024;
/** With fewer samples, a trend can't be judged. */
const LEAST_JUDGED = 30;

interface Figure {
  readonly title: string;
  readonly of: (sample: Sample) => number;
  readonly unit: number;
  /** Growth up to this still counts as flat, in the figure's unit. */
  readonly least: number;
  /** The figure includes garbage, so only the lowest value of each minute counts, which comes after a collection. */
  readonly isMemory?: true;
}

const MEMORY = { unit: MB, isMemory: true } as const;
const LOW_OF_SECONDS = 60;

const FIGURES: Readonly<Record<string, Figure>> = {
  resident: { title: 'resident memory, MB', of: (s) => s.residentBytes, least: 16, ...MEMORY },
  workerHeaps: { title: 'heaps of the workers, MB', of: (s) => s.workerHeapBytes, least: 8, ...MEMORY },
  mainHeap: { title: 'heap of the main thread, MB', of: (s) => s.mainHeapBytes, least: 8, ...MEMORY },
  handles: { title: 'handles', of: (s) => s.handles, unit: 1, least: 4 },
  connections: { title: "buyers' connections", of: (s) => s.connections, unit: 1, least: 4 },
  redisClients: { title: 'clients of Redis', of: (s) => s.redisClients, unit: 1, least: 1 },
  postgres: { title: 'connections to Postgres', of: (s) => s.postgresConnections, unit: 1, least: 1 },
  waiting: {
    title: 'rows that wait (events, pages, returns)',
    of: (s) => s.waitingRows,
    unit: 1,
    least: 100,
  },
  underWay: { title: 'purchases under way', of: (s) => s.underWay, unit: 1, least: 8 },
};

export interface Judged {
  readonly trends: Readonly<Record<string, Trend>>;
  /** `undefined`: the soak was too short to judge. */
  readonly isFlat: boolean | undefined;
}

export function judge({ samples }: Soak, { warmupSeconds }: SoakParameters): Judged {
  const judged = samples.filter(({ seconds }) => seconds >= warmupSeconds);
  const kept = judged.length > 0 ? judged : samples;
  const trends = Object.fromEntries(
    Object.entries(FIGURES).map(([name, { of, unit, least, isMemory }]) => {
      const values = kept.map((sample) => ({ seconds: sample.seconds, value: of(sample) / unit }));
      return [name, trendOf(isMemory ? lowsOf(values) : values, least)];
    }),
  );
  const isFlat = Object.values(trends).every((trend) => trend.isFlat);
  return { trends, isFlat: kept.length < LEAST_JUDGED ? undefined : isFlat };
}

/** The lowest sample of each minute. */
function lowsOf(samples: readonly Sampled[]): Sampled[] {
  const lows = new Map<number, Sampled>();
  for (const sample of samples) {
    const minute = Math.floor(sample.seconds / LOW_OF_SECONDS);
    const low = lows.get(minute);
    if (!low || sample.value < low.value) lows.set(minute, sample);
  }
  return [...lows.values()];
}

export function report(
  soak: Soak,
  { trends, isFlat }: Judged,
  parameters: SoakParameters,
  machine: Machine,
): BenchResult {
  const { before, after, orders, deeds, sales, answers, tables, seconds } = soak;
  const trendRows = Object.entries(FIGURES).map(([name, { title, of, unit }]) => {
    const { median, growth, allowed, isFlat: flat } = trends[name]!;
    const shown = (value: number) => (unit === 1 ? rounded(value, 1) : value.toFixed(1));
    const ends = [of(before) / unit, of(after) / unit].map(shown);
    return [title, ...ends, shown(median), shown(growth), shown(allowed), flat ? 'flat' : 'grows'];
  });
  const redisPerOrder = (after.redisBytes - before.redisBytes) / orders;
  const verdict =
    isFlat === undefined
      ? 'Too short to judge a trend.'
      : isFlat
        ? 'Flat: nothing grows with time.'
        : 'NOT FLAT.';
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    `${count(deeds)} requests in ${count(seconds)} s: ${count(orders)} orders in ${sales} sales`,
    columns(
      [...answers].sort(([a], [b]) => a.localeCompare(b)).map(([name, n]) => [name, count(n)]),
      { head: ['request and answer', 'times'], align: ['left', 'right'] },
    ),
    '',
    columns(trendRows, {
      head: ['figure', 'before', 'after', 'median', 'growth', 'allowed', ''],
      align: ['left', 'right', 'right', 'right', 'right', 'right', 'left'],
    }),
    '',
    `Redis holds ${count(redisPerOrder)} bytes more per order: its buyers' records stay with the sale.`,
    columns(
      tables.map(({ name, rows, bytes }) => [name, count(rows), (bytes / MB).toFixed(1)]),
      { head: ['table', 'rows', 'MB'], align: ['left', 'right', 'right'] },
    ),
    '',
    verdict,
  ];
  const json = {
    isFlat,
    trends,
    before,
    after,
    orders,
    deeds,
    sales,
    answers: Object.fromEntries(answers),
    redisBytesPerOrder: rounded(redisPerOrder, 1),
    tables,
    parameters,
    machine,
  };
  return { text: text.join('\n'), json };
}
