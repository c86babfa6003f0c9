-- Sales that sell only to buyers with a purchase token, and the change that switches this on or off.
ALTER TABLE sales ADD COLUMN require_token boolean NOT NULL DEFAULT false;
ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN ('pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token'));
