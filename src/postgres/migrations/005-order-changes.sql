-- Changes of an order that is in Postgres. Each change is one call: one transaction, one round trip.
--
--   unpaid ──pay──> paid ──redeem──> redeemed
--     │               └──refund──> refunded
--     ├──cancel──> cancelled
--     └──not paid in time──> expired ──a late payment──> retaken_by another order, or refund_due_at
--
-- Locks: rows of orders, then rows of sales by id, as in stockade_apply_batch. So two calls never deadlock. Of several calls
-- on one order, the first decides.

-- Ends orders and returns their units: `became` is cancelled, expired or refunded. The caller has locked their rows.
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
    -- There may be a row of a rejected order with the same id.
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

-- Expires orders that were not paid in time, the longest overdue first, at most `most`. Orders that another transaction is
-- changing are skipped; the next call expires them, if they are still unpaid.
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

-- Changes the status of one order. Returns no row if there is no such order. A repeated change, such as a payment with the
-- same pay type, is answered as the first time, with the current order.
--
-- verdict  done          the change is made, now or earlier
--          forbidden     the order belongs to another buyer than `asked_by`; null is allowed everything
--          wrong_status  the order's status does not allow the change
--          late          pay: the order has expired, and nothing is decided about the payment yet
--          retaken       pay: the order has expired; the row is the order that replaced it
--          refund_due    pay: the order has expired, and the payment is to be refunded, or was
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

-- Decides about a late payment. It pays the order `taken`, the retake of the expired order; if `taken` is null, because no
-- units could be taken, the payment is to be refunded. The first decision stands. A retake that is not needed is cancelled.
--
-- verdict  retaken, refund_due  as above
--          wrong_status         another payment, with another pay type, came first
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
    -- Nothing could be taken, or the retake has been paid by another payment: this one is to be refunded.
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
