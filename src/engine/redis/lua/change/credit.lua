--[[
  Gives a segment its share of units that were added to the sale, once per movement. Movements of a sale have rising
  ids and are credited in order.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation   ARGV[2] movement   ARGV[3] units
  Output
    1 if they were given now, 0 if before; 'stale' if the segment is not there in that generation, or not published
]]
local segment = KEYS[1]
local generation, movement, units = ARGV[1], ARGV[2], tonumber(ARGV[3])
--include parts/published
--include parts/units

local now = redis.call('HMGET', segment, 'generation', 'state', 'movement', 'left')
if not isPublished(now) then return 'stale' end
if tonumber(now[3] or 0) >= tonumber(movement) then return 0 end
if not whole(now[4]) then return corrupt(segment) end
supply(segment, units)
redis.call('HINCRBY', segment, 'credited', units)
redis.call('HSET', segment, 'movement', movement)
return 1
