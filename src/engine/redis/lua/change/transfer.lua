--[[
  Moves units from one segment of a sale to another: the given number, or what the donor has left.

  Input
    KEYS[1] donor (hash)   KEYS[2] receiver (hash)
    ARGV[1] generation   ARGV[2] units
  Output
    units moved; 'stale', and nothing was done, if one of the two is missing, not published, or of another generation
]]
local donor, receiver = KEYS[1], KEYS[2]
local generation, units = ARGV[1], tonumber(ARGV[2])
--include parts/published
--include parts/units

local function left(segment)
  local now = redis.call('HMGET', segment, 'generation', 'state', 'left')
  if not isPublished(now) then return 'stale' end
  return whole(now[3]) or 'corrupt'
end

local has, had = left(donor), left(receiver)
if has == 'stale' or had == 'stale' then return 'stale' end
if has == 'corrupt' then return corrupt(donor) end
if had == 'corrupt' then return corrupt(receiver) end
local moved = math.min(units, has)
-- Redis reads no number in the -0 that Lua would write.
if moved == 0 then return 0 end
supply(donor, -moved)
supply(receiver, moved)
return moved
