-- One statement changes the sales of a batch if they are many. Each execution of an UPDATE of `sales` prepares its checks and indexes
-- anew, which cost more than all other work on an order that is alone in its sale.

-- As in 023, but for that.
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
  buyer_limit integer;
  -- As `sale_ids`; NULL for a sale that has too few units.
  limits integer[] := '{}';
  short integer;
  moved integer;
  offers bigint[];
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
  END IF;

  -- One entry for each sale, 0 for a sale without orders.
  sale_orders := ARRAY(
    SELECT count(o.sale) FROM generate_subscripts(sale_ids, 1) AS n (place)
    LEFT JOIN unnest(order_sales) AS o (sale) ON o.sale = n.place
    GROUP BY n.place ORDER BY n.place);
  -- To begin the statement for many sales costs more than three of the others.
  IF cardinality(sale_ids) < 8 THEN
    FOR i IN 1 .. cardinality(sale_ids) LOOP
      UPDATE sales SET stock = stock - sale_units[i], live_orders = live_orders + sale_orders[i],
          draft_since = least(draft_since, now())
        WHERE id = sale_ids[i] AND stock >= sale_units[i] RETURNING per_buyer_limit INTO buyer_limit;
      limits := limits || buyer_limit;
    END LOOP;
  ELSE
    -- In the order of their ids. The statement that changes them would lock them in any order.
    PERFORM 1 FROM sales s WHERE s.id = ANY (sale_ids) ORDER BY s.id FOR NO KEY UPDATE;
    WITH sold AS (
      UPDATE sales s SET stock = s.stock - n.units, live_orders = s.live_orders + n.orders,
          draft_since = least(s.draft_since, now())
        FROM unnest(sale_ids, sale_units, sale_orders) WITH ORDINALITY AS n (id, units, orders, place)
        WHERE s.id = n.id AND s.stock >= n.units RETURNING n.place, s.per_buyer_limit)
    SELECT array_agg(sold.per_buyer_limit ORDER BY n.place) INTO limits
      FROM generate_subscripts(sale_ids, 1) AS n (place) LEFT JOIN sold USING (place);
  END IF;
  short := array_position(limits, NULL);
  IF short IS NOT NULL THEN
    RAISE EXCEPTION 'sale % has fewer than % units', sale_ids[short], sale_units[short] USING ERRCODE = 'SK002';
  END IF;

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

  -- Places are locked last.
  IF cardinality(order_ids) > 0 THEN
    IF order_notes IS NOT NULL THEN
      offers := stockade_note_offers(order_ids, order_notes);
    END IF;
    IF offers IS NULL THEN
      INSERT INTO order_events (kind, order_ids) VALUES ('committed', order_ids);
    ELSE
      INSERT INTO order_events (kind, order_ids)
        SELECT CASE WHEN o.id = ANY (offers) THEN 'offered' ELSE 'committed' END, array_agg(o.id ORDER BY o.place)
        FROM unnest(order_ids) WITH ORDINALITY AS o (id, place) GROUP BY 1;
    END IF;
  END IF;
END
$$;
