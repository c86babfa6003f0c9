-- Orders that were committed since a moment: what a draft of buyers' records (draft.ts) lacks.
CREATE INDEX orders_committed ON orders USING brin (committed_at) WITH (pages_per_range = 32, autosummarize = on);
