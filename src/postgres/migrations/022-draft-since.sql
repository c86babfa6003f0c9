-- What has changed since a draft of the buyers' records began (draft.ts) is found by its time. The clock may be set back meanwhile,
-- so the sale's row remembers the earliest time that was written: by transactions that lock the row after the draft has begun.
ALTER TABLE sales ADD COLUMN draft_id text, ADD COLUMN draft_since timestamptz;
COMMENT ON COLUMN sales.draft_id IS 'The draft that began last.';
COMMENT ON COLUMN sales.draft_since IS 'The earliest committed_at of orders, and created_at of returns, written since that draft began.';

-- As in 019, and notes its time.
CREATE OR REPLACE FUNCTION stockade_apply_batch(
  sale_ids text[], sale_units bigint[],
  cursor_sales text[], cursor_segments integer[], cursor_generations integer[], cursor_from bigint[],
  cursor_to bigint[], cursor_tails text[], cursor_orders bigint[], cursor_units bigint[],
  order_ids bigint[], order_sales integer[], order_buyers text[], order_quantities integer[], order_keys text[],
  order_notes text[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one_per_buyer boolean[];
  pay_until timestamptz[];
  sale_orders bigint[];
  moved integer;
  buyer_limit integer;
  limits integer[] := '{}';
BEGIN
  SELECT array_agg(s.per_buyer_limit = 1 ORDER BY n.place),
      array_agg(now() + s.pay_within_seconds * interval '1 second' ORDER BY n.place)
    INTO one_per_buyer, pay_until
    FROM unnest(sale_ids) WITH ORDINALITY AS n (id, place) LEFT JOIN sales s ON s.id = n.id;

  IF cardinality(order_ids) > 0 THEN
    INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, idempotency_key, expires_at, reference, metadata)
      SELECT o.id, sale_ids[o.sale], o.buyer, o.quantity, one_per_buyer[o.sale], o.key, pay_until[o.sale],
        o.note::jsonb->>'reference', o.note::jsonb->'metadata'
      FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys, order_notes)
        AS o (id, sale, buyer, quantity, key, note);
    INSERT INTO order_events (kind, order_ids) VALUES ('committed', order_ids);
  END IF;

  -- One entry for each sale, 0 for a sale without orders.
  sale_orders := ARRAY(
    SELECT count(o.sale) FROM generate_subscripts(sale_ids, 1) AS n (place)
    LEFT JOIN unnest(order_sales) AS o (sale) ON o.sale = n.place
    GROUP BY n.place ORDER BY n.place);
  FOR i IN 1 .. cardinality(sale_ids) LOOP
    UPDATE sales SET stock = stock - sale_units[i], live_orders = live_orders + sale_orders[i],
        draft_since = least(draft_since, now())
      WHERE id = sale_ids[i] AND stock >= sale_units[i] RETURNING per_buyer_limit INTO buyer_limit;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sale % has fewer than % units', sale_ids[i], sale_units[i] USING ERRCODE = 'SK002';
    END IF;
    limits := limits || buyer_limit;
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

  -- The limits as they are under the locks on the rows of `sales`: an order that was inserted as the only one of its buyer
  -- counts here too, if the limit was raised meanwhile. A sale that still has the limit 1 needs no sum: all its orders are in
  -- the unique index.
  IF NOT (1 = ALL (limits)) THEN
    PERFORM 1
      FROM (SELECT DISTINCT o.sale, o.buyer FROM unnest(order_sales, order_buyers) AS o (sale, buyer)
        WHERE limits[o.sale] > 1) AS b
      CROSS JOIN LATERAL (
        SELECT o.quantity FROM orders o WHERE o.sale_id = sale_ids[b.sale] AND o.buyer_id = b.buyer
          AND o.one_per_buyer AND o.status IN ('unpaid', 'paid', 'redeemed')
        UNION ALL
        SELECT o.quantity FROM orders o WHERE o.sale_id = sale_ids[b.sale] AND o.buyer_id = b.buyer
          AND NOT o.one_per_buyer AND o.status IN ('unpaid', 'paid', 'redeemed')) AS held
      GROUP BY b.sale, b.buyer
      HAVING sum(held.quantity) > limits[b.sale];
    IF FOUND THEN
      RAISE EXCEPTION 'a buyer would hold more than the sale allows' USING ERRCODE = 'SK003';
    END IF;
  END IF;
END
$$;

-- As in 017, and notes its time.
CREATE OR REPLACE FUNCTION stockade_give_back(given bigint[], became text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale record;
  of_generation integer;
  applied timestamptz;
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
    UPDATE sales SET stock = stock + sale.units, live_orders = live_orders - sale.orders,
        draft_since = least(draft_since, now())
      WHERE id = sale.id
      RETURNING generation, CASE WHEN archived_at IS NOT NULL THEN now() END INTO of_generation, applied;
    -- There may be a row of a rejected order with the same id.
    INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation, applied_at)
      SELECT o.order_id, o.sale_id, o.buyer_id, o.quantity, became, of_generation, applied FROM orders o
      WHERE o.order_id = ANY (given) AND o.sale_id = sale.id
      ON CONFLICT (order_id) DO UPDATE SET sale_id = excluded.sale_id, buyer_id = excluded.buyer_id,
        units = excluded.units, reason = excluded.reason, generation = excluded.generation,
        applied_at = excluded.applied_at, created_at = now();
  END LOOP;
  INSERT INTO order_events (kind, order_ids) VALUES (became, given);
END
$$;
