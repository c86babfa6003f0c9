--[[
  Begins a draft: the buyers' records of a segment's next generation, beside the segment, which keeps selling. An
  earlier draft is removed. A draft that is not loaded expires.

  Input
    KEYS[1] draft (hash)
    ARGV[1] the draft's stamp: its id, and that nothing was written   ARGV[2] milliseconds that it is kept
  Output
    1
]]
local draft, stamp, keptMs = KEYS[1], ARGV[1], ARGV[2]

redis.call('UNLINK', draft)
-- No buyer has a space as id.
redis.call('HSET', draft, ' ', stamp)
redis.call('PEXPIRE', draft, keptMs)
return 1
