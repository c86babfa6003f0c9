/**
 * Bugs in SQL: conditions negated, comparisons shifted; conditions, assignments, statements, locks, orders and limits dropped.
 *
 * It works on tokens without a grammar, so some results are not valid SQL. Those that Postgres refuses don't count (judge.ts).
 */
import type { Change } from '../mutant.ts';
import { sqlTokens, type Token } from './sql-tokens.ts';

const SHIFTED: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '=': ['<>'],
  '<>': ['='],
};
const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*' };
const SWAPPED: Readonly<Record<string, string>> = {
  min: 'max',
  max: 'min',
  least: 'greatest',
  greatest: 'least',
  true: 'false',
  false: 'true',
  DESC: 'ASC',
};

/** Keywords that begin a condition, and tokens that end it. */
const CONDITION = /^(WHERE|ON|HAVING|IF|ELSIF|WHEN)$/;
const CLAUSE =
  /^(WHERE|ON|HAVING|IF|ELSIF|ELSE|WHEN|THEN|SELECT|FROM|SET|ORDER|GROUP|LIMIT|OFFSET|FOR|RETURNING|UNION|LOOP|AS|INTO|JOIN|LEFT|INNER|CROSS|WINDOW|VALUES|RETURN|DO|CHECK|PERFORM|END|LANGUAGE|BEGIN|USING|ROWS)$/;
const isBorder = ({ text }: Token) =>
  CLAUSE.test(text) || text === ',' || text === ';' || text === ':=' || text === '$$';

/** Bindings are kept: with fewer of them, a statement always fails. */
const hasBinding = (words: string) => /\?|\$/.test(words);

function always(value: 'true' | 'false', condition: string): string {
  if (!hasBinding(condition)) return value;
  return `(${value === 'true' ? 'true OR' : 'false AND'} (${condition}))`;
}

class SqlText {
  readonly changes: Change[] = [];
  readonly #text: string;
  readonly #tokens: readonly Token[];

  constructor(text: string) {
    this.#text = text;
    this.#tokens = sqlTokens(text);
  }

  findChanges(): void {
    for (const [i, token] of this.#tokens.entries()) {
      this.#comparison(token, i);
      this.#word(token, i);
      this.#condition(token, i);
      this.#operands(token, i);
      this.#clause(token, i);
      this.#assignments(token, i);
      this.#statement(token, i);
    }
  }

  #is(i: number, ...words: readonly string[]): boolean {
    return words.every((word, n) => this.#tokens[i + n]?.text === word);
  }

