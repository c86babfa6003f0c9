--[[
  Takes from several segments. Each take succeeds or fails by itself: one that fails does not keep the others from being made.

  Input
    for each take: KEYS segment (hash), buyers (hash), log (stream)
    for each take: ARGV of take.lua
  Output
    for each take: the output of take.lua, or 'error <message>'
]]
-- A take has as many keys as arguments.
local WIDTH = 3

local function take(KEYS, ARGV)
  --include purchase/take
end

--include parts/error-text

local reply = {}
for i = 1, #KEYS, WIDTH do
  local keys, arguments = { KEYS[i], KEYS[i + 1], KEYS[i + 2] }, { ARGV[i], ARGV[i + 1], ARGV[i + 2] }
  local done, result = pcall(take, keys, arguments)
  reply[#reply + 1] = (not done or result.err) and errorText(result) or result
end
return reply
