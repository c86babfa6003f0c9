--[[
  Returns the states of sales, each as one text, so that the caller compares one string for each sale with what it expects.

  Input
    for each sale: KEYS its segments (hashes), then the sale (hash)
    for each sale: ARGV the number of its segments
  Output
    for each sale: the line "generation state rules" of the record, then "generation state rules seq tail committed" of each segment;
    'error' if one of these is missing, or a key is not a hash
]]
local function digest(first, segments)
  local lines = { table.concat(redis.call('HMGET', KEYS[first + segments], 'generation', 'state', 'rules'), ' ') }
  for i = 1, segments do
    local now = redis.call('HMGET', KEYS[first + i - 1], 'generation', 'state', 'rules', 'seq', 'tail',
      'committed')
    -- Raises an error if a field is missing.
    lines[i + 1] = table.concat(now, ' ')
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
