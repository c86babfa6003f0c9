/**
 * What a command says, and where: its result on stdout, everything else on stderr. With `--json` the result is one
 * object, so that a script can read stdout as a whole.
 */
import Table from 'cli-table3';

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Progress and remarks: for whoever watches, never part of the result. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

export type Align = 'left' | 'right';
type Cell = string | number | undefined;

export interface ColumnsOptions {
  readonly head?: readonly string[];
  readonly align?: readonly Align[];
}

const NO_BORDERS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
    [side, ''],
    [`${side}-mid`, ''],
    [`${side}-left`, ''],
    [`${side}-right`, ''],
  ]),
);

/** Rows in aligned columns, without borders or colours; a cell that is `undefined` shows as a dash. */
export function columns(rows: readonly (readonly Cell[])[], { head, align }: ColumnsOptions = {}): string {
  const table = new Table({
    ...(head ? { head: [...head] } : {}),
    ...(align ? { colAligns: [...align] } : {}),
    chars: { ...NO_BORDERS, middle: '', 'mid-mid': '' },
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] },
  });
  table.push(...rows.map((row) => row.map((cell) => cell ?? '-')));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

export function number(value: number): string {
  return value.toLocaleString('en');
}

export function plural(count: number, noun: string): string {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}
