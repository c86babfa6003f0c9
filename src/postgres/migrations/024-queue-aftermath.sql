-- Offers may outlive the queue that has made them, and may be far behind the first place that waits (docs/internals/queue.md).

ALTER TABLE sales ADD COLUMN had_queue boolean NOT NULL DEFAULT false;
UPDATE sales SET had_queue = true WHERE queue = 'off' AND id IN (SELECT sale_id FROM queues);
COMMENT ON COLUMN sales.had_queue IS 'Its queue was changed or turned off: there may be offers although it has no queue now.';
-- Short: the expiry looks here once a second.
CREATE INDEX sales_paused ON sales (id) WHERE state = 'paused';

ALTER TABLE queues ADD COLUMN reach bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN queues.reach IS 'Offers may have been made up to this rank, written before they are; or up to NEAR_RANKS behind the head.';

-- As in 023, and the offers of a paused sale do not expire if its queue was turned off either.
CREATE OR REPLACE FUNCTION stockade_expire_orders(most integer, OUT order_ids bigint[], OUT due_since timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  -- As an array, so that it is read once and not for each order.
  paused text[] := ARRAY(SELECT s.id FROM sales s WHERE s.state = 'paused');
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
