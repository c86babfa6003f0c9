--[[
  Part of the scripts that move units into a segment or out of it.
]]
local function whole(text) return tonumber(string.match(text or '', '^%d+$')) end

local function corrupt(segment) return redis.error_reply('CORRUPT units left in ' .. segment) end

-- Supplied units always equal units left plus units taken, so a move changes both `left` and `supplied`.
local function supply(segment, units)
  redis.call('HINCRBY', segment, 'left', units)
  redis.call('HINCRBY', segment, 'supplied', units)
end
