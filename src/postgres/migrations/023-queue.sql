-- A sale can have a queue: whoever comes gets a place, and units go as offers to the places in their order
-- (docs/internals/queue.md). An offer is an order that its buyer has not accepted yet. So it holds its units, counts against the
-- limit, and expires, as any unpaid order does.

ALTER TABLE sales
  ADD COLUMN queue text COLLATE "C" NOT NULL DEFAULT 'off' CHECK (queue IN ('off', 'fifo', 'draw')),
  ADD COLUMN offer_seconds integer NOT NULL DEFAULT 120 CHECK (offer_seconds BETWEEN 1 AND 31536000),
  ADD COLUMN presence_seconds integer NOT NULL DEFAULT 60 CHECK (presence_seconds BETWEEN 0 AND 86400),
  ADD COLUMN max_waiting integer NOT NULL DEFAULT 1000000 CHECK (max_waiting BETWEEN 1 AND 10000000),
  ADD COLUMN fit text COLLATE "C" NOT NULL DEFAULT 'wait' CHECK (fit IN ('wait', 'less', 'pass'));
COMMENT ON COLUMN sales.queue IS 'The order of the places; off: buyers buy without a place.';
COMMENT ON COLUMN sales.offer_seconds IS 'How long an offer can be accepted.';
COMMENT ON COLUMN sales.presence_seconds IS 'A buyer that asks for its place no more is absent after this time. 0: nobody is ever absent.';
COMMENT ON COLUMN sales.max_waiting IS 'Places behind the head at most.';
COMMENT ON COLUMN sales.fit IS 'What happens to a place that wants more units than are free.';
-- Short: the head looks here for its sales.
CREATE INDEX sales_queue ON sales (id) WHERE queue <> 'off' AND state <> 'closed';

-- No foreign keys to `sales`: they would lock a row that every batch of sync changes.
CREATE TABLE queues (
  sale_id text COLLATE "C" PRIMARY KEY,
  last_number bigint NOT NULL DEFAULT 0,
  seed bytea NOT NULL CHECK (octet_length(seed) = 32),
  salt_key bytea NOT NULL CHECK (octet_length(salt_key) = 32),
  entries bigint,
  entries_hash text COLLATE "C",
  drawn_at timestamptz,
  is_stopped boolean NOT NULL DEFAULT false,
  per_minute integer CHECK (per_minute >= 1),
  allowed bigint NOT NULL DEFAULT 0 CHECK (allowed >= 0),
  head bigint NOT NULL DEFAULT 0,
  hopeless_from bigint,
  free_units bigint,
  offers_made bigint NOT NULL DEFAULT 0,
  told_at timestamptz
);
COMMENT ON TABLE queues IS 'One row for each sale that has or had a queue.';
COMMENT ON COLUMN queues.last_number IS 'The number of the newest place.';
COMMENT ON COLUMN queues.seed IS 'Of the draw. Its SHA-256 is public from the beginning, the seed itself when drawn_at is set.';
COMMENT ON COLUMN queues.salt_key IS 'Makes the salts of the entries'' digests.';
COMMENT ON COLUMN queues.entries IS 'Places that take part in the draw: numbers 1 to this one. Missing: the window has not opened.';
COMMENT ON COLUMN queues.is_stopped IS 'An operator has stopped the offers.';
COMMENT ON COLUMN queues.per_minute IS 'Offers made in a minute at most. Missing: as many as there are units.';
COMMENT ON COLUMN queues.allowed IS 'Offers that may still be made while they are stopped: what an operator hands out.';
COMMENT ON COLUMN queues.head IS 'No place of a rank up to this one waits.';
COMMENT ON COLUMN queues.hopeless_from IS 'The first rank behind as many present places as units could still come to. Missing: none.';
COMMENT ON COLUMN queues.told_at IS 'When the head wrote the columns from `head` on.';

CREATE TABLE places (
  sale_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  buyer_id text COLLATE "C" NOT NULL,
  quantity integer NOT NULL CHECK (quantity >= 1),
  state text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'offered', 'bought', 'lapsed', 'left')),
  reason text COLLATE "C" CHECK (reason IN ('asked', 'absent', 'limit')),
  order_id bigint,
  digest text COLLATE "C",
  given_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  PRIMARY KEY (sale_id, number)
);
COMMENT ON COLUMN places.order_id IS 'The order that is or was its offer.';
COMMENT ON COLUMN places.digest IS 'Of its entry in a draw, once the buyer was erased. Before, it is calculated.';
COMMENT ON COLUMN places.reason IS 'Why it has left.';
CREATE UNIQUE INDEX places_of_buyer ON places (sale_id, buyer_id) WHERE state IN ('waiting', 'offered');
CREATE INDEX places_ended ON places (sale_id, buyer_id, number) WHERE state NOT IN ('waiting', 'offered');
CREATE INDEX places_waiting ON places (sale_id, number) WHERE state = 'waiting';
CREATE INDEX places_offered ON places (sale_id, number) WHERE state = 'offered';

