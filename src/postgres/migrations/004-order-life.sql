-- What happens to an order after its purchase, and to a sale while it sells: time stamps, the deadline of the payment, returns
-- with their generation, a ledger with actor and reason, and the outbox of order events.

ALTER TABLE orders
  ADD COLUMN expires_at timestamptz,
  ADD COLUMN pay_type text COLLATE "C" CHECK (pay_type IN ('balance', 'alipay', 'wechat', 'card', 'other')),
  ADD COLUMN paid_at timestamptz,
  ADD COLUMN redeemed_at timestamptz,
  ADD COLUMN refunded_at timestamptz,
  ADD COLUMN cancelled_at timestamptz,
  ADD COLUMN expired_at timestamptz,
  ADD COLUMN refund_due_at timestamptz,
  ADD COLUMN retaken_by bigint;
COMMENT ON COLUMN orders.expires_at IS 'When it expires, if it is still unpaid then. Missing: never.';
COMMENT ON COLUMN orders.refund_due_at IS 'When a payment came for it although it had expired and nothing was left: the money must go back.';
COMMENT ON COLUMN orders.retaken_by IS 'The order that took its place, because its payment came after it had expired.';
UPDATE orders o SET expires_at = o.committed_at + s.pay_within_seconds * interval '1 second'
  FROM sales s WHERE s.id = o.sale_id AND s.pay_within_seconds IS NOT NULL AND o.status = 'unpaid';
CREATE INDEX orders_unpaid_until ON orders (expires_at) WHERE status = 'unpaid' AND expires_at IS NOT NULL;
CREATE INDEX orders_refund_due ON orders (sale_id, refund_due_at) WHERE refund_due_at IS NOT NULL AND refunded_at IS NULL;

-- A rebuild loads `sales.stock`, which includes all units returned in earlier generations. Units returned in its own
-- generation come back one order at a time, because the records that it loads still contain those orders.
ALTER TABLE stock_returns ADD COLUMN generation integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN stock_returns.generation IS 'The sale''s generation when the units went back into sales.stock.';
CREATE INDEX stock_returns_of_generation ON stock_returns (sale_id, generation);

-- The ledger: one row for each change that an operator makes to a sale, with actor and reason. `units` is what the change
-- added to the sale's total stock: 0 for most changes.
ALTER TABLE stock_movements
  ADD COLUMN action text NOT NULL DEFAULT 'top-up'
    CHECK (action IN ('pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize')),
  ADD COLUMN detail jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN generation integer NOT NULL DEFAULT 0,
  ADD COLUMN applied_at timestamptz;
ALTER TABLE stock_movements ALTER COLUMN action DROP DEFAULT;
COMMENT ON COLUMN stock_movements.applied_at IS 'When the segments had followed. Missing: sync makes them follow.';
CREATE INDEX stock_movements_pending ON stock_movements (sale_id) WHERE applied_at IS NULL;

-- The outbox of order events, written in the transaction that changes the orders. A row holds one kind of event of many
-- orders: a row for each order would cost as much as the orders themselves. A reader takes all visible rows, in the order of
-- their ids. That is enough to keep the events of an order in sequence: one is visible only if its predecessors are.
CREATE TABLE order_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text COLLATE "C" NOT NULL
    CHECK (kind IN ('committed', 'paid', 'cancelled', 'expired', 'redeemed', 'refunded', 'rejected')),
  order_ids bigint[] NOT NULL,
  happened_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE order_events ALTER COLUMN order_ids SET STORAGE EXTERNAL;

-- As in 003, with the deadline of the payment, and with the event.
--
-- The count of a cursor never decreases. A rebuild writes and counts all orders that it finds beyond a cursor. A slower sync,
-- which had read only some of them, may move the cursor after that. If it also set the count back, the other orders would be
-- counted as lost.
CREATE OR REPLACE FUNCTION stockade_apply_batch(
  sale_ids text[], sale_units bigint[],
  cursor_sales text[], cursor_segments integer[], cursor_generations integer[], cursor_from bigint[],
  cursor_to bigint[], cursor_tails text[], cursor_orders bigint[], cursor_units bigint[],
  order_ids bigint[], order_sales integer[], order_buyers text[], order_quantities integer[], order_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one_per_buyer boolean[];
  pay_until timestamptz[];
  moved integer;
BEGIN
  SELECT array_agg(s.per_buyer_limit = 1 ORDER BY n.place),
      array_agg(now() + s.pay_within_seconds * interval '1 second' ORDER BY n.place)
    INTO one_per_buyer, pay_until
    FROM unnest(sale_ids) WITH ORDINALITY AS n (id, place) LEFT JOIN sales s ON s.id = n.id;

  IF cardinality(order_ids) > 0 THEN
    INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, idempotency_key, expires_at)
      SELECT o.id, sale_ids[o.sale], o.buyer, o.quantity, one_per_buyer[o.sale], o.key, pay_until[o.sale]
      FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys)
        AS o (id, sale, buyer, quantity, key);
    INSERT INTO order_events (kind, order_ids) VALUES ('committed', order_ids);
  END IF;

  FOR i IN 1 .. cardinality(sale_ids) LOOP
    UPDATE sales SET stock = stock - sale_units[i] WHERE id = sale_ids[i] AND stock >= sale_units[i];
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sale % has fewer than % units', sale_ids[i], sale_units[i] USING ERRCODE = 'SK002';
    END IF;
  END LOOP;

  UPDATE segment_cursors c
    SET position = n.upto, tail = n.tail, orders = greatest(c.orders, n.orders), units = c.units + n.units
    FROM unnest(cursor_sales, cursor_segments, cursor_generations, cursor_from, cursor_to, cursor_tails, cursor_orders,
      cursor_units) AS n (sale_id, segment, generation, since, upto, tail, orders, units)
    WHERE c.sale_id = n.sale_id AND c.segment = n.segment AND c.generation = n.generation AND c.position = n.since;
  GET DIAGNOSTICS moved = ROW_COUNT;
  IF moved <> cardinality(cursor_sales) THEN
    RAISE EXCEPTION '% of % cursors were elsewhere', cardinality(cursor_sales) - moved, cardinality(cursor_sales)
      USING ERRCODE = 'SK001';
  END IF;

  IF NOT (true = ALL (one_per_buyer)) THEN
    PERFORM 1
      FROM (SELECT DISTINCT sale_ids[o.sale] AS sale_id, o.buyer
        FROM unnest(order_sales, order_buyers) AS o (sale, buyer) WHERE NOT one_per_buyer[o.sale]) AS b
      JOIN sales s ON s.id = b.sale_id
      JOIN orders held ON held.sale_id = b.sale_id AND held.buyer_id = b.buyer AND NOT held.one_per_buyer
        AND held.status IN ('unpaid', 'paid', 'redeemed')
      GROUP BY b.sale_id, b.buyer, s.per_buyer_limit
      HAVING sum(held.quantity) > s.per_buyer_limit;
    IF FOUND THEN
      RAISE EXCEPTION 'a buyer would hold more than the sale allows' USING ERRCODE = 'SK003';
    END IF;
  END IF;
END
$$;
