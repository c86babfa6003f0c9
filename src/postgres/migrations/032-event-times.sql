-- A change of an order may wait for another one, which began later and is made first. With the time at which its transaction began, the
-- event of the later change had the earlier time.
ALTER TABLE order_events ALTER COLUMN happened_at SET DEFAULT clock_timestamp();
