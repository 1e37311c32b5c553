/**
 * meta_mystia_network for Node: a room in poll mode, over koffi.
 *
 * The library never calls JavaScript from its own threads: a room is open in poll mode, room.poll() copies the events that
 * wait, and returns them. All calls of a room belong to the thread that opened it.
 */
'use strict';
const fs = require('fs');
const path = require('path');
const koffi = require('koffi');
const { fields, structs, prototypes, constants, codes, events } = require('./meta_mystia_network_raw.cjs');

/** The library that MMN_LIBRARY names, else the one beside this file, else that of the source tree, else one of the system. */
function load() {
  const name = { win32: 'meta_mystia_network.dll', darwin: 'libmeta_mystia_network.dylib' }[process.platform] ??
    'libmeta_mystia_network.so';
  const folders = [__dirname, path.join(__dirname, '../../target/release')];
  const chosen = process.env.MMN_LIBRARY ?? folders.map(folder => path.join(folder, name)).find(file => fs.existsSync(file)) ?? name;
  let library;
  try {
    library = koffi.load(chosen);
  } catch (error) {
    throw new Error(`cannot load ${chosen}: set MMN_LIBRARY to its path. Searched: ${folders.join(', ')} and the folders of the ` +
      `system (${error.message})`);
  }
  const version = library.func(prototypes.mmn_abi_version)();
  if (version < constants.ABI_VERSION) {
    throw new Error(`${chosen} has ABI version ${version}; this binding needs ${constants.ABI_VERSION} or later`);
  }
  return library;
}

const library = load();

/** The functions of the library, as the header declares them; each is bound at its first use. They check no types. */
const native = {};
for (const [name, prototype] of Object.entries(prototypes)) {
  Object.defineProperty(native, name, {
    configurable: true,
    enumerable: true,
    get() {
      const value = library.func(prototype);
      Object.defineProperty(native, name, { value, enumerable: true });
      return value;
    },
  });
}

/** A call was refused. `code` is the number, `name` that of the code without MMN_; the message comes from the library. */
class NetworkError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
    this.name = codes[code] ?? 'UNKNOWN';
  }
}

function invalid(message) {
  return new NetworkError(constants.INVALID_ARGUMENT, message);
}

/** The result of a function of the library. A negative one throws a NetworkError. */
function check(code) {
  if (code < 0) {
    throw new NetworkError(code, native.mmn_last_error_message());
  }
  return code;
}

// -- arguments: koffi takes a number for a pointer, and wraps one that is out of range

function text(name, value) {
  if (typeof value !== 'string') {
    throw invalid(`${name} must be a string, not ${typeof value}`);
  }
  const zero = value.indexOf('\0');
  if (zero >= 0) {
    throw invalid(`${name} has a zero byte at ${zero}, where the library would end it`);
  }
  return value;
}

function integer(name, type, value) {
  const [, unsigned, bits] = /^(u?)int(\d+)_t$/.exec(type);
  const wrap = unsigned ? BigInt.asUintN : BigInt.asIntN;
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  if (!isInteger || wrap(Number(bits), BigInt(value)) !== BigInt(value)) {
    throw invalid(`${name} must be an integer of the type ${type}, not ${value}`);
  }
  return value;
}

function bytes(name, value) {
  if (typeof value === 'string') {
    return Buffer.from(value, 'utf8');
  }
  if (!(value instanceof Uint8Array)) {
    throw invalid(`${name} must be a Uint8Array or a string, not ${typeof value}`);
  }
  return value;
}

/** `values` as the fields of a struct; a length follows from its bytes. */
function fill(struct, start, values) {
  const filled = { ...start, struct_size: koffi.sizeof(structs[struct]) };
  for (const [name, value] of Object.entries(values)) {
    if (!Object.hasOwn(fields[struct], name)) {
      throw invalid(`there is no option ${name}`);
    }
    if (value !== null && value !== undefined) {
      const type = fields[struct][name];
      filled[name] = converted(name, type, value);
      if (type === 'const uint8_t *') {
        filled[`${name}_length`] = filled[name].length;
      }
    }
  }
  return filled;
}

/** `value` for a field of the type. */
function converted(name, type, value) {
  switch (type) {
    case 'const char *': return text(name, value);
    case 'const uint8_t *': return bytes(name, value);
    default:
      return type.endsWith('*') ? nested(name, type, value) : integer(name, type, typeof value === 'boolean' ? Number(value) : value);
  }
}

/** An object with the library's defaults for a struct, which `fillIn`, such as native.mmn_default_state_options, writes. */
function defaults(struct, fillIn) {
  const options = { struct_size: koffi.sizeof(structs[struct]) };
  check(fillIn(options));
  return options;
}

