--[[
  Sets the state, the rules and the limit of all given segments, or of none. A loaded segment opens only when it is published,
  only once, and only if it has all of its buyers. A segment that is frozen or has lost writes does not open again: it must be
  replaced by a newly loaded one.

  Version 0.1.0 builds segments without the counters of supplied units. A segment gets them here: sync sets the state of a
  sale whose rules are missing, and that version writes no rules either.

  A command may arrive late: its node was frozen or cut off, and others have changed the sale since. Then a segment has a
  later revision than the command, and is left alone.

  Input
    KEYS[1..N] segments (hashes)
    ARGV[1] generation   ARGV[2] state: open | paused | closed   ARGV[3] 'publish' or ''
    ARGV[4] rules: takes that name others are refused   ARGV[5] limit per buyer, which is part of the rules
    ARGV[6] the `loadedUpTo` of a segment that has all of its buyers   ARGV[7] revision
  Output
    the revision that they have now; if it is later than the given one, a segment had it already, and nothing was done;
    'stale', and nothing was done, if a segment is missing, frozen, lost, of another generation, or not published
    (with 'publish': already published, or without some of its buyers)
]]
local generation, state, publish, rules, limit = ARGV[1], ARGV[2], ARGV[3] == 'publish', ARGV[4], ARGV[5]
local afterAllIds, revision = ARGV[6], tonumber(ARGV[7])
local latest = revision

for i = 1, #KEYS do
  local now = redis.call('HMGET', KEYS[i], 'generation', 'state', 'loadedUpTo', 'revision')
  if now[1] ~= generation then return 'stale' end
  if now[2] == 'frozen' or now[2] == 'lost' or (now[2] == 'loaded') ~= publish then return 'stale' end
  if publish and now[3] ~= afterAllIds then return 'stale' end
  latest = math.max(latest, tonumber(now[4] or 0))
end
if latest > revision and not publish then return latest end
-- Supplied units always equal units left plus units taken. So they can be computed at any time, also after units were moved.
local function addCounters(segment)
  local now = redis.call('HMGET', segment, 'withdrawn', 'left', 'taken', 'returned', 'credited')
  local left, taken = tonumber(now[2]), tonumber(now[3])
  if now[1] or not left or not taken then return end
  redis.call('HSET', segment, 'supplied', string.format('%d', left + taken), 'returned', now[4] or 0,
    'credited', now[5] or 0, 'withdrawn', 0)
end

for i = 1, #KEYS do
  redis.call('HSET', KEYS[i], 'state', state, 'rules', rules, 'limit', limit, 'revision', ARGV[7])
  addCounters(KEYS[i])
end
return revision
