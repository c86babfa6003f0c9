-- A change that was answered `unknown` can't take effect afterwards: it brings the latest time at which it may
-- (docs/internals/orders.md). Nodes of an older version bring none.

-- Refuses the statement, and so its whole transaction, if the latest time is over by this server's clock. Call it in the result of the
-- statement, after the rows that are changed are locked: a change that has waited for a lock may be late too.
--
-- Times are milliseconds since 1970. latest: null for any time. Returns the time now, from which a node learns this clock.
CREATE FUNCTION stockade_in_time(latest double precision) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
  at double precision := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
  IF at > latest THEN
    RAISE EXCEPTION 'the change is % ms late', ceil(at - latest) USING ERRCODE = 'SK004';
  END IF;
  RETURN at;
END
$$;

-- As in 023, but a buyer may name the place that it leaves. If that place has ended, nothing is changed: the buyer may have come again,
-- and the leave be an old one. Nodes of 0.2.0 call the function without the number.
DROP FUNCTION stockade_leave_queue(text, text);
CREATE FUNCTION stockade_leave_queue(
  of_sale text, of_buyer text, of_number bigint DEFAULT NULL, OUT place places, OUT returned bigint
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
  offer bigint;
BEGIN
  -- Orders are locked before places. Between the two steps a place that waits may get an offer.
  FOR attempt IN 1 .. 3 LOOP
    SELECT * INTO place FROM places p
      WHERE p.sale_id = of_sale AND p.buyer_id = of_buyer AND p.state IN ('waiting', 'offered');
    IF NOT FOUND OR place.number <> of_number THEN
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
