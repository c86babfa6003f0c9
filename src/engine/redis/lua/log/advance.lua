--[[
  Writes the cursor, which says how far Postgres has applied a segment's log, and trims the log below it. An older
  position changes nothing. Neither does a position at which the log has another entry than the applied one: then the
  log has lost writes.

  Input
    KEYS[1] segment (hash)   KEYS[2] log (stream)
    ARGV[1] generation   ARGV[2] seq   ARGV[3] orders up to and with that entry
    ARGV[4] first order id of that entry, '' if unknown
  Output
    1 if the cursor has moved, 0 if it was there already, 'stale' if the segment is not there in that generation,
    'lost' if the log does not have that entry
]]
local segment, log = KEYS[1], KEYS[2]
local generation, seq, orders, tail = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local now = redis.call('HMGET', segment, 'generation', 'committed')
if now[1] ~= generation then return 'stale' end
if tonumber(now[2]) >= tonumber(seq) then return 0 end
if tail ~= '' then
  local id = generation .. '-' .. seq
  local entry = redis.call('XRANGE', log, id, id)[1]
  -- Fields as take.lua writes them: p, n, and o with the orders, whose first word is the first order id.
  if not entry or string.match(entry[2][6] or '', '^%S+') ~= tail then return 'lost' end
end
-- The trim comes first: if the log is not a stream, it fails before anything is written. And a Redis at its memory
-- limit refuses a script at its first write if that may need memory; a trim frees memory.
redis.call('XTRIM', log, 'MINID', generation .. '-' .. string.format('%.0f', tonumber(seq) + 1))
redis.call('HSET', segment, 'committed', seq, 'committedOrders', orders)
return 1
