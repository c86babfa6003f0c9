--[[
  Replaces a segment by a fresh one that waits to be published: units as given, no buyers, an empty log. A segment of
  the same or a later generation is left alone, so that a rebuild which lost its lock long ago cannot undo a newer one.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)   KEYS[3] log (stream)
    ARGV[1] generation   ARGV[2] units left   ARGV[3] limit per buyer
  Output
    1 if it was loaded, 'stale' if the segment is of the same or a later generation
]]
local segment, buyers, log = KEYS[1], KEYS[2], KEYS[3]
local generation, left, limit = ARGV[1], ARGV[2], ARGV[3]

local current = redis.call('HGET', segment, 'generation')
if current and tonumber(current) >= tonumber(generation) then return 'stale' end
redis.call('UNLINK', segment, buyers, log)
redis.call('HSET', segment, 'generation', generation, 'state', 'loaded', 'left', left, 'limit', limit, 'seq', 0,
  'tail', '', 'committed', 0, 'committedOrders', 0, 'orders', 0, 'taken', 0)
return 1
