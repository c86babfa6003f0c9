--[[
  The same request in every phase: an order of one unit by a buyer who has not asked before.

  Input   args[1] beginning of every buyer's id: no two runs against one sale may share it
          args[2] value of the Prefer header, '' for none

  The text is built once, and each request only inserts the buyer's number. wrk runs on the same machine, so its processor
  time is lost for the node.
]]
local HERE = '@buyer@'
local head, tail
local buyer = 0

function init(args)
  local headers = { ['Content-Type'] = 'application/json', ['X-Buyer-Id'] = args[1] .. HERE }
  if args[2] ~= '' then headers['Prefer'] = args[2] end
  local whole = wrk.format('POST', wrk.path, headers, '{"quantity":1}')
  local from, to = string.find(whole, HERE, 1, true)
  head, tail = string.sub(whole, 1, from - 1), string.sub(whole, to + 1)
end

function request()
  buyer = buyer + 1
  return head .. buyer .. tail
end
