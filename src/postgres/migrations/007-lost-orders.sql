-- Orders that the backend lost before they were in Postgres: how many, according to the logs and to the processes that
-- watched them, and which ones, as far as nodes remember the orders that they accepted.

CREATE TABLE sale_losses (
  sale_id text COLLATE "C" NOT NULL REFERENCES sales,
  generation integer NOT NULL,
  segment integer NOT NULL,
  orders bigint NOT NULL CHECK (orders > 0),
  noticed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (sale_id, generation, segment)
);
COMMENT ON COLUMN sale_losses.generation IS 'The one that was built when they were found missing.';
COMMENT ON COLUMN sale_losses.orders IS 'At least so many.';

CREATE TABLE lost_orders (
  order_id bigint PRIMARY KEY,
  sale_id text COLLATE "C" NOT NULL REFERENCES sales,
  generation integer NOT NULL,
  segment integer NOT NULL,
  buyer_id text COLLATE "C" NOT NULL,
  quantity integer NOT NULL,
  noticed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN lost_orders.generation IS 'The sale''s generation when a node named the order.';
CREATE INDEX lost_orders_of_sale ON lost_orders (sale_id, generation);
