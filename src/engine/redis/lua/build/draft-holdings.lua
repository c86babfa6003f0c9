--[[
  Writes buyers' records into a draft, or removes buyers from it. Each write changes the draft's stamp, and names the one
  that it follows: so none is missing, although Redis may have gone back to an earlier state since.

  Input
    KEYS[1] draft (hash)
    ARGV[1] the stamp before this write   ARGV[2] the stamp after it   then two per buyer: buyerId, record; the record is '' for a buyer without orders
  Output
    1, also if this write is repeated; 'stale' if the draft is gone, lacks a write, or another was begun
]]
local draft, before, stamp = KEYS[1], ARGV[1], ARGV[2]

local now = redis.call('HGET', draft, ' ')
if now ~= before and now ~= stamp then return 'stale' end
local writes, gone = { ' ', stamp }, {}
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    gone[#gone + 1] = ARGV[i]
  else
    writes[#writes + 1], writes[#writes + 2] = ARGV[i], ARGV[i + 1]
  end
end
redis.call('HSET', draft, unpack(writes))
if gone[1] then redis.call('HDEL', draft, unpack(gone)) end
return 1
