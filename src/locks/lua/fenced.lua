--[[
  Runs a script only if the fencing token that it carries is the newest of its lock. An older one belongs to a holder
  who has lost the lock without knowing it; without any, nobody can say who holds it.

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
