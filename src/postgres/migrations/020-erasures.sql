-- Buyers whose ids are to be replaced by pseudonyms, one row for each sale. A row is deleted when that is done
-- (src/rebuild/erasures.ts), so the id is not left here.
CREATE TABLE erasures (
  sale_id text COLLATE "C" NOT NULL REFERENCES sales ON DELETE CASCADE,
  buyer_id text COLLATE "C" NOT NULL,
  pseudonym text COLLATE "C" NOT NULL,
  while_selling boolean NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  asked_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (sale_id, buyer_id)
);
COMMENT ON COLUMN erasures.while_selling IS 'An operator wants it now. Otherwise it waits until the sale is closed.';

ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN ('create', 'pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token',
      'edit', 'archive', 'erase'));
