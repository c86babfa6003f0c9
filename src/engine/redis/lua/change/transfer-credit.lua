--[[
  The second step of a transfer: gives the units to the receiver. Applies once per transfer: the receiver stores, for
  each donor, the sequence number of the last transfer that has arrived.

  Input
    KEYS[1] receiver (hash)
    ARGV[1] generation   ARGV[2] donor: number of its segment   ARGV[3] seq   ARGV[4] units
  Output
    1 if the units were given, 0 if they had been before; 'stale', and nothing was done, if the receiver is missing, not
    published, or of another generation
]]
local receiver = KEYS[1]
local generation, from, seq, units = ARGV[1], 'from:' .. ARGV[2], ARGV[3], ARGV[4]
--include parts/published
--include parts/units

local now = redis.call('HMGET', receiver, 'generation', 'state', 'left', from)
if not isPublished(now) then return 'stale' end
if not whole(now[3]) then return corrupt(receiver) end
if tonumber(now[4] or 0) >= tonumber(seq) then return 0 end
supply(receiver, units)
redis.call('HSET', receiver, from, seq)
return 1
