--[[
  Moves units to one segment of a sale from its richest segments, until it has the wanted number or the others are empty.
  Each gives half of its units, or as many as are missing if that is more. Moves nothing if the whole sale has fewer units
  than `least`.

  Input
    KEYS[1..N] segments (hashes)   KEYS[N+1] sale (hash)
    ARGV[1] generation   ARGV[2] receiver, 1..N   ARGV[3] least: units of the smallest order   ARGV[4] wanted units
  Output
    'stale', and nothing was done; or { units left in the whole sale, units moved, the sale's epoch }
]]
local generation, receiver, least, wanted = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local segments, sale = #KEYS - 1, KEYS[#KEYS]
--include parts/published
--include parts/units

local left, total = {}, 0
for i = 1, segments do
  local now = redis.call('HMGET', KEYS[i], 'generation', 'state', 'left')
  if not isPublished(now) then return 'stale' end
  left[i] = whole(now[3])
  if not left[i] then return corrupt(KEYS[i]) end
  total = total + left[i]
end
local epoch = tonumber(redis.call('HGET', sale, 'epoch'))
if not epoch then return 'stale' end

local missing, moved = wanted - left[receiver], 0
if total >= least then
  while missing > 0 do
    local richest
    for i = 1, segments do
      if i ~= receiver and left[i] > 0 and (not richest or left[i] > left[richest]) then richest = i end
    end
    if not richest then break end
    local units = math.min(left[richest], math.max(math.ceil(left[richest] / 2), missing))
    supply(KEYS[richest], -units)
    left[richest], missing, moved = left[richest] - units, missing - units, moved + units
  end
  supply(KEYS[receiver], moved)
end
return { total, moved, epoch }
