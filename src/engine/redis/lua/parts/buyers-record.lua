--[[
  Part of take.lua: buyers' records, and what they say about an order. Uses `limit`, the sale's limit per buyer.
]]
local MAX_TOLD_ORDERS = 20

-- A buyer's record, read once a batch: a long one must not be read again for every order of a buyer who sends many.
local read = {}
local function recordOf(buyer, text)
  local record = read[buyer]
  if record then return record end
  record = { words = {}, units = 0, ids = {}, byId = {}, byKey = {} }
  for word, id, q, at, key in string.gmatch(text, '((%d+):(%d+):(%d+):(%S*))') do
    local order = id .. ' ' .. q .. ' ' .. at
    record.words[#record.words + 1], record.ids[#record.ids + 1] = word, id
    record.units, record.byId[id] = record.units + tonumber(q), order
    if key ~= '' then record.byKey[key] = order end
  end
  read[buyer] = record
  return record
end

-- What a record says about an order: a result that settles it, or nothing.
local function examine(record, orderId, quantity, key)
  local order = record.byId[orderId] or record.byKey[key]
  if order then
    local id, q = string.match(order, '^(%d+) (%d+)')
    return tonumber(q) == quantity and 'replay ' .. order or 'mismatch ' .. id .. ' ' .. q
  end
  if record.units + quantity > limit then
    return 'limit ' .. table.concat(record.ids, ' ', 1, math.min(#record.ids, MAX_TOLD_ORDERS))
  end
end
