--[[
  Acquires a lock for an owner if it is free, or if its holder passes it on, and draws the next fencing token. If the
  owner holds it already, because the reply to its first attempt was lost, it keeps the token drawn then. Tokens
  follow the server's clock, in microseconds, so they keep rising even if the newest one has been lost.

  Input
    KEYS[1] lock (string: its owner)   KEYS[2] fence (string: the newest token)
    ARGV[1] owner   ARGV[2] ttl in ms   ARGV[3] ms for which the fence is kept
    ARGV[4] the holder that passes the lock on, '' for none
  Output
    { 'held', token, the previous owner or '' }; or { 'refused', ms until the holder's ttl ends, -1 for never }
]]
local lock, fence = KEYS[1], KEYS[2]
local owner, ttlMs, fenceMs, from = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local holder = redis.call('GET', lock)
local newest = redis.call('GET', fence)
if holder == owner and newest then
  redis.call('PEXPIRE', lock, ttlMs)
  return { 'held', newest, from }
end
if holder and holder ~= owner and holder ~= from then return { 'refused', redis.call('PTTL', lock) } end

local now = redis.call('TIME')
local token = string.format('%.0f', math.max(now[1] * 1000000 + now[2], (tonumber(newest) or 0) + 1))
redis.call('SET', fence, token, 'PX', fenceMs)
redis.call('SET', lock, owner, 'PX', ttlMs)
return { 'held', token, holder or '' }
