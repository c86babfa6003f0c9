-- As in 002, with the statements in another order, so that two batches of one sync can overlap: the second inserts its
-- orders while the first one's commit waits for the disk. The rows that both batches change are locked last: sales before
-- cursors, as in a rebuild.
--
-- The limit is checked at the end, under the lock on the sale's row: only then are the orders of the previous batch visible.
--
-- The errors are those of 002. If another sync has already applied the batch, its orders are found before its cursors are
-- compared: so 23505 may mean SK001.

CREATE OR REPLACE FUNCTION stockade_apply_batch(
  sale_ids text[], sale_units bigint[],
  cursor_sales text[], cursor_segments integer[], cursor_generations integer[], cursor_from bigint[],
  cursor_to bigint[], cursor_tails text[], cursor_orders bigint[], cursor_units bigint[],
  order_ids bigint[], order_sales integer[], order_buyers text[], order_quantities integer[], order_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one_per_buyer boolean[] := ARRAY(
    SELECT s.per_buyer_limit = 1 FROM unnest(sale_ids) WITH ORDINALITY AS n (id, place)
    LEFT JOIN sales s ON s.id = n.id ORDER BY n.place);
  moved integer;
BEGIN
  INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, idempotency_key)
    SELECT o.id, sale_ids[o.sale], o.buyer, o.quantity, one_per_buyer[o.sale], o.key
    FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys)
      AS o (id, sale, buyer, quantity, key);

  FOR i IN 1 .. cardinality(sale_ids) LOOP
    UPDATE sales SET stock = stock - sale_units[i] WHERE id = sale_ids[i] AND stock >= sale_units[i];
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sale % has fewer than % units', sale_ids[i], sale_units[i] USING ERRCODE = 'SK002';
    END IF;
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
