--[[
  Begins a transfer out of a segment: removes the units and records their receiver as "seq receiver units" in the
  field `out`. One transfer at a time: while there is a record, no units are removed. Sequence numbers are the
  server's clock in microseconds, or one more than the last, so that a server that has lost writes does not use a
  number again.

  Input
    KEYS[1] donor (hash)
    ARGV[1] generation   ARGV[2] receiver: number of its segment   ARGV[3] units
  Output
    'stale', and nothing was done, if the donor is missing, not published, or of another generation;
    'empty' if it has no unit left; else the record, which may have been there before
]]
local donor = KEYS[1]
local generation, receiver, units = ARGV[1], ARGV[2], tonumber(ARGV[3])
--include parts/published
--include parts/units

local now = redis.call('HMGET', donor, 'generation', 'state', 'left', 'out', 'outSeq')
if not isPublished(now) then return 'stale' end
if now[4] then return now[4] end
local left = whole(now[3])
if not left then return corrupt(donor) end
local moved = math.min(units, left)
if moved == 0 then return 'empty' end
local clock = redis.call('TIME')
local seq = clock[1] * 1000000 + clock[2]
if now[5] then seq = math.max(seq, now[5] + 1) end
local record = string.format('%.0f %s %d', seq, receiver, moved)
supply(donor, -moved)
redis.call('HSET', donor, 'out', record, 'outSeq', string.format('%.0f', seq))
return record
