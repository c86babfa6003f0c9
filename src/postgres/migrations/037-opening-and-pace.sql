-- As in 030, and no place gets an offer before the window opens: an operator may have moved it since the head took the unit.
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
      AND s.queue <> 'off' AND s.state <> 'closed'
      AND s.starts_at <= clock_timestamp() AND (s.ends_at IS NULL OR s.ends_at > clock_timestamp());
  GET DIAGNOSTICS made = ROW_COUNT;
  IF made <> cardinality(offers) THEN
    RAISE EXCEPTION '% of % places get no offer any more', cardinality(offers) - made, cardinality(offers) USING ERRCODE = 'SK003';
  END IF;
  RETURN offers;
END
$$;

-- As in 030, but if the clock was set back, the pace allows what a second allows. From the next offer on, it counts anew. Before, it allowed
-- nothing until the clock had caught up. The clocks of two processors may differ a little: that is no clock that was set back.
CREATE OR REPLACE FUNCTION stockade_pace(line queues) RETURNS double precision LANGUAGE sql AS $$
  SELECT least(greatest(1, line.per_minute / 60.0)::double precision, CASE
    WHEN line.paced_at > clock_timestamp() + interval '1 second' THEN 'infinity'
    ELSE line.pace_left
      + greatest(0, extract(epoch FROM clock_timestamp() - line.paced_at))::double precision * line.per_minute / 60
  END)
$$;
