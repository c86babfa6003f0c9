-- As in 035, but who already holds so many units that these would be more than one buyer may hold gets no place: it would be passed
-- over when its turn came, and count until then for all behind it. Who was left out for that reason is asked for afterwards, because
-- nodes of earlier versions know only one: to them the queue is full.
--
-- While nobody holds a unit of the sale, as before its window, no orders are read.
CREATE OR REPLACE FUNCTION stockade_give_places(of_sale text, buyers text[], quantities integer[]) RETURNS SETOF places
LANGUAGE plpgsql AS $$
DECLARE
  line queues;
  most integer;
  period_seconds integer;
  buyer_limit integer;
  is_held boolean;
  given bigint := 0;
BEGIN
  SELECT s.max_waiting, s.presence_seconds, s.per_buyer_limit, s.live_orders IS DISTINCT FROM 0
    INTO most, period_seconds, buyer_limit, is_held FROM sales s
    WHERE s.id = of_sale AND s.queue <> 'off' AND s.state <> 'closed' AND s.deleting_since IS NULL;
  IF FOUND THEN
    SELECT * INTO line FROM queues WHERE sale_id = of_sale FOR UPDATE;
    RETURN QUERY INSERT INTO places (sale_id, number, buyer_id, quantity)
      SELECT of_sale, line.last_number + row_number() OVER (ORDER BY n.at), n.buyer, n.quantity
        FROM unnest(buyers, quantities) WITH ORDINALITY AS n (buyer, quantity, at)
        LEFT JOIN LATERAL (SELECT 1 AS has FROM places p
          WHERE p.sale_id = of_sale AND p.buyer_id = n.buyer AND p.state IN ('waiting', 'offered') LIMIT 1) AS known ON true
        CROSS JOIN LATERAL (SELECT coalesce(sum(h.quantity), 0) AS units FROM (
          SELECT o.quantity FROM orders o WHERE is_held AND known.has IS NULL AND o.sale_id = of_sale AND o.buyer_id = n.buyer
            AND o.one_per_buyer AND o.status IN ('unpaid', 'paid', 'redeemed')
          UNION ALL
          SELECT o.quantity FROM orders o WHERE is_held AND known.has IS NULL AND o.sale_id = of_sale AND o.buyer_id = n.buyer
            AND NOT o.one_per_buyer AND o.status IN ('unpaid', 'paid', 'redeemed')) AS h) AS held
        WHERE known.has IS NULL AND (held.units = 0 OR held.units + n.quantity <= buyer_limit)
        ORDER BY n.at
        LIMIT greatest(0, most - (line.last_number - line.head))
      RETURNING *;
    GET DIAGNOSTICS given = ROW_COUNT;
    IF given > 0 THEN
      UPDATE queues SET last_number = last_number + given WHERE sale_id = of_sale;
      IF period_seconds > 0 THEN
        INSERT INTO queue_presence (sale_id, period, page, present)
          SELECT of_sale, floor(extract(epoch FROM now()) / period_seconds)::bigint, page,
              (repeat('0', first) || repeat('1', last - first + 1) || repeat('0', 4095 - last))::bit(4096)
            FROM generate_series(line.last_number / 4096, (line.last_number + given - 1) / 4096) AS page
            CROSS JOIN LATERAL (SELECT greatest(0, line.last_number - 4096 * page)::integer AS first,
              least(4095, line.last_number + given - 1 - 4096 * page)::integer AS last) AS bits
            ORDER BY page
          ON CONFLICT (sale_id, period, page) DO UPDATE SET present = queue_presence.present | excluded.present;
      END IF;
    END IF;
  END IF;
  IF given < cardinality(buyers) THEN
    -- The others. LATERAL with LIMIT as in 023.
    RETURN QUERY SELECT known.* FROM unnest(buyers) AS n (buyer)
      CROSS JOIN LATERAL (SELECT p.* FROM places p
        WHERE p.sale_id = of_sale AND p.buyer_id = n.buyer AND p.state IN ('waiting', 'offered') LIMIT 1) AS known
      WHERE given = 0 OR known.number <= line.last_number;
  END IF;
END
$$;
