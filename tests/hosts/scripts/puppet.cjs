// A member in Node that does what it reads (tests/hosts/scripts.py): a command on each line, and its answer ends with ".".
'use strict';
const readline = require('readline');
const koffi = require('koffi');
const { Room, constants, defaults, native, structs } = require('../../../bindings/node/meta_mystia_network.cjs');

const unhex = digits => Buffer.from(digits, 'hex');
const hex = bytes => Buffer.from(bytes).toString('hex');

let room;
const commands = {
  open(name, session, address) {
    const state = defaults('MmnStateOptions', native.mmn_default_state_options);
    const entry = address ? constants.ENTRY_JOIN : constants.ENTRY_CREATE;
    room = new Room(unhex(name).toString(), session, { entry, secret: 'a\0b', state });
    console.log(room.localAddress);
    if (address) {
      room.connect(address);
    }
  },
  poll() {
    for (const { name, from, leader, peer, data } of room.poll()) {
      console.log([name, hex(from ?? leader ?? peer ?? ''), hex(data ?? '')].join('\t'));
    }
  },
  send: (peer, data = '') => room.send(unhex(peer).toString(), unhex(data)),
  large: size => room.broadcast('x'.repeat(size)),
  typed: type => room.broadcast('x', Number(type)),
  option: name => new Room('x', 'y', { [name]: 2 ** 32 }),
  leader: () => console.log(room.leader ?? ''),
  close() {
    room.close();
    console.log(room.isOpen);
  },
  constant: name => console.log(constants[name]),
  function: name => console.log(typeof native[name] === 'function'),
  size: struct => console.log(koffi.sizeof(structs[struct])),
  offset: (struct, field) => console.log(koffi.offsetof(structs[struct], field)),
};

readline.createInterface({ input: process.stdin }).on('line', line => {
  const [command, ...words] = line.split(' ');
  try {
    commands[command](...words);
  } catch (error) {
    console.log(['error', error.name, error.message].join('\t'));
  }
  console.log('.');
});
