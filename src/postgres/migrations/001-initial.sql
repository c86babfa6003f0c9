-- The truth: sales, orders, how far each segment's log has been applied, and every change of a sale's total stock.
-- Ids are compared byte by byte (COLLATE "C"): they are not language, and byte order makes their indexes fast.

CREATE TABLE sales (
  id text COLLATE "C" PRIMARY KEY,
  title text NOT NULL,
  initial_stock bigint NOT NULL CHECK (initial_stock BETWEEN 1 AND 2147483648),
  stock bigint NOT NULL CHECK (stock >= 0),
  segments integer NOT NULL CHECK (segments BETWEEN 1 AND 1024),
  per_buyer_limit integer NOT NULL CHECK (per_buyer_limit BETWEEN 1 AND 1000),
  starts_at timestamptz NOT NULL,
  ends_at timestamptz CHECK (ends_at > starts_at),
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paused', 'closed')),
  generation integer NOT NULL DEFAULT 0,
  pay_within_seconds integer,
  price_minor bigint,
  face_value_minor bigint,
  currency text,
  shop_id text,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON COLUMN sales.stock IS 'Units not yet sold.';
COMMENT ON COLUMN sales.generation IS 'How often the state in the backend was built from here; 0: not yet.';

CREATE TABLE orders (
  order_id bigint PRIMARY KEY,
  sale_id text COLLATE "C" NOT NULL,
  buyer_id text COLLATE "C" NOT NULL,
  quantity integer NOT NULL CHECK (quantity > 0),
  status text COLLATE "C" NOT NULL DEFAULT 'unpaid'
    CHECK (status IN ('unpaid', 'paid', 'redeemed', 'cancelled', 'expired', 'refunded', 'rejected')),
  one_per_buyer boolean NOT NULL,
  idempotency_key text COLLATE "C",
  rejected_because text,
  committed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN orders.order_id IS 'Its upper 31 bits are the second of the take, counted from 2022-01-01Z.';
COMMENT ON COLUMN orders.one_per_buyer IS 'The sale allows one unit per buyer: the index below is the limit.';

-- The limit per buyer holds here too, even if the backend has forgotten a buyer.
CREATE UNIQUE INDEX orders_one_per_buyer ON orders (sale_id, buyer_id)
  WHERE one_per_buyer AND status IN ('unpaid', 'paid', 'redeemed');
CREATE INDEX orders_of_buyer ON orders (sale_id, buyer_id) WHERE NOT one_per_buyer;
CREATE UNIQUE INDEX orders_by_key ON orders (sale_id, buyer_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL AND status IN ('unpaid', 'paid', 'redeemed');
CREATE INDEX orders_rejected ON orders (sale_id) WHERE status = 'rejected';

CREATE TABLE segment_cursors (
  sale_id text COLLATE "C" NOT NULL REFERENCES sales,
  segment integer NOT NULL,
  generation integer NOT NULL,
  position bigint NOT NULL DEFAULT 0,
  tail text NOT NULL DEFAULT '',
  orders bigint NOT NULL DEFAULT 0,
  units bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (sale_id, segment)
) WITH (fillfactor = 50);
COMMENT ON COLUMN segment_cursors.tail IS 'First order id of the entry at the position: the next entry must name it.';
COMMENT ON COLUMN segment_cursors.units IS 'Units in all entries up to the position, in this generation.';

CREATE TABLE stock_movements (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sale_id text COLLATE "C" NOT NULL REFERENCES sales,
  units bigint NOT NULL,
  reason text NOT NULL,
  actor text NOT NULL,
  moved_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX stock_movements_of_sale ON stock_movements (sale_id);

CREATE TABLE stock_returns (
  order_id bigint PRIMARY KEY,
  sale_id text COLLATE "C" NOT NULL REFERENCES sales,
  buyer_id text COLLATE "C" NOT NULL,
  units integer NOT NULL CHECK (units >= 0),
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  applied_at timestamptz
);
COMMENT ON TABLE stock_returns IS 'Outbox: orders to take out of buyers'' records, with the units to give back.';
CREATE INDEX stock_returns_pending ON stock_returns (sale_id) WHERE applied_at IS NULL;

CREATE TABLE worker_leases (
  worker integer PRIMARY KEY,
  holder text NOT NULL,
  expires_at timestamptz NOT NULL
);
INSERT INTO worker_leases SELECT n, '', '-infinity' FROM generate_series(0, 4095) AS n;

CREATE TABLE settings (
  name text PRIMARY KEY,
  value bytea NOT NULL
);
