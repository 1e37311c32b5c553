// A room on the console: who comes and goes, who leads, and a line to all.
//
//     node examples/node/room.mjs alice 60
//     node examples/node/room.mjs bob 60 ADDRESS_OF_ALICE
//
// It leaves after that number of seconds.

import { Room, constants } from '../../bindings/node/meta_mystia_network.cjs';

const [name, seconds, address] = process.argv.slice(2);
const room = new Room(name, 'our secret tea party', { entry: address ? constants.ENTRY_JOIN : constants.ENTRY_CREATE });
console.log(`others dial ${room.localAddress}`);
if (address) {
  room.connect(address);
}

const handlers = {
  PeerJoined({ peer }) {
    console.log(`${peer} is here`);
    room.broadcast(`${name} greets all`);
  },
  PeerLeft({ peer }) {
    console.log(`${peer} is gone`);
  },
  LeaderChanged({ leader }) {
    console.log(`${leader ?? 'nobody'} leads`);
  },
  Message({ from, data }) {
    console.log(`${from}: ${data}`);
  },
};

const frames = setInterval(() => {
  for (const event of room.poll()) {
    handlers[event.name]?.(event);
  }
}, 20);

setTimeout(() => {
  clearInterval(frames);
  room.close();
}, seconds * 1000);
