--[[
  Adds the given orders to a buyer's record, unless it holds them already.

  A command may arrive late, after the lock that kept the orders from being returned was lost. If orders were returned since then, the
  segment has counted their units. So the record is left alone if that count has changed.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   ARGV[2] buyerId   ARGV[3] units given back so far, read under that lock
    then one "orderId:quantity:seq:key" per order
  Output
    how many orders were added; 'returned', and nothing was done, if more units were given back since; 'stale' if the segment is not
    there in that generation, or not published
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, buyerId, returned = ARGV[1], ARGV[2], ARGV[3]
--include parts/published

local now = redis.call('HMGET', segment, 'generation', 'state', 'returned')
if not isPublished(now) then return 'stale' end
if now[3] ~= returned then return 'returned' end
local words, held, added = {}, {}, 0
for word in string.gmatch(redis.call('HGET', buyers, buyerId) or '', '%S+') do
  words[#words + 1], held[string.match(word, '^(%d+):') or word] = word, true
end
for i = 4, #ARGV do
  if not held[string.match(ARGV[i], '^(%d+):')] then
    words[#words + 1], added = ARGV[i], added + 1
  end
end
if added > 0 then redis.call('HSET', buyers, buyerId, table.concat(words, ' ')) end
return added