  #add(mutator: string, from: number, to: number, replacement: string): void {
    const { start } = this.#tokens[from]!;
    const { end } = this.#tokens[to]!;
    this.changes.push({ mutator, start, end, replacement });
  }

  #wordsOf(from: number, to: number): string {
    return this.#text.slice(this.#tokens[from]!.start, this.#tokens[to]!.end);
  }

  /** The last token, at the depth of `from`, before `ends` holds or the bracket closes. */
  #until(from: number, ends: (token: Token) => boolean): number {
    const { depth } = this.#tokens[from]!;
    let i = from;
    for (; i < this.#tokens.length; i++) {
      const token = this.#tokens[i]!;
      if (token.depth < depth || (token.depth === depth && ends(token))) break;
    }
    return i - 1;
  }

  /** The keyword that the token belongs to: `SET`, `WHERE`, … */
  #clauseOf(i: number): string {
    const { depth } = this.#tokens[i]!;
    for (let at = i - 1; at >= 0; at--) {
      const token = this.#tokens[at]!;
      if (token.depth < depth || token.text === ';') return '';
      if (token.depth === depth && CLAUSE.test(token.text)) return token.text;
    }
    return '';
  }

  #isOperand(i: number): boolean {
    const token = this.#tokens[i];
    if (!token) return false;
    return token.kind !== 'operator' ? !CLAUSE.test(token.text) : /^[)\]]$/.test(token.text);
  }

  #comparison(token: Token, i: number): void {
    if (token.kind !== 'operator') return;
    if (!(token.text === '=' && this.#clauseOf(i) === 'SET'))
      for (const to of SHIFTED[token.text] ?? []) this.#add('ComparisonShifted', i, i, to);
    const other = ARITHMETIC[token.text];
    const opens = this.#is(i + 1, '(');
    if (
      other !== undefined &&
      this.#isOperand(i - 1) &&
      (opens || this.#isOperand(i + 1)) &&
      !this.#is(i - 1, '.')
    )
      this.#add('ArithmeticSwapped', i, i, other);
  }

  #word({ kind, text }: Token, i: number): void {
    // The `1` of `SELECT 1` has no meaning: only the row counts.
    if (kind === 'number' && !this.#is(i - 1, 'SELECT') && !this.#is(i - 1, 'PERFORM'))
      this.#add('NumberShifted', i, i, String(Number(text) + 1));
    const other = SWAPPED[text];
    if (kind === 'word' && other !== undefined && !this.#is(i - 1, '.'))
      this.#add('WordSwapped', i, i, other);
    if (text === 'IS') {
      const isNot = this.#is(i + 1, 'NOT');
      this.#add('ConditionNegated', i, isNot ? i + 1 : i, isNot ? 'IS' : 'IS NOT');
    }
    if (text === 'NOT' && !this.#is(i - 1, 'IS')) this.#add('NotDropped', i, i, '');
    const isSet = text === 'IN' && this.#is(i + 1, '(') && this.#clauseOf(i) !== 'FOR';
    if ((isSet || text === 'EXISTS') && !this.#is(i - 1, 'NOT'))
      this.#add('ConditionNegated', i, i, `NOT ${text}`);
    if (text === 'DISTINCT' && !this.#is(i - 1, 'IS') && !this.#is(i - 1, 'NOT'))
      this.#add('DistinctDropped', i, i, '');
    if (text === 'LEFT' && this.#is(i + 1, 'JOIN')) this.#add('WordSwapped', i, i, 'INNER');
    if (text === 'coalesce' && this.#is(i + 1, '(')) {
      const first = this.#until(i + 2, ({ text }) => text === ',');
      const last = this.#until(i + 2, () => false) + 1;
      this.#add('OperandDropped', i, last, `(${this.#wordsOf(i + 2, first)})`);
    }
  }

  /** A single comparison is negated elsewhere, by another operator. */
  #condition({ text }: Token, i: number): void {
    if (
      !CONDITION.test(text) ||
      this.#is(i + 1, 'CONFLICT') ||
      /^(TABLE|FUNCTION)$/.test(this.#tokens[i + 1]?.text ?? '') ||
      this.#isPlainCase(i) ||
      !this.#tokens[i + 1]
    )
      return;
    if (text === 'IF' && this.#is(i - 1, 'END')) return;
    const last = this.#until(i + 1, isBorder);
    if (last <= i) return;
    const inside = this.#tokens.slice(i + 1, last + 1);
    if (
      inside.some(({ text }) => /^(AND|OR|<|>|<=|>=)$/.test(text)) ||
      !inside.some(({ text }) => /^(=|<>|IS|NOT|IN)$/.test(text))
    )
      this.#add('ConditionNegated', i + 1, last, `NOT (${this.#wordsOf(i + 1, last)})`);
    // In PL/pgSQL, `#statement` drops it.
    if (text === 'WHERE' && !this.#isInBody(i) && /^(UPDATE|DELETE)$/.test(this.#verbOf(i)))
      this.#add('StatementDropped', i + 1, last, always('false', this.#wordsOf(i + 1, last)));
  }

  /** `CASE word WHEN value` has no condition. */
  #isPlainCase(i: number): boolean {
    if (!this.#is(i, 'WHEN')) return false;
    const { depth } = this.#tokens[i]!;
    let at = i - 1;
    while (at >= 0 && this.#tokens[at]!.depth >= depth) at--;
    return this.#is(at, 'CASE') && !this.#is(at + 1, 'WHEN');
  }

  /** The verb of the statement that a `WHERE` belongs to. */
  #verbOf(i: number): string {
    const { depth } = this.#tokens[i]!;
    for (let at = i - 1; at >= 0; at--) {
      const token = this.#tokens[at]!;
      if (token.depth < depth || token.text === ';') return '';
      if (token.depth === depth && /^(UPDATE|DELETE|SELECT|INSERT)$/.test(token.text)) return token.text;
    }
    return '';
  }

  /** Drops an operand of `a AND b`: `a`, or `b`. */
  #operands({ text, depth }: Token, i: number): void {
    if ((text !== 'AND' && text !== 'OR') || this.#isOfBetween(i)) return;
    const neutral = text === 'AND' ? ('true' as const) : ('false' as const);
    const isConnector = (token: Token) => token.text === 'AND' || token.text === 'OR';
    const ends = (token: Token) => isBorder(token) || isConnector(token);
    if (this.#tokens[i + 1]) {
      const last = this.#until(i + 1, ends);
      if (last > i) this.#add('OperandDropped', i + 1, last, always(neutral, this.#wordsOf(i + 1, last)));
    }
    let first = i;
    while (first > 0) {
      const before = this.#tokens[first - 1]!;
      if (before.depth < depth || (before.depth === depth && ends(before))) break;
      first--;
    }
    // After another connector, this operand has been dropped already.
    if (first < i && !(first > 0 && isConnector(this.#tokens[first - 1]!)))
      this.#add('OperandDropped', first, i - 1, always(neutral, this.#wordsOf(first, i - 1)));
  }

  #isOfBetween(i: number): boolean {
    const { depth } = this.#tokens[i]!;
    for (let at = i - 1; at >= 0; at--) {
      const token = this.#tokens[at]!;
      if (
        token.depth < depth ||
        (token.depth === depth && (isBorder(token) || /^(AND|OR)$/.test(token.text)))
      )
        return false;
      if (token.depth === depth && token.text === 'BETWEEN') return true;
    }
    return false;
  }

  #clause({ text }: Token, i: number): void {
    if (text === 'FOR' && /^(UPDATE|SHARE|NO|KEY)$/.test(this.#tokens[i + 1]?.text ?? '')) {
      const last = this.#until(i + 1, (token) => isBorder(token) && token.text !== ',');
      this.#add('LockDropped', i, last, '');
    }
    if (text === 'SKIP' && this.#is(i + 1, 'LOCKED')) this.#add('LockDropped', i, i + 1, '');
    if (text === 'LOCK' && this.#is(i + 1, 'TABLE'))
      this.#add(
        'LockDropped',
        i,
        this.#until(i, (token) => token.text === ';'),
        'SELECT',
      );
    if (/^pg_(try_)?advisory_\w*lock\w*$/.test(text) && this.#is(i + 1, '(')) {
      const last = this.#until(i + 2, () => false) + 1;
      this.#add('LockDropped', i, last, /try|unlock/.test(text) ? 'true' : 'NULL');
    }
    if (text === 'ORDER' && this.#is(i + 1, 'BY')) {
      const last = this.#until(i + 1, (token) => isBorder(token) && token.text !== ',');
      this.#add('OrderDropped', i, last, '');
    }
    if (text === 'LIMIT' && this.#tokens[i + 1]) {
      const last = this.#until(i + 1, isBorder);
      const limit = this.#wordsOf(i + 1, last);
      this.#add('LimitDropped', i, last, hasBinding(limit) ? `LIMIT ${limit}::bigint + 1000000000` : '');
    }
    if (text === 'ON' && this.#is(i + 1, 'CONFLICT')) {
      const last = this.#until(i + 1, (token) => token.text === ';' || token.text === 'RETURNING');
      this.#add('ConflictDropped', i, last, '');
    }
  }

  /** Drops an assignment of `SET a = 1, b = 2`: `a`, or `b`. */
  #assignments({ text }: Token, i: number): void {
    if (text !== 'SET' || !this.#tokens[i + 1]) return;
    const last = this.#until(i + 1, (token) => isBorder(token) && token.text !== ',');
    const { depth } = this.#tokens[i + 1]!;
    const starts = [i + 1];
    for (let at = i + 1; at <= last; at++)
      if (this.#tokens[at]!.depth === depth && this.#is(at, ',')) starts.push(at + 1);
    if (starts.length === 1) return;
    for (const [n, start] of starts.entries()) {
      const next = starts[n + 1];
      if (next === undefined) this.#add('AssignmentDropped', start - 1, last, '');
      else this.#add('AssignmentDropped', start, next - 1, '');
    }
  }

  /** Drops a statement of PL/pgSQL, up to its semicolon. */
  #statement({ text, depth }: Token, i: number): void {
    if (depth > 0 || !/^(;|BEGIN|THEN|ELSE|LOOP)$/.test(text)) return;
    const first = this.#tokens[i + 1];
    if (!first || this.#is(i - 1, 'END') || !this.#isInBody(i)) return;
    if (first.kind !== 'word' || /^(IF|ELSIF|ELSE|END|FOR|LOOP|WHILE|BEGIN|DECLARE)$/.test(first.text))
      return;
    const last = this.#until(i + 1, (token) => token.text === ';');
    if (this.#is(last + 1, ';')) this.#add('StatementDropped', i + 1, last, 'NULL');
  }

  #isInBody(i: number): boolean {
    return this.#tokens.slice(0, i + 1).some(({ text }) => text === 'BEGIN');
  }
}

/** @param text a statement, a part of one, or the body of a function between `$$` */
export function sqlChanges(text: string): Change[] {
  const sql = new SqlText(text);
  sql.findChanges();
  return sql.changes.sort((a, b) => a.start - b.start || a.end - b.end);
}
