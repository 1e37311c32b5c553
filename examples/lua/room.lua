-- A room on the console: who comes and goes, who leads, and a line to all.
--
--     luajit examples/lua/room.lua alice 60
--     luajit examples/lua/room.lua bob 60 ADDRESS_OF_ALICE
--
-- It leaves after that number of seconds.

local here = arg[0]:match("^(.*[/\\])") or "./"
package.path = here .. "../../bindings/lua/?.lua;" .. package.path
local mmn = require("meta_mystia_network")

local name, seconds, address = arg[1], tonumber(arg[2]), arg[3]
local room = mmn.open(name, "our secret tea party", { entry = address and mmn.ENTRY_JOIN or mmn.ENTRY_CREATE })
print("others dial " .. room:local_address())
if address then
  room:connect(address)
end

local handlers = {}

function handlers.PeerJoined(event)
  print(event.peer .. " is here")
  room:broadcast(name .. " greets all")
end

function handlers.PeerLeft(event)
  print(event.peer .. " is gone")
end

function handlers.LeaderChanged(event)
  print((event.leader or "nobody") .. " leads")
end

function handlers.Message(event)
  print(event.from .. ": " .. event.data)
end

for _ = 1, seconds * 50 do
  for _, event in ipairs(room:poll()) do
    local handle = handlers[event.name]
    if handle then handle(event) end
  end
  io.flush()
  mmn.sleep(20)
end
room:close()
