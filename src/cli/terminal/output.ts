/**
 * What a command says, and where: its result on stdout, everything else on stderr. With `--json` the result is one
 * object, so that a script can read stdout as a whole.
 */
import Table from 'cli-table3';

/** What a terminal obeys or turns around instead of showing it: C0, DEL, C1, line separators, marks of writing direction. */
const OBEYED = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * One line, and nothing in it that is not shown: titles, reasons and messages of servers are others' words, which could
 * set a terminal, hide a line or put in another one.
 */
export function visible(text: string): string {
  return text.replace(OBEYED, (character) => ESCAPES[character] ?? escaped(character));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Line breaks are this program's own here: others' words have been through `visible` before they came into it. */
function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

/** Lines that others' words are part of. */
export function lines(all: readonly string[]): string {
  return all.map(visible).join('\n');
}

export function print(text: string): void {
  process.stdout.write(`${visibleLines(text)}\n`);
}

/** `JSON.stringify` escapes C0. The other control characters are escaped here: a parser reads the same text. */
export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value).replace(OBEYED, escaped)}\n`);
}

/** Progress and remarks: for whoever watches, never part of the result. */
export function note(text: string): void {
  process.stderr.write(`${visibleLines(text)}\n`);
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

/** Rows in aligned columns, without borders or colours; a cell that is `undefined` shows as a dash, and each is one line. */
export function columns(rows: readonly (readonly Cell[])[], { head, align }: ColumnsOptions = {}): string {
  const table = new Table({
    ...(head ? { head: [...head] } : {}),
    ...(align ? { colAligns: [...align] } : {}),
    chars: { ...NO_BORDERS, middle: '', 'mid-mid': '' },
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] },
  });
  table.push(
    ...rows.map((row) => row.map((cell) => (typeof cell === 'string' ? visible(cell) : (cell ?? '-')))),
  );
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
