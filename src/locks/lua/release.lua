--[[
  Releases a lock, if this owner still holds it, and wakes its waiters.

  Input
    KEYS[1] lock (string: its owner)
    ARGV[1] owner   ARGV[2] channel of the waiters
  Output
    how many processes listen on the channel; -1 if the owner no longer held the lock, and nothing was done
]]
local lock = KEYS[1]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('GET', lock) ~= owner then return -1 end
redis.call('DEL', lock)
return redis.call('PUBLISH', channel, 'released')
