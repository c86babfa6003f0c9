--[[
  Returns a sale's state as one text, so that the caller compares one string with what it expects.

  Input
    KEYS[1..N] segments (hashes)   KEYS[N+1] sale (hash)
  Output
    the line "generation state rules" of the record, then "generation state rules seq tail" of each segment; a line is empty
    where one of these is missing
]]
local segments, sale = #KEYS - 1, KEYS[#KEYS]

local record = redis.call('HMGET', sale, 'generation', 'state', 'rules')
local lines = { record[1] and record[2] and record[3] and table.concat(record, ' ') or '' }
for i = 1, segments do
  local now = redis.call('HMGET', KEYS[i], 'generation', 'state', 'rules', 'seq', 'tail')
  lines[i + 1] = now[1] and now[2] and now[3] and now[4] and now[5] and table.concat(now, ' ') or ''
end
return table.concat(lines, '\n')
