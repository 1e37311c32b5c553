--- meta_mystia_network for LuaJIT: a room in poll mode.
--
-- The library never calls Lua from its own threads: a room is open in poll mode, room:poll() copies the events that wait, and
-- returns them as tables. All calls of a room belong to the Lua state that opened it.

local ffi = require("ffi")
local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./"
package.path = package.path .. ";" .. here .. "?.lua"
local raw = require("meta_mystia_network_raw")

ffi.cdef [[
int poll(void *, unsigned long, int);
void Sleep(uint32_t);
]]

local MAX_INTEGER = 2 ^ 53

local function exists(path)
  local file = io.open(path, "rb")
  return file ~= nil and file:close()
end

--- The library that MMN_LIBRARY names, else the one beside this file, else that of the source tree, else one of the system.
local function load_library()
  local name = ({ Windows = "meta_mystia_network.dll", OSX = "libmeta_mystia_network.dylib" })[ffi.os]
    or "libmeta_mystia_network.so"
  local path = os.getenv("MMN_LIBRARY")
  local folders = { here, here .. "../../target/release/" }
  for _, folder in ipairs(folders) do
    path = path or (exists(folder .. name) and folder .. name) or nil
  end
  local loaded, library = pcall(ffi.load, path or name)
  if not loaded then
    error("cannot load " .. (path or name) .. ": set MMN_LIBRARY to its path. Searched: " .. table.concat(folders, ", ")
      .. " and the folders of the system (" .. tostring(library) .. ")", 0)
  end
  local version = library.mmn_abi_version()
  if version < raw.ABI_VERSION then
    error(("%s has ABI version %d; this binding needs %d or later"):format(path or name, version, raw.ABI_VERSION), 0)
  end
  return library
end

local native = load_library()

--- The constants of the header without MMN_, `CODES` with the names of the result codes, and `native`, the library itself.
local mmn = setmetatable({ native = native }, { __index = raw })

-- -- errors

local Failure = {
  __tostring = function(failure)
    return failure.name .. " (" .. failure.code .. "): " .. failure.message
  end,
}

local function fail(code, message)
  error(setmetatable({ code = code, name = raw.CODES[code] or "UNKNOWN", message = message }, Failure), 0)
end

--- The result of a function of the library. A negative one raises an error with its code, its name and the library's message.
function mmn.check(code)
  if code < 0 then
    fail(code, ffi.string(native.mmn_last_error_message()))
  end
  return code
end

local function text(name, value)
  if type(value) ~= "string" then
    fail(raw.INVALID_ARGUMENT, name .. " must be a string, not " .. type(value))
  elseif value:find("\0", 1, true) then
    fail(raw.INVALID_ARGUMENT, name .. " has a zero byte at " .. value:find("\0", 1, true) .. ", where the library would end it")
  end
  return value
end

--- `value` as a number of the C type `kind`, which it must fit.
local function number(name, kind, value)
  local converted = (type(value) == "number" or type(value) == "cdata") and ffi.new(kind .. "[1]", value)[0]
  if not converted or converted ~= value then
    fail(raw.INVALID_ARGUMENT, name .. " must be a number of the type " .. kind .. ", not " .. tostring(value))
  end
  return converted
end

local function bytes(value)
  if type(value) ~= "string" then
    fail(raw.INVALID_ARGUMENT, "data must be a string, not " .. type(value))
  end
  return ffi.cast("const uint8_t *", value), #value
end

local function optional(pointer)
  return pointer ~= nil and ffi.string(pointer) or nil
end

