/** Tables of lists. A terminal that is too narrow shows what is needed most. What is piped, or has room, is whole. */
import { columnsOf, cut } from './fit.ts';
import { type Align, type Cell, cellText, columns, note, print } from './output.ts';

export interface Column<T> {
  readonly head: string;
  readonly of: (item: T) => Cell;
  /** Default: left. */
  readonly align?: Align;
  /** Text that a narrow terminal may cut, such as a title. */
  readonly isText?: true;
  /** When a narrow terminal leaves it out: 1 goes first. Missing: it stays. A column without any entry goes before all others. */
  readonly spare?: number;
}

const GAP = 2;
/** A text that is cut keeps at least this many characters. */
const MIN_TEXT = 10;

const TIME = /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)\.\d{3}Z/g;
/** Ways to write the times in a cell, from the longest to the shortest. */
const TIMES: readonly (readonly [RegExp, string])[] = [
  [TIME, '$&'],
  [TIME, '$1 $2$3Z'],
  [TIME, '$1 $2Z'],
];
const SHORTEST = TIMES.at(-1)!;

/** How a table is fitted into its room. */
interface Form<T> {
  readonly shown: readonly Column<T>[];
  readonly times: (typeof TIMES)[number];
  /** Characters that each shown column may have. */
  readonly limits: readonly number[];
}

/** A table that is printed page by page. Later pages have the form of the first one, and no titles. */
export class Table<T> {
  readonly #columns: readonly Column<T>[];
  readonly #room: number;
  #form: Form<T> | undefined;
  #widths: readonly number[] = [];

  /** @param room the characters of a line. Default: those of stdout if it is a terminal */
  constructor(
    columns: readonly Column<T>[],
    room = process.stdout.isTTY ? columnsOf(process.stdout) : Infinity,
  ) {
    this.#columns = columns;
    this.#room = room;
  }

  /** @param items at least one */
  page(items: readonly T[]): string {
    const isFirst = this.#form === undefined;
    this.#form ??= formFor(this.#columns, items, this.#room);
    const { shown, limits } = this.#form;
    const rows = cellsOf(items, this.#form).map((row) => row.map((cell, i) => shortened(cell, limits[i]!)));
    const before = this.#widths;
    // Titles that are as wide as the column was keep it in its place.
    const head = shown.map((column, i) => column.head.padEnd(before[i] ?? 0));
    this.#widths = widthsOf([head, ...rows]);
    const [titles, ...lines] = columns(rows, { head, align: shown.map(({ align = 'left' }) => align) }).split(
      '\n',
    );
    return (isFirst ? [titles, ...lines] : lines).join('\n');
  }

  /** Whether it has no page yet. */
  get isEmpty(): boolean {
    return this.#form === undefined;
  }

  /** What the pages so far lack, and how to see it. */
  get remark(): string | undefined {
    if (this.#form === undefined) return undefined;
    const { shown, limits } = this.#form;
    const missing = this.#columns.filter((column) => !shown.includes(column)).map(({ head }) => head);
    if (missing.length === 0 && limits.every((limit) => limit === Infinity)) return undefined;
    const what = missing.length === 0 ? 'all texts' : missing.join(', ');
    return `The terminal is too narrow for ${what}. To see the whole list, add: | less -S`;
  }
}

export function printTable<T>(columns: readonly Column<T>[], items: readonly T[]): void {
  const table = new Table(columns);
  print(table.page(items));
  if (table.remark !== undefined) note(table.remark);
}

function formFor<T>(all: readonly Column<T>[], items: readonly T[], room: number): Form<T> {
  let shown = all;
  for (const next of [undefined, ...spares(all, items)]) {
    shown = shown.filter((column) => column !== next);
    for (const times of TIMES) {
      const form = whole(shown, times);
      if (lineOf(measured(form, items)) <= room) return form;
    }
    const widths = measured(whole(shown, SHORTEST), items);
    const least = widths.map((width, i) => (shown[i]!.isText ? Math.min(width, MIN_TEXT) : width));
    if (lineOf(least) <= room) return { shown, times: SHORTEST, limits: limitsOf(shown, widths, room) };
  }
  // Lines that do not fit even so wrap: what is left is needed whole.
  return whole(shown, SHORTEST);
}

const whole = <T>(shown: readonly Column<T>[], times: Form<T>['times']): Form<T> => {
  return { shown, times, limits: shown.map(() => Infinity) };
};

/** The columns that may be left out, in this order. */
function spares<T>(all: readonly Column<T>[], items: readonly T[]): Column<T>[] {
  const isEmpty = ({ of }: Column<T>) => items.every((item) => (of(item) ?? '') === '');
  const turn = (column: Column<T>) => (isEmpty(column) ? 0 : column.spare!);
  return all.filter(({ spare }) => spare !== undefined).sort((a, b) => turn(a) - turn(b));
}

/** Gives the texts the room that the other columns leave, the same to each that can use it. */
function limitsOf<T>(shown: readonly Column<T>[], widths: readonly number[], room: number): number[] {
  const limits = widths.map(() => Infinity);
  let left = room - lineOf(widths.map((width, i) => (shown[i]!.isText ? 0 : width)));
  const texts = [...widths.keys()].filter((i) => shown[i]!.isText).sort((a, b) => widths[a]! - widths[b]!);
  for (const [done, i] of texts.entries()) {
    const share = Math.floor(left / (texts.length - done));
    if (widths[i]! > share) limits[i] = share;
    left -= Math.min(widths[i]!, share);
  }
  return limits;
}

function cellsOf<T>(items: readonly T[], { shown, times: [time, form] }: Form<T>): string[][] {
  return items.map((item) => shown.map(({ of }) => cellText(of(item)).replaceAll(time, form)));
}

const measured = <T>(form: Form<T>, items: readonly T[]): number[] =>
  widthsOf([form.shown.map(({ head }) => head), ...cellsOf(items, form)]);

const widthsOf = (rows: readonly (readonly string[])[]): number[] =>
  rows[0]!.map((_, i) => rows.reduce((width, row) => Math.max(width, widthOf(row[i]!)), 0));

/** Some characters are two columns wide: a line with many of them may wrap. */
const widthOf = (text: string): number => [...text].length;

const lineOf = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1);

const shortened = (text: string, limit: number): string =>
  widthOf(text) > limit ? `${cut(text, limit - 1)}…` : text;
