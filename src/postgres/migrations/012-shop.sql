-- The shop that this database belongs to, and where its stock is (src/shop/ownership.ts). A dump has the identity of its
-- original, and so has every copy of it.
CREATE TABLE shop (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  identity uuid NOT NULL DEFAULT gen_random_uuid(),
  key_prefix text COLLATE "C"
);
COMMENT ON COLUMN shop.key_prefix IS 'KEY_PREFIX of its stock in Redis; null: it has never been in one.';
INSERT INTO shop DEFAULT VALUES;

-- The running processes of the shop (src/shop/process-list.ts).
CREATE TABLE processes (
  process text COLLATE "C" PRIMARY KEY,
  version text NOT NULL,
  settings jsonb NOT NULL,
  looks bigint NOT NULL,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON COLUMN processes.settings IS 'Digests of the settings that must be the same in all of them.';
COMMENT ON COLUMN processes.looks IS 'How often it has found its stock to be that of this database.';
