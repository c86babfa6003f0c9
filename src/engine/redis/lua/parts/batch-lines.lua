--[[
  Part of take.lua: reads the orders of the batch from `lines`. Makes `count`, `names` (buyers), `ids`, `quantities` and `keys`;
  a plain batch has no quantities and no keys.
]]
-- Most batches are plain: each order is for one unit, without a key. Of such lines two words are read and not four,
-- which halves what they cost.
local count, length, names, ids, quantities, keys = 0, -1, {}, {}, {}, {}
if string.sub(lines, -3) == ' 1 ' then
  for id, name in string.gmatch(lines, '(%d+) (%S+) 1 \n?') do
    count = count + 1
    ids[count], names[count] = id, name
    length = length + #id + #name + 5
  end
end
local isPlain = length == #lines
if not isPlain then
  count, length = 0, -1
  for id, name, quantity, key in string.gmatch(lines, '(%d+) (%S+) (%d+) (%S*)\n?') do
    count = count + 1
    ids[count], names[count], keys[count] = id, name, key
    quantities[count] = quantity == '1' and 1 or tonumber(quantity)
    if quantities[count] == 0 then return redis.error_reply('BADARG quantity of order ' .. id) end
    length = length + #id + #name + #quantity + #key + 4
  end
  if length ~= #lines then return redis.error_reply('BADARG the orders are not lines of four words') end
end
