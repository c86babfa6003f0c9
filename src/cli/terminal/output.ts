/**
 * A command writes its result to stdout and everything else to stderr. With `--json` the result is one object, so that a
 * script can parse stdout as a whole.
 */
import Table from 'cli-table3';

/** Characters that a terminal executes instead of showing them: C0, DEL, C1, line separators, marks of writing direction. */
const CONTROL_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * The text as one line with all control characters escaped. Titles, reasons and messages of servers come from others: their
 * control characters could change the terminal's settings, hide a line or forge one.
 */
export function visible(text: string): string {
  return text.replace(CONTROL_CHARACTERS, (character) => ESCAPES[character] ?? escaped(character));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Keeps line breaks. They come from this program, because the caller has escaped those of foreign text with `visible`. */
function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

/** Joins lines that contain foreign text. */
export function lines(all: readonly string[]): string {
  return all.map(visible).join('\n');
}

export function print(text: string): void {
  process.stdout.write(`${visibleLines(text)}\n`);
}

let isNeededWhole = false;

/** From now on, the command fails if the reader of stdout goes before it has all of the output. */
export function needWholeOutput(): void {
  isNeededWhole = true;
}

export const isOutputNeededWhole = (): boolean => isNeededWhole;

let tellFailure: ((error: Error) => void) | undefined;

/**
 * For a process that runs until it is stopped: resolves if stdout can't be written. The process must then end in order, because
 * Node aborts if it exits while worker threads have open sockets.
 */
export function outputFailure(): Promise<Error> {
  return new Promise((resolve) => {
    tellFailure = resolve;
  });
}

/** @returns whether the command ends by itself */
export function isLeftToCommand(error: Error): boolean {
  tellFailure?.(error);
  return tellFailure !== undefined;
}

/** `JSON.stringify` escapes C0 only. The other control characters are escaped here; a parser reads the same text. */
export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value).replace(CONTROL_CHARACTERS, escaped)}\n`);
}

/** Prints progress and remarks on stderr; they are never part of the result. */
export function note(text: string): void {
  process.stderr.write(`${visibleLines(text)}\n`);
}

export type Align = 'left' | 'right';
export type Cell = string | number | undefined;

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

/** Rows in aligned columns, without borders or colours. Each cell is one line; an `undefined` cell shows as a dash. */
export function columns(rows: readonly (readonly Cell[])[], { head, align }: ColumnsOptions = {}): string {
  const table = new Table({
    ...(head ? { head: [...head] } : {}),
    ...(align ? { colAligns: [...align] } : {}),
    chars: { ...NO_BORDERS, middle: '', 'mid-mid': '' },
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] },
  });
  table.push(...rows.map((row) => row.map(cellText)));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** As `columns` shows it. */
export function cellText(cell: Cell): string {
  return cell === undefined ? '-' : visible(String(cell));
}

export function number(value: number): string {
  return value.toLocaleString('en');
}

export function plural(count: number, noun: string): string {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}
