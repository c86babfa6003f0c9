--[[
  Freezes a segment: it sells nothing more, and neither this generation nor an older one can be loaded or published
  there any more. If there is no segment of this generation, an empty frozen one is created, which refuses a late load
  of it.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation
  Output
    1 if it is frozen; 'stale', and nothing was done, if the segment is of a later generation
]]
local segment, generation = KEYS[1], ARGV[1]
--include parts/fresh-segment

local current = redis.call('HGET', segment, 'generation')
if current and tonumber(current) > tonumber(generation) then return 'stale' end
if current == generation then
  redis.call('HSET', segment, 'state', 'frozen')
else
  redis.call('UNLINK', segment)
  writeFresh('frozen', 0, 0)
end
return 1
