--[[
  Returns the states of sales, each as one text, so that the caller compares one string for each sale with what it expects.

  Input
    for each sale: KEYS its segments (hashes), then the sale (hash)
    for each sale: ARGV the number of its segments
  Output
    for each sale: the line "generation state rules" of the record, then "generation state rules seq tail" of each segment; a
    line is empty where one of these is missing; 'error' if a key is not a hash
]]
local function digest(first, segments)
  local record = redis.call('HMGET', KEYS[first + segments], 'generation', 'state', 'rules')
  local lines = { record[1] and record[2] and record[3] and table.concat(record, ' ') or '' }
  for i = 1, segments do
    local now = redis.call('HMGET', KEYS[first + i - 1], 'generation', 'state', 'rules', 'seq', 'tail')
    lines[i + 1] = now[1] and now[2] and now[3] and now[4] and now[5] and table.concat(now, ' ') or ''
  end
  return table.concat(lines, '\n')
end

local reply, first = {}, 1
for i, count in ipairs(ARGV) do
  local segments = tonumber(count)
  local done, text = pcall(digest, first, segments)
  reply[i] = done and text or 'error'
  first = first + segments + 1
end
return reply
