-- Lists of orders. A commit writes into none of these indexes: an order gets into them when it ends. As in 014, they are built
-- here only for a table that is read within a second.
DO $$
BEGIN
  IF pg_relation_size('orders') < 64 * 1024 * 1024 THEN
    -- With orders_one_per_buyer and orders_of_buyer: all orders of a buyer in a sale.
    CREATE INDEX orders_ended_of_buyer ON orders (sale_id, buyer_id)
      WHERE one_per_buyer AND status IN ('cancelled', 'expired', 'refunded', 'rejected');
    -- The ended orders of a sale, which may be few among many.
    CREATE INDEX orders_ended ON orders (sale_id, order_id)
      WHERE status IN ('cancelled', 'expired', 'refunded', 'rejected');
  END IF;
END
$$;

ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN
      ('create', 'pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token', 'edit'));

-- What the shop notes with an order.
ALTER TABLE orders ADD COLUMN reference text, ADD COLUMN metadata jsonb;
ALTER TABLE order_changes DROP CONSTRAINT order_changes_change_check,
  ADD CONSTRAINT order_changes_change_check CHECK (change IN ('pay', 'cancel', 'redeem', 'refund', 'edit'));
