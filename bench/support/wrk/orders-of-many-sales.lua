--[[
  An order of one unit by a buyer who has not asked before, in the next of several sales each time.

  Input   args[1] beginning of every buyer's id: no two runs against one shop may share it
          args[2] value of the Prefer header, '' for none
          args[3] number of sales, whose ids are sale-1, sale-2 and so on

  The path of wrk's url is not used. The texts are built once, and each request only inserts the buyer's number.
]]
local HERE = '@buyer@'
local heads, tail = {}, nil
local buyer = 0

function init(args)
  local headers = { ['Content-Type'] = 'application/json', ['X-Buyer-Id'] = args[1] .. HERE }
  if args[2] ~= '' then headers['Prefer'] = args[2] end
  for sale = 1, tonumber(args[3]) do
    local whole = wrk.format('POST', '/v1/sales/sale-' .. sale .. '/orders', headers, '{"quantity":1}')
    local from, to = string.find(whole, HERE, 1, true)
    heads[sale], tail = string.sub(whole, 1, from - 1), string.sub(whole, to + 1)
  end
end

function request()
  buyer = buyer + 1
  return heads[buyer % #heads + 1] .. buyer .. tail
end