-- Bits of the places whose buyers have asked for them, in pages of 4,096 numbers. It may be lost: then everybody counts as
-- present for a while.
CREATE UNLOGGED TABLE queue_presence (
  sale_id text COLLATE "C" NOT NULL,
  period bigint NOT NULL,
  page bigint NOT NULL,
  present bit(4096) NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (sale_id, period, page)
);

ALTER TABLE orders ADD COLUMN offer_of bigint;
COMMENT ON COLUMN orders.offer_of IS 'The number of the place that it is offered to. Missing: it is no offer, or was accepted.';

ALTER TABLE order_events DROP CONSTRAINT order_events_kind_check;
ALTER TABLE order_events ADD CONSTRAINT order_events_kind_check CHECK (kind IN
  ('committed', 'paid', 'cancelled', 'expired', 'redeemed', 'refunded', 'rejected', 'offered', 'lapsed', 'declined'));

ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN ('create', 'pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token',
      'edit', 'archive', 'erase', 'queue'));

-- Gives each buyer a place, or finds the one that it has: one row for each buyer that has one now. The lock on the row of
-- `queues` orders the places: who reads a number can read all numbers before it. No two buyers may be the same.
--
-- A queue may fill before Postgres has statistics of it. LATERAL with LIMIT looks up each buyer in the index even then; a join would
-- read the whole queue for each batch.
CREATE FUNCTION stockade_give_places(of_sale text, buyers text[], quantities integer[]) RETURNS SETOF places
LANGUAGE plpgsql AS $$
DECLARE
  line queues;
  most integer;
  given bigint;
BEGIN
  SELECT s.max_waiting INTO most FROM sales s
    WHERE s.id = of_sale AND s.queue <> 'off' AND s.state <> 'closed' AND s.deleting_since IS NULL;
  IF FOUND THEN
    SELECT * INTO line FROM queues WHERE sale_id = of_sale FOR UPDATE;
    INSERT INTO places (sale_id, number, buyer_id, quantity)
      SELECT of_sale, line.last_number + row_number() OVER (ORDER BY n.at), n.buyer, n.quantity
        FROM unnest(buyers, quantities) WITH ORDINALITY AS n (buyer, quantity, at)
        LEFT JOIN LATERAL (SELECT 1 AS has FROM places p
          WHERE p.sale_id = of_sale AND p.buyer_id = n.buyer AND p.state IN ('waiting', 'offered') LIMIT 1) AS known ON true
        WHERE known.has IS NULL
        ORDER BY n.at
        LIMIT greatest(0, most - (line.last_number - line.head));
    GET DIAGNOSTICS given = ROW_COUNT;
    IF given > 0 THEN
      UPDATE queues SET last_number = last_number + given WHERE sale_id = of_sale;
    END IF;
  END IF;
  RETURN QUERY SELECT known.* FROM unnest(buyers) AS n (buyer)
    CROSS JOIN LATERAL (SELECT p.* FROM places p
      WHERE p.sale_id = of_sale AND p.buyer_id = n.buyer AND p.state IN ('waiting', 'offered') LIMIT 1) AS known;
END
$$;

-- The buyer of an offer accepts it. From then on it is an order like any other.
--
-- verdict: done (also if it was accepted before), forbidden, quantity (the offer is for another number of units), paused, late (it
-- has ended).
CREATE FUNCTION stockade_accept_offer(
  accepted bigint, asked_by text, units integer, note_reference text, note_metadata jsonb, OUT verdict text, OUT stands orders
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  SELECT * INTO stands FROM orders WHERE order_id = accepted FOR UPDATE;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM sales WHERE id = stands.sale_id AND deleting_since IS NOT NULL) THEN
    RETURN;
  END IF;
  verdict := CASE
    WHEN stands.buyer_id <> asked_by THEN 'forbidden'
    WHEN stands.quantity <> units THEN 'quantity'
    WHEN stands.offer_of IS NULL THEN 'done'
    WHEN stands.status <> 'unpaid' OR stands.expires_at <= now() THEN 'late'
    WHEN EXISTS (SELECT 1 FROM sales WHERE id = stands.sale_id AND state = 'paused') THEN 'paused'
    ELSE 'possible'
  END;
  IF verdict = 'possible' THEN
    verdict := 'done';
    UPDATE places SET state = 'bought', ended_at = now() WHERE sale_id = stands.sale_id AND number = stands.offer_of;
    UPDATE orders SET offer_of = NULL,
        expires_at = (SELECT now() + s.pay_within_seconds * interval '1 second' FROM sales s WHERE s.id = stands.sale_id),
        reference = coalesce(note_reference, reference), metadata = coalesce(note_metadata, metadata)
      WHERE order_id = accepted RETURNING * INTO stands;
    INSERT INTO order_events (kind, order_ids) VALUES ('committed', ARRAY[accepted]);
  END IF;
  RETURN NEXT;
