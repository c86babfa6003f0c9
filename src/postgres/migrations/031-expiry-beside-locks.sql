-- A locked row of one sale must not hold up the expiry of the others (docs/internals/orders.md). Nodes of 0.1.0 still call the function
-- of 024 with one argument, which waits.

-- Expires the due orders of one page, except those of sales that are left out, and those of sales that another transaction has locked
-- now. It returns the latter, as if locked those of a sale that was just paused or is being deleted. It waits for no sale.
CREATE FUNCTION stockade_expire_orders(most integer, left_out text[],
  OUT order_ids bigint[], OUT due_since timestamptz, OUT locked_ids bigint[], OUT locked_sales text[])
LANGUAGE plpgsql AS $$
DECLARE
  -- As an array, so that it is read once and not for each order.
  paused text[] := ARRAY(SELECT s.id FROM sales s WHERE s.state = 'paused');
  due_ids bigint[];
  due_sales text[];
  due_times timestamptz[];
  free text[];
BEGIN
  SELECT array_agg(due.order_id), array_agg(due.sale_id), array_agg(due.expires_at) INTO due_ids, due_sales, due_times
    FROM (SELECT o.order_id, o.sale_id, o.expires_at FROM orders o WHERE o.status = 'unpaid' AND o.expires_at <= now()
        AND o.sale_id <> ALL (ARRAY(SELECT s.id FROM sales s WHERE s.deleting_since IS NOT NULL))
        AND (o.offer_of IS NULL OR o.sale_id <> ALL (paused))
        AND o.sale_id <> ALL (left_out)
      ORDER BY o.expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS due;
  free := ARRAY(SELECT s.id FROM sales s WHERE s.id = ANY (due_sales) AND s.deleting_since IS NULL
      AND (s.state <> 'paused' OR s.id = ANY (paused))
    ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED);
  SELECT coalesce(array_agg(d.id) FILTER (WHERE d.sale = ANY (free)), '{}'), min(d.due) FILTER (WHERE d.sale = ANY (free)),
      coalesce(array_agg(d.id) FILTER (WHERE d.sale <> ALL (free)), '{}'),
      coalesce(array_agg(d.sale) FILTER (WHERE d.sale <> ALL (free)), '{}')
    INTO order_ids, due_since, locked_ids, locked_sales
    FROM unnest(due_ids, due_sales, due_times) AS d (id, sale, due);
  IF cardinality(order_ids) > 0 THEN
    PERFORM stockade_give_back(order_ids, 'expired');
  END IF;
END
$$;

-- Expires those of the given orders of one sale that are still due, as soon as nobody else has the sale's row locked. It locks the sale
-- before the orders, and skips orders that are locked: while it waits, it holds nothing up. After wait_ms it fails with lock_not_available.
CREATE FUNCTION stockade_expire_given(given bigint[], of_sale text, wait_ms integer,
  OUT order_ids bigint[], OUT due_since timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', wait_ms::text, true);
  PERFORM 1 FROM sales s WHERE s.id = of_sale FOR NO KEY UPDATE;
  SELECT array_agg(due.order_id), min(due.expires_at) INTO order_ids, due_since
    FROM (SELECT o.order_id, o.expires_at FROM orders o JOIN sales s ON s.id = o.sale_id
      WHERE o.order_id = ANY (given) AND o.sale_id = of_sale AND o.status = 'unpaid' AND o.expires_at <= now()
        AND s.deleting_since IS NULL AND (o.offer_of IS NULL OR s.state <> 'paused')
      FOR UPDATE OF o SKIP LOCKED) AS due;
  IF order_ids IS NULL THEN
    order_ids := '{}';
  ELSE
    PERFORM stockade_give_back(order_ids, 'expired');
  END IF;
END
$$;
