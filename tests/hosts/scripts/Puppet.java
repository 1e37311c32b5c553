import com.metamystia.network.Event;
import com.metamystia.network.NativeMethods;
import com.metamystia.network.NetworkException;
import com.metamystia.network.Room;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Structure;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/** A member in Java that does what it reads (tests/hosts/scripts.py): a command on each line, and its answer ends with ".". */
class Puppet {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final byte[] NONE = {};

    private static Room room;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                run(line.split(" "));
            } catch (NetworkException exception) {
                OUT.println("error\t" + exception.name() + "\t" + exception.getMessage());
            }
            OUT.println(".");
        }
    }

    private static void run(String[] words) throws Exception {
        switch (words[0]) {
            case "open" -> open(text(words[1]), words[2], words.length > 3 ? words[3] : null);
            case "poll" -> room.poll().forEach(Puppet::show);
            case "send" -> room.send(text(words[1]), words.length > 2 ? unhex(words[2]) : NONE);
            case "large" -> room.broadcast(new byte[Integer.parseInt(words[1])]);
            case "typed" -> room.broadcast(NONE, Integer.parseInt(words[1]), null);
            case "option" -> openWith(words[1]);
            case "leader" -> OUT.println(room.leader() == null ? "" : room.leader());
            case "close" -> close();
            case "constant" -> OUT.println(NativeMethods.class.getField(words[1]).getLong(null));
            case "function" -> OUT.println(hasFunction(words[1]));
            case "size" -> OUT.println(struct(words[1]).size());
            case "offset" -> OUT.println(offset(struct(words[1]), words[2]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void open(String name, String session, String address) {
        NativeMethods.MmnOptions options = Room.options();
        options.entry = address == null ? NativeMethods.ENTRY_CREATE : NativeMethods.ENTRY_JOIN;
        options.secret = Room.copyOf(new byte[] {'a', 0, 'b'});
        options.secret_length = 3;
        NativeMethods.MmnStateOptions state = new NativeMethods.MmnStateOptions();
        state.struct_size = state.size();
        Room.check(Room.NATIVE.mmn_default_state_options(state));
        options.state = state.getPointer();
        room = new Room(name, session, options);
        OUT.println(room.localAddress());
        if (address != null) {
            room.connect(address);
        }
    }

    private static void openWith(String option) throws Exception {
        NativeMethods.MmnOptions options = Room.options();
        options.getClass().getField(option).setInt(options, -1);
        new Room("x", "y", options);
    }

    private static void close() {
        room.close();
        OUT.println(room.isOpen());
    }

    private static void show(Event event) {
        String who = "";
        byte[] data = NONE;
        if (event instanceof Event.Message message) {
            who = message.from();
            data = message.data();
        } else if (event instanceof Event.PeerJoined joined) {
            who = joined.peer();
        } else if (event instanceof Event.LeaderChanged changed && changed.leader() != null) {
            who = changed.leader();
        }
        OUT.println(event.getClass().getSimpleName() + "\t" + hex(who.getBytes(StandardCharsets.UTF_8)) + "\t" + hex(data));
    }

    private static boolean hasFunction(String name) {
        boolean isDeclared = Arrays.stream(NativeMethods.class.getMethods()).anyMatch(method -> method.getName().equals(name));
        return isDeclared && NativeLibrary.getInstance(System.getenv("MMN_LIBRARY")).getFunction(name) != null;
    }

    private static Structure struct(String name) throws Exception {
        return (Structure) Class.forName("com.metamystia.network.NativeMethods$" + name).getConstructor().newInstance();
    }

    private static Object offset(Structure struct, String field) throws Exception {
        struct.size();
        var offset = Structure.class.getDeclaredMethod("fieldOffset", String.class);
        offset.setAccessible(true);
        return offset.invoke(struct, field);
    }

    private static String text(String hex) {
        return new String(unhex(hex), StandardCharsets.UTF_8);
    }

    private static byte[] unhex(String digits) {
        return HexFormat.of().parseHex(digits);
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
