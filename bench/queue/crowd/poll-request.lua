--[[
  Buyers who ask how their places stand, each in turn.

  Input   args[1] a file with a buyer's id and its place token in each line; '-' for no token

  The texts are built once. wrk runs on the same machine, so its processor time is lost for the node.
]]
local requests = {}
local at = 0

function init(args)
  for line in io.lines(args[1]) do
    local buyer, token = string.match(line, '^(%S+) (%S+)$')
    local headers = { ['X-Buyer-Id'] = buyer }
    if token ~= '-' then headers['Place-Token'] = token end
    requests[#requests + 1] = wrk.format('GET', wrk.path, headers)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end
