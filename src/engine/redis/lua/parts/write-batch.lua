--[[
  Part of take.lua: writes the log entry, the buyers' records and the segment's counters. Everything was checked before.
]]
-- Longer than any value that Redis keeps in a packed hash (hash-max-listpack-value).
local LONG_VALUE = string.rep(' ', 65)

if not all then
  for n, i in ipairs(logged) do
    logged[n] = ids[i] .. ' ' .. names[i] .. ' ' .. string.format('%d', quantities[i] or 1) .. ' ' .. (keys[i] or '')
  end
  lines = table.concat(logged, '\n')
end
-- If the buyer has other orders too, the record is written with all of them.
for buyer, record in pairs(records) do
  if place[buyer] then writes[place[buyer]] = table.concat(record.words, ' ') end
end
-- Notes of orders that were not taken stay in the entry: their readers look for those of its orders only.
if notes ~= '' then redis.call('XADD', log, generation .. '-' .. seqText, 'p', tail, 'n', orders, 'o', lines, 'x', notes)
else redis.call('XADD', log, generation .. '-' .. seqText, 'p', tail, 'n', orders, 'o', lines) end
-- Redis keeps a hash of up to 512 small values as a packed list that each look-up reads through, which makes an order
-- up to twice as expensive. A long value turns the hash into a table, and it stays one. No buyer has a space as id.
if last == 0 then redis.call('HSET', buyers, ' ', LONG_VALUE) end
redis.call('HSET', buyers, unpack(writes))
if last == 0 then redis.call('HDEL', buyers, ' ') end
redis.call('HSET', segment, 'left', left, 'seq', seqText, 'tail', firstId, 'orders', orders, 'taken', taken, lane, ticket)
