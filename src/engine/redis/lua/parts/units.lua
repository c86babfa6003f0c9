--[[
  Part of the scripts that move units into a segment or out of it.
]]
local function whole(text) return tonumber(string.match(text or '', '^%d+$')) end

local function corrupt(segment) return redis.error_reply('CORRUPT units left in ' .. segment) end

-- Units supplied are always those left and those taken together: what comes in or goes out is counted in both.
local function supply(segment, units)
  redis.call('HINCRBY', segment, 'left', units)
  redis.call('HINCRBY', segment, 'supplied', units)
end
