--[[
  Replaces a sale's record by a tombstone: a record with nothing but its generation. Readers find no sale. A
  publication in this generation or an older one is refused by publish-sale.lua until the tombstone expires.

  Input
    KEYS[1] sale (hash)
    ARGV[1] generation of the tombstone   ARGV[2] milliseconds that the tombstone is kept
  Output
    1; 'later', and nothing was done, if there is a record or a tombstone of that generation or a later one
]]
local sale, generation, keptMs = KEYS[1], ARGV[1], ARGV[2]

local current = redis.call('HGET', sale, 'generation')
if current and tonumber(current) >= tonumber(generation) then return 'later' end
redis.call('UNLINK', sale)
redis.call('HSET', sale, 'generation', generation)
redis.call('PEXPIRE', sale, keptMs)
return 1
