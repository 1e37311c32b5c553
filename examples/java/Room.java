import static java.nio.charset.StandardCharsets.UTF_8;

import com.metamystia.network.Event;
import com.metamystia.network.NativeMethods;

/**
 * A room on the console: who comes and goes, who leads, and a line to all. bindings/java/README.md has the commands:
 * Room alice 60, and Room bob 60 ADDRESS_OF_ALICE. It leaves after that number of seconds.
 */
class Room {
    public static void main(String[] arguments) throws InterruptedException {
        String name = arguments[0];
        var options = com.metamystia.network.Room.options();
        options.entry = arguments.length > 2 ? NativeMethods.ENTRY_JOIN : NativeMethods.ENTRY_CREATE;
        try (var room = new com.metamystia.network.Room(name, "our secret tea party", options)) {
            System.out.println("others dial " + room.localAddress());
            if (arguments.length > 2) {
                room.connect(arguments[2]);
            }
            for (int frame = 0; frame < Integer.parseInt(arguments[1]) * 50; frame++) {
                for (Event event : room.poll()) {
                    show(event);
                    if (event instanceof Event.PeerJoined) {
                        room.broadcast((name + " greets all").getBytes(UTF_8));
                    }
                }
                Thread.sleep(20);
            }
        }
    }

    private static void show(Event event) {
        if (event instanceof Event.PeerJoined joined) {
            System.out.println(joined.peer() + " is here");
        } else if (event instanceof Event.PeerLeft left) {
            System.out.println(left.peer() + " is gone");
        } else if (event instanceof Event.LeaderChanged changed) {
            System.out.println((changed.leader() == null ? "nobody" : changed.leader()) + " leads");
        } else if (event instanceof Event.Message message) {
            System.out.println(message.from() + ": " + new String(message.data(), UTF_8));
        }
    }
}
