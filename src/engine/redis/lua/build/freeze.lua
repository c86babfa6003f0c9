--[[
  Freezes a segment: it sells nothing more, and neither this generation nor an older one can be loaded or published
  there any more. If there is no segment of this generation, an empty frozen one is created, which refuses a late load
  of it. A segment that sells in an older generation is frozen in that one first: Redis went back, and its log may hold
  orders that nobody has salvaged.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation
  Output
    1 if it is frozen; 'older' if it is frozen in an older generation, in which it sold until now; 'stale', and nothing was
    done, if the segment is of a later generation
]]
local segment, generation = KEYS[1], ARGV[1]
--include parts/fresh-segment

local now = redis.call('HMGET', segment, 'generation', 'state')
local current, state = now[1], now[2]
if current and tonumber(current) > tonumber(generation) then return 'stale' end
local isOlder = current and current ~= generation
if isOlder and state ~= 'frozen' and state ~= 'loaded' then
  redis.call('HSET', segment, 'state', 'frozen')
  return 'older'
end
if current == generation then
  redis.call('HSET', segment, 'state', 'frozen')
else
  redis.call('UNLINK', segment)
  writeFresh('frozen', 0, 0)
end
return 1
