--[[
  Prolongs a lock, if this owner still holds it. A lock without its fence protects nothing and counts as lost.

  Input
    KEYS[1] lock (string: its owner)   KEYS[2] fence (string: the newest token)
    ARGV[1] owner   ARGV[2] ttl in ms   ARGV[3] ms for which the fence is kept
  Output
    1 if the owner holds it for another ttl; 0 if it no longer holds it, and nothing was done
]]
local lock, fence = KEYS[1], KEYS[2]
local owner, ttlMs, fenceMs = ARGV[1], ARGV[2], ARGV[3]

if redis.call('GET', lock) ~= owner then return 0 end
if redis.call('PEXPIRE', fence, fenceMs) == 0 then return 0 end
return redis.call('PEXPIRE', lock, ttlMs)
