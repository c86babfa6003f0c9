--[[
  Runs a script only if its fencing token is the newest of the lock. An older token belongs to a holder that lost the
  lock without noticing. If the fence is missing, every token is refused, because the holder can't be known.

  Input
    KEYS[1] fence (string: the newest token)   then the script's keys
    ARGV[1] fencing token   then the script's arguments
  Output
    the error FENCED, and nothing was done; or the script's output
]]
local fence, token = KEYS[1], ARGV[1]

local function script(KEYS, ARGV)
  --the script
end

local function rest(list)
  local items = {}
  for i = 2, #list do items[i - 1] = list[i] end
  return items
end

local newest = redis.call('GET', fence)
if newest ~= token then
  return redis.error_reply('FENCED token ' .. token .. ' is not the newest, which is ' .. (newest or 'missing'))
end
return script(rest(KEYS), rest(ARGV))
