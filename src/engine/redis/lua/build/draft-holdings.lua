--[[
  Writes buyers' records into a draft, or removes buyers from it.

  Input
    KEYS[1] draft (hash)
    ARGV[1] the draft's id   then two per buyer: buyerId, record; the record is '' for a buyer without orders
  Output
    1, or 'stale' if the draft is gone, or another was begun
]]
local draft, id = KEYS[1], ARGV[1]

if redis.call('HGET', draft, ' ') ~= id then return 'stale' end
local writes, gone = {}, {}
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    gone[#gone + 1] = ARGV[i]
  else
    writes[#writes + 1], writes[#writes + 2] = ARGV[i], ARGV[i + 1]
  end
end
if writes[1] then redis.call('HSET', draft, unpack(writes)) end
if gone[1] then redis.call('HDEL', draft, unpack(gone)) end
return 1
