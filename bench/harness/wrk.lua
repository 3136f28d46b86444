-- Sends the requests of a file in turn and prints what came of it as one line of JSON: wrk -s wrk.lua URL -- FILE
-- CONNECTIONS
--
-- The file has four lines for each request: method, path, content type and body, the last two empty without a body.

local requests = {}
local latest = 0
local thread

-- wrk calls this and done in one state of Lua, init and request in another.
function setup(created)
   thread = created
end

local function next_request()
   latest = latest % #requests + 1
   return requests[latest]
end

function init(args)
   connections = tonumber(args[2])
   local file = assert(io.open(args[1], "r"))
   local method = file:read("*l")
   while method do
      local path, content_type, body = file:read("*l"), file:read("*l"), file:read("*l")
      wrk.method, wrk.path = method, path
      wrk.body = body ~= "" and body or nil
      wrk.headers["Content-Type"] = wrk.body and content_type
      -- Of a single request wrk itself makes a constant.
      requests[#requests + 1] = wrk.format()
      method = file:read("*l")
   end
   file:close()
   if #requests > 1 then request = next_request end
end

-- The latencies of the replies that came, by their microseconds: {count} and a list of them in ascending order.
--
-- wrk has added replies by then: to one of 600 µs, where a connection has one each 100, those of 500, 400, 300 and 200
-- that a client with a clock of its own would have waited for (stats_correct in its source). These clients have none.
local function measured(summary, latency, connections)
   local interval = math.floor(summary.duration / math.floor(summary.requests / connections))
   local counts, order, total = {}, {}, 0
   for index = 1, #latency do
      local micros, count = latency(index)
      counts[micros], order[index] = count, micros
   end
   for index = #order, 1, -1 do
      local micros = order[index]
      local count = counts[micros]
      total = total + count
      local added = micros - interval
      while count > 0 and micros >= 2 * interval and added > interval do
         if counts[added] then counts[added] = counts[added] - count end
         added = added - interval
      end
   end
   assert(total == summary.requests, "wrk adds replies in another way than that of version 4.1")
   return counts, order, total
end

function done(summary, latency)
   local errors = summary.errors
   local counts, order, total = measured(summary, latency, thread:get("connections"))
   local function percentile(share)
      local rest = share / 100 * total
      for _, micros in ipairs(order) do
         rest = rest - counts[micros]
         if rest <= 0 then return micros end
      end
      return 0
   end
   io.write(string.format(
      '\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}\n',
      summary.requests, summary.duration, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout, percentile(50), percentile(99)))
end
