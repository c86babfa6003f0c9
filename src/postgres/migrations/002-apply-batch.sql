-- One batch of the order logs, applied in one transaction and one round trip: the guarded stock, the cursors, the orders.
-- It is a function because Postgres then plans its statements once a session, and because five round trips cost more than
-- the work itself.
--
-- Errors, each of which leaves everything unchanged:
--   SK001  a cursor is not where the batch was read: another sync has moved it
--   SK002  the guard: a sale has fewer units than the batch needs
--   SK003  the limit: a buyer would hold more than the sale allows
--   23505  an order with this id or key is there already, or the buyer's one order

CREATE FUNCTION stockade_apply_batch(
  -- per sale, ordered by id, so that two batches can't wait for each other's rows
  sale_ids text[], sale_units bigint[],
  -- per segment: the cursor's position before and after the batch
  cursor_sales text[], cursor_segments integer[], cursor_generations integer[], cursor_from bigint[],
  cursor_to bigint[], cursor_tails text[], cursor_orders bigint[], cursor_units bigint[],
  -- per order; order_sales holds indexes into sale_ids, from 1; order_keys may be null as a whole
  order_ids bigint[], order_sales integer[], order_buyers text[], order_quantities integer[], order_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale_limit integer;
  one_per_buyer boolean[] := '{}';
  moved integer;
BEGIN
  FOR i IN 1 .. cardinality(sale_ids) LOOP
    UPDATE sales SET stock = stock - sale_units[i]
      WHERE id = sale_ids[i] AND stock >= sale_units[i]
      RETURNING per_buyer_limit INTO sale_limit;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sale % has fewer than % units', sale_ids[i], sale_units[i] USING ERRCODE = 'SK002';
    END IF;
    one_per_buyer := one_per_buyer || (sale_limit = 1);
  END LOOP;

  UPDATE segment_cursors c
    SET position = n.upto, tail = n.tail, orders = n.orders, units = c.units + n.units
    FROM unnest(cursor_sales, cursor_segments, cursor_generations, cursor_from, cursor_to, cursor_tails, cursor_orders,
      cursor_units) AS n (sale_id, segment, generation, since, upto, tail, orders, units)
    WHERE c.sale_id = n.sale_id AND c.segment = n.segment AND c.generation = n.generation AND c.position = n.since;
  GET DIAGNOSTICS moved = ROW_COUNT;
  IF moved <> cardinality(cursor_sales) THEN
    RAISE EXCEPTION '% of % cursors were elsewhere', cardinality(cursor_sales) - moved, cardinality(cursor_sales)
      USING ERRCODE = 'SK001';
  END IF;

  INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, idempotency_key)
    SELECT o.id, sale_ids[o.sale], o.buyer, o.quantity, one_per_buyer[o.sale], o.key
    FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys)
      AS o (id, sale, buyer, quantity, key);

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
