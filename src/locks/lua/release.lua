--[[
  Gives a lock back, if this owner still holds it, and wakes those who wait for it.

  Input
    KEYS[1] lock (string: its owner)
    ARGV[1] owner   ARGV[2] channel of those who wait
  Output
    how many listen on the channel; -1 if the owner did not hold the lock any more, and nothing was done
]]
local lock = KEYS[1]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('GET', lock) ~= owner then return -1 end
redis.call('DEL', lock)
return redis.call('PUBLISH', channel, 'released')
