--[[
  Reads all segments of a sale at one instant.

  Input
    KEYS[1..N] segments (hashes)
    ARGV[1] generation
  Output
    per segment: { left, seq, committed, taken, orders, supplied, withdrawal, record of an open transfer }, or false
    where it is missing or of another generation. A segment that version 0.1.0 has built lacks `supplied` (set-state.lua)
]]
local generation = ARGV[1]

local reply = {}
for i = 1, #KEYS do
  local now = redis.call('HMGET', KEYS[i], 'generation', 'left', 'seq', 'committed', 'taken', 'orders',
    'supplied', 'withdrawal', 'out', 'withdrawn')
  local left, taken, supplied = tonumber(now[2]), tonumber(now[5]), now[7]
  if not now[10] and left and taken then supplied = string.format('%d', left + taken) end
  reply[i] = now[1] == generation and { now[2], now[3], now[4], now[5], now[6], supplied, now[8] or '', now[9] or '' }
end
return reply
