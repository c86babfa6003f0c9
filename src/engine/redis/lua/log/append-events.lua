--[[
  Appends order events to the event stream, one entry each, and trims the stream roughly to its bound. Entries are
  numbered in `seq`, so that a reader sees which it has missed. Reports the consumer groups that had not received the
  trimmed entries.

  A Redis user with the rights of an older version may not read the groups. Then the reply names the reason, and the
  events are appended all the same.

  Input
    KEYS[1] stream
    ARGV[1] entries that the stream may hold
    then four per part: id of the outbox row, kind, time, and a line per event: place in the row, order id, sale id,
    buyer id, quantity; then, if the order has a note, a tab, its reference, a tab, its metadata; either may be empty
  Output
    { how many entries were trimmed, milliseconds between the newest of them and the newest of all, why the groups could not be
    read or '', then name and number of missed entries of each group that was not given all of the trimmed ones }
]]
local stream, most = KEYS[1], tonumber(ARGV[1])
-- Redis trims at most this many at a time by default.
local MAX_TRIMMED = 10000

local refused = ''
local function seen(reply)
  if type(reply) ~= 'table' or not reply.err then return reply end
  refused = reply.err
end

local last, seq = seen(redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', 1)), 0
local fields = last and last[1] and last[1][2] or {}
for i = 1, #fields, 2 do if fields[i] == 'seq' then seq = tonumber(fields[i + 1]) or 0 end end

local function addText(event, name, text)
  if not text or text == '' then return end
  event[#event + 1] = name
  event[#event + 1] = text
end

local newest
for i = 2, #ARGV, 4 do
  local row, kind, at, lines = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  for line in string.gmatch(lines, '[^\n]+') do
    local place, order, sale, buyer, quantity, note = string.match(line, '^(%S+) (%S+) (%S+) (%S+) (%S+)(.*)$')
    local reference, metadata = string.match(note, '^\t([^\t]*)\t(.*)$')
    seq = seq + 1
    -- If the key is not a stream, this fails at the first entry, so nothing has been written.
    local event = { 'id', row .. '-' .. place, 'kind', kind, 'orderId', order, 'saleId', sale, 'buyerId', buyer,
      'quantity', quantity, 'at', at }
    if last then
      event[#event + 1] = 'seq'
      event[#event + 1] = string.format('%d', seq)
    end
    addText(event, 'reference', reference)
    addText(event, 'metadata', metadata)
    newest = redis.call('XADD', stream, '*', unpack(event))
  end
end

local over = (seen(redis.pcall('XLEN', stream)) or most) - most
local oldest = over > 0 and redis.call('XRANGE', stream, '-', '+', 'COUNT', math.min(over, MAX_TRIMMED)) or {}
local groups = over > 0 and seen(redis.pcall('XINFO', 'GROUPS', stream)) or {}
local trimmed = redis.call('XTRIM', stream, 'MAXLEN', '~', most, 'LIMIT', MAX_TRIMMED)
if not oldest[trimmed] then return { trimmed, 0, refused } end

local function parts(id)
  local ms, n = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(n)
end
local function missedBy(given)
  local ms, n = parts(given)
  for i = trimmed, 1, -1 do
    local itsMs, itsN = parts(oldest[i][1])
    if itsMs < ms or (itsMs == ms and itsN <= n) then return trimmed - i end
  end
  return trimmed
end

local reply = { trimmed, parts(newest) - parts(oldest[trimmed][1]), refused }
for _, group in ipairs(groups) do
  local name, given
  for i = 1, #group, 2 do
    if group[i] == 'name' then name = group[i + 1] elseif group[i] == 'last-delivered-id' then given = group[i + 1] end
  end
  local missed = missedBy(given)
  if missed > 0 then
    reply[#reply + 1] = name
    reply[#reply + 1] = missed
  end
end
return reply
