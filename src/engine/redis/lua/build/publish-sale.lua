--[[
  Writes a sale's record and raises its epoch. With the new epoch, each node's board no longer shows the sale as sold out.
  A record of a later generation is left alone.

  Input
    KEYS[1] sale (hash)
    ARGV[1] generation   ARGV[2] state: open | paused | closed   ARGV[3] definition (JSON)
    ARGV[4] the rules in it, for sync to compare
  Output
    the new epoch, or 'stale'
]]
local sale = KEYS[1]
local generation, state, definition, rules = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local current = redis.call('HGET', sale, 'generation')
if current and tonumber(current) > tonumber(generation) then return 'stale' end
redis.call('HSET', sale, 'generation', generation, 'state', state, 'definition', definition, 'rules', rules)
return redis.call('HINCRBY', sale, 'epoch', 1)
