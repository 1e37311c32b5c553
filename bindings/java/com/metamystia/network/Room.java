package com.metamystia.network;

import com.metamystia.network.NativeMethods.MmnEvent;
import com.metamystia.network.NativeMethods.MmnEventCallback;
import com.metamystia.network.NativeMethods.MmnOptions;
import com.metamystia.network.NativeMethods.MmnSendOptions;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.ptr.LongByReference;
import java.util.ArrayList;
import java.util.List;

/**
 * A room that this process is in, in poll mode: {@link #poll} returns copies of the events that wait. The library calls no Java
 * from its own threads.
 *
 * <p>Any thread may call it; an error belongs to the thread whose call failed.
 */
public final class Room implements AutoCloseable {
    /** The library that MMN_LIBRARY names, else the one that JNA finds (jna.library.path). */
    public static final NativeMethods NATIVE = load();

    /** The least type of a message of the program's own. */
    public static final int FIRST_TYPE = NativeMethods.MIN_MESSAGE_TYPE;

    private static final int EVENTS_OF_A_POLL = 256;

    private final long handle;
    // The library's copy of the pointer does not keep it from the garbage collector.
    private final MmnEventCallback onEvent = (userData, event) -> receive(event);
    private List<Event> received = new ArrayList<>();
    private RuntimeException broken;
    private boolean isClosed;

    /** With the default options. */
    public Room(String peerId, String sessionId) {
        this(peerId, sessionId, options());
    }

    /** {@code options} are those of {@link #options}, changed. */
    public Room(String peerId, String sessionId, MmnOptions options) {
        options.on_event = onEvent;
        options.dispatch_mode = NativeMethods.DISPATCH_POLL;
        LongByReference opened = new LongByReference();
        check(NATIVE.mmn_open(text("peerId", peerId), text("sessionId", sessionId), options, opened));
        handle = opened.getValue();
    }

    private static NativeMethods load() {
        String path = System.getenv("MMN_LIBRARY");
        String name = path == null ? "meta_mystia_network" : path;
        NativeMethods library = Native.load(name, NativeMethods.class, NativeMethods.OPTIONS);
        int version = library.mmn_abi_version();
        if (version < NativeMethods.ABI_VERSION) {
            throw new UnsatisfiedLinkError(
                    name + " has ABI version " + version + "; this binding needs " + NativeMethods.ABI_VERSION + " or later");
        }
        return library;
    }

    /** The library's defaults, to be changed. */
    public static MmnOptions options() {
        MmnOptions options = new MmnOptions();
        options.struct_size = options.size();
        check(NATIVE.mmn_default_options(options));
        return options;
    }

    /** The defaults of a send, to be changed. */
    public static MmnSendOptions sendOptions() {
        MmnSendOptions options = new MmnSendOptions();
        options.struct_size = options.size();
        return options;
    }

    /** A copy for a field that is a pointer to bytes, such as {@code secret}; the field beside it takes the length. */
    public static Memory copyOf(byte[] data) {
        Memory copy = new Memory(Math.max(data.length, 1));
        copy.write(0, data, 0, data.length);
        return copy;
    }

    /** The result of a function of the library. A negative one throws a {@link NetworkException}. */
    public static int check(int code) {
        if (code < 0) {
            throw new NetworkException(code, NATIVE.mmn_last_error_message());
        }
        return code;
    }

    private static NetworkException invalid(String message) {
        return new NetworkException(NativeMethods.INVALID_ARGUMENT, message);
    }

    private static String text(String name, String value) {
        if (value == null) {
            throw invalid(name + " is null");
        }
        if (value.indexOf('\0') >= 0) {
            throw invalid(name + " has a zero byte at " + value.indexOf('\0') + ", where the library would end it");
        }
        return value;
    }

    private static byte[] bytes(byte[] data) {
        if (data == null) {
            throw invalid("data is null");
        }
        return data;
    }

    private static short type(int type) {
        if (type < 0 || type > 0xFFFF) {
            throw invalid("type must be 0 to 65535, not " + type);
        }
        return (short) type;
    }

    // The library's event ends with the callback, through which no exception may pass.
    private void receive(com.sun.jna.Pointer pointer) {
        try {
            MmnEvent event = new MmnEvent(pointer);
            event.read();
            received.add(Event.copyOf(event));
        } catch (RuntimeException exception) {
            broken = exception;
        }
    }

    /** The number of the room, for functions of {@link #NATIVE}. */
    public long handle() {
        return handle;
    }

    /** The events that wait, at most 256. Never waits. */
    public List<Event> poll() {
        return poll(EVENTS_OF_A_POLL);
    }

    /** The events that wait, at most {@code max}. Never waits. */
    public synchronized List<Event> poll(int max) {
        received = new ArrayList<>();
        broken = null;
        check(NATIVE.mmn_poll(handle, max));
        if (broken != null) {
            throw broken;
        }
        return received;
    }

    /** Dials "ip:port", "[v6]:port" or "name:port"; {@link Event.ConnectionResult} has the outcome. */
    public void connect(String address) {
        check(NATIVE.mmn_connect(handle, text("address", address)));
    }

    /** Sends to one member. */
    public void send(String peerId, byte[] data) {
        send(peerId, data, FIRST_TYPE, null);
    }

    /** Sends to one member; {@code options} are those of {@link #sendOptions}, or null. */
    public void send(String peerId, byte[] data, int type, MmnSendOptions options) {
        check(NATIVE.mmn_send(handle, text("peerId", peerId), bytes(data), data.length, type(type), options));
    }

    /** Sends to all other members. */
    public void broadcast(byte[] data) {
        broadcast(data, FIRST_TYPE, null);
    }

    /** Sends to all other members; {@code options} are those of {@link #sendOptions}, or null. */
    public void broadcast(byte[] data, int type, MmnSendOptions options) {
        check(NATIVE.mmn_broadcast(handle, bytes(data), data.length, type(type), options));
    }

    /** Sends to the leader; {@code options} are those of {@link #sendOptions}, or null. */
    public void sendToLeader(byte[] data, int type, MmnSendOptions options) {
        check(NATIVE.mmn_send_to_leader(handle, bytes(data), data.length, type(type), options));
    }

    /** The id of the leader, or null. */
    public String leader() {
        return NATIVE.mmn_leader(handle);
    }

    public boolean isLeader() {
        return NATIVE.mmn_is_leader(handle) != 0;
    }

    /** The ids of the members to which this one is connected. */
    public List<String> peers() {
        String peers = NATIVE.mmn_peers(handle);
        return peers == null || peers.isEmpty() ? List.of() : List.of(peers.split("\n"));
    }

    /** "ip:port", which others in the network dial. */
    public String localAddress() {
        String address = NATIVE.mmn_local_address(handle);
        if (address == null) {
            check(NATIVE.mmn_last_error_code());
        }
        return address;
    }

    public boolean isOpen() {
        return NATIVE.mmn_is_open(handle) != 0;
    }

    /** Leaves the room; takes at most 2 s. A second call does nothing. */
    @Override
    public synchronized void close() {
        if (!isClosed) {
            isClosed = true;
            check(NATIVE.mmn_close(handle));
        }
    }
}
