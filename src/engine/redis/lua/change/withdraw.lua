--[[
  Removes unsold units from a segment for a withdrawal: as many as there are, up to the given number in all for this
  withdrawal. The segment remembers how many in its field `withdrawal`, "movement units", so that a repeat removes
  nothing twice. A withdrawal that was undone (give-back.lua) is "movement back": nothing more is removed for it.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation   ARGV[2] movement   ARGV[3] most units
  Output
    the units that are out for this withdrawal; 'stale' if the segment is not there in that generation, or not published
]]
local segment = KEYS[1]
local generation, movement, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
--include parts/published
--include parts/units

local now = redis.call('HMGET', segment, 'generation', 'state', 'withdrawal', 'left')
if not isPublished(now) then return 'stale' end
local left = whole(now[4])
if not left then return corrupt(segment) end
local last, state = string.match(now[3] or '0 0', '^(%d+) (%w+)$')
if tonumber(last) > tonumber(movement) or (last == movement and state == 'back') then return 0 end
local out = last == movement and tonumber(state) or 0
local more = math.min(left, most - out)
if more > 0 then
  supply(segment, -more)
  redis.call('HINCRBY', segment, 'withdrawn', more)
  out = out + more
end
redis.call('HSET', segment, 'withdrawal', movement .. ' ' .. string.format('%d', out))
return out
