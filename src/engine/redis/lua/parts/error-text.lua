-- What a script replies for one of its segments if a command of that segment has failed. An error of a command is a table
-- from Redis 7 on.
local function errorText(raised) return 'error ' .. (type(raised) == 'table' and raised.err or tostring(raised)) end
