--[[
  Writes buyers' records into a segment that is being loaded, if it has all records before them. Redis may have gone back to
  an earlier state since the last write. So in each state the segment has all of its buyers up to the id in `loadedUpTo`.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)
    ARGV[1] generation
    ARGV[2] the id up to which the segment must have all of its buyers; '' if these are the first
    ARGV[3] the id up to which it has them with these
    then two per buyer: buyerId, record
  Output
    1, or 'stale' if the segment is not loaded in that generation, is published already, or lacks buyers
]]
local segment, buyers = KEYS[1], KEYS[2]
local generation, after, upTo = ARGV[1], ARGV[2], ARGV[3]

-- By their bytes, as Postgres sorts ids. Lua compares by the language of the server (LC_COLLATE).
local function isBefore(id, other)
  for i = 1, math.min(#id, #other) do
    local a, b = string.byte(id, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #id < #other
end

local now = redis.call('HMGET', segment, 'generation', 'state', 'loadedUpTo')
local has = now[3] or ''
if now[1] ~= generation or now[2] ~= 'loaded' or isBefore(has, after) then return 'stale' end
local writes = {}
for i = 4, #ARGV do writes[i - 3] = ARGV[i] end
if writes[1] then redis.call('HSET', buyers, unpack(writes)) end
-- Another process may have written more.
if isBefore(has, upTo) then redis.call('HSET', segment, 'loadedUpTo', upTo) end
return 1
