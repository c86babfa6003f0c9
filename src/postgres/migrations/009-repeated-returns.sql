-- An order that Postgres refuses may be taken and refused again under the same id, and its units go back each time.
-- `verify` compares what has gone back in a generation with what the segments were given.
ALTER TABLE stock_returns ADD COLUMN units_before bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN stock_returns.units_before IS 'Units of returns of the same order before this one, in its generation.';
