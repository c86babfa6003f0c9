--[[
  Writes buyers' records into a segment that is being loaded.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation
    ARGV[2] the id up to which the segment has all of its buyers with these; '' if that is not known
    then two per buyer: buyerId, record
  Output
    1, or 'stale' if the segment is not loaded in that generation, or published already
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, upTo = ARGV[1], ARGV[2]

local now = redis.call('HMGET', segment, 'generation', 'state')
if now[1] ~= generation or now[2] ~= 'loaded' then return 'stale' end
local writes = {}
for i = 3, #ARGV do writes[i - 2] = ARGV[i] end
if writes[1] then redis.call('HSET', buyers, unpack(writes)) end
if upTo ~= '' then redis.call('HSET', segment, 'loadedUpTo', upTo) end
return 1
