/** The results of a run: the ratios with a bar, then every line, as tables and as one object. */
import { columns, plural } from '../../src/cli/terminal/output.ts';
import { BenchFailure } from '../support/failure.ts';
import { count, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { INSIDE_MS, type Line, type Lines } from './lines.ts';
import { type LocksParameters, OPTIONS } from './options.ts';
import type { Task } from './tasks.ts';

interface Ratios {
  readonly segments16OverOne: number;
  readonly segments64OverOne: number;
  /** Redis commands for each critical section: waking relative to spinning. */
  readonly wakeupCommandShare: number;
  /** Purchases/s from one segment under its lock: the lane relative to one by one. */
  readonly combiningGain: number;
}

const AT_LEAST: Partial<Ratios> = { segments16OverOne: 14, segments64OverOne: 48, combiningGain: 20 };
const AT_MOST: Partial<Ratios> = { wakeupCommandShare: 0.2 };
/** The number of clients at which spinning and waking are compared, on one lock. */
const SHARE_CLIENTS = 64;

const HEAD = ['clients', 'processes', 'per s', 'samples', 'p50 ms', 'p99 ms', '± %', 'commands each'];

export function report(lines: Lines, parameters: LocksParameters, machine: Machine): BenchResult {
  const ratios = ratiosOf(lines, parameters);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(ratioRows(ratios, parameters), {
      head: ['ratio', 'is', 'bar'],
      align: ['left', 'right', 'left'],
    }),
    ...Object.entries(lines).flatMap(([name, own]) => ['', `${name}:`, table(own)]),
  ];
  return { text: text.join('\n'), json: { ...ratios, ...lines, parameters, machine } };
}

function ratiosOf({ striping, strategies, grid }: Lines, { clients }: LocksParameters): Ratios {
  const [one, sixteen, sixtyFour] = striping;
  const shareClients = Math.min(SHARE_CLIENTS, clients);
  const sharing = (kind: 'spin' | 'wake-up') =>
    find(
      grid,
      (line) =>
        line.task.kind === kind &&
        line.task.segments === 1 &&
        line.task.insideMs === INSIDE_MS &&
        line.clients === shareClients &&
        line.processes === 1,
    );
  const locked = (kind: 'lane' | 'one by one') =>
    find(
      strategies,
      ({ task }) => task.kind === kind && task.strategy === 'lock' && task.insideMs === INSIDE_MS,
    );
  return {
    segments16OverOne: rounded(sixteen!.perSecond / one!.perSecond, 2),
    segments64OverOne: rounded(sixtyFour!.perSecond / one!.perSecond, 2),
    wakeupCommandShare: rounded(sharing('wake-up').commandsEach / sharing('spin').commandsEach, 4),
    combiningGain: rounded(locked('lane').perSecond / locked('one by one').perSecond, 2),
  };
}

function find(lines: readonly Line[], matches: (line: Line) => boolean): Line {
  const line = lines.find(matches);
  if (!line) throw new BenchFailure('a line that a bar depends on was not measured');
  return line;
}

function ratioRows(ratios: Ratios, { clients }: LocksParameters): string[][] {
  const inside = `${INSIDE_MS} ms inside`;
  const meaning: Record<keyof Ratios, string> = {
    segments16OverOne: `16 segments over one lock, ${inside}, ${clients} clients`,
    segments64OverOne: `64 segments over one lock, ${inside}, ${clients} clients`,
    wakeupCommandShare: `Redis commands of waking over those of spinning, one lock, ${inside}, ${Math.min(SHARE_CLIENTS, clients)} clients`,
    combiningGain: `lane under the lock over one by one, ${inside}, ${clients} clients`,
  };
  return (Object.keys(meaning) as (keyof Ratios)[]).map((name) => [
    meaning[name],
    ratios[name].toFixed(2),
    barOf(name, ratios[name]),
  ]);
}

/** A missed bar does not fail the bench. */
function barOf(name: keyof Ratios, value: number): string {
  const [least, most] = [AT_LEAST[name], AT_MOST[name]];
  const met = (least === undefined || value >= least) && (most === undefined || value < most);
  return `${least === undefined ? `< ${most}` : `≥ ${least}`} ${met ? 'met' : 'not met'}`;
}

function table(lines: readonly Line[]): string {
  const rows = lines.map((line) => [
    taskText(line.task),
    line.clients,
    line.processes,
    count(line.perSecond),
    count(line.samples),
    line.p50Ms.toFixed(2),
    line.p99Ms.toFixed(2),
    line.rmePercent.toFixed(1),
    line.commandsEach.toFixed(2),
  ]);
  return columns(rows, { head: ['what', ...HEAD], align: ['left', ...HEAD.map(() => 'right' as const)] });
}

function taskText(task: Task): string {
  switch (task.kind) {
    case 'spin':
    case 'wake-up':
      return `${task.kind}, ${plural(task.segments, 'segment')}, ${task.insideMs} ms inside`;
    case 'lane':
    case 'one by one':
      return `${task.strategy}, ${task.kind}${task.strategy === 'lock' ? `, ${task.insideMs} ms inside` : ''}`;
    default:
      return task.kind;
  }
}
