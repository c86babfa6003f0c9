-- A closed sale can be archived: from then on it is here alone, and the backend holds nothing of it.
ALTER TABLE sales ADD COLUMN archived_at timestamptz;
COMMENT ON COLUMN sales.archived_at IS 'Since when the sale is here alone. Missing: the backend holds it, or has to.';

-- Pages of the list of sales, which leaves archived ones out.
CREATE INDEX sales_present ON sales (created_at DESC, id) WHERE archived_at IS NULL;

ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN ('create', 'pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token',
      'edit', 'archive'));

-- As in 014. The return of an order of an archived sale has no segment to go to, so it counts as applied.
CREATE OR REPLACE FUNCTION stockade_give_back(given bigint[], became text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sale record;
  of_generation integer;
  applied timestamptz;
BEGIN
  UPDATE orders SET status = became,
      cancelled_at = CASE became WHEN 'cancelled' THEN now() ELSE cancelled_at END,
      expired_at = CASE became WHEN 'expired' THEN now() ELSE expired_at END,
      refunded_at = CASE became WHEN 'refunded' THEN now() ELSE refunded_at END
    WHERE order_id = ANY (given);
  FOR sale IN
    SELECT sale_id AS id, sum(quantity) AS units, count(*) AS orders FROM orders WHERE order_id = ANY (given)
    GROUP BY sale_id ORDER BY sale_id
  LOOP
    UPDATE sales SET stock = stock + sale.units, live_orders = live_orders - sale.orders
      WHERE id = sale.id
      RETURNING generation, CASE WHEN archived_at IS NOT NULL THEN now() END INTO of_generation, applied;
    -- There may be a row of a rejected order with the same id.
    INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation, applied_at)
      SELECT o.order_id, o.sale_id, o.buyer_id, o.quantity, became, of_generation, applied FROM orders o
      WHERE o.order_id = ANY (given) AND o.sale_id = sale.id
      ON CONFLICT (order_id) DO UPDATE SET sale_id = excluded.sale_id, buyer_id = excluded.buyer_id,
        units = excluded.units, reason = excluded.reason, generation = excluded.generation,
        applied_at = excluded.applied_at, created_at = now();
  END LOOP;
  INSERT INTO order_events (kind, order_ids) VALUES (became, given);
END
$$;
