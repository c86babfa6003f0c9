--[[
  Freezes a segment: nothing more is taken from it, and neither this generation nor an older one can be loaded or
  published there any more. Where there is no segment of this generation, an empty frozen one takes the place, to shut
  out a load of it that is still on its way.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation
  Output
    1 if it is frozen; 'stale', and nothing was done, if the segment is of a later generation
]]
local segment, generation = KEYS[1], ARGV[1]

local current = redis.call('HGET', segment, 'generation')
if current and tonumber(current) > tonumber(generation) then return 'stale' end
if current ~= generation then
  redis.call('UNLINK', segment)
  redis.call('HSET', segment, 'generation', generation, 'left', 0, 'limit', 0, 'seq', 0, 'tail', '', 'committed', 0,
    'committedOrders', 0, 'orders', 0, 'taken', 0)
end
redis.call('HSET', segment, 'state', 'frozen')
return 1
