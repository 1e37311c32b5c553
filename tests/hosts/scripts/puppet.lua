-- A member in Lua that does what it reads (tests/hosts/scripts.py): a command on each line, and its answer ends with ".".

local root = arg[0]:match("^(.*[/\\])") .. "../../../"
package.path = root .. "bindings/lua/?.lua;" .. package.path
local ffi = require("ffi")
local mmn = require("meta_mystia_network")

local function hex(bytes)
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

local function unhex(digits)
  return (digits:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end))
end

local room
local commands = {}

function commands.open(name, session, address)
  local state = mmn.defaults("MmnStateOptions", mmn.native.mmn_default_state_options)
  local entry = address and mmn.ENTRY_JOIN or mmn.ENTRY_CREATE
  room = mmn.open(unhex(name), session, { entry = entry, secret = "a\0b", state = state })
  print(room:local_address())
  if address then room:connect(address) end
end

function commands.poll()
  for _, event in ipairs(room:poll()) do
    print(event.name, hex(event.from or event.leader or event.peer or ""), hex(event.data or ""))
  end
end

function commands.send(peer, data) room:send(unhex(peer), unhex(data or "")) end
function commands.large(size) room:broadcast(("x"):rep(tonumber(size))) end
function commands.typed(kind) room:broadcast("x", tonumber(kind)) end
function commands.option(name) mmn.open("x", "y", { [name] = 2 ^ 32 }) end
function commands.leader() print(room:leader() or "") end
function commands.close() room:close() print(tostring(room:is_open())) end
function commands.constant(name) print(tonumber(mmn[name])) end
commands["function"] = function(name) print(tostring(ffi.cast("void *", mmn.native[name]) ~= nil)) end
function commands.size(struct) print(ffi.sizeof(struct)) end
function commands.offset(struct, field) print(ffi.offsetof(struct, field)) end

for line in io.lines() do
  local words = {}
  for word in line:gmatch("%S+") do words[#words + 1] = word end
  local done, failure = pcall(commands[words[1]], unpack(words, 2))
  if not done then
    print("error", failure.name or "?", tostring(failure))
  end
  print(".")
  io.flush()
end
