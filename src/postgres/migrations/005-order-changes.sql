-- What becomes of an order once it is here. Each change is one call: one transaction, one round trip.
--
--   unpaid ──pay──> paid ──redeem──> redeemed
--     │               └──refund──> refunded
--     ├──cancel──> cancelled
--     └──not paid in time──> expired ──a payment comes all the same──> retaken_by another order, or refund_due_at
--
-- Locks: rows of orders, then rows of sales in the order of their ids, as in stockade_apply_batch. So two calls never
-- wait for each other in a circle, and of several on the same order the first one decides.

-- Ends orders whose units are for sale again: `became` is cancelled, expired or refunded. The caller has locked their rows.
CREATE FUNCTION stockade_give_back(given bigint[], became text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale record;
  of_generation integer;
BEGIN
  UPDATE orders SET status = became,
      cancelled_at = CASE became WHEN 'cancelled' THEN now() ELSE cancelled_at END,
      expired_at = CASE became WHEN 'expired' THEN now() ELSE expired_at END,
      refunded_at = CASE became WHEN 'refunded' THEN now() ELSE refunded_at END
    WHERE order_id = ANY (given);
  FOR sale IN
    SELECT sale_id AS id, sum(quantity) AS units FROM orders WHERE order_id = ANY (given)
    GROUP BY sale_id ORDER BY sale_id
  LOOP
    UPDATE sales SET stock = stock + sale.units WHERE id = sale.id RETURNING generation INTO of_generation;
    -- A row may be there: of an order that was refused because it had the id of this one.
    INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation)
      SELECT o.order_id, o.sale_id, o.buyer_id, o.quantity, became, of_generation FROM orders o
      WHERE o.order_id = ANY (given) AND o.sale_id = sale.id
      ON CONFLICT (order_id) DO UPDATE SET sale_id = excluded.sale_id, buyer_id = excluded.buyer_id,
        units = excluded.units, reason = excluded.reason, generation = excluded.generation, applied_at = NULL,
        created_at = now();
  END LOOP;
  INSERT INTO order_events (kind, order_ids) VALUES (became, given);
END
$$;

-- Expires orders whose time to pay is over, the longest overdue first, at most `most`. Those that somebody else changes
-- at this moment are left to him, or to the next call.
CREATE FUNCTION stockade_expire_orders(most integer, OUT order_ids bigint[], OUT due_since timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT array_agg(due.order_id), min(due.expires_at) INTO order_ids, due_since
    FROM (SELECT o.order_id, o.expires_at FROM orders o WHERE o.status = 'unpaid' AND o.expires_at <= now()
      ORDER BY o.expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS due;
  IF order_ids IS NULL THEN
    order_ids := '{}';
  ELSE
    PERFORM stockade_give_back(order_ids, 'expired');
  END IF;
END
$$;

-- Moves one order on; no row: there is no such order. A change that was made before, a payment by the same means, is
-- answered as the first time, with the order as it stands.
--
-- verdict  done          the change is made, now or before
--          forbidden     the order is not that of the buyer who asks (`asked_by`; null: anybody may)
--          wrong_status  its status does not allow it
--          late          pay: it has expired, and nothing was decided yet about the payment
--          retaken       pay: it has expired; the row is that of the order that took its place
--          refund_due    pay: it has expired, and the payment is to be refunded, or was
CREATE FUNCTION stockade_change_order(
  changed bigint, change text, payment text, asked_by text, OUT verdict text, OUT stands orders
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  SELECT * INTO stands FROM orders WHERE order_id = changed FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  verdict := CASE
    WHEN stands.buyer_id <> asked_by THEN 'forbidden'
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
      -- It expired: its units went back then.
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

-- Decides what a late payment is for: the order `taken`, which has taken the units anew, or, if `taken` is null because
-- they could not be taken, a refund. The first decision stands. An order that was taken in vain is cancelled at once.
--
-- verdict  retaken, refund_due  as above
--          wrong_status         another payment, by other means, was faster
--          over                 `taken` has ended meanwhile: nothing is decided
CREATE FUNCTION stockade_settle_late_payment(
  late bigint, taken bigint, payment text, OUT verdict text, OUT stands orders
) LANGUAGE plpgsql AS $$
DECLARE
  taken_status text;
BEGIN
  PERFORM 1 FROM orders WHERE order_id IN (late, taken) ORDER BY order_id FOR UPDATE;
  SELECT * INTO stands FROM orders WHERE order_id = late;
  SELECT status INTO taken_status FROM orders WHERE order_id = taken;

  IF stands.retaken_by IS NOT NULL OR stands.refund_due_at IS NOT NULL THEN
    IF taken_status = 'unpaid' THEN
      PERFORM stockade_give_back(ARRAY[taken], 'cancelled');
    END IF;
  ELSIF taken_status = 'unpaid' THEN
    UPDATE orders SET status = 'paid', paid_at = now(), pay_type = payment WHERE order_id = taken;
    UPDATE orders SET retaken_by = taken, pay_type = payment WHERE order_id = late;
    INSERT INTO order_events (kind, order_ids) VALUES ('paid', ARRAY[taken]);
  ELSIF taken IS NULL OR taken_status IN ('paid', 'redeemed') THEN
    -- Nothing could be taken, or what was taken has been paid by itself: this payment is one too many.
    UPDATE orders SET refund_due_at = now(), pay_type = payment WHERE order_id = late;
  END IF;

  SELECT * INTO stands FROM orders WHERE order_id = late;
  verdict := CASE
    WHEN stands.retaken_by IS NOT NULL AND stands.pay_type = payment THEN 'retaken'
    WHEN stands.retaken_by IS NOT NULL THEN 'wrong_status'
    WHEN stands.refund_due_at IS NOT NULL THEN 'refund_due'
    ELSE 'over'
  END;
  IF verdict = 'retaken' THEN
    SELECT * INTO stands FROM orders WHERE order_id = stands.retaken_by;
  END IF;
END
$$;
