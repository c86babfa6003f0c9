--[[
  Appends events of orders to the event stream, one entry each, and trims the stream roughly to its bound.

  Input
    KEYS[1] stream
    ARGV[1] entries that the stream may hold
    then four per part: id of the outbox row, kind, time, and a line per event: place in the row, order id, sale id,
    buyer id, quantity
  Output
    1
]]
local stream, most = KEYS[1], ARGV[1]

for i = 2, #ARGV, 4 do
  local row, kind, at, lines = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  for place, order, sale, buyer, quantity in string.gmatch(lines, '(%S+) (%S+) (%S+) (%S+) (%S+)') do
    -- Fails at the first entry, and so before anything is written, if the key is not a stream.
    redis.call('XADD', stream, '*', 'id', row .. '-' .. place, 'kind', kind, 'orderId', order, 'saleId', sale,
      'buyerId', buyer, 'quantity', quantity, 'at', at)
  end
end
redis.call('XTRIM', stream, 'MAXLEN', '~', most)
return 1
