-- Counts the operators' changes of a sale, so that a backend can tell a state that comes late from a new one (docs/internals/stock-changes.md).
-- Nodes of an older version do not count theirs.
ALTER TABLE sales ADD COLUMN revision bigint NOT NULL DEFAULT 0;