local function lines(pointer)
  local found = {}
  for line in (optional(pointer) or ""):gmatch("[^\n]+") do
    found[#found + 1] = line
  end
  return found
end

-- -- options

local function assign(struct, name, value)
  local converted, problem = pcall(function() struct[name] = value end)
  -- A number that does not fit reads as another one.
  if not converted or (type(value) == "number" and struct[name] ~= value) then
    fail(raw.INVALID_ARGUMENT, ("%s cannot be %s%s"):format(name, tostring(value), converted and "" or ": " .. problem))
  end
end

--- Writes `values` into a struct. Text and bytes must live as long as the struct is used; a length follows from its bytes.
local function fill(struct, values)
  for name, value in pairs(values) do
    if not pcall(function() return struct[name] end) then
      fail(raw.INVALID_ARGUMENT, "there is no option " .. tostring(name))
    end
    if type(value) == "boolean" then
      value = value and 1 or 0
    elseif type(value) == "string" then
      local has_length = pcall(function() struct[name .. "_length"] = #value end)
      value = has_length and bytes(value) or text(name, value)
    end
    assign(struct, name, value)
  end
  return struct
end

--- A struct with the library's defaults, which `default`, such as mmn.native.mmn_default_state_options, writes.
function mmn.defaults(struct, default)
  local options = ffi.new(struct)
  options.struct_size = ffi.sizeof(options)
  mmn.check(default(options))
  return options
end

local function send_options(values)
  if not values then
    return nil
  end
  local options = ffi.new("MmnSendOptions")
  options.struct_size = ffi.sizeof(options)
  return fill(options, values)
end

-- -- events

local copies = {
  ["text"] = function(event, field) return ffi.string(event[field]) end,
  ["text or none"] = function(event, field) return event[field][0] ~= 0 and ffi.string(event[field]) or nil end,
  ["bytes"] = function(event, field) return ffi.string(event[field], event.length) end,
  ["flag"] = function(event, field) return event[field] ~= 0 end,
  -- A number of 64 bits stays one of `ffi` where a double would round it.
  ["number"] = function(event, field)
    local value = event[field]
    return value <= MAX_INTEGER and tonumber(value) or value
  end,
}

local function copy(event)
  local known = raw.EVENTS[event.kind]
  local copied = { kind = event.kind, name = known and known[1] or "UnknownEvent" }
  for _, field in ipairs(known and known[2] or {}) do
    copied[field[1]] = copies[field[3]](event, field[2])
  end
  return copied
end

-- The events of the poll that runs, and its error: none may pass through the library.
local received, broken

-- One for all rooms, and never freed: LuaJIT has few of them. It runs inside mmn_poll alone.
local on_event = ffi.cast("MmnEventCallback", function(_, event)
  local copied, result = pcall(copy, event)
  if copied then
    received[#received + 1] = result
  else
    broken = result
  end
end)

-- Compiled code must not call a C function that calls Lua.
local function poll(handle, max)
  received, broken = {}, nil
  local code = native.mmn_poll(handle, max)
  local events = received
  received = nil
  return code, events
end
jit.off(poll)

-- -- rooms

local Room = {}
Room.__index = Room

--- Opens a room: `options` has fields of MmnOptions, such as { entry = mmn.ENTRY_CREATE, secret = "..." }. A room whose table
-- is collected, or that is open when the state ends, is closed.
function mmn.open(peer_id, session_id, options)
  local settings = fill(mmn.defaults("MmnOptions", native.mmn_default_options), options or {})
  settings.on_event = on_event
  settings.dispatch_mode = raw.DISPATCH_POLL
  local handle = ffi.new("uint64_t[1]")
  mmn.check(native.mmn_open(text("peer_id", peer_id), text("session_id", session_id), settings, handle))
  ffi.gc(handle, function(owned) native.mmn_close(owned[0]) end)
  return setmetatable({ handle = handle[0], owned = handle, peer_id = peer_id }, Room)
end

--- The events that wait, at most `max`, as tables with `name` ("PeerJoined", ...), `kind` and the fields of that kind. Never
-- waits.
function Room:poll(max)
  local code, events = poll(self.handle, number("max", "int32_t", max or 256))
  mmn.check(code)
  if broken then
    error(broken, 0)
  end
  return events
end

--- Dials "ip:port", "[v6]:port" or "name:port"; the event ConnectionResult has the outcome.
function Room:connect(address)
  mmn.check(native.mmn_connect(self.handle, text("address", address)))
end

local function message(data, kind, options)
  local pointer, length = bytes(data)
  return pointer, length, number("type", "uint16_t", kind or raw.MIN_MESSAGE_TYPE), send_options(options)
end

--- Sends a string, which may have zero bytes, to one member. `options` has fields of MmnSendOptions.
function Room:send(peer_id, data, kind, options)
  mmn.check(native.mmn_send(self.handle, text("peer_id", peer_id), message(data, kind, options)))
end

--- Sends to all other members.
function Room:broadcast(data, kind, options)
  mmn.check(native.mmn_broadcast(self.handle, message(data, kind, options)))
end

function Room:send_to_leader(data, kind, options)
  mmn.check(native.mmn_send_to_leader(self.handle, message(data, kind, options)))
end

--- The id of the leader, or nil.
function Room:leader()
  return optional(native.mmn_leader(self.handle))
end

function Room:is_leader()
  return native.mmn_is_leader(self.handle) ~= 0
end

--- The ids of the members to which this one is connected.
function Room:peers()
  return lines(native.mmn_peers(self.handle))
end

--- "ip:port", which others in the network dial.
function Room:local_address()
  return optional(native.mmn_local_address(self.handle)) or mmn.check(native.mmn_last_error_code())
end

function Room:is_open()
  return native.mmn_is_open(self.handle) ~= 0
end

--- Leaves the room; takes at most 2 s. A second call does nothing.
function Room:close()
  if self.owned then
    ffi.gc(self.owned, nil)
    self.owned = nil
    mmn.check(native.mmn_close(self.handle))
  end
end

--- Waits, for programs without a main loop.
function mmn.sleep(milliseconds)
  if ffi.os == "Windows" then
    ffi.C.Sleep(milliseconds)
  else
    ffi.C.poll(nil, 0, milliseconds)
  end
end

return mmn
