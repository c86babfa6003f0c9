--[[
  Writes a sale's record and raises its epoch. With the new epoch, each node's board no longer shows the sale as sold out.
  A record of a later generation is left alone, and so is a tombstone (archive-sale.lua) of this generation or a later one.
  A record of this generation stays as it is if it has a later revision. At a publication, a record of this generation always stays as
  it is: it was written by a change that came after the segments were published.

  Input
    KEYS[1] sale (hash)
    ARGV[1] generation   ARGV[2] state: open | paused | closed   ARGV[3] definition (JSON)
    ARGV[4] the rules in it, for sync to compare   ARGV[5] 'publish' or ''   ARGV[6] revision
  Output
    the new epoch, or 'stale'
]]
local sale = KEYS[1]
local generation, state, definition, rules, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == 'publish'
local revision = ARGV[6]

local now = redis.call('HMGET', sale, 'generation', 'state', 'revision')
if now[1] and tonumber(now[1]) > tonumber(generation) then return 'stale' end
-- A record has a state. A tombstone has none, and its expiry must not remain.
if not now[2] then
  if now[1] == generation then return 'stale' end
  redis.call('UNLINK', sale)
end
local isChangedSince = now[1] == generation and now[2] and (publish or tonumber(now[3] or 0) > tonumber(revision))
if not isChangedSince then
  redis.call('HSET', sale, 'generation', generation, 'state', state, 'definition', definition, 'rules', rules,
    'revision', revision)
end
return redis.call('HINCRBY', sale, 'epoch', 1)