/** A struct that another one points to, from an object with its fields. */
function nested(name, type, value) {
  const struct = type.replace(/^const | \*$/g, '');
  if (!fields[struct] || typeof value !== 'object') {
    throw invalid(`${name} cannot be ${value}`);
  }
  return fill(struct, {}, value);
}

// -- events

const copies = {
  'text': value => value,
  'text or none': value => value || null,
  'bytes': (value, event) => Buffer.from(koffi.decode(value, 'uint8_t', event.length)),
  'flag': value => value !== 0,
  // A number of 64 bits is a BigInt where a double would round it.
  'number': value => value,
};

/** An event as an object of its own: the library's struct ends with the callback. */
function copy(pointer) {
  const event = koffi.decode(pointer, structs.MmnEvent);
  const [name, known] = events[event.kind] ?? ['UnknownEvent', []];
  const copied = { name, kind: event.kind };
  for (const [field, raw, form] of known) {
    copied[field] = copies[form](event[raw], event);
  }
  return copied;
}

// The events of the poll that runs, and its error: none may pass through the library.
let received = [];
let broken = null;

// One for all rooms. It runs inside mmn_poll alone.
const onEvent = koffi.register((_, event) => {
  try {
    received.push(copy(event));
  } catch (error) {
    broken ??= error;
  }
}, 'MmnEventCallback *');

// -- rooms

// Those that are open when the process exits leave, so that the others need not wait for them.
const open = new Set();
process.on('exit', () => open.forEach(room => room.close()));

function optionsOf(values) {
  const own = { on_event: onEvent, dispatch_mode: constants.DISPATCH_POLL };
  return { ...fill('MmnOptions', defaults('MmnOptions', native.mmn_default_options), values), ...own };
}

function message(data, type, options) {
  const copied = bytes('data', data);
  return [copied, copied.length, integer('type', 'uint16_t', type), options ? fill('MmnSendOptions', {}, options) : null];
}

/** A room that this process is in. */
class Room {
  #handle;

  /** `options` has fields of MmnOptions, such as { entry: constants.ENTRY_CREATE, secret: '...' }. */
  constructor(peerId, sessionId, options = {}) {
    const handle = [0];
    check(native.mmn_open(text('peerId', peerId), text('sessionId', sessionId), optionsOf(options), handle));
    this.#handle = handle[0];
    open.add(this);
  }

  /** The number of the room, for functions of `native`. */
  get handle() {
    return this.#handle;
  }

  /** The events that wait, at most `max`: objects with `name` ('PeerJoined', ...), `kind` and the fields of that kind. Never waits. */
  poll(max = 256) {
    received = [];
    broken = null;
    check(native.mmn_poll(this.#handle, integer('max', 'int32_t', max)));
    if (broken) {
      throw broken;
    }
    return received;
  }

  /** Dials 'ip:port', '[v6]:port' or 'name:port'; the event ConnectionResult has the outcome. */
  connect(address) {
    check(native.mmn_connect(this.#handle, text('address', address)));
  }

  /** Sends bytes, or a string as UTF-8, to one member. `options` has fields of MmnSendOptions. */
  send(peerId, data, type = constants.MIN_MESSAGE_TYPE, options = null) {
    check(native.mmn_send(this.#handle, text('peerId', peerId), ...message(data, type, options)));
  }

  /** Sends to all other members. */
  broadcast(data, type = constants.MIN_MESSAGE_TYPE, options = null) {
    check(native.mmn_broadcast(this.#handle, ...message(data, type, options)));
  }

  sendToLeader(data, type = constants.MIN_MESSAGE_TYPE, options = null) {
    check(native.mmn_send_to_leader(this.#handle, ...message(data, type, options)));
  }

  /** The id of the leader, or null. */
  get leader() {
    return native.mmn_leader(this.#handle);
  }

  get isLeader() {
    return native.mmn_is_leader(this.#handle) !== 0;
  }

  /** The ids of the members to which this one is connected. */
  get peers() {
    return (native.mmn_peers(this.#handle) ?? '').split('\n').filter(peer => peer);
  }

  /** 'ip:port', which others in the network dial. */
  get localAddress() {
    return native.mmn_local_address(this.#handle) ?? check(native.mmn_last_error_code());
  }

  get isOpen() {
    return native.mmn_is_open(this.#handle) !== 0;
  }

  /** Leaves the room; takes at most 2 s. A second call does nothing. */
  close() {
    if (open.delete(this)) {
      check(native.mmn_close(this.#handle));
    }
  }
}

module.exports = { Room, NetworkError, constants, codes, check, defaults, native, structs };
