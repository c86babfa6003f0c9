-- A sync that takes over a sale reports the recently rejected orders again. An order that had ended before it was rejected
-- (apply-each.ts) appears only as a return.
CREATE INDEX stock_returns_rejected ON stock_returns (sale_id, created_at) WHERE reason LIKE 'rejected: %';
