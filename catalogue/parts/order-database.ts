/** Postgres as the strategies use it: one row that counts the stock, one row per order, and no constraint to help. */
import pg from 'pg';
import { needed, type SaleSpec, type Sell, type SoldOrder, type Stores, type Strategy } from './contract.ts';

const CONNECTIONS = 16;

const TABLES = `
  SELECT pg_advisory_xact_lock(hashtext('catalogue tables'));
  CREATE TABLE IF NOT EXISTS catalogue_sales (id text PRIMARY KEY, stock integer NOT NULL);
  CREATE TABLE IF NOT EXISTS catalogue_orders (
    order_id text PRIMARY KEY, sale_id text NOT NULL, buyer_id text NOT NULL
  );
  CREATE INDEX IF NOT EXISTS catalogue_orders_by_buyer ON catalogue_orders (sale_id, buyer_id);
`;

/** A connection, in a transaction or out of it. */
export type Session = Pick<pg.PoolClient, 'query'>;

export class OrderDatabase {
  readonly saleId: string;
  readonly pool: pg.Pool;

  private constructor(pool: pg.Pool, saleId: string) {
    this.pool = pool;
    this.saleId = saleId;
  }

  static async open(stores: Stores, { id, stock }: SaleSpec): Promise<OrderDatabase> {
    const pool = new pg.Pool({ connectionString: needed(stores, 'postgres'), max: CONNECTIONS });
    // An idle connection that breaks is replaced when the next one is needed; a query on a broken one throws.
    pool.on('error', () => {});
    const database = new OrderDatabase(pool, id);
    try {
      await pool.query(TABLES);
      await pool.query('INSERT INTO catalogue_sales VALUES ($1, $2) ON CONFLICT DO NOTHING', [id, stock]);
      return database;
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  /**
   * Runs the work on one connection and commits it. If it throws, the connection ends, and everything is rolled back.
   */
  transaction<T>(work: (tx: Session) => Promise<T>): Promise<T> {
    return this.session(async (tx) => {
      await tx.query('BEGIN');
      const result = await work(tx);
      await tx.query('COMMIT');
      return result;
    });
  }

  /** Runs the work on one connection. If it throws, the connection ends, with its locks and uncommitted changes. */
  async session<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const ignore = () => {};
    // If a connection breaks between two queries, the second one notices.
    client.on('error', ignore);
    let worked = false;
    try {
      const result = await work(client);
      worked = true;
      return result;
    } finally {
      client.off('error', ignore);
      client.release(!worked);
    }
  }

  async stock(session: Session = this.pool): Promise<number> {
    const { rows } = await session.query('SELECT stock FROM catalogue_sales WHERE id = $1', [this.saleId]);
    return rows[0].stock;
  }

  async addOrder(session: Session, buyerId: string, orderId: string): Promise<void> {
    await session.query('INSERT INTO catalogue_orders VALUES ($1, $2, $3)', [orderId, this.saleId, buyerId]);
  }

  async sold(): Promise<SoldOrder[]> {
    const { rows } = await this.pool.query(
      'SELECT order_id AS "orderId", buyer_id AS "buyerId" FROM catalogue_orders WHERE sale_id = $1',
      [this.saleId],
    );
    return rows;
  }

  /** A strategy whose stock and orders are here. It closes `locks` when it is closed. */
  strategy(sell: Sell, locks?: { disconnect(): void }): Strategy {
    return {
      sell,
      sold: () => this.sold(),
      left: () => this.stock(),
      close: async () => {
        locks?.disconnect();
        await this.pool.end();
      },
    };
  }
}
