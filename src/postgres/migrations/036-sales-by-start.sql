-- The list of sales that begin in a given time.
CREATE INDEX sales_by_start ON sales (starts_at);
