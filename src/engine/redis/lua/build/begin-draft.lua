--[[
  Begins the buyers' records of a segment's next generation, beside the segment, which goes on selling. What another has
  begun is removed. A draft that nobody takes over goes away by itself.

  Input
    KEYS[1] draft (hash)
    ARGV[1] the draft's id   ARGV[2] milliseconds that it is kept
  Output
    1
]]
local draft, id, keptMs = KEYS[1], ARGV[1], ARGV[2]

redis.call('UNLINK', draft)
-- No buyer is named by a space.
redis.call('HSET', draft, ' ', id)
redis.call('PEXPIRE', draft, keptMs)
return 1
