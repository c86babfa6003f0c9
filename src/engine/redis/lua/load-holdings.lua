--[[
  Writes buyers' records into a segment that is being loaded.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   then two per buyer: buyerId, record
  Output
    1, or 'stale' if the segment is not loaded in that generation, or published already
]]
local segment, buyers, generation = KEYS[1], KEYS[2], ARGV[1]

local now = redis.call('HMGET', segment, 'generation', 'state')
if now[1] ~= generation or now[2] ~= 'loaded' then return 'stale' end
local writes = {}
for i = 2, #ARGV do writes[i - 1] = ARGV[i] end
if #writes > 0 then redis.call('HSET', buyers, unpack(writes)) end
return 1
