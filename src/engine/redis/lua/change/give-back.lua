--[[
  Returns the units that withdraw.lua has taken out of a segment, and refuses later calls of withdraw.lua for the same
  movement.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation   ARGV[2] movement
  Output
    the units that came back now; 'stale' if the segment is not there in that generation, or not published
]]
local segment = KEYS[1]
local generation, movement = ARGV[1], ARGV[2]
--include parts/published
--include parts/units

local now = redis.call('HMGET', segment, 'generation', 'state', 'withdrawal')
if not isPublished(now) then return 'stale' end
local last, out = string.match(now[3] or '0 0', '^(%d+) (%w+)$')
if tonumber(last) > tonumber(movement) then return 0 end
local units = last == movement and tonumber(out) or 0
if units > 0 then
  supply(segment, units)
  redis.call('HINCRBY', segment, 'withdrawn', -units)
end
redis.call('HSET', segment, 'withdrawal', movement .. ' back')
return units
