-- A sync that takes a sale over names the orders again that were refused of late. An order that had ended already when it
-- was refused (apply-each.ts) shows only in its return.
CREATE INDEX stock_returns_rejected ON stock_returns (sale_id, created_at) WHERE reason LIKE 'rejected: %';
