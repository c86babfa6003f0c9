--[[
  Sets a segment's state. A frozen segment stays frozen unless it is thawed on purpose.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation   ARGV[2] state: open | paused | closed | frozen   ARGV[3] 'thaw' or ''
  Output
    1 if the segment has that state now, 'stale' if it is missing, frozen, or of another generation
]]
local segment = KEYS[1]
local generation, state, thaw = ARGV[1], ARGV[2], ARGV[3] == 'thaw'

local now = redis.call('HMGET', segment, 'generation', 'state')
if now[1] ~= generation then return 'stale' end
if now[2] == 'frozen' and state ~= 'frozen' and not thaw then return 'stale' end
redis.call('HSET', segment, 'state', state)
return 1
