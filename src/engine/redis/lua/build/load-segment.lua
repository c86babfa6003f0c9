--[[
  Replaces a segment by a new one that waits to be published: the given units, an empty log, and no buyers or those of
  a draft. A segment of the same or a later generation is left alone, so that a rebuild that lost its lock long ago
  cannot undo a newer one. So is a segment that sells: Redis went back to before it was frozen, and its log may hold
  orders that nobody has salvaged.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)   KEYS[3] log (stream)   KEYS[4] draft (hash)
    ARGV[1] generation   ARGV[2] units left   ARGV[3] limit per buyer   ARGV[4] the draft's stamp; '' for none
    ARGV[5] the id up to which the segment has all of its buyers; '' if they are loaded afterwards
  Output
    1 if it was loaded; 'stale', and nothing was done, if the segment is of the same or a later generation, if it is
    neither frozen nor loaded, or if that draft is not there with this stamp
]]
local segment, buyers, log, draft = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, left, limit, stamp, upTo = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--include parts/fresh-segment

local now = redis.call('HMGET', segment, 'generation', 'state')
if now[1] and tonumber(now[1]) >= tonumber(generation) then return 'stale' end
if now[1] and now[2] ~= 'frozen' and now[2] ~= 'loaded' then return 'stale' end
if stamp ~= '' and redis.call('HGET', draft, ' ') ~= stamp then return 'stale' end
redis.call('UNLINK', segment, buyers, log)
writeFresh('loaded', left, limit)
if upTo ~= '' then redis.call('HSET', segment, 'loadedUpTo', upTo) end
if stamp == '' then
  redis.call('UNLINK', draft)
else
  redis.call('PERSIST', draft)
  redis.call('RENAME', draft, buyers)
  redis.call('HDEL', buyers, ' ')
end
return 1
