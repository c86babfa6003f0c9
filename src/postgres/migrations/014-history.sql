-- What a sale costs must not depend on how many orders other sales have ever had.
--
-- The number of a sale's live orders is kept in its row, in the statement that moves its stock, so that no reader counts
-- them. NULL: not counted yet; adding to it leaves it NULL. docs/internals/history.md says how it is counted then.
ALTER TABLE sales ADD COLUMN live_orders bigint;
ALTER TABLE sales ALTER COLUMN live_orders SET DEFAULT 0;
COMMENT ON COLUMN sales.live_orders IS 'Orders that are unpaid, paid or redeemed. NULL: not counted yet.';

-- Orders of a sale in the order of their ids, which is that of time. CREATE INDEX keeps orders from being written until it has
-- read the table. So here it is built only for a table that it reads within a second; `stockade migrate` builds it for a
-- larger one while nodes sell (src/postgres/large-indexes.ts).
DO $$
BEGIN
  IF pg_relation_size('orders') < 64 * 1024 * 1024 THEN
    CREATE INDEX orders_of_sale ON orders (sale_id, order_id);
  END IF;
END
$$;

-- Pages of the list of sales, all and those that are not closed.
CREATE INDEX sales_newest ON sales (created_at DESC, id);
CREATE INDEX sales_at_work ON sales (created_at DESC, id) WHERE state <> 'closed';

-- As in 004, and the live orders are counted.
CREATE OR REPLACE FUNCTION stockade_apply_batch(
  sale_ids text[], sale_units bigint[],
  cursor_sales text[], cursor_segments integer[], cursor_generations integer[], cursor_from bigint[],
  cursor_to bigint[], cursor_tails text[], cursor_orders bigint[], cursor_units bigint[],
  order_ids bigint[], order_sales integer[], order_buyers text[], order_quantities integer[], order_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one_per_buyer boolean[];
  pay_until timestamptz[];
  sale_orders bigint[];
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

  -- One entry for each sale, 0 for a sale without orders.
  sale_orders := ARRAY(
    SELECT count(o.sale) FROM generate_subscripts(sale_ids, 1) AS n (place)
    LEFT JOIN unnest(order_sales) AS o (sale) ON o.sale = n.place
    GROUP BY n.place ORDER BY n.place);
  FOR i IN 1 .. cardinality(sale_ids) LOOP
    UPDATE sales SET stock = stock - sale_units[i], live_orders = live_orders + sale_orders[i]
      WHERE id = sale_ids[i] AND stock >= sale_units[i];
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

-- As in 005, and the live orders are counted: all that are given were live.
CREATE OR REPLACE FUNCTION stockade_give_back(given bigint[], became text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale record;
  of_generation integer;
BEGIN
  UPDATE orders SET status = became,
      cancelled_at = CASE became WHEN 'cancelled' THEN now() ELSE cancelled_at END,
      expired_at = CASE became WHEN 'expired' THEN now() ELSE expired_at END,
      refunded_at = CASE became WHEN 'refunded' THEN now() ELSE refunded_at END
    WHERE order_id = ANY (given);
  FOR sale IN
    SELECT sale_id AS id, sum(quantity) AS units, count(*) AS orders FROM orders WHERE order_id = ANY (given)
    GROUP BY sale_id ORDER BY sale_id
  LOOP
    UPDATE sales SET stock = stock + sale.units, live_orders = live_orders - sale.orders
      WHERE id = sale.id RETURNING generation INTO of_generation;
    -- There may be a row of a rejected order with the same id.
    INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation)
      SELECT o.order_id, o.sale_id, o.buyer_id, o.quantity, became, of_generation FROM orders o
      WHERE o.order_id = ANY (given) AND o.sale_id = sale.id
      ON CONFLICT (order_id) DO UPDATE SET sale_id = excluded.sale_id, buyer_id = excluded.buyer_id,
        units = excluded.units, reason = excluded.reason, generation = excluded.generation, applied_at = NULL,
        created_at = now();
  END LOOP;
  INSERT INTO order_events (kind, order_ids) VALUES (became, given);
END
$$;
