-- A sale can be deleted: first it is hidden, then its orders are deleted page by page, and at last its row
-- (docs/internals/deletion.md).
ALTER TABLE sales ADD COLUMN deleting_since timestamptz;
COMMENT ON COLUMN sales.deleting_since IS 'Since when it is being deleted. From then on no reader may see it, nor its orders.';
-- Short: the expiry of orders, which looks at all sales, reads it each time.
CREATE INDEX sales_deleting ON sales (id) WHERE deleting_since IS NOT NULL;

-- One row for each deletion. It stays, so that a sale that is made again with the same id never has a generation that an old
-- copy of the backend may hold of the deleted one.
CREATE TABLE deleted_sales (
  id text COLLATE "C" NOT NULL,
  generation integer NOT NULL,
  orders bigint NOT NULL,
  done bigint NOT NULL DEFAULT 0,
  actor text NOT NULL,
  reason text NOT NULL,
  begun_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  PRIMARY KEY (id, generation)
);
COMMENT ON COLUMN deleted_sales.generation IS 'Above all generations in which the backend has held the sale.';
COMMENT ON COLUMN deleted_sales.orders IS 'Orders of the sale when the deletion began.';
COMMENT ON COLUMN deleted_sales.done IS 'Orders of these that are deleted.';
COMMENT ON COLUMN deleted_sales.deleted_at IS 'Missing: it is still being deleted.';
CREATE INDEX deleted_sales_open ON deleted_sales (begun_at) WHERE deleted_at IS NULL;

-- As in 005. An order of a sale that is being deleted does not exist.
CREATE OR REPLACE FUNCTION stockade_expire_orders(most integer, OUT order_ids bigint[], OUT due_since timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT array_agg(due.order_id), min(due.expires_at) INTO order_ids, due_since
    FROM (SELECT o.order_id, o.expires_at FROM orders o WHERE o.status = 'unpaid' AND o.expires_at <= now()
        AND o.sale_id <> ALL (ARRAY(SELECT s.id FROM sales s WHERE s.deleting_since IS NOT NULL))
      ORDER BY o.expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS due;
  IF order_ids IS NULL THEN
    order_ids := '{}';
  ELSE
    PERFORM stockade_give_back(order_ids, 'expired');
  END IF;
END
$$;

-- As in 005. An order of a sale that is being deleted does not exist.
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
