-- If a refund is due for a late payment, or was made, a payment with another pay type is a second payment: its verdict is
-- wrong_status, as after a retake. An order holds one payment, so the second one can't be on the list of refunds due. Nodes of the
-- previous version call these functions too, and answer the verdict as they answer it after a retake.

-- As in 023, but for that.
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
    WHEN change = 'pay' AND stands.refund_due_at IS NOT NULL AND stands.pay_type = payment THEN 'refund_due'
    WHEN change = 'pay' AND (stands.retaken_by IS NOT NULL OR stands.refund_due_at IS NOT NULL) THEN 'wrong_status'
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

-- As in 005, but for that.
CREATE OR REPLACE FUNCTION stockade_settle_late_payment(
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
    WHEN stands.refund_due_at IS NOT NULL AND stands.pay_type = payment THEN 'refund_due'
    WHEN stands.retaken_by IS NOT NULL OR stands.refund_due_at IS NOT NULL THEN 'wrong_status'
    ELSE 'over'
  END;
  IF verdict = 'retaken' THEN
    SELECT * INTO stands FROM orders WHERE order_id = stands.retaken_by;
  END IF;
END
$$;
