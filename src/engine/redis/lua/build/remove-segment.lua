--[[
  Removes a segment that the sale no longer has, and a draft of it. The process that writes the draft is refused then.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)   KEYS[3] log (stream)   KEYS[4] draft (hash)
    ARGV[1] generation in which the sale does not have it
  Output
    how many of its keys existed; 'later', and nothing was done, if it is of that generation or a later one
]]
local segment, buyers, log, draft = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation = ARGV[1]

local current = redis.call('HGET', segment, 'generation')
if current and tonumber(current) >= tonumber(generation) then return 'later' end
return redis.call('UNLINK', segment, buyers, log, draft)
