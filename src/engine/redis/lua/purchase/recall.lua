--[[
  Reads buyers' records without taking anything: a repeated key needs them when the sale no longer sells.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation   then buyerIds
  Output
    'stale'; or { committed, record… } with false where a buyer has no record
]]
local segment, buyers, generation = KEYS[1], KEYS[2], ARGV[1]
--include parts/published

local now = redis.call('HMGET', segment, 'generation', 'state', 'committed')
if not isPublished(now) then return 'stale' end
local names = {}
for i = 2, #ARGV do names[i - 1] = ARGV[i] end
local committed = tonumber(now[3])
if not committed then return redis.error_reply('CORRUPT cursor of ' .. segment) end
local reply = #names > 0 and redis.call('HMGET', buyers, unpack(names)) or {}
table.insert(reply, 1, committed)
return reply
