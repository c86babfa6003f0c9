--[[
  Notes how far Postgres has applied a segment's log, and trims the log below that. An older position changes nothing.

  Input
    KEYS[1] segment (hash)   KEYS[2] log (stream)
    ARGV[1] generation   ARGV[2] seq   ARGV[3] orders up to and with that entry
  Output
    1 if the segment has moved on, 0 if it knew, 'stale' if it is not there in that generation
]]
local segment, log = KEYS[1], KEYS[2]
local generation, seq, orders = ARGV[1], ARGV[2], ARGV[3]

local now = redis.call('HMGET', segment, 'generation', 'committed')
if now[1] ~= generation then return 'stale' end
if tonumber(now[2]) >= tonumber(seq) then return 0 end
-- The trim comes first: it fails, before anything is written, if the log is not a stream.
redis.call('XTRIM', log, 'MINID', generation .. '-' .. string.format('%.0f', tonumber(seq) + 1))
redis.call('HSET', segment, 'committed', seq, 'committedOrders', orders)
return 1
