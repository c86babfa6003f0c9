--[[
  Takes a batch of orders from one segment: checks each buyer's limit, decrements the segment, records the
  buyers and appends one entry to the order log. Everything is checked before the first write, because a
  script has no rollback. A buyer's record is a line of "orderId:quantity:seq:key" words, one per order.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)   KEYS[3] log (stream)
    ARGV[1] generation   ARGV[2] lane   ARGV[3] ticket   ARGV[4] most orders that the log may hold
    then four per order: buyerId, orderId, quantity, key ('' for none)
  Output
    a status: 'stale' | 'loaded' | 'frozen' | 'paused' | 'closed' | 'busy' | 'superseded', and nothing was done; or
    { seq, committed, left, result… } with, per order: 1 taken, 0 short, or a string:
    'replay orderId quantity seq' | 'mismatch orderId quantity' | 'limit orderId…' (20 at most)
]]
local segment, buyers, log = KEYS[1], KEYS[2], KEYS[3]
local generation, lane, ticket, maxLogOrders = ARGV[1], 'lane:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local HEADER, FIELDS, MAX_TOLD_ORDERS = 4, 4, 20

local now = redis.call('HMGET', segment, 'generation', 'state', 'left', 'limit', 'seq', 'tail', 'committed',
  'committedOrders', 'orders', 'taken', lane)
if now[1] ~= generation then return 'stale' end
if now[2] ~= 'open' then return now[2] or 'no state' end
if now[11] and tonumber(now[11]) >= tonumber(ticket) then return 'superseded' end
local function whole(field) return tonumber(string.match(now[field] or '', '^%d+$')) end
local left, limit, last, tail, committed = whole(3), whole(4), whole(5), now[6], whole(7)
local committedOrders, orders, taken = whole(8), whole(9), whole(10)
if not (left and limit and last and tail and committed and committedOrders and orders and taken) then
  return redis.error_reply('CORRUPT a counter of the segment is missing or not a number')
end
local seq, count = last + 1, (#ARGV - HEADER) / FIELDS
if orders - committedOrders + count > maxLogOrders then return 'busy' end

local names = {}
for i = 1, count do names[i] = ARGV[HEADER + (i - 1) * FIELDS + 1] end
local held = redis.call('HMGET', buyers, unpack(names))

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

local reply, fresh, changed, lines, firstId = { seq, committed, left }, {}, {}, {}, nil
for i = 1, count do
  local at = HEADER + (i - 1) * FIELDS
  local buyer, orderId, quantity, key = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4]
  if not quantity or not (quantity >= 1) or quantity % 1 ~= 0 then
    return redis.error_reply('BADARG quantity of order ' .. orderId)
  end
  local text = fresh[buyer] or held[i]
  local record = text and recordOf(buyer, text)
  local settled = record and examine(record, orderId, quantity, key) or (quantity > limit and 'limit ')
  if settled then
    reply[3 + i] = settled
  elseif quantity > left then
    reply[3 + i] = 0
  else
    left, taken, orders = left - quantity, taken + quantity, orders + 1
    local word = orderId .. ':' .. quantity .. ':' .. seq .. ':' .. key
    if record then
      local order = orderId .. ' ' .. quantity .. ' ' .. seq
      record.words[#record.words + 1], record.ids[#record.ids + 1] = word, orderId
      record.units, record.byId[orderId] = record.units + quantity, order
      if key ~= '' then record.byKey[key] = order end
    else
      fresh[buyer] = word
    end
    changed[buyer] = true
    lines[#lines + 1] = orderId .. ' ' .. buyer .. ' ' .. quantity .. ' ' .. key
    firstId = firstId or orderId
    reply[3 + i] = 1
  end
end

if firstId then
  local writes = {}
  for buyer in pairs(changed) do
    local text = read[buyer] and table.concat(read[buyer].words, ' ') or fresh[buyer]
    writes[#writes + 1], writes[#writes + 2] = buyer, text
  end
  redis.call('XADD', log, generation .. '-' .. seq, 'p', tail, 'n', orders, 'o', table.concat(lines, '\n'))
  redis.call('HSET', buyers, unpack(writes))
  redis.call('HSET', segment, 'left', left, 'seq', seq, 'tail', firstId, 'orders', orders, 'taken', taken, lane, ticket)
  reply[3] = left
else
  redis.call('HSET', segment, lane, ticket)
end
return reply
