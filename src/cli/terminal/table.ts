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
  /** An id. If it is long, a narrow terminal may leave out its middle. */
  readonly isId?: true;
  /** When a narrow terminal leaves it out: 1 goes first. Missing: it stays. A column without any entry goes before all others. */
  readonly spare?: number;
}

const GAP = 2;
/** A text that is cut keeps at least this many characters. */
const MIN_TEXT = 10;
/** So long an id is never cut: a UUID can be copied whole. */
const WHOLE_ID = 36;
/** A longer one that is cut keeps at least this many characters. */
const MIN_ID = 20;

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

/**
 * A table that is printed page by page. Later pages have the form of the first one, and no titles. A cell that is wider than its
 * column pushes its own row only.
 */
export class Table<T> {
  readonly #columns: readonly Column<T>[];
  readonly #room: number;
  #form: Form<T> | undefined;
  #widths: readonly number[] = [];
  readonly #shortened = new Set<'whole ids' | 'all texts'>();

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
    const form = this.#form ?? formFor(this.#columns, items, this.#room);
    this.#form = form;
    const { shown } = form;
    const rows = cellsOf(items, form).map((row) => this.#fitted(row, form));
    const align = shown.map(({ align = 'left' }) => align);
    const head = shown.map((column) => column.head);
    if (isFirst) {
      this.#widths = widthsOf([head, ...rows]);
      return columns(rows, { head, align });
    }
    // Titles that are as wide as the columns keep them in their places. Each row is a table of its own: it pushes no other one.
    const wide = head.map((title, i) => title.padEnd(this.#widths[i]!));
    return rows.map((row) => columns([row], { head: wide, align }).split('\n')[1]!).join('\n');
  }

  /** The row, with what the form cuts. If a row of a later page has no room in spite of that, more of it is cut. */
  #fitted(whole: readonly string[], form: Form<T>): string[] {
    const row = this.#cut(whole, form);
    // Nothing stands after the last column, which must not be filled.
    const filled = this.#widths.slice(0, -1);
    const widths = row.map((cell, i) => Math.max(widthOf(cell), filled[i] ?? 0));
    if (lineOf(widths) <= this.#room) return row;
    const limits = limitsOf(form.shown, widths, this.#room, true);
    return limits === undefined ? row : this.#cut(whole, { ...form, limits });
  }

  #cut(row: readonly string[], { shown, limits }: Form<T>): string[] {
    return row.map((cell, i) => {
      if (widthOf(cell) <= limits[i]!) return cell;
      const { isId } = shown[i]!;
      this.#shortened.add(isId ? 'whole ids' : 'all texts');
      return isId ? withoutMiddle(cell, limits[i]!) : `${cut(cell, limits[i]! - 1)}…`;
    });
  }

  /** Whether it has no page yet. */
  get isEmpty(): boolean {
    return this.#form === undefined;
  }

  /** What the pages so far lack, and how to see it. */
  get remark(): string | undefined {
    if (this.#form === undefined) return undefined;
    const { shown } = this.#form;
    const missing = this.#columns.filter((column) => !shown.includes(column)).map(({ head }) => head);
    const lacking = [...this.#shortened, ...missing];
    if (lacking.length === 0) return undefined;
    return `The terminal is too narrow for ${lacking.join(', ')}.\nTo see the whole list, add: | less -S`;
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
    // An id is needed more than a column without any entry.
    const mayCutIds = !shown.some((column) => column.spare !== undefined && isEmpty(column, items));
    const limits =
      limitsOf(shown, widths, room, false) ?? (mayCutIds ? limitsOf(shown, widths, room, true) : undefined);
    if (limits !== undefined) return { shown, times: SHORTEST, limits };
  }
  // Lines that do not fit even so wrap: what is left is needed whole.
  return whole(shown, SHORTEST);
}

const whole = <T>(shown: readonly Column<T>[], times: Form<T>['times']): Form<T> => {
  return { shown, times, limits: shown.map(() => Infinity) };
};

const isEmpty = <T>({ of }: Column<T>, items: readonly T[]): boolean =>
  items.every((item) => (of(item) ?? '') === '');

/** The columns that may be left out, in this order. */
function spares<T>(all: readonly Column<T>[], items: readonly T[]): Column<T>[] {
  const turn = (column: Column<T>) => (isEmpty(column, items) ? 0 : column.spare!);
  return all.filter(({ spare }) => spare !== undefined).sort((a, b) => turn(a) - turn(b));
}

/**
 * Gives what may be cut the room that the other columns leave, the same beyond the least to each that can use it.
 * @returns `undefined` if even the least does not fit
 */
function limitsOf<T>(
  shown: readonly Column<T>[],
  widths: readonly number[],
  room: number,
  mayCutIds: boolean,
): number[] | undefined {
  const least = widths.map((width, i) => leastOf(shown[i]!, width, mayCutIds));
  let left = room - lineOf(least);
  if (left < 0) return undefined;
  const limits = widths.map(() => Infinity);
  const lacks = (i: number) => widths[i]! - least[i]!;
  const cuttable = [...widths.keys()].filter((i) => lacks(i) > 0).sort((a, b) => lacks(a) - lacks(b));
  for (const [done, i] of cuttable.entries()) {
    const share = Math.floor(left / (cuttable.length - done));
    if (lacks(i) > share) limits[i] = least[i]! + share;
    left -= Math.min(lacks(i), share);
  }
  return limits;
}

function leastOf<T>({ isText, isId }: Column<T>, width: number, mayCutIds: boolean): number {
  if (isText) return Math.min(width, MIN_TEXT);
  return isId && mayCutIds && width > WHOLE_ID ? MIN_ID : width;
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

/** Ids of one kind often begin alike, and end alike. */
function withoutMiddle(id: string, limit: number): string {
  const characters = [...id];
  const end = Math.floor((limit - 1) / 2);
  return [...characters.slice(0, limit - 1 - end), '…', ...characters.slice(-end)].join('');
}
