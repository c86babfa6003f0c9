--[[
  Takes a batch of orders from one segment: checks each buyer's limit, decrements the segment, records the buyers and
  appends one entry to the order log. All checks come before the first write, because a script has no rollback. A
  buyer's record is a line of "orderId:quantity:seq:key" words, one per order.

  Each take writes its ticket to the segment. The caller states which of its tickets was answered last, and the newest
  log entry that it knows of. A segment that does not remember them has lost writes (a restored copy, a failover). It
  is marked as lost and sells nothing until it is rebuilt. The mark names the entry as "seq orders tail", from which
  sync counts the missing orders.

  A take names the time before which it must be made, by the clock of this server. At that time its buyers have been answered, and may
  have been refused at another node.

  Input
    KEYS[1] segment (hash)   KEYS[2] buyers (hash)   KEYS[3] log (stream)
    ARGV[1] the attempt, in words: generation, lane, ticket, most orders that the log may hold, the lane's last ticket that was
    answered (0: none), the newest entry that the lane knows of (seq, 0: none; its first order id; orders up to it), the
    time before which the take must be made, in milliseconds since 1970 (0: at any time), and the rules by which the orders were
    admitted ('': they are not compared with those of the segment)
    ARGV[2] the orders, as the log holds them: lines of "orderId buyerId quantity key", the key may be empty;
    '' for none: nothing is taken, and the segment only checks for lost writes
    ARGV[3] lines of "orderId note", for the orders that have one
  Output
    a status: 'stale' | 'loaded' | 'frozen' | 'lost' | 'paused' | 'closed' | 'outdated' | 'busy' | 'superseded' | 'late <now in
    milliseconds since 1970>', or the segment's state if this version does not know it ('no state' if it has none); then nothing was
    taken. 'lost' leaves the mark. 'paused', 'closed', 'outdated' and 'busy' leave the ticket: older attempts of the lane that still
    arrive are refused, too. Otherwise { seq, committed, left, orders so far, units given back so far, result… }, where seq is
    that of the new entry, or the next one if nothing was taken. There are no results if all orders were taken, else one per
    order: 1 taken, 0 short, or a string:
    'replay orderId quantity seq' | 'mismatch orderId quantity' | 'limit orderId…' (20 at most)
]]
local segment, buyers, log = KEYS[1], KEYS[2], KEYS[3]
local generation, lane, ticket, maxLogOrders, answered, knownSeq, knownTail, knownOrders, madeBefore, rules =
  string.match(ARGV[1], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d*) (%d+) (%d+) (%S*)$')
if not generation then return redis.error_reply('BADARG the attempt ' .. ARGV[1]) end
local lines, notes = ARGV[2], ARGV[3]
lane, maxLogOrders, answered = 'lane:' .. lane, tonumber(maxLogOrders), tonumber(answered)
knownSeq, knownOrders, madeBefore = tonumber(knownSeq), tonumber(knownOrders), tonumber(madeBefore)
local HEADER = 5

local now = redis.call('HMGET', segment, 'generation', 'state', 'left', 'limit', 'seq', 'tail', 'committed',
  'committedOrders', 'orders', 'taken', lane, 'rules', 'returned')
if now[1] ~= generation then return 'stale' end
if now[2] ~= 'open' and now[2] ~= 'paused' and now[2] ~= 'closed' then return now[2] or 'no state' end
local function whole(field) return tonumber(string.match(now[field] or '', '^%d+$')) end
local left, limit, last, tail, committed = whole(3), whole(4), whole(5), now[6], whole(7)
local committedOrders, orders, taken, returned = whole(8), whole(9), whole(10), whole(13) or 0
if not (left and limit and last and tail and committed and committedOrders and orders and taken) then
  return redis.error_reply('CORRUPT a counter of the segment is missing or not a number')
end
local remembered = tonumber(now[11] or 0)
if remembered < answered or last < knownSeq or (last == knownSeq and tail ~= knownTail) then
  redis.call('HSET', segment, 'state', 'lost', 'lost', string.format('%d %d %s', knownSeq, knownOrders, knownTail))
  return 'lost'
end
if remembered >= tonumber(ticket) then return 'superseded' end
local function refuse(status)
  redis.call('HSET', segment, lane, ticket)
  return status
end
if now[2] ~= 'open' then return refuse(now[2]) end
if rules ~= '' and now[12] and now[12] ~= rules then return refuse('outdated') end
if madeBefore > 0 then
  local clock = redis.call('TIME')
  local nowMs = tonumber(clock[1]) * 1e3 + math.floor(tonumber(clock[2]) / 1e3)
  if nowMs >= madeBefore then return string.format('late %.0f', nowMs) end
end
if lines == '' then
  redis.call('HSET', segment, lane, ticket)
  return { last + 1, committed, left, orders, returned }
end

--include parts/batch-lines
if orders - committedOrders + count > maxLogOrders then return refuse('busy') end
local held = redis.call('HMGET', buyers, unpack(names))

--include parts/buyers-record

-- Numbers are formatted once per batch: Lua's own conversion costs more than the rest of an order.
local seq, seqText = last + 1, string.format('%d', last + 1)
local reply, logged, firstId, all = { seq, committed, left, orders, returned }, {}, nil, true
-- Buyers and their records in turn, and where in this list each buyer's record is.
local writes, place = {}, {}

-- A plain batch that is taken whole needs no more than this: there is enough for it, and each buyer comes for the first
-- time.
local isUsual = isPlain and count <= left and limit >= 1
for i = 1, isUsual and count or 0 do
  local buyer = names[i]
  if held[i] or place[buyer] then
    isUsual, writes, place = false, {}, {}
    break
  end
  place[buyer] = true
  writes[2 * i - 1], writes[2 * i] = buyer, ids[i] .. ':1:' .. seqText .. ':'
end
if isUsual then
  left, taken, orders, firstId = left - count, taken + count, orders + count, ids[1]
end

for i = 1, isUsual and 0 or count do
  local buyer, orderId, quantity, key = names[i], ids[i], quantities[i] or 1, keys[i] or ''
  local at = place[buyer]
  local text = writes[at] or held[i]
  local record = text and recordOf(buyer, text)
  local settled = record and examine(record, orderId, quantity, key) or (quantity > limit and 'limit ')
  if settled or quantity > left then
    reply[HEADER + i], all = settled or 0, false
  else
    local units = quantity == 1 and '1' or string.format('%d', quantity)
    local word = orderId .. ':' .. units .. ':' .. seqText .. ':' .. key
    if record then
      local order = orderId .. ' ' .. units .. ' ' .. seqText
      record.words[#record.words + 1], record.ids[#record.ids + 1] = word, orderId
      record.units, record.byId[orderId] = record.units + quantity, order
      if key ~= '' then record.byKey[key] = order end
    end
    if not at then
      place[buyer] = #writes + 2
      writes[#writes + 1], writes[#writes + 2] = buyer, word
    end
    left, taken, orders = left - quantity, taken + quantity, orders + 1
    firstId = firstId or orderId
    logged[#logged + 1], reply[HEADER + i] = i, 1
  end
end

if not firstId then
  redis.call('HSET', segment, lane, ticket)
  return reply
end
--include parts/write-batch
if all then return { seq, committed, left, orders, returned } end
reply[3], reply[4] = left, orders
return reply
