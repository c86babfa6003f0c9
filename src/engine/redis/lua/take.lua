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
    'replay orderId quantity seq' | 'mismatch orderId quantity' | 'limit orderId…'
]]
local segment, buyers, log = KEYS[1], KEYS[2], KEYS[3]
local generation, lane, ticket, maxLogOrders = ARGV[1], 'lane:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local HEADER, FIELDS = 4, 4

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

-- What a record says about an order: a result that settles it, or the units that the buyer has already.
local function examine(record, orderId, quantity, key)
  local units, ids = 0, {}
  for id, q, at, k in string.gmatch(record, '(%d+):(%d+):(%d+):(%S*)') do
    if id == orderId or (key ~= '' and k == key) then
      if tonumber(q) ~= quantity then return 'mismatch ' .. id .. ' ' .. q end
      return 'replay ' .. id .. ' ' .. q .. ' ' .. at
    end
    units = units + tonumber(q)
    ids[#ids + 1] = id
  end
  if units + quantity > limit then return 'limit ' .. table.concat(ids, ' ') end
end

local reply, records, writes, lines, firstId = { seq, committed, left }, {}, {}, {}, nil
for i = 1, count do
  local at = HEADER + (i - 1) * FIELDS
  local buyer, orderId, quantity, key = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4]
  if not quantity or not (quantity >= 1) or quantity % 1 ~= 0 then
    return redis.error_reply('BADARG quantity of order ' .. orderId)
  end
  local record = records[buyer] or held[i]
  local settled = record and examine(record, orderId, quantity, key) or (quantity > limit and 'limit ')
  if settled then
    reply[3 + i] = settled
  elseif quantity > left then
    reply[3 + i] = 0
  else
    left, taken, orders = left - quantity, taken + quantity, orders + 1
    local word = orderId .. ':' .. quantity .. ':' .. seq .. ':' .. key
    records[buyer] = record and record ~= '' and (record .. ' ' .. word) or word
    writes[#writes + 1], writes[#writes + 2] = buyer, records[buyer]
    lines[#lines + 1] = orderId .. ' ' .. buyer .. ' ' .. quantity .. ' ' .. key
    firstId = firstId or orderId
    reply[3 + i] = 1
  end
end

if firstId then
  redis.call('XADD', log, generation .. '-' .. seq, 'p', tail, 'n', orders, 'o', table.concat(lines, '\n'))
  redis.call('HSET', buyers, unpack(writes))
  redis.call('HSET', segment, 'left', left, 'seq', seq, 'tail', firstId, 'orders', orders, 'taken', taken, lane, ticket)
  reply[3] = left
else
  redis.call('HSET', segment, lane, ticket)
end
return reply
