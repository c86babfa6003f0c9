-- Finds the orders committed since a given time: those that a draft of the buyers' records (draft.ts) lacks.
CREATE INDEX orders_committed ON orders USING brin (committed_at) WITH (pages_per_range = 32, autosummarize = on);
