-- An order that Postgres rejects may be taken and rejected again under the same id. Its units go back each time. `verify`
-- compares the units returned in a generation with those that the segments have received.
ALTER TABLE stock_returns ADD COLUMN units_before bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN stock_returns.units_before IS 'Units of returns of the same order before this one, in its generation.';
