--[[
  Part of take.lua: reads buyers' records, and checks an order against them. Uses `limit`, the sale's limit per buyer.
]]
local MAX_TOLD_ORDERS = 20

-- A buyer's record is read once per batch: a long one must not be read again for each order of a buyer who sends
-- many.
local records = {}
local function recordOf(buyer, text)
  local record = records[buyer]
  if record then return record end
  record = { words = {}, units = 0, ids = {}, byId = {}, byKey = {} }
  for word, id, q, at, key in string.gmatch(text, '((%d+):(%d+):(%d+):(%S*))') do
    local order = id .. ' ' .. q .. ' ' .. at
    record.words[#record.words + 1], record.ids[#record.ids + 1] = word, id
    record.units, record.byId[id] = record.units + tonumber(q), order
    if key ~= '' then record.byKey[key] = order end
  end
  records[buyer] = record
  return record
end

-- Checks an order against a record. Returns the result if the record settles the order, else nothing.
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
