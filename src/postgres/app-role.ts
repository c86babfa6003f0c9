/**
 * The rights that a node needs in Postgres, and no more. A role with them can't create, change or drop tables, and
 * can delete only delivered events and similar rows (deploy/postgres-roles.sql creates such a role). A migration that
 * adds a table or a function adds it here as well: test/unit/repository/least-rights.test.ts compares the two.
 */
import type { Knex } from 'knex';
import { InvalidInput, StockadeError } from '../engine/errors.ts';
import { rows, sqlState } from './database.ts';

const INSUFFICIENT_PRIVILEGE = '42501';

type Right = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

export const TABLE_RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  stockade_migrations: ['SELECT'],
  sales: ['SELECT', 'INSERT', 'UPDATE'],
  orders: ['SELECT', 'INSERT', 'UPDATE'],
  // A rebuild replaces the cursors.
  segment_cursors: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  stock_movements: ['SELECT', 'INSERT', 'UPDATE'],
  stock_returns: ['SELECT', 'INSERT', 'UPDATE'],
  worker_leases: ['SELECT', 'UPDATE'],
  settings: ['SELECT', 'INSERT'],
  // An outbox and a queue: delivered rows are deleted.
  order_events: ['SELECT', 'INSERT', 'DELETE'],
  webhook_pages: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  sale_losses: ['SELECT', 'INSERT'],
  lost_orders: ['SELECT', 'INSERT', 'UPDATE'],
  // A row is deleted when the id that it names is replaced.
  erasures: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  order_changes: ['SELECT', 'INSERT', 'UPDATE'],
  deleted_sales: ['SELECT', 'INSERT', 'UPDATE'],
  queues: ['SELECT', 'INSERT', 'UPDATE'],
  places: ['SELECT', 'INSERT', 'UPDATE'],
  // Bits of former periods are deleted.
  queue_presence: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  // Offers that are settled are deleted.
  begun_offers: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  shop: ['SELECT', 'UPDATE'],
  // Rows of ended processes are deleted.
  processes: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
};

/**
 * A node that deletes sales (src/deletion/) also needs DELETE on these. It is granted only if that is asked for:
 * somebody who takes over another node can't remove an order.
 */
export const DELETING_TABLES: readonly string[] = [
  'sales',
  'orders',
  'stock_movements',
  'stock_returns',
  'sale_losses',
  'lost_orders',
  'order_changes',
  'queues',
  'places',
];

/** The functions run with the rights of the caller. */
export const FUNCTIONS: readonly string[] = [
  'stockade_apply_batch',
  'stockade_give_back',
  'stockade_expire_orders',
  'stockade_expire_given',
  'stockade_change_order',
  'stockade_settle_late_payment',
  'stockade_change_order_by',
  'stockade_settle_late_payment_by',
  'stockade_note_offers',
  'stockade_give_places',
  'stockade_accept_offer',
  'stockade_leave_queue',
  'stockade_in_time',
  'stockade_pace',
  'stockade_begin_offers',
  'stockade_settle_offers',
];

/** A name that Postgres accepts without quotes. */
const ROLE_PATTERN = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

/**
 * Gives the role exactly these rights on the migrations' tables and functions, and revokes all others there.
 * @param mayDelete whether it may delete sales
 * @throws InvalidInput if the role is not a plain name, Postgres' error if it does not exist
 */
export async function grantTo(trx: Knex, role: string, mayDelete = false): Promise<void> {
  if (!ROLE_PATTERN.test(role)) {
    const problem = `is ${JSON.stringify(role)}, but must be the plain name of a role`;
    throw new InvalidInput('no rights were granted', [{ field: '--grant-to', problem }]);
  }
  for (const [table, rights] of Object.entries(TABLE_RIGHTS)) {
    await trx.raw(`REVOKE ALL ON TABLE ${table} FROM ??`, [role]);
    await trx.raw(`GRANT ${rights.join(', ')} ON TABLE ${table} TO ??`, [role]);
  }
  if (mayDelete) await trx.raw(`GRANT DELETE ON TABLE ${DELETING_TABLES.join(', ')} TO ??`, [role]);
  for (const signature of await signatures(trx)) {
    await trx.raw(`REVOKE ALL ON FUNCTION ${signature} FROM PUBLIC`);
    await trx.raw(`GRANT EXECUTE ON FUNCTION ${signature} TO ??`, [role]);
  }
}

/** All signatures of each function: while nodes of two versions run, a function may have two. */
async function signatures(trx: Knex): Promise<string[]> {
  const found = await rows<{ signature: string }>(
    trx,
    `SELECT p.oid::regprocedure::text AS signature FROM pg_proc p
       WHERE p.proname = ANY (string_to_array(?, ',')) AND pg_function_is_visible(p.oid)`,
    [FUNCTIONS.join()],
  );
  return found.map(({ signature }) => signature);
}

/**
 * Checks that this session has all rights that a node needs.
 * @throws StockadeError `missing_rights` that names the missing ones
 */
export async function assertRights(db: Knex): Promise<void> {
  const { sql, values } = lackingRights();
  const lacking = await rows<{ what: string }>(db, sql, values);
  if (lacking.length > 0) throw new MissingRights(lacking.map(({ what }) => what));
}

/** Selects, as `what`, each right that a node needs and this session lacks. All tables must exist. */
export function lackingRights(): { readonly sql: string; readonly values: string[] } {
  const wanted = Object.entries(TABLE_RIGHTS).flatMap(([table, rights]) =>
    rights.map((right) => [table, right] as const),
  );
  return {
    sql: `SELECT w.right || ' on ' || w.name AS what
       FROM unnest(string_to_array(?, ','), string_to_array(?, ',')) AS w (name, "right")
       WHERE NOT has_table_privilege(w.name, w.right)
     UNION ALL SELECT 'EXECUTE on ' || p.proname FROM pg_proc p
       WHERE p.proname = ANY (string_to_array(?, ',')) AND pg_function_is_visible(p.oid)
         AND NOT has_function_privilege(p.oid, 'EXECUTE')`,
    values: [
      wanted.map(([table]) => table).join(),
      wanted.map(([, right]) => right).join(),
      FUNCTIONS.join(),
    ],
  };
}

/** Checks that this session may delete sales. @throws MissingRights */
export async function assertMayDelete(db: Knex): Promise<void> {
  const lacking = await rows<{ what: string }>(
    db,
    `SELECT 'DELETE on ' || name AS what FROM unnest(string_to_array(?, ',')) AS name
     WHERE NOT has_table_privilege(name, 'DELETE')`,
    [DELETING_TABLES.join()],
  );
  if (lacking.length > 0)
    throw new MissingRights(
      lacking.map(({ what }) => what),
      ' --may-delete-sales',
    );
}

/** Whether Postgres has refused a statement because the session's user lacks a right. */
export const isRightMissing = (error: unknown): boolean => sqlState(error) === INSUFFICIENT_PRIVILEGE;

export class MissingRights extends StockadeError {
  constructor(lacking: readonly string[], flag = '') {
    super(
      'missing_rights',
      `the user of DATABASE_URL lacks ${lacking.join(', ')}: run \`stockade migrate --grant-to <that user>${flag}\` as the owner of the tables`,
    );
  }
}
