/**
 * Runs a function of the migrations on given rows: what it returns, and what it changes. Each run is a transaction that is rolled
 * back, so `now()` stands still.
 */
import pg from 'pg';
import { freshDatabase } from '../fixtures.ts';
import { asAdmin } from './least-rights.ts';

const KEYS = {
  sales: ['id'],
  queues: ['sale_id'],
  segment_cursors: ['sale_id', 'segment'],
  places: ['sale_id', 'number'],
  orders: ['order_id'],
  stock_returns: ['order_id'],
  order_changes: ['order_id', 'change'],
} as const;
type Table = keyof typeof KEYS;
const TABLES = Object.keys(KEYS) as Table[];

/** Times are seconds from now. A column that is left out has its default. */
export type Row = Readonly<Record<string, unknown>>;
export type Rows = Readonly<Partial<Record<Table, readonly Row[]>>>;

const ZEROS = Buffer.alloc(32);
const DEFAULTS: Readonly<Partial<Record<Table, Row>>> = {
  sales: {
    ...{ title: 'a sale', initial_stock: 100, stock: 10, segments: 2, per_buyer_limit: 1, starts_at: -3600 },
    metadata: {},
  },
  queues: { seed: ZEROS, salt_key: ZEROS },
  orders: { quantity: 1, one_per_buyer: true, committed_at: -600 },
  places: { quantity: 1, given_at: -600 },
  stock_returns: { created_at: -600 },
};

export interface Run {
  /** Without missing values. */
  readonly returned: readonly Row[];
  /** The code of the error, or undefined. */
  readonly code: string | undefined;
  /** The message of the error, or undefined. */
  readonly message: string | undefined;
  /**
   * By table, then by key: the columns that differ, `null` for one that is missing now. A new row with all its values; a row
   * that was written without a difference with none.
   */
  readonly written: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Of the orders, in their order: `paid 11 12`. */
  readonly events: readonly string[];
  /** The orders as they are now, by their ids, without missing values. */
  readonly orders: Readonly<Record<string, Row>>;
  /** The sales that it has written, in this order; those that one statement has written, by their ids. */
  readonly salesInTurn: readonly string[];
  /** How many statements have written sales. */
  readonly salesStatements: number;
}

export interface Call {
  readonly given: Rows;
  readonly sql: string;
  readonly bindings?: readonly unknown[];
  /** Settings of the planner that are turned off. */
  readonly without?: readonly string[];
}

/** A session of the administrator in a database of its own. */
export async function openFunctions(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: asAdmin(await freshDatabase()) });
  await client.connect();
  return client;
}

export async function run(
  client: pg.Client,
  { given, sql, bindings = [], without = [] }: Call,
): Promise<Run> {
  await client.query('BEGIN');
  try {
    await insert(client, given);
    const before = await contentOf(client);
    for (const setting of without) await client.query(`SET LOCAL enable_${setting} = off`);
    // The functions would go on with the plans of earlier runs.
    if (without.length > 0) await client.query('DISCARD PLANS');
    await client.query('SAVEPOINT begun');
    const { returned, error } = await call(client, sql, bindings);
    if (error) await client.query('ROLLBACK TO begun');
    const after = await contentOf(client);
    const sales = await client.query<{ id: string; statement: string }>(
      // The server numbers the statements of a transaction.
      'SELECT id, cmin::text AS statement FROM sales WHERE ctid::text <> ALL ($1::text[]) ORDER BY cmin::text::integer, id',
      [Object.values(before.sales ?? {}).map(({ place }) => place)],
    );
    return {
      returned: returned.map((row) => present(relative(row, after.nowMs))),
      code: error?.code,
      message: error?.message,
      written: written(before, after),
      events: after.events,
      orders: Object.fromEntries(
        Object.entries(after.orders ?? {}).map(([key, { row }]) => [key, present(row)]),
      ),
      salesInTurn: sales.rows.map(({ id }) => id),
      salesStatements: new Set(sales.rows.map(({ statement }) => statement)).size,
    };
  } finally {
    await client.query('ROLLBACK');
  }
}

async function call(client: pg.Client, sql: string, bindings: readonly unknown[]) {
  try {
    return { returned: (await client.query<Row>(sql, [...bindings])).rows, error: undefined };
  } catch (error) {
    return { returned: [], error: error as pg.DatabaseError };
  }
}

export async function insert(client: pg.Client, given: Rows): Promise<void> {
  for (const table of TABLES) {
    for (const row of given[table] ?? []) {
      const values = Object.entries({ ...DEFAULTS[table], ...row });
      const slots = values.map(([name, value], i) =>
        isTime(name) && typeof value === 'number'
          ? `now() + $${i + 1}::float8 * interval '1 second'`
          : `$${i + 1}`,
      );
      await client.query(
        `INSERT INTO ${table} (${values.map(([name]) => name).join(', ')}) VALUES (${slots.join(', ')})`,
        values.map(([, value]) => value),
      );
    }
  }
}

const isTime = (name: string) => /_(at|since)$/.test(name);

type Content = { readonly [T in Table]?: Readonly<Record<string, { row: Row; place: string }>> } & {
  readonly nowMs: number;
  readonly events: readonly string[];
};

async function contentOf(client: pg.Client): Promise<Content> {
  const found = await client.query<{ table: Table; row: Row; place: string; now: string }>(
    TABLES.map(
      (table) =>
        `SELECT '${table}' AS table, to_jsonb(t) AS row, t.ctid::text AS place, to_jsonb(now())->>0 AS now FROM ${table} t`,
    ).join(' UNION ALL '),
  );
  const nowMs = Date.parse(found.rows[0]?.now ?? '');
  const content: Record<string, Record<string, { row: Row; place: string }>> = {};
  for (const { table, row, place } of found.rows) {
    const key = KEYS[table].map((name) => row[name]).join(' ');
    content[table] ??= {};
    content[table][key] = { row: relative(row, nowMs), place };
  }
  const events = await client.query<{ text: string }>(
    "SELECT kind || ' ' || array_to_string(order_ids, ' ') AS text FROM order_events ORDER BY id",
  );
  return { ...content, nowMs, events: events.rows.map(({ text }) => text) };
}

/** Times as seconds from now. */
function relative(row: Row, nowMs: number): Row {
  const seconds = (value: unknown) =>
    (Date.parse(value instanceof Date ? value.toISOString() : String(value)) - nowMs) / 1e3;
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (value !== null && isTime(name)) return [name, seconds(value)];
      return [name, isRow(value) ? present(relative(value, nowMs)) : value];
    }),
  );
}

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const present = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));

function written(before: Content, after: Content): Run['written'] {
  const all: Record<string, Record<string, unknown>> = {};
  for (const table of TABLES) {
    const [old, now] = [before[table] ?? {}, after[table] ?? {}];
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
      if (old[key]?.place === now[key]?.place) continue;
      all[table] ??= {};
      all[table][key] = now[key] ? difference(old[key]?.row, now[key].row) : null;
    }
  }
  return all;
}

function difference(old: Row | undefined, now: Row): Row {
  if (!old) return present(now);
  return Object.fromEntries(
    Object.entries(now).filter(([name, value]) => JSON.stringify(old[name]) !== JSON.stringify(value)),
  );
}
