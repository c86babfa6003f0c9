--[[
  Reads all segments of a sale at one instant, whatever their keys hold.

  Input
    KEYS[1..N] segments (hashes)
    ARGV[1] generation
  Output
    per segment: { state, left, taken, supplied, returned, credited, withdrawn, seq, number of the last transfer out of it,
    record of an open transfer } with false for a missing field; false where
    it is missing or of another generation; the error where the key is no hash
]]
local generation = ARGV[1]

local reply = {}
for i = 1, #KEYS do
  local now = redis.pcall('HMGET', KEYS[i], 'generation', 'state', 'left', 'taken', 'supplied', 'returned', 'credited',
    'withdrawn', 'seq', 'outSeq', 'out')
  if now.err then
    reply[i] = now.err
  elseif now[1] ~= generation then
    reply[i] = false
  else
    table.remove(now, 1)
    reply[i] = now
  end
end
return reply
