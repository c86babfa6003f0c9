import { describeMachine, machineText } from '../../bench/support/machine.ts';
import { type Align, columns, number, plural } from '../../src/cli/terminal/output.ts';
import type { ChaosOptions } from './options.ts';
import type { RoundResult } from './round.ts';
import type { Schedule } from './schedule.ts';

export interface Row {
  readonly schedule: Schedule;
  /** Why the fault could not be run here. */
  readonly missing: string | undefined;
  readonly rounds: RoundResult[];
  /** The promises that were broken. */
  readonly broken: string[];
}

const HEAD = [
  'fault',
  'strikes',
  'sold',
  '201',
  '202',
  'unknown, settled',
  'lost 202, reported',
  'oversold',
  'lost 201',
  'limit broken',
  'longest wait s',
  'recovered s',
] as const;
const ALIGN: readonly Align[] = HEAD.map((name) => (name === 'fault' ? 'left' : 'right'));

function rowOf({ schedule, missing, rounds }: Row): string[] {
  const label = `${schedule.name}: ${schedule.what}`;
  if (missing !== undefined) return [`${label}; not run: ${missing}`, ...HEAD.slice(1).map(() => '-')];
  const sum = (count: (result: RoundResult) => number) => rounds.reduce((all, one) => all + count(one), 0);
  const longest = (ms: (result: RoundResult) => number) =>
    (Math.max(0, ...rounds.map(ms)) / 1_000).toFixed(1);
  return [
    label,
    number(sum(({ strikes }) => strikes)),
    `${number(sum(({ sold }) => sold))} of ${number(sum(({ stock }) => stock))}`,
    number(sum(({ served201 }) => served201)),
    number(sum(({ served202 }) => served202)),
    `${number(sum(({ unknown }) => unknown))}, ${number(sum(({ settled }) => settled))}`,
    `${number(sum(({ lostAccepted }) => lostAccepted))}, ${number(sum((r) => r.lostAccepted - r.unreported))}`,
    number(sum(({ oversold }) => oversold)),
    number(sum(({ lostCommitted }) => lostCommitted)),
    number(sum(({ limitBroken }) => limitBroken)),
    longest(({ longestWaitMs }) => longestWaitMs),
    longest(({ recoveryMs }) => recoveryMs),
  ];
}

/** The figures on one line, each with its name, because the table with the names comes only at the end. */
export function progressText(row: Row): string {
  if (row.missing !== undefined) return `not run: ${row.missing}`;
  const figures = rowOf(row).slice(1);
  return HEAD.slice(1)
    .map((name, i) => `${name}: ${figures[i]}`)
    .join('; ');
}

export function report(rows: readonly Row[], options: ChaosOptions) {
  const all = rows.flatMap(({ rounds }) => rounds);
  const sum = (count: (result: RoundResult) => number) => all.reduce((total, one) => total + count(one), 0);
  const broken = rows.flatMap(({ schedule, broken }) => broken.map((what) => `${schedule.name}: ${what}`));
  const notRun = rows.flatMap(({ schedule, missing }) =>
    missing === undefined ? [] : [{ fault: schedule.name, why: missing }],
  );
  const figures = {
    faults: sum(({ strikes }) => strikes),
    kinds: rows.length - notRun.length,
    oversold: sum(({ oversold }) => oversold),
    lostCommitted: sum(({ lostCommitted }) => lostCommitted),
    limitBroken: sum(({ limitBroken }) => limitBroken),
    unsettled: sum(({ unsettled }) => unsettled),
    lostAccepted: sum(({ lostAccepted }) => lostAccepted),
    unreported: sum(({ unreported }) => unreported),
  };
  const machine = describeMachine({ wrk: false });
  const held = broken.length === 0 && figures.faults > 0;
  const text = [
    `${machineText(machine)}; seed ${options.seed}`,
    '',
    columns(rows.map(rowOf), { head: HEAD, align: ALIGN }),
    '',
    `${plural(figures.faults, 'fault')} of ${plural(figures.kinds, 'kind')}: ${verdictText(figures)}`,
    ...broken.map((line) => `BROKEN ${line}`),
  ].join('\n');
  const json = {
    ...figures,
    held,
    broken,
    notRun,
    rows: rows.map(({ schedule, rounds, broken }) => ({
      fault: schedule.name,
      what: schedule.what,
      rounds,
      broken,
    })),
    seed: options.seed,
    machine,
  };
  return { text, json, held };
}

function verdictText(figures: {
  oversold: number;
  lostCommitted: number;
  limitBroken: number;
  unsettled: number;
}) {
  const { oversold, lostCommitted, limitBroken, unsettled } = figures;
  return `${oversold} oversold, ${lostCommitted} lost 201, ${limitBroken} limits broken, ${unsettled} unsettled.`;
}
