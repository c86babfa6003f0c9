import { describeMachine, machineText } from '../../../bench/support/machine.ts';
import { type Align, columns, number, plural } from '../../../src/cli/terminal/output.ts';
import type { Schedule } from '../schedule.ts';
import type { QueueResult } from './round.ts';

export interface QueueRow {
  readonly schedule: Schedule;
  readonly rounds: QueueResult[];
  /** The promises that were broken. */
  readonly broken: string[];
}

const HEAD = [
  'fault',
  'strikes',
  'people',
  'sold',
  'offers',
  'accepted',
  'absent',
  'no answer',
  'oversold',
  'offers lost',
  'accepted, lost',
  'overtaken',
  'false hopes',
  'places lost',
  'without end',
  'free s',
  'free in a fault s',
  'recovered s',
] as const;
const ALIGN: readonly Align[] = HEAD.map((name) => (name === 'fault' ? 'left' : 'right'));

function rowOf({ schedule, rounds }: QueueRow): string[] {
  const sum = (count: (result: QueueResult) => number) => rounds.reduce((all, one) => all + count(one), 0);
  const longest = (ms: (result: QueueResult) => number) =>
    (Math.max(0, ...rounds.map(ms)) / 1_000).toFixed(1);
  return [
    `${schedule.name}: ${schedule.what}`,
    number(sum(({ strikes }) => strikes)),
    number(sum(({ people }) => people)),
    `${number(sum(({ sold }) => sold))} of ${number(sum(({ stock }) => stock))}`,
    number(sum(({ offers }) => offers)),
    number(sum(({ accepted }) => accepted)),
    number(sum(({ absent }) => absent)),
    number(sum(({ unanswered }) => unanswered)),
    number(sum(({ oversold }) => oversold)),
    number(sum(({ reportedLost }) => reportedLost)),
    number(sum(({ lostAccepted }) => lostAccepted)),
    number(sum(({ overtaken }) => overtaken)),
    number(sum(({ falselyHopeless, falselyHopeful }) => falselyHopeless + falselyHopeful)),
    number(sum(({ lostPlaces }) => lostPlaces)),
    number(sum(({ withoutEnd }) => withoutEnd)),
    longest(({ longestFreeMs }) => longestFreeMs),
    longest(({ longestFreeInFaultMs }) => longestFreeInFaultMs),
    longest(({ recoveryMs }) => recoveryMs),
  ];
}

/** The figures on one line, each with its name, because the table with the names comes only at the end. */
export function queueProgressText(row: QueueRow): string {
  const figures = rowOf(row).slice(1);
  return HEAD.slice(1)
    .map((name, i) => `${name}: ${figures[i]}`)
    .join('; ');
}

export function queueReport(rows: readonly QueueRow[], seed: number) {
  const strikes = rows.flatMap(({ rounds }) => rounds).reduce((sum, one) => sum + one.strikes, 0);
  const broken = rows.flatMap(({ schedule, broken }) => broken.map((what) => `${schedule.name}: ${what}`));
  const machine = describeMachine({ wrk: false });
  const held = broken.length === 0 && strikes > 0;
  const text = [
    `${machineText(machine)}; seed ${seed}`,
    '',
    columns(rows.map(rowOf), { head: HEAD, align: ALIGN }),
    '',
    `${plural(strikes, 'fault')} of ${plural(rows.length, 'kind')}: ${plural(broken.length, 'broken promise')}.`,
    ...broken.map((line) => `BROKEN ${line}`),
  ].join('\n');
  const json = {
    faults: strikes,
    kinds: rows.length,
    held,
    broken,
    rows: rows.map(({ schedule, rounds, broken }) => ({
      fault: schedule.name,
      what: schedule.what,
      rounds,
      broken,
    })),
    seed,
    machine,
  };
  return { text, json, held };
}
