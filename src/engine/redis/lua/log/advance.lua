--[[
  Writes cursors, which say how far Postgres has applied the logs of segments, and trims each log below its cursor. An
  older position changes nothing. Neither does a position at which the log has another entry than the applied one: then
  the log has lost writes. A segment with invalid data does not keep the others from being advanced.

  Input
    for each segment: KEYS segment (hash), log (stream)
    for each segment: ARGV generation, seq, orders up to and with that entry, first order id of that entry ('' if unknown)
  Output
    for each segment: 1 if the cursor has moved, 0 if it was there already, 'stale' if the segment is not there in that
    generation, 'lost' if the log does not have that entry, or 'error <message>'
]]
local function advance(segment, log, generation, seq, orders, tail)
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
end

--include parts/error-text

local reply = {}
for i = 1, #KEYS / 2 do
  local at = 4 * i - 3
  local done, result = pcall(advance, KEYS[2 * i - 1], KEYS[2 * i], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  reply[i] = done and result or errorText(result)
end
return reply
