-- What a buyer who accepts an offer is told:
--
-- - While a sale is paused, an offer is not over, even if its time is: when the pause ends, it has time again. So the answer is the pause.
-- - If the offer was accepted before, and the order has ended since, for example unpaid, the offer has ended. Before, the answer was
--   done.
--
-- Arguments and verdicts stay as they are: nodes of an older version give the new answers too.

-- As in 023, but for that.
--
-- verdict: done (also if it was accepted before), forbidden, quantity (the offer is for another number of units), paused, late (it
-- has ended, or its order has).
CREATE OR REPLACE FUNCTION stockade_accept_offer(
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
    WHEN stands.status NOT IN ('unpaid', 'paid', 'redeemed') THEN 'late'
    WHEN stands.offer_of IS NULL THEN 'done'
    WHEN EXISTS (SELECT 1 FROM sales WHERE id = stands.sale_id AND state = 'paused') THEN 'paused'
    WHEN stands.expires_at <= now() THEN 'late'
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
