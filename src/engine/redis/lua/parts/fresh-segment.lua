--[[
  Part of the scripts that replace a segment by one of a new generation. Uses `segment` and `generation`.
]]
local function writeFresh(state, left, limit)
  redis.call('HSET', segment, 'generation', generation, 'state', state, 'left', left, 'supplied', left, 'returned', 0,
    'credited', 0, 'withdrawn', 0, 'limit', limit, 'seq', 0, 'tail', '', 'committed', 0, 'committedOrders', 0,
    'orders', 0, 'taken', 0)
end
