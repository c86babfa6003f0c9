-- As in 030, but what the head has read is compared after the lock on the row of the queue. Another head may have made these offers while this
-- one waited for the lock. Each statement of the function sees what was committed before it.
DROP FUNCTION stockade_begin_offers(text, bytea, bigint[]);
CREATE FUNCTION stockade_begin_offers(of_sale text, of_seed bytea, of_entries text, told_before text, numbers bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line queues;
  fresh bigint[];
  used integer;
  pace double precision;
BEGIN
  SELECT * INTO line FROM queues WHERE sale_id = of_sale FOR UPDATE;
  IF line.seed IS DISTINCT FROM of_seed OR line.entries_hash IS DISTINCT FROM of_entries
      OR (extract(epoch FROM line.told_at) * 1000000)::bigint::text IS DISTINCT FROM told_before THEN
    RETURN false;
  END IF;
  -- LATERAL and LIMIT look up each place by its number, also without statistics.
  IF cardinality(numbers) <> (SELECT count(*) FROM unnest(numbers) AS n
      CROSS JOIN LATERAL (SELECT FROM places p WHERE p.sale_id = of_sale AND p.number = n AND p.state = 'waiting' LIMIT 1) AS p) THEN
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
