--[[
  Reads the heads of segments, and the entries of their logs behind given positions. A segment with invalid data does not keep
  the others from being read.

  Input
    for each segment: KEYS segment (hash), log (stream)
    ARGV[1] most entries of each log, 0 for none
    for each segment: ARGV generation, seq of the entry before the first one that is wanted
  Output
    for each segment: { head, entries }, where head has the values of generation, seq, tail, orders, committed, state, rules and lost, and
    entries are those of XRANGE; or 'error <message>'
]]
local most = ARGV[1]

local function read(segment, log, generation, seq)
  local head = redis.call('HMGET', segment, 'generation', 'seq', 'tail', 'orders', 'committed', 'state', 'rules',
    'lost')
  if most == '0' then return { head, {} } end
  -- The range ends with this generation's last id.
  return { head, redis.call('XRANGE', log, '(' .. generation .. '-' .. seq, generation, 'COUNT', most) }
end

--include parts/error-text

local reply = {}
for i = 1, #KEYS / 2 do
  local done, result = pcall(read, KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], ARGV[2 * i + 1])
  reply[i] = done and result or errorText(result)
end
return reply
