--[[
  Removes segments that the sale no longer has, and drafts of them. A process that writes such a draft is refused then.

  Input, for each of N segments
    KEYS[4i - 3] segment (hash)   KEYS[4i - 2] buyers (hash)   KEYS[4i - 1] log (stream)   KEYS[4i] draft (hash)
    ARGV[1] generation in which the sale does not have them
  Output
    how many of all keys existed. A segment of that generation or a later one stays, and counts as one key
]]
local KEYS_OF_SEGMENT = 4
local generation = tonumber(ARGV[1])

local found, old = 0, {}
for i = 1, #KEYS, KEYS_OF_SEGMENT do
  local current = redis.call('HGET', KEYS[i], 'generation')
  if current and tonumber(current) >= generation then found = found + 1 else old[#old + 1] = i end
end
for _, i in ipairs(old) do
  local segment, buyers, log, draft = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  found = found + redis.call('UNLINK', segment, buyers, log, draft)
end
return found