END
$$;

-- The buyer leaves: a place that waits ends, an offer is given back. Returns the place as it is now, and the order whose units
-- come back; nothing if the buyer has no place.
CREATE FUNCTION stockade_leave_queue(of_sale text, of_buyer text, OUT place places, OUT returned bigint)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
  offer bigint;
BEGIN
  -- Orders are locked before places. Between the two steps a place that waits may get an offer.
  FOR attempt IN 1 .. 3 LOOP
    SELECT * INTO place FROM places p
      WHERE p.sale_id = of_sale AND p.buyer_id = of_buyer AND p.state IN ('waiting', 'offered');
    IF NOT FOUND THEN
      RETURN;
    END IF;
    IF place.state = 'waiting' THEN
      UPDATE places SET state = 'left', reason = 'asked', ended_at = now()
        WHERE sale_id = of_sale AND number = place.number AND state = 'waiting' RETURNING * INTO place;
      EXIT WHEN FOUND;
    ELSE
      SELECT o.order_id INTO offer FROM orders o
        WHERE o.order_id = place.order_id AND o.offer_of = place.number AND o.status = 'unpaid' FOR UPDATE;
      IF FOUND THEN
        PERFORM stockade_give_back(ARRAY[offer], 'cancelled');
        returned := offer;
        SELECT * INTO place FROM places p WHERE p.sale_id = of_sale AND p.number = place.number;
        EXIT;
      END IF;
    END IF;
  END LOOP;
  RETURN NEXT;
END
$$;

