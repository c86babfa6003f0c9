--[[
  Part of the scripts on segments that sell, or wait as their sale does. Uses `generation`.
]]
local PUBLISHED = { open = true, paused = true, closed = true }

-- Whether a segment whose fields `generation` and `state` are the first of these is published in this generation.
local function isPublished(now) return now[1] == generation and PUBLISHED[now[2]] end
