-- As in 023, and no place gets an offer once the sale is closed or over, or has no queue any more: its buyer may have been told that it
-- is closed (docs/internals/queue.md). The row of the sale is locked by then, so what this reads of it stays so until the commit.
CREATE OR REPLACE FUNCTION stockade_note_offers(order_ids bigint[], order_notes text[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
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
    FROM unnest(offers, places_of) AS n (id, place) JOIN orders o ON o.order_id = n.id JOIN sales s ON s.id = o.sale_id
    WHERE p.sale_id = o.sale_id AND p.number = n.place AND p.buyer_id = o.buyer_id AND p.state = 'waiting'
      AND s.queue <> 'off' AND s.state <> 'closed' AND (s.ends_at IS NULL OR s.ends_at > clock_timestamp());
  GET DIAGNOSTICS made = ROW_COUNT;
  IF made <> cardinality(offers) THEN
    RAISE EXCEPTION '% of % places get no offer any more', cardinality(offers) - made, cardinality(offers) USING ERRCODE = 'SK003';
  END IF;
  RETURN offers;
END
$$;

ALTER TABLE queues
  ADD COLUMN paced_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN pace_left double precision NOT NULL DEFAULT 0;
COMMENT ON COLUMN queues.pace_left IS 'Offers that the pace allowed at paced_at and that were not begun.';

-- Offers that the head has begun, until they are settled: made, or given up. No two heads use up the same allowance, and none is lost with a
-- head.
CREATE TABLE begun_offers (
  sale_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  counts boolean NOT NULL,
  may_return boolean NOT NULL,
  PRIMARY KEY (sale_id, number)
);
COMMENT ON COLUMN begun_offers.number IS 'Of the place.';
COMMENT ON COLUMN begun_offers.counts IS 'It has used up an offer under the operator''s present rule.';
COMMENT ON COLUMN begun_offers.may_return IS 'It was handed out, and if it is given up, the operator''s number is raised again.';

-- How many offers the pace of a queue allows now. What was not used in a second is lost: otherwise a lull would be followed by a rush.
CREATE FUNCTION stockade_pace(line queues) RETURNS double precision LANGUAGE sql AS $$
  SELECT least(greatest(1, line.per_minute / 60.0)::double precision, line.pace_left
    + greatest(0, extract(epoch FROM clock_timestamp() - line.paced_at))::double precision * line.per_minute / 60)
$$;

-- Begins the offers to these places, if the operator's rule allows so many; those that were begun before use up nothing. Returns whether it
-- does. The lock on the row of `queues` keeps operators and another head out meanwhile.
CREATE FUNCTION stockade_begin_offers(of_sale text, of_seed bytea, numbers bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line queues;
  fresh bigint[];
  used integer;
  pace double precision;
BEGIN
  SELECT * INTO line FROM queues WHERE sale_id = of_sale AND seed = of_seed FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  fresh := ARRAY(SELECT n FROM unnest(numbers) AS n
    WHERE NOT EXISTS (SELECT 1 FROM begun_offers b WHERE b.sale_id = of_sale AND b.number = n AND b.counts));
  used := cardinality(fresh);
  pace := stockade_pace(line);
  IF line.is_stopped AND used > line.allowed OR NOT line.is_stopped AND line.per_minute IS NOT NULL AND used > pace THEN
    RETURN false;
  END IF;
  INSERT INTO begun_offers (sale_id, number, counts, may_return) SELECT of_sale, n, true, line.is_stopped FROM unnest(fresh) AS n
    ON CONFLICT (sale_id, number) DO UPDATE SET counts = true, may_return = excluded.may_return;
  IF used > 0 AND line.is_stopped THEN
    UPDATE queues SET allowed = allowed - used WHERE sale_id = of_sale;
  ELSIF used > 0 AND line.per_minute IS NOT NULL THEN
    UPDATE queues SET pace_left = pace - used, paced_at = clock_timestamp() WHERE sale_id = of_sale;
  END IF;
  RETURN true;
END
$$;

-- Settles the begun offers whose places wait no longer: counts those that were made, and gives back those that were given up. Returns the
-- places of all others that count.
CREATE FUNCTION stockade_settle_offers(of_sale text) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM begun_offers WHERE sale_id = of_sale) THEN
    RETURN '{}';
  END IF;
  PERFORM 1 FROM queues WHERE sale_id = of_sale FOR UPDATE;
  WITH settled AS (
    DELETE FROM begun_offers b USING places p
      WHERE b.sale_id = of_sale AND p.sale_id = b.sale_id AND p.number = b.number AND p.state <> 'waiting'
      RETURNING p.order_id IS NOT NULL AS is_made, b.may_return)
  UPDATE queues SET offers_made = offers_made + (SELECT count(*) FROM settled WHERE is_made),
      allowed = allowed + (SELECT count(*) FROM settled WHERE NOT is_made AND may_return)
    WHERE sale_id = of_sale AND EXISTS (SELECT 1 FROM settled);
  RETURN ARRAY(SELECT b.number FROM begun_offers b WHERE b.sale_id = of_sale AND b.counts);
END
$$;
