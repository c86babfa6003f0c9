--[[
  Adds the given orders to a buyer's record, unless it holds them already.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   ARGV[2] buyerId   then one "orderId:quantity:seq:key" per order
  Output
    orders that were added; 'stale' if the segment is not there in that generation, or not published
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, buyerId = ARGV[1], ARGV[2]
--include parts/published

local now = redis.call('HMGET', segment, 'generation', 'state')
if not isPublished(now) then return 'stale' end
local words, held, added = {}, {}, 0
for word in string.gmatch(redis.call('HGET', buyers, buyerId) or '', '%S+') do
  words[#words + 1], held[string.match(word, '^(%d+):') or word] = word, true
end
for i = 3, #ARGV do
  if not held[string.match(ARGV[i], '^(%d+):')] then
    words[#words + 1], added = ARGV[i], added + 1
  end
end
if added > 0 then redis.call('HSET', buyers, buyerId, table.concat(words, ' ')) end
return added
