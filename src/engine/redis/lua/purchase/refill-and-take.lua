--[[
  Makes a refill and then the take that needs it, in one step. Nothing is taken if the refill was refused.

  Input
    KEYS    the refill's, then the take's
    ARGV[1] how many of the keys are the refill's   ARGV[2] how many of the arguments behind these two are
    then the refill's arguments, then the take's
  Output
    the refill's 'stale', or { the refill's output, the take's output }
]]
local refillKeys, refillArguments = tonumber(ARGV[1]), tonumber(ARGV[2])
local HEADER = 2

local function refill(KEYS, ARGV)
  --include purchase/refill
end

local function take(KEYS, ARGV)
  --include purchase/take
end

local function slice(list, first, last)
  local part = {}
  for i = first, last do part[#part + 1] = list[i] end
  return part
end

local refilled = refill(slice(KEYS, 1, refillKeys), slice(ARGV, HEADER + 1, HEADER + refillArguments))
if refilled == 'stale' or refilled.err then return refilled end
local taken = take(slice(KEYS, refillKeys + 1, #KEYS), slice(ARGV, HEADER + refillArguments + 1, #ARGV))
if taken.err then return taken end
return { refilled, taken }
