--[[
  Removes one order from its buyer's record and returns its units to the segment. Idempotent by order id: an order
  that the record does not hold changes nothing. A segment that is not published gets nothing, because its next load
  counts these units anyway.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   ARGV[2] buyerId   ARGV[3] orderId   ARGV[4] units to give back
  Output
    1 if the order was there, 0 if not, 'stale' if the segment is not there in that generation, or not published
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, buyerId, orderId, units = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
--include parts/published
--include parts/units

local now = redis.call('HMGET', segment, 'generation', 'state', 'left')
if not isPublished(now) then return 'stale' end
if not whole(now[3]) then return corrupt(segment) end
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
  supply(segment, units)
  redis.call('HINCRBY', segment, 'returned', units)
end
return found
