-- The orders of a sale with a reference of the shop. A commit or a payment writes into this index only for an order that has one. As
-- in 014, it is built here only for a table that is read within a second.
DO $$
BEGIN
  IF pg_relation_size('orders') < 64 * 1024 * 1024 THEN
    CREATE INDEX orders_by_reference ON orders (sale_id, reference COLLATE "C", order_id) WHERE reference IS NOT NULL;
  END IF;
END
$$;
