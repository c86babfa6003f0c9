-- What a script replies for one of its segments if a command of that segment has failed. An error of a command is a table
-- from Redis 7 on, and a text before. A text has no field `err`.
local function errorText(raised) return 'error ' .. (raised.err or raised) end
