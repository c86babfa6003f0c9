--[[
  Takes one order out of its buyer's record and gives units back to the segment. Idempotent by order id: an order
  that the record does not hold changes nothing.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   ARGV[2] buyerId   ARGV[3] orderId   ARGV[4] units to give back
  Output
    1 if the order was there, 0 if not, 'stale' if the segment is not there in that generation
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, buyerId, orderId, units = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local now = redis.call('HMGET', segment, 'generation', 'left')
if now[1] ~= generation then return 'stale' end
if not string.match(now[2] or '', '^%d+$') then return redis.error_reply('CORRUPT units left in ' .. segment) end
local record, kept, found = redis.call('HGET', buyers, buyerId), {}, 0
for word in string.gmatch(record or '', '%S+') do
  if string.match(word, '^(%d+):') == orderId then found = 1 else kept[#kept + 1] = word end
end
if found == 1 then
  if #kept == 0 then
    redis.call('HDEL', buyers, buyerId)
  else
    redis.call('HSET', buyers, buyerId, table.concat(kept, ' '))
  end
  if units > 0 then redis.call('HINCRBY', segment, 'left', units) end
end
return found
