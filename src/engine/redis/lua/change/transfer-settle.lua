--[[
  The last step of a transfer: removes its record from the donor. The record of another transfer is left alone.

  Input
    KEYS[1] donor (hash)
    ARGV[1] generation   ARGV[2] seq
  Output
    1 if it was removed, 0 if it was gone, or the donor is of another generation
]]
local donor, generation, seq = KEYS[1], ARGV[1], ARGV[2]

local now = redis.call('HMGET', donor, 'generation', 'out')
if now[1] ~= generation or string.match(now[2] or '', '^%d+') ~= seq then return 0 end
return redis.call('HDEL', donor, 'out')
