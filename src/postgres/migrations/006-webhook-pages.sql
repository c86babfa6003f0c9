-- Events that wait for the shop's webhook, in pages. In one transaction, the relay removes a row from the outbox and inserts
-- its pages here. A page is delivered, tried again and at last kept as a dead letter, always as a whole.

CREATE TABLE webhook_pages (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  outbox_id bigint NOT NULL,
  before integer NOT NULL CHECK (before >= 0),
  kind text COLLATE "C" NOT NULL,
  order_ids bigint[] NOT NULL,
  happened_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  failed_with text,
  dead_at timestamptz
);
COMMENT ON COLUMN webhook_pages.before IS 'Events of that outbox row which come before this page.';
COMMENT ON COLUMN webhook_pages.dead_at IS 'When it was given up, after as many attempts as the settings allow.';
CREATE INDEX webhook_pages_waiting ON webhook_pages (id) WHERE dead_at IS NULL;
CREATE INDEX webhook_pages_dead ON webhook_pages (id) WHERE dead_at IS NOT NULL;