-- Part of stockade_apply_batch: the orders whose note names a place are the offers to these places. Returns their ids, or null if
-- there are none. A place that waits no longer refuses its order, as the limit of a buyer does.
CREATE FUNCTION stockade_note_offers(order_ids bigint[], order_notes text[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  offers bigint[];
  places_of bigint[];
  made integer;
BEGIN
  SELECT array_agg(n.id), array_agg(n.place) INTO offers, places_of
    FROM (SELECT o.id, (o.note::jsonb->>'place')::bigint AS place FROM unnest(order_ids, order_notes) AS o (id, note)
      WHERE o.note IS NOT NULL) AS n
    WHERE n.place IS NOT NULL;
  IF offers IS NULL THEN
    RETURN NULL;
  END IF;
  UPDATE orders o SET offer_of = n.place, expires_at = now() + s.offer_seconds * interval '1 second'
    FROM unnest(offers, places_of) AS n (id, place), sales s WHERE o.order_id = n.id AND s.id = o.sale_id;
  UPDATE places p SET state = 'offered', order_id = o.order_id
    FROM unnest(offers, places_of) AS n (id, place) JOIN orders o ON o.order_id = n.id
    WHERE p.sale_id = o.sale_id AND p.number = n.place AND p.buyer_id = o.buyer_id AND p.state = 'waiting';
  GET DIAGNOSTICS made = ROW_COUNT;
  IF made <> cardinality(offers) THEN
    RAISE EXCEPTION '% of % places wait no longer', cardinality(offers) - made, cardinality(offers) USING ERRCODE = 'SK003';
  END IF;
  RETURN offers;
END
$$;

-- As in 022, and offers are noted at their places.
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

-- As in 022, and ends the places of offers.
CREATE OR REPLACE FUNCTION stockade_give_back(given bigint[], became text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale record;
  of_generation integer;
  applied timestamptz;
  offers bigint[];
BEGIN
  WITH ended AS (
    UPDATE orders SET status = became,
        cancelled_at = CASE became WHEN 'cancelled' THEN now() ELSE cancelled_at END,
        expired_at = CASE became WHEN 'expired' THEN now() ELSE expired_at END,
        refunded_at = CASE became WHEN 'refunded' THEN now() ELSE refunded_at END
      WHERE order_id = ANY (given) RETURNING order_id, offer_of)
  SELECT array_agg(order_id) FILTER (WHERE offer_of IS NOT NULL) INTO offers FROM ended;
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
  IF offers IS NULL THEN
    INSERT INTO order_events (kind, order_ids) VALUES (became, given);
  ELSE
    UPDATE places p SET ended_at = now(), state = CASE became WHEN 'expired' THEN 'lapsed' ELSE 'left' END,
        reason = CASE became WHEN 'expired' THEN NULL ELSE 'asked' END
      FROM orders o
      WHERE o.order_id = ANY (offers) AND p.sale_id = o.sale_id AND p.number = o.offer_of AND p.state = 'offered';
    INSERT INTO order_events (kind, order_ids)
      SELECT CASE WHEN o.id <> ALL (offers) THEN became WHEN became = 'expired' THEN 'lapsed' ELSE 'declined' END,
        array_agg(o.id ORDER BY o.place)
      FROM unnest(given) WITH ORDINALITY AS o (id, place) GROUP BY 1;
  END IF;
END
$$;

-- As in 021. While a sale is paused, its offers do not expire: nobody could accept them.
CREATE OR REPLACE FUNCTION stockade_expire_orders(most integer, OUT order_ids bigint[], OUT due_since timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  -- As an array, so that it is read once and not for each order.
  paused text[] := ARRAY(SELECT s.id FROM sales s WHERE s.queue <> 'off' AND s.state = 'paused');
BEGIN
  SELECT array_agg(due.order_id), min(due.expires_at) INTO order_ids, due_since
    FROM (SELECT o.order_id, o.expires_at FROM orders o WHERE o.status = 'unpaid' AND o.expires_at <= now()
        AND o.sale_id <> ALL (ARRAY(SELECT s.id FROM sales s WHERE s.deleting_since IS NOT NULL))
        AND (o.offer_of IS NULL OR o.sale_id <> ALL (paused))
      ORDER BY o.expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS due;
  IF order_ids IS NULL THEN
    order_ids := '{}';
  ELSE
    PERFORM stockade_give_back(order_ids, 'expired');
  END IF;
END
$$;

-- As in 021. An offer can only be given back: it must be accepted before anything else.
CREATE OR REPLACE FUNCTION stockade_change_order(
  changed bigint, change text, payment text, asked_by text, OUT verdict text, OUT stands orders
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  SELECT * INTO stands FROM orders WHERE order_id = changed FOR UPDATE;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM sales WHERE id = stands.sale_id AND deleting_since IS NOT NULL) THEN
    RETURN;
  END IF;
  verdict := CASE
    WHEN stands.buyer_id <> asked_by THEN 'forbidden'
    WHEN stands.offer_of IS NOT NULL AND change <> 'cancel' THEN 'wrong_status'
    WHEN change = 'pay' AND stands.paid_at IS NOT NULL AND stands.pay_type = payment THEN 'done'
    WHEN change = 'cancel' AND stands.cancelled_at IS NOT NULL THEN 'done'
    WHEN change = 'redeem' AND stands.redeemed_at IS NOT NULL THEN 'done'
    WHEN change = 'refund' AND stands.refunded_at IS NOT NULL THEN 'done'
    WHEN change = 'pay' AND stands.retaken_by IS NOT NULL AND stands.pay_type = payment THEN 'retaken'
    WHEN change = 'pay' AND stands.retaken_by IS NOT NULL THEN 'wrong_status'
    WHEN change = 'pay' AND stands.refund_due_at IS NOT NULL THEN 'refund_due'
    WHEN change = 'pay' AND (stands.status = 'expired' OR stands.status = 'unpaid' AND stands.expires_at <= now()) THEN 'late'
    WHEN change = 'refund' AND stands.refund_due_at IS NOT NULL THEN 'possible'
    WHEN stands.status = CASE WHEN change IN ('pay', 'cancel') THEN 'unpaid' ELSE 'paid' END THEN 'possible'
    ELSE 'wrong_status'
  END;

  IF verdict = 'possible' THEN
    verdict := 'done';
    IF change = 'pay' THEN
      UPDATE orders SET status = 'paid', paid_at = now(), pay_type = payment WHERE order_id = changed;
      INSERT INTO order_events (kind, order_ids) VALUES ('paid', ARRAY[changed]);
    ELSIF change = 'redeem' THEN
      UPDATE orders SET status = 'redeemed', redeemed_at = now() WHERE order_id = changed;
      INSERT INTO order_events (kind, order_ids) VALUES ('redeemed', ARRAY[changed]);
    ELSIF change = 'cancel' THEN
      PERFORM stockade_give_back(ARRAY[changed], 'cancelled');
    ELSIF stands.status = 'paid' THEN
      PERFORM stockade_give_back(ARRAY[changed], 'refunded');
    ELSE
      -- The order has expired before, and its units were returned then.
      UPDATE orders SET refunded_at = now() WHERE order_id = changed;
      INSERT INTO order_events (kind, order_ids) VALUES ('refunded', ARRAY[changed]);
    END IF;
  ELSIF verdict = 'late' AND stands.status = 'unpaid' THEN
    PERFORM stockade_give_back(ARRAY[changed], 'expired');
  END IF;
  SELECT * INTO stands FROM orders
    WHERE order_id = CASE verdict WHEN 'retaken' THEN stands.retaken_by ELSE changed END;
  RETURN NEXT;
END
$$;
