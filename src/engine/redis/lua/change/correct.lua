--[[
  Sets one counter of a segment, units left or units supplied, to the value that the two others give. No other script
  changes the difference supplied - left - taken. This script compares it first, so that it works
  beside takes and corrects nothing twice.

  Input
    KEYS[1] segment (hash)
    ARGV[1] generation   ARGV[2] field: left | supplied   ARGV[3] the difference, or 'none' if left is not a number
  Output
    1 if it was done; 0 if the difference is another, or units left would be below 0; 'stale' if the segment is not there in
    that generation, or not published
]]
local segment = KEYS[1]
local generation, field, off = ARGV[1], ARGV[2], ARGV[3]
--include parts/published
--include parts/units

local now = redis.call('HMGET', segment, 'generation', 'state', 'left', 'taken', 'supplied')
if not isPublished(now) then return 'stale' end
local left, taken, supplied = whole(now[3]), whole(now[4]), whole(now[5])
if not (taken and supplied) then return 0 end
if (left and tostring(supplied - left - taken) or 'none') ~= off then return 0 end
local right = field == 'left' and supplied - taken or left and left + taken
if not right or right < 0 then return 0 end
redis.call('HSET', segment, field, string.format('%d', right))
return 1
