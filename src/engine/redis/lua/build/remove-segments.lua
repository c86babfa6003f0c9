--[[
  Removes segments that the sale no longer has, and drafts of them. A process that writes such a draft is refused then.
  With 'idle', nothing is removed if one of the segments sells: Redis went back to before it was frozen, and its log may
  hold orders that nobody has salvaged.

  Input, for each of N segments
    KEYS[4i - 3] segment (hash)   KEYS[4i - 2] buyers (hash)   KEYS[4i - 1] log (stream)   KEYS[4i] draft (hash)
    ARGV[1] generation in which the sale does not have them   ARGV[2] 'all', or 'idle': those that do not sell
  Output
    how many of all keys existed. A segment of that generation or a later one stays, and counts as one key.
    With 'idle': 'stale', and nothing was done, if an older segment is neither frozen nor loaded
]]
local KEYS_OF_SEGMENT = 4
local generation, onlyIdle = tonumber(ARGV[1]), ARGV[2] == 'idle'

local found, old = 0, {}
for i = 1, #KEYS, KEYS_OF_SEGMENT do
  local now = redis.call('HMGET', KEYS[i], 'generation', 'state')
  local current, state = now[1], now[2]
  if current and tonumber(current) >= generation then
    found = found + 1
  else
    if onlyIdle and current and state ~= 'frozen' and state ~= 'loaded' then return 'stale' end
    old[#old + 1] = i
  end
end
for _, i in ipairs(old) do
  local segment, buyers, log, draft = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  found = found + redis.call('UNLINK', segment, buyers, log, draft)
end
return found
