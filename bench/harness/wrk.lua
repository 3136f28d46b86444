-- Sends the requests of a file in turn and prints what came of it as one line of JSON.
--
-- The file has four lines for each request: method, path, content type and body, the last two empty without a body.

local requests = {}
local latest = 0

local function next_request()
   latest = latest % #requests + 1
   return requests[latest]
end

function init(args)
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

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      '\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}\n',
      summary.requests, summary.duration, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout,
      latency:percentile(50), latency:percentile(99)))
end
