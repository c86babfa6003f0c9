-- When a sale was closed. A sale is over at its end or when it is closed, whichever comes first, and is archived some time
-- after that (src/rebuild/archiver.ts).
ALTER TABLE sales ADD COLUMN closed_at timestamptz;
UPDATE sales s SET closed_at = coalesce(
    (SELECT max(m.moved_at) FROM stock_movements m WHERE m.sale_id = s.id AND m.action = 'close'), now())
  WHERE s.state = 'closed';
CREATE INDEX sales_over ON sales (least(ends_at, closed_at)) WHERE archived_at IS NULL;
