// Generated from src/ffi by `make header`: do not edit. Marshalling.cs has the parts written by hand.
using System;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>
    /// The functions of the native library, exactly as its header declares them. Most programs use <see cref="Room"/> instead.
    /// </summary>
    /// <remarks>
    /// Text goes in as NUL-terminated UTF-8 (<see cref="Utf8.ToNative"/>) and comes out as a pointer that must be copied
    /// at once (<see cref="Utf8.FromNative"/>). The runtime's own string marshalling is not used anywhere: it means the ANSI
    /// code page on some runtimes, which mangles names in other scripts, and it would free strings that the library owns.
    /// Flags are bytes, because the runtime's default for <c>bool</c> is four bytes wide.
    /// </remarks>
    public static class NativeMethods
    {
        /// <summary>The library's name without prefix and suffix; every runtime completes it for its platform.</summary>
        public const string Library = "meta_mystia_network";

        /// <summary>The ABI version of this header. It rises when functions, codes or fields are added; nothing is ever removed or changed. Library 0.2.0 began at 100.</summary>
        public const uint AbiVersion = 107;

        /// <summary>Longest peer id, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxPeerIdBytes = 64;

        /// <summary>Longest session id, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxSessionIdBytes = 128;

        /// <summary>Smallest message type that a host may use. The library reserves the smaller ones.</summary>
        public const ushort MinMessageType = 256;

        /// <summary>SendOptions.flags for mmn_broadcast: the message goes to the peers whose queue has room.</summary>
        public const byte SendPartial = 1;

        /// <summary>SendOptions.priority: lower than normal.</summary>
        public const sbyte PriorityLow = -1;

        /// <summary>SendOptions.priority: the default.</summary>
        public const sbyte PriorityNormal = 0;

        /// <summary>SendOptions.priority: higher than normal.</summary>
        public const sbyte PriorityHigh = 1;

        /// <summary>SendOptions.priority: the highest.</summary>
        public const sbyte PriorityHighest = 2;

        /// <summary>flags of mmn_kick: the peer's id and key are banned until mmn_unban or the room's end.</summary>
        public const uint KickBan = 1;

        /// <summary>Longest room secret of NetworkOptions, in bytes.</summary>
        public const uint MaxSecretBytes = 1024;

        /// <summary>Length of an identity key that mmn_generate_identity_key makes, in bytes.</summary>
        public const int IdentityKeyBytes = 48;

        /// <summary>Length of a room code that mmn_generate_room_code makes, in bytes, with its NUL.</summary>
        public const int RoomCodeBytes = 15;

        /// <summary>Most lines in NetworkOptions.relays.</summary>
        public const uint MaxRelays = 2;

        /// <summary>Most lines in NetworkOptions.turn.</summary>
        public const uint MaxTurnServers = 4;

        /// <summary>Most addresses in SeededOptions.seeds.</summary>
        public const uint MaxSeeds = 32;

        /// <summary>Most lines in EtcdOptions.endpoints.</summary>
        public const uint MaxEtcdEndpoints = 16;

        /// <summary>Longest text for mmn_proclaim, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxProclaimedBytes = 4096;

        /// <summary>Longest name of a lock, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxLockNameBytes = 128;

        /// <summary>Most voters in quorum_roster of NetworkOptions.</summary>
        public const uint MaxQuorumVoters = 64;

        /// <summary>Card.flags: the card holds the session id, so that everybody who reads it can join. Without it the player must know the session id.</summary>
        public const uint CardOpen = 1;

        /// <summary>Longest data of Card, in bytes.</summary>
        public const uint MaxCardDataBytes = 400;

        /// <summary>Longest game and name of Card, in bytes of UTF-8 without the NUL.</summary>
        public const uint MaxCardNameBytes = 64;

        /// <summary>Default UDP port of cards and browsers.</summary>
        public const uint DefaultCardPort = 15354;

        /// <summary>Longest transfer in bytes, for mmn_send_transfer.</summary>
        public const int MaxTransferBytes = 67108864;

        /// <summary>Longest tag of a transfer in bytes, for mmn_send_transfer.</summary>
        public const int MaxTransferTagBytes = 1024;

        /// <summary>PropertyChange.expected_version: any version, or none.</summary>
        public const ulong AnyVersion = 18446744073709551615;

        /// <summary>The ABI version of the loaded library. A host works with every library whose ABI version is at least the MMN_ABI_VERSION that the host was compiled with. Works without a room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint mmn_abi_version();

        /// <summary>The version of the loaded library, as "major.minor.patch". Works without a room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_library_version();

        /// <summary>Sets the one handler for all events of a room, messages included; NULL removes it. It replaces NetworkOptions.on_event, which receives the room's events from the first one on. If a classic callback for the same event is registered too, that callback runs first.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_event_handler(ulong room, EventCallback callback, IntPtr userData, DropCallback dropFunction);

        /// <summary>In a room that was opened with hold_messages: from now on the event handler receives messages, the ones that wait first. Until then the messages of others wait where they are, and slow their senders down; the ones that this node sends to itself wait in the queue. 5 seconds after the room opened, the library discards the messages that still wait, and all later ones until this call. Messages that may be lost do not wait.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_take_messages(ulong room);

        /// <summary>In poll mode, runs the callbacks of up to <c>max</c> queued events and messages, in order, on the calling thread. Returns at once and never waits for the network. Call it once per frame, on the thread that should run the callbacks.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_poll(ulong room, int max);

        /// <summary>Fills <c>options</c> with the defaults. The caller sets struct_size first. The library writes no byte beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_default_options(ref NetworkOptions options);

        /// <summary>Opens a room. Does not wait for other members. At most 4096 rooms are open in a process.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_open(byte[] peerId, byte[] sessionId, [In] ref NetworkOptions options, ref ulong room);

        /// <summary>Begins to leave a room, and returns at once: from now on the number of the room names no open room except for mmn_close, which must follow. The library sends accepted messages for up to 1 second and notifies the other members. Callbacks run until mmn_close. To leave many rooms, begin with all of them, and close them then. May be called inside a callback.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_leave(ulong room);

        /// <summary>Leaves a room and closes it. The library sends accepted messages for up to 1 second, notifies the other members, and releases every thread and socket of the room. It takes at most 2 seconds, plus the time of a running callback, which must not wait for the thread that calls this. Of two concurrent calls for a room the second waits for the first, and returns MMN_NOT_INITIALIZED.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_close(ulong room);

        /// <summary>Whether a room is open: 1 or 0. It is 0 from the beginning of mmn_leave and mmn_close on.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_is_open(ulong room);

        /// <summary>The default room, which InitializeNetwork, InitializeNetworkWithConfig, or mmn_open with is_default has opened, also while it is closing. 0 if there is none.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern ulong mmn_default_room();

        /// <summary>Whether this member is announced in the local network: 1 or 0. It becomes 1 when the first announcement goes out on a network interface, milliseconds after the room opens. It is 0 if discovery is off, no interface is usable, or the room is not open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_is_announced(ulong room);

        /// <summary>The code of the calling thread's last failed call; MMN_OK if no call has failed on this thread. A successful call leaves it unchanged.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_last_error_code();

        /// <summary>The message of the calling thread's last failed call. It names the argument, its value, the limit and what to do. "" if no call has failed on this thread. Never NULL.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_last_error_message();

        /// <summary>The meaning of a code, in one sentence. An unknown number gets a sentence, too. Works before initialization.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_describe_error(int code);

        /// <summary>Connects to the member at <c>addr</c>: "ip:port", "[ipv6]:port" or "name:port". The library removes blanks, line ends and invisible characters around it, and takes full-width characters as ASCII ones, so that text which a player pastes or types works. A link-local IPv6 address needs its zone, the name or the number of this machine's interface: "[fe80::1%eth0]:port".</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_connect(ulong room, byte[] address);

        /// <summary>Closes the connection to a peer. Messages accepted for it get up to 1 second to arrive. Neither side dials the other again until one of them calls mmn_connect. An earlier mmn_connect of this node that reaches the peer only now ends with MMN_REJECTED. An unknown id is MMN_OK. In a room with a fixed host, the room ends for the guest of the two.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_disconnect(ulong room, byte[] peerId, int code, byte[] data, int length);

        /// <summary>An address that other members can pass to mmn_connect: the bound port at this machine's best address, the first of mmn_local_addresses. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_local_address(ulong room);

        /// <summary>All addresses that other members can pass to mmn_connect, one a line: the address, a blank, and the name of the interface, which may contain blanks. At most 64, the likeliest first: IPv4 addresses of networks before IPv6 ones, both before those of tunnels, VPNs and bridges to virtual machines. A loopback address only if the machine has no other. An address behind a router works from inside its network only. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_local_addresses(ulong room);

        /// <summary>The address at which members on the internet reach this node: "ip:port", or "[ipv6]:port". With NetworkOptions.port_mapping it is the one that the router claims to forward here, unless what the others see speaks against that (MMN_EVENT_PORT_MAPPING). Until a member or a relay sees this node at an address of the internet, that is the router's word alone: one that lies can name any machine's address. Else it is the one at which most members see this node. A router shows its own address for all machines behind it. Give the address to players who dial this node only if the router lets them in: one that forwards no port, and admits only answers, does not.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_public_address(ulong room);

        /// <summary>This node's peer id. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_local_id(ulong room);

        /// <summary>The room's session id. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_session_id(ulong room);

        /// <summary>The number of connected peers, without this node. -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_peer_count(ulong room);

        /// <summary>The ids of the connected peers, without this node: sorted as bytes, joined by '\n'. "" when there are none, NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_peers(ulong room);

        /// <summary>The ids of the members of the room, without this node: the peers in mmn_peers and the reconnecting ones, sorted as bytes, joined by '\n'. mmn_peer_status distinguishes them. "" if there are none, NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_members(ulong room);

        /// <summary>The address of a peer, for mmn_connect: the IP address at which this node's link reaches it, with the port on which it accepts links. While the peer is reconnecting, that of its last link. NULL when the peer is neither connected nor reconnecting, <c>peer_id</c> is not an id, or no room is open; the last two set mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_peer_address(ulong room, byte[] peerId);

        /// <summary>Replaces the TURN servers of NetworkOptions.turn and their credentials, in the same form. NULL uses none from now on. A port at a server whose line is in the list again, word for word, stays; any other is given back (MMN_EVENT_TURN with MMN_CONNECTION_FAILED), and the library asks the servers of the list at once. MMN_OK does not mean that a server answers, and of two calls the last list counts. Call it before the credentials expire, or when MMN_EVENT_TURN reports MMN_AUTHENTICATION_FAILED. A server may let an expired member keep the port until the connection is lost, so a new list may break a path that still works: pass it while the game can wait a second.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_turn(ulong room, byte[] servers);

        /// <summary>The path of the messages to and from a peer: MMN_PATH_DIRECT, MMN_PATH_THROUGH_LEADER, MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or MMN_PATH_THROUGH_TURN. MMN_EVENT_PATH_CHANGED reports each change. PeerStats.path has the same number. mmn_peer_carrier names the member between the two.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_peer_path(ulong room, byte[] peerId);

        /// <summary>The id of the member that carries the packets to a peer: the leader with MMN_PATH_THROUGH_LEADER, another member with MMN_PATH_THROUGH_MEMBER. Each end of the link chooses the member that carries its own packets, so the peer may name another one.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_peer_carrier(ulong room, byte[] peerId);

        /// <summary>The index of a peer: a number from 1, for hosts that keep peers in arrays. A peer has it from before its MMN_EVENT_JOINED is queued until the callbacks for its MMN_EVENT_LEFT have returned, also while it is reconnecting. No later session in this room has the same index. It is this node's own: another member gives the peer another index. NetworkEvent.peer_index has it, too.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint mmn_peer_index(ulong room, byte[] peerId);

        /// <summary>The id of the peer with this index. NULL when no peer has it, which is no error, or when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_peer_id(ulong room, uint index);

        /// <summary>The smoothed round-trip time to a peer, in milliseconds, rounded up. -1 when it is not measured yet, the peer is unknown, <c>peer_id</c> is not an id, or no room is open; the last two set mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_peer_rtt_ms(ulong room, byte[] peerId);

        /// <summary>The state of the link to a peer: MMN_PEER_CONNECTED, MMN_PEER_RECONNECTING or MMN_PEER_HANDSHAKING. -1 when the peer is unknown, <c>peer_id</c> is not an id, or no room is open; the last two set mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_peer_status(ulong room, byte[] peerId);

        /// <summary>Shows a card of the room in the local network, in place of an earlier one; NULL takes it down. Browsers of the same game list it for as long as the room has a leader that shows a card. The library adds the number of members, the address, and whether a secret is needed.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_show_card(ulong room, [In] ref Card card);

        /// <summary>Opens a browser: a list of the rooms of one game in the local network, by the cards that they show (mmn_show_card). It needs no room. At most 16 are open in a process.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_browse_open([In] ref BrowseOptions options, ref ulong browser);

        /// <summary>In poll mode, runs on_room for up to <c>max</c> changes of rooms on the calling thread. Returns at once.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_browse_poll(ulong browser, int max);

        /// <summary>Closes a browser. It waits for a running on_room, and for nothing else. When it returns, on_room does not run and never runs again, drop_fn has run, and the browser's thread and socket are gone.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_browse_close(ulong browser);

        /// <summary>Writes a new private key to <c>buffer</c>, as NetworkOptions.identity_key takes it (Ed25519, PKCS#8). Works without a room. A host that keeps the key and gives it at every start is the same member each time: bans, bound ids and rosters depend on the key. Keep it secret: its holder can take this member's place.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_generate_identity_key([In, Out] byte[] buffer, int length);

        /// <summary>The fingerprint of this node's key: the SHA-256 of its public key (SubjectPublicKeyInfo, DER) in 64 lower-case hexadecimal digits, as quorum_roster takes it. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_local_fingerprint(ulong room);

        /// <summary>The fingerprint of a peer's key, as mmn_local_fingerprint gives it at that peer. The peer has proved that it holds the key. NULL when the peer is neither connected nor reconnecting, <c>peer_id</c> is not an id, or no room is open; the last two set mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_peer_fingerprint(ulong room, byte[] peerId);

        /// <summary>Writes a new room code to <c>buffer</c>, as K7QM-3XP9-TRWF, with a NUL at its end. Works without a room and without a network. The host that creates a room passes the code to mmn_open as the session id, with NetworkOptions.relays, and shows it to its player, who gives it to others. It is the room's password: 55 random bits and a check character, with which mmn_normalize_room_code finds typos.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_generate_room_code([In, Out] byte[] buffer, int length);

        /// <summary>Writes the room code in <c>text</c> to <c>buffer</c> as mmn_generate_room_code shows codes, with a NUL at its end. Reads codes as players type and paste them: in either case, with the letter O for 0 and I or L for 1, with full-width characters, and with any spaces and dashes or none. Use it to check a code before mmn_open, which reads the session id in this way if NetworkOptions.relays is set. Works without a room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_normalize_room_code(byte[] text, [In, Out] byte[] buffer, int length);

        /// <summary>Sets whether the library dials lost peers again (not 0, the default) or treats every loss as a leave (0). With 0, peers that are reconnecting leave at once: MMN_EVENT_LEFT with MMN_LEFT_LOST.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_auto_reconnect(ulong room, byte enabled);

        /// <summary>Whether the library dials lost peers again: 1 or 0. 0 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_auto_reconnect(ulong room);

        /// <summary>Removes a peer from the room. Only the leader may. The peer receives <c>code</c> and the <c>length</c> bytes at <c>data</c> (at most 3072), both the host's own. Every member drops it (MMN_EVENT_LEFT with MMN_LEFT_KICKED). With <c>flags</c> 0 the peer may come back: its host receives the end of its room, and can open it again; the room then decides about it as about any newcomer. A peer that is reconnecting does not learn of such a kick. With MMN_KICK_BAN neither its id nor its key is admitted again until mmn_unban or the room's end, under any leader.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_kick(ulong room, byte[] peerId, uint flags, int code, byte[] data, int length);

        /// <summary>Lifts the ban of a peer on all members: of its id, and of every key that the id was banned with, whatever other ids use that key. Only the leader may. The peer is not admitted by that, but may ask again.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_unban(ulong room, byte[] peerId);

        /// <summary>Limits the room: no member gets more than <c>max_peers</c> other members, as mmn_peer_count counts them. 0 is no limit besides each member's own max_connections. Only the leader may. Peers that are reconnecting keep their places, and no member is removed. The limit also holds under later leaders, and replaces the option max_peers.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_max_peers(ulong room, uint maxPeers);

        /// <summary>Sets the payload that this node sends from now on when it enters a room, for the decision of the leader's host: <c>length</c> bytes at <c>data</c>, at most 16384; 0 for none.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_join_payload(ulong room, byte[] data, int length);

        /// <summary>Sets the admission rule of this host while this node leads: the host decides about each newcomer (not 0), or every process that knows the room may enter (0, the default). If the host decides, every newcomer is an MMN_EVENT_JOIN_REQUEST, which the host answers with mmn_accept_join or mmn_reject_join within handshake_timeout_ms. Without an answer the newcomer is refused, and gets MMN_TIMEOUT. Members that return need no request. Set it on every member that may come to lead.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_join_requests(ulong room, byte enabled);

        /// <summary>Admits the newcomer of the MMN_EVENT_JOIN_REQUEST with this number.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_accept_join(ulong room, ulong request);

        /// <summary>Refuses the newcomer of the MMN_EVENT_JOIN_REQUEST with this number. Its mmn_connect ends with MMN_REJECTED. Its MMN_EVENT_CONNECTION_RESULT has <c>code</c> as reason and the <c>length</c> bytes at <c>data</c> (at most 3072), both the host's own.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_reject_join(ulong room, ulong request, int code, byte[] data, int length);

        /// <summary>Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set. This node's own queries show the new leader when the call returns; the other members follow within a round trip. MMN_EVENT_SET_LEADER_RESULT reports the outcome.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_leader(ulong room, byte[] peerId);

        /// <summary>Sets whether this node campaigns for leadership (not 0) or not (0). It votes for others either way. With MMN_STRATEGY_GOSSIP it sets whether this node proposes itself, and with MMN_STRATEGY_ETCD whether it has a key in the election. A leader keeps leading.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_auto_election(ulong room, byte enabled);

        /// <summary>Sets whether this node may lead (not 0, the default) or not (0). A node that may not lead is an observer: it has no vote, counts for no majority, and mmn_set_leader refuses it. If it leads, another member takes over at once; with MMN_STRATEGY_GOSSIP the others elect as after any loss, and with MMN_STRATEGY_ETCD this node deletes its key, so that the next in line leads. With MMN_QUORUM_STATIC a voter of quorum_roster still counts among the voters when it may not lead, and a member that is not on the roster never leads.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_eligible(ulong room, byte eligible);

        /// <summary>Transfers the leadership to a connected peer. Only the leader may. The library asks the peer to campaign at once, and this node leads until the peer is elected. The next leader is elected rather than set: if mmn_set_leader named the present leader, that ends with the transfer. The peer may be one that does not campaign by itself (mmn_set_auto_election).</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_transfer_leadership(ulong room, byte[] peerId);

        /// <summary>Transfers the leadership, as mmn_transfer_leadership does, to the peer that elections prefer: the one with the highest priority, and of these the largest id. Only the leader may.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_yield_leadership(ulong room);

        /// <summary>Sets the priority of this node in elections from now on. The highest priority campaigns first; of equal ones the largest id. The default is 0, and any number is allowed. The priority decides which member succeeds a lost leader, and never displaces a living one.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_priority(ulong room, int priority);

        /// <summary>The term of the newest claim to lead that this node knows: the leader's, if there is one. It rises with every election and every mmn_set_leader, but an mmn_set_leader may restart it: compare the epoch first. Not negative; always 0 with MMN_STRATEGY_GOSSIP, the version of the cluster with MMN_STRATEGY_SEEDED, and the leader's fencing token with MMN_STRATEGY_ETCD. -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long mmn_leader_term(ulong room);

        /// <summary>The number of mmn_set_leader calls that the newest claim to lead builds on. It never decreases. Not negative, always 0 with MMN_QUORUM_STATIC and with any strategy but MMN_STRATEGY_RAFT; -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long mmn_leader_epoch(ulong room);

        /// <summary>The election strategy of this room: one of MMN_STRATEGY_... -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_strategy(ulong room);

        /// <summary>The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_leader(ulong room);

        /// <summary>Whether this node is the leader: 1 or 0. With MMN_STRATEGY_ETCD it is 0 from the moment at which its lease may have ended, even if the process was stopped or the machine slept until then.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_is_leader(ulong room);

        /// <summary>Sets the windows of a room with MMN_STRATEGY_GOSSIP, from the next window on. With another strategy they are stored and have no effect.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_gossip_windows(ulong room, [In] ref GossipWindows windows);

        /// <summary>Writes the windows of a room to <c>windows</c>, whose struct_size the caller has set.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_gossip_windows(ulong room, ref GossipWindows windows);

        /// <summary>Fills <c>options</c> with the defaults of a profile: MMN_SEEDED_PROFILE_WAN or MMN_SEEDED_PROFILE_LAN. The caller sets struct_size first. The library writes no byte beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_default_seeded_options(uint profile, ref SeededOptions options);

        /// <summary>The state of a member of the cluster, this node included: one of MMN_MEMBER_..., and MMN_MEMBER_INIT for every peer that is not in the cluster. -1 when <c>peer_id</c> is not an id, no room is open (both set mmn_last_error_code), or the room's strategy is not MMN_STRATEGY_SEEDED.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_member_state(ulong room, byte[] peerId);

        /// <summary>The version of the cluster, which grows with every leader. 0 before this node has entered a cluster, and after it left one whose leader was lost for good. -1 when no room is open or its strategy is not MMN_STRATEGY_SEEDED.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long mmn_cluster_version(ulong room);

        /// <summary>Fills <c>options</c> with the defaults. The caller sets struct_size first. The library writes no byte beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_default_etcd_options(ref EtcdOptions options);

        /// <summary>The fencing token of this node's leadership: the revision at which etcd created its key. The token of every later leader is larger. Send it with everything that the leader writes elsewhere, and let the store refuse a token smaller than the largest it has seen. Then a leader that was paused, and does not know yet that another leads, changes nothing.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long mmn_fencing_token(ulong room);

        /// <summary>Sets the text that clients of etcd read of this node while it leads, at most MMN_MAX_PROCLAIMED_BYTES. The library keeps it for the next time that this node leads. The value of the leader's key is its peer id, its address and the proclaimed text, separated by line feeds. Neither of the first two contains a line feed, so everything behind the second one is the proclaimed text, which may contain more. "" by default.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_proclaim(ulong room, byte[] value);

        /// <summary>Acquires the lock <c>name</c>, which one process at a time holds among all that use the same etcd prefix, and waits for it for <c>timeout_ms</c>: 0 is until it holds the lock or the room ends. Locks are granted in the order of the calls. A name is 1 to MMN_MAX_LOCK_NAME_BYTES bytes without control characters.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_acquire_lock(ulong room, byte[] name, uint timeoutMs, ref ulong request);

        /// <summary>Acquires the lock <c>name</c> as mmn_acquire_lock does, if none holds it or waits for it. Else the event has the code MMN_REJECTED. Returns what mmn_acquire_lock returns.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_try_lock(ulong room, byte[] name, ref ulong request);

        /// <summary>Releases the lock <c>name</c>, or stops waiting for it: each waiting call for it ends with MMN_SUPERSEDED. The call does not wait for etcd. A crash releases all locks of the process after ttl_seconds, and mmn_close releases them at once.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_release_lock(ulong room, byte[] name);

        /// <summary>Sends a message to one peer, also while it is reconnecting. A message to this node's own id goes to its own handlers. The library reads <c>data</c> during the call only; it may be NULL when <c>length</c> is 0. <c>msg_type</c> is the host's own, MMN_MIN_MESSAGE_TYPE or more. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_send(ulong room, byte[] peerId, byte[] data, int length, ushort messageType, [In] ref SendOptions options);

        /// <summary>Sends a message to all connected peers, or to none of them. Without peers it returns MMN_OK. The other arguments and deliveries are as in mmn_send. In centralized mode the message goes to the leader, which relays it: see mmn_set_centralized.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_broadcast(ulong room, byte[] data, int length, ushort messageType, [In] ref SendOptions options);

        /// <summary>Sends a message to the leader. On the leader itself it goes to the node's own handlers. The other arguments and deliveries are as in mmn_send.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_send_to_leader(ulong room, byte[] data, int length, ushort messageType, [In] ref SendOptions options);

        /// <summary>Sends a reliable message as the leader to all connected peers, or to none of them. Receivers learn of this leadership before they get the message; peers that know a newer leader drop it. The other arguments are as in mmn_send.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_broadcast_as_leader(ulong room, byte[] data, int length, ushort messageType, [In] ref SendOptions options);

        /// <summary>Forwards a reliable message on behalf of <c>from</c>, which is this node or a connected peer. Only the leader may: receivers drop messages that any other member sends on behalf of another. The message goes to the peer <c>to</c>, or, if <c>to</c> is NULL, to all connected peers except <c>from</c>, or to none of them. If <c>to</c> is this node's own id, the message goes to its own handlers. The other arguments are as in mmn_send.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_forward(ulong room, byte[] from, byte[] to, byte[] data, int length, ushort messageType, [In] ref SendOptions options);

        /// <summary>The longest message in bytes that mmn_send takes for <c>peer_id</c> with MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED. If <c>peer_id</c> is NULL, the longest that mmn_broadcast takes: the least of all connected peers, or without any peer the size that every new link carries. In centralized mode it is less. It depends on the path of each link, and is 1100 or more (centralized: 850), unless max_message_size is less: a message of that size always fits. It grows while a link measures its path, and may shrink to 1100 again for a minute when long packets are lost. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_max_datagram_size(ulong room, byte[] peerId);

        /// <summary>Sets whether this node's mmn_broadcast goes through the leader (not 0) or directly to all peers (0, the default). The leader passes each broadcast to its own handlers and, with auto-forward on, relays it to all members but its origin. Receivers see the origin as the sender. Turn it on at all members of a centralized room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_centralized(ulong room, byte enabled);

        /// <summary>Whether this node's broadcasts go through the leader: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_centralized(ulong room);

        /// <summary>Sets whether this node, while it leads, relays the broadcasts of others to all members but their origin (not 0), or only passes them to its own handlers (0), so that its host can relay the approved ones with mmn_forward. The initial value is centralized_auto_forward of the configuration.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_auto_forward(ulong room, byte enabled);

        /// <summary>Whether this node, while it leads, relays the broadcasts of others: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte mmn_auto_forward(ulong room);

        /// <summary>Sets the payload length in bytes above which the library compresses with LZ4, if that saves at least a quarter; 0 tries every payload. The initial value is compression_threshold of the configuration. Compression costs time on the network thread. Receivers accept either form. max_message_size applies to the uncompressed payload.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_compression_threshold(ulong room, uint bytes);

        /// <summary>Offers <c>length</c> bytes, at most MMN_MAX_TRANSFER_BYTES, to one peer, also while it is reconnecting. The library copies <c>data</c> and <c>tag</c> before the call returns, and computes a digest: about 0.1 s for 64 MiB. <c>tag</c> is the host's own, at most MMN_MAX_TRANSFER_TAG_BYTES: a file name, for example. Either may be NULL when its length is 0. <c>*transfer</c>, unless <c>transfer</c> is NULL, receives the number of the transfer, which no other transfer between the two members gets while both are in the room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_send_transfer(ulong room, byte[] peerId, byte[] data, int length, byte[] tag, int tagLength, ref ulong transfer);

        /// <summary>Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED into <c>buffer</c>, which has <c>capacity</c> bytes: as many as the transfer, or more. The library writes into it on its own threads. So <c>buffer</c> must stay until MMN_EVENT_TRANSFER_RESULT, until mmn_cancel_transfer of it has returned MMN_OK, or until mmn_close has returned, whichever comes first. Only a complete transfer has filled it.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_accept_transfer(ulong room, byte[] peerId, ulong transfer, IntPtr buffer, int capacity);

        /// <summary>Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED in parts: an MMN_EVENT_TRANSFER_PART for each, in order. At most 262144 bytes of them wait for this host; the sender waits while it takes none.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_accept_transfer_in_parts(ulong room, byte[] peerId, ulong transfer);

        /// <summary>Refuses the offer of a transfer, or cancels a transfer that this host sends or receives. Both hosts receive MMN_EVENT_TRANSFER_RESULT. Once this has returned MMN_OK, the library no longer uses the buffer of mmn_accept_transfer. If the sender cancels while the last bytes arrive, its result is MMN_TRANSFER_CANCELLED_BY_SENDER, although the receiver may have MMN_TRANSFER_COMPLETE.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_cancel_transfer(ulong room, byte[] peerId, ulong transfer);

        /// <summary>Fills <c>options</c> with the defaults. The caller sets struct_size first. The library writes no byte beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_default_state_options(ref StateOptions options);

        /// <summary>Submits an action: <c>length</c> bytes at <c>data</c>, at most 16384, with a message type of 0x0100 or higher. The leader orders the actions of all members. Once a majority has one, each member's host receives it as MMN_EVENT_ACTION, the author's too, and all hosts in the same order. The library keeps the action over losses of the leader, also while no member leads.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_submit(ulong room, byte[] data, int length, ushort messageType, ref ulong request);

        /// <summary>Submits a set of <c>count</c> changes of properties, 1 to 32: the room makes all of them or none. They are ordered among the actions, and each member's host receives an MMN_EVENT_PROPERTY for each changed property. The changes lie one after another, as far apart as the struct_size of the first one; the library does not read that of the others. A key is in a set once. Keys, owners and values of a set have at most 32768 bytes together.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_properties(ulong room, [In] ref PropertyChange changes, int count, ref ulong request);

        /// <summary>The value of the property <c>key</c>, as of the last entry of which this host has received an event; all changes of an entry show with its first event. Writes its length, its owner and more to <c>info</c>, whose <c>struct_size</c> the caller has set; NULL asks for the value alone. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_property(ulong room, byte[] key, ref PropertyInfo info);

        /// <summary>The names of the properties that <c>owner</c> owns, or of all properties if <c>owner</c> is NULL, as of the last entry of which this host has received an event: sorted as bytes, joined by '\n'. "" when there are none. NULL when <c>owner</c> is not an id, the room has no state, or no room is open; these set mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr mmn_property_keys(ulong room, byte[] owner);

        /// <summary>Answers the MMN_EVENT_SNAPSHOT_WANTED with this number: <c>length</c> bytes at <c>data</c>, a copy of the host's state as it was inside that event, without the properties, which the library has. The host may answer up to 120 seconds later, from any thread. With NULL <c>data</c> and <c>length</c> 0 it declines, and the library asks another member's host.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_provide_snapshot(ulong room, ulong request, byte[] data, int length);

        /// <summary>Writes figures of the room's state to <c>info</c>, whose <c>struct_size</c> the caller has set. Writes at most min(struct_size, the size that this library knows) bytes. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_state_info(ulong room, ref StateInfo info);

        /// <summary>Writes statistics of the link and the queue to a peer to <c>stats</c>, whose <c>struct_size</c> the caller has set. Writes at most min(struct_size, the size that this library knows) bytes. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_peer_stats(ulong room, byte[] peerId, ref PeerStats stats);

        /// <summary>Writes statistics of the room to <c>stats</c>, whose <c>struct_size</c> the caller has set. Writes at most min(struct_size, the size that this library knows) bytes. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_room_stats(ulong room, ref RoomStats stats);

        /// <summary>The room's time in milliseconds: a clock that all members share, for animations, countdowns and the moments of events. It begins with 0 when the room's first member opens it, and goes on under every later leader. -1 when no room is open, which sets mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long mmn_room_time_ms(ulong room);

        /// <summary>Simulates a bad network, so that a developer can try a game on one machine under the players' conditions. From now on each packet that this node sends waits <c>lag_ms</c> (0 to 10000) and a random time up to <c>jitter_ms</c> (0 to 10000) more, so that packets overtake each other; <c>loss_permille</c> (0 to 1000) packets in a thousand are lost. 0, 0, 0 ends it, which is how a room begins. Call it at every member for both directions of a link. Round trips (mmn_peer_rtt_ms), losses and reconnections follow, as on a real line. It does not affect discovery in the local network. While it is on, the log repeats that every minute, as a warning.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_simulate_network(ulong room, uint lagMs, uint jitterMs, uint lossPermille);

        /// <summary>Simulates a bad network that has a name, as mmn_simulate_network does with numbers. All members of a room should use the same one: then a round trip takes twice the lag. <c>preset</c> is one of</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_simulate_preset(ulong room, byte[] preset);

        /// <summary>Sets the level of the library's log on standard error: MMN_LOG_OFF (the default) to MMN_LOG_TRACE. It may be called at any time, also before a room opens. The setting belongs to the process and outlives rooms.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_log_stderr(int level);

        /// <summary>Sets the callback for the library's log; NULL removes it. It receives the records up to <c>level</c> (MMN_LOG_OFF to MMN_LOG_TRACE), whether the log on standard error is on or not. It may be called at any time, also before a room opens. mmn_close does not remove the callback.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int mmn_set_log(int level, LogCallback callback, IntPtr userData, DropCallback dropFunction);

        /// <summary>Sets the callback for messages; NULL removes it. When the call returns, the previous callback is not running and never runs again: the call waits for it, unless it is made from inside that callback.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReceiveCallback(ReceiveCallback callback);

        /// <summary>Sets the callback for changes of the leader; NULL removes it. It replaces the previous one as RegisterReceiveCallback does. The new callback first receives the present leader, if one is known.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLeaderChangedCallback(LeaderChangedCallback callback);

        /// <summary>Sets the callback for connects and losses; NULL removes it. It replaces the previous one as RegisterReceiveCallback does. The new callback first receives every connected peer.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterPeerStatusCallback(PeerStatusCallback callback);

        /// <summary>Sets the callback for the results of ConnectToPeer; NULL removes it. It replaces the previous one as RegisterReceiveCallback does. The library discards results that find no callback.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterConnectionResultCallback(ConnectionResultCallback callback);

        /// <summary>Sets the callback for the reconnection of lost peers; NULL removes it. It replaces the previous one as RegisterReceiveCallback does.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReconnectCallback(ReconnectCallback callback);

        /// <summary>Opens the default room with default settings: those of NetworkConfigFFI, except that each queue holds 4096 messages. Does not wait for other members. The arguments are as in mmn_open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetwork(byte[] peerId, byte[] sessionId);

        /// <summary>Opens the default room as InitializeNetwork does, with the given settings.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetworkWithConfig(byte[] peerId, byte[] sessionId, [In] ref NetworkConfig config);

        /// <summary>As mmn_close, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ShutdownNetwork();

        /// <summary>As mmn_is_open, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsNetworkInitialized();

        /// <summary>Closes the connection to a peer, as mmn_disconnect does for the default room without data.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int DisconnectPeer(byte[] peerId);

        /// <summary>Sends a reliable message to all connected peers, or to none of them, as mmn_broadcast does for the default room. <c>flags</c> are the host's own, except that bit 0 arrives clear.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int BroadcastMessage(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a reliable message to one peer, as mmn_send does for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToPeer(byte[] peerId, byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a reliable message to the leader, as mmn_send_to_leader does for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToLeader(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a message as the leader, as mmn_broadcast_as_leader does for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendFromLeader(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Forwards a message on behalf of <c>from</c>, as mmn_forward does for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ForwardMessage(byte[] from, byte[] to, byte[] data, int length, ushort messageType, byte flags);

        /// <summary>As mmn_is_announced, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsMdnsActive();

        /// <summary>Turns the log on standard error on (not 0) or off (0), at the level of the last mmn_set_log_stderr, MMN_LOG_INFO by default. It may be called at any time.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableLogging(byte enabled);

        /// <summary>As mmn_last_error_code.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetLastErrorCode();

        /// <summary>As mmn_last_error_message.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLastErrorMessage();

        /// <summary>As mmn_connect, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ConnectToPeer(byte[] address);

        /// <summary>As mmn_local_address, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalAddr();

        /// <summary>As mmn_local_id, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalPeerId();

        /// <summary>As mmn_session_id, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetSessionId();

        /// <summary>As mmn_peer_count, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerCount();

        /// <summary>As mmn_peers, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetPeerList();

        /// <summary>As mmn_peer_rtt_ms, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerRTT(byte[] peerId);

        /// <summary>As mmn_peer_status, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerStatus(byte[] peerId);

        /// <summary>As mmn_set_auto_reconnect, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetAutoReconnect(byte enabled);

        /// <summary>As mmn_auto_reconnect, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsAutoReconnectEnabled();

        /// <summary>As mmn_set_leader, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeader(byte[] peerId);

        /// <summary>As mmn_set_auto_election, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableAutoLeaderElection(byte enabled);

        /// <summary>As mmn_leader, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetCurrentLeader();

        /// <summary>As mmn_is_leader, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsLeader();

        /// <summary>As mmn_set_centralized, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedMode(byte enabled);

        /// <summary>As mmn_centralized, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedMode();

        /// <summary>As mmn_set_auto_forward, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedAutoForward(byte enabled);

        /// <summary>As mmn_auto_forward, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedAutoForward();

        /// <summary>As mmn_set_compression_threshold, for the default room.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCompressionThreshold(uint bytes);

        /// <summary>Sets the longest time that a member of a room with MMN_STRATEGY_GOSSIP waits after opening the room for the number of members to settle, in milliseconds [15000]. Above 0. After that it takes part in elections. The wait ends when it learns of a leader.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetStartupGracePeriod(uint milliseconds);

        /// <summary>The value of SetStartupGracePeriod, 15000 by default.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetStartupGracePeriod();

        /// <summary>Sets how often a member samples the number of members during SetStartupGracePeriod, in milliseconds [1000]. Above 0. Two equal samples in a row end the wait.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetMembershipSampleInterval(uint milliseconds);

        /// <summary>The value of SetMembershipSampleInterval, 1000 by default.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMembershipSampleInterval();

        /// <summary>Sets how long a member waits for a declaration of the leader before it proposes itself, in milliseconds [10000]. Above 0. The leader declares itself twice in that time. When the leader is lost, another leads after half to twice that time, plus SetLeaderElectionDuration.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderAliveThreshold(uint milliseconds);

        /// <summary>The value of SetLeaderAliveThreshold, 10000 by default.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderAliveThreshold();

        /// <summary>Sets how long a member that proposed itself collects the proposals of others, in milliseconds [5000]. Above 0. Then it leads, unless a lower peer id also proposed itself or leads. If this is shorter than SetLeaderAliveThreshold, others may propose themselves too late, and the leader may not be the lowest id; see MMN_GOSSIP_STRICT_LOWEST.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderElectionDuration(uint milliseconds);

        /// <summary>The value of SetLeaderElectionDuration, 5000 by default.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderElectionDuration();

        /// <summary>Time for which a member remembers proposals and declarations of others, so that it ignores older ones: ten times GetLeaderAliveThreshold, in milliseconds, at most UINT32_MAX.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMsgExpirationTimeout();

        /// <summary>The interval at which a leader declares itself: half of GetLeaderAliveThreshold, in milliseconds, rounded down.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeadershipDeclarationInterval();
    }

    // A delegate that the library receives must stay referenced by managed code (a static field is the simplest way)
    // for as long as it is registered: the garbage collector does not see the library's copy of the pointer.

    /// <summary>Receives events. <c>user_data</c> is the pointer registered with the callback. The callbacks of a room run one at a time and in order, on a thread of the library or, in poll mode, on the thread that calls mmn_poll. Their arguments are valid during the call only. A callback may call every function except mmn_close, mmn_poll, mmn_browse_close and mmn_browse_poll, and must not throw.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void EventCallback(IntPtr userData, IntPtr @event);

    /// <summary>Releases the <c>user_data</c> registered with a callback.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void DropCallback(IntPtr userData);

    /// <summary>Receives the changes of rooms, one call at a time, in BrowseOptions.dispatch_mode. It may call every function except mmn_browse_close, mmn_browse_poll, mmn_close and mmn_poll, and must not throw.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ListedRoomCallback(IntPtr userData, IntPtr room);

    /// <summary>Receives a log record: <c>room</c> is the room whose thread made it, 0 for a thread of the host, <c>level</c> is MMN_LOG_ERROR to MMN_LOG_TRACE, and <c>message</c> is one line without a line break, valid during the call.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LogCallback(IntPtr userData, ulong room, int level, IntPtr message);

    /// <summary>Receives messages. <c>peer</c> sent the <c>length</c> bytes at <c>data</c>, which is never NULL, with <c>msg_type</c> and <c>flags</c>. The rules for threads, order and calls inside are those of EventCallback: ShutdownNetwork is refused inside a callback.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReceiveCallback(IntPtr peer, IntPtr data, int length, ushort messageType, byte flags);

    /// <summary>Receives each change of the leader. <c>leader</c> is the leader's peer id, "" when there is none.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LeaderChangedCallback(IntPtr leader);

    /// <summary>Receives connects and losses. <c>status</c> is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void PeerStatusCallback(IntPtr peer, int status);

    /// <summary>Receives the result of a ConnectToPeer. <c>addr</c> is the address as passed to that call. <c>success</c> is 1 when the peer is connected, else 0. <c>code</c> is MMN_OK or the reason (MMN_ALREADY_CONNECTED comes with success 1).</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ConnectionResultCallback(IntPtr address, byte success, int code);

    /// <summary>Receives the progress of reconnection to lost peers, while automatic reconnection is on. <c>status</c> is MMN_RECONNECT_RETRYING, MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The PeerStatus callback for the same event runs first.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReconnectCallback(IntPtr peer, byte status);

    /// <summary>An event. <c>kind</c> determines which fields are set, as the table of events shows; the others are 0 or "". The struct and everything that it points to are valid during the call only.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkEvent
    {
        /// <summary>The number of bytes of this struct that the library has set.</summary>
        public uint StructSize;
        /// <summary>One of MMN_EVENT_...</summary>
        public EventKind Kind;
        /// <summary>A term, or the version of a cluster.</summary>
        public ulong Term;
        /// <summary>The number of mmn_set_leader calls that the leader's term builds on, or a history of the room's state.</summary>
        public ulong Epoch;
        /// <summary>The number of a join request, of a call for a lock, of a request that concerns the room's state, or of a transfer (unique together with the peer).</summary>
        public ulong Request;
        /// <summary>A number of messages, of milliseconds, of members, of actions or of bytes, the token of a lock, or the version of a property.</summary>
        public ulong Count;
        /// <summary>A peer id, or "". Never NULL.</summary>
        public IntPtr Peer;
        /// <summary>Another peer id, an address, the name of a lock or of a property, or "". Never NULL.</summary>
        public IntPtr Other;
        /// <summary><c>length</c> bytes. Never NULL.</summary>
        public IntPtr Data;
        /// <summary>The number of bytes in <c>data</c>.</summary>
        public int Length;
        /// <summary>One of the constants that <c>kind</c> names.</summary>
        public int Reason;
        /// <summary>MMN_OK, an error, a host's own number, or one of the constants that <c>kind</c> names.</summary>
        public int Code;
        /// <summary>The sender's message type.</summary>
        public ushort MessageType;
        /// <summary>The sender's flags.</summary>
        public byte Flags;
        /// <summary>1 or 0.</summary>
        public byte Success;
        /// <summary>MMN_EVENT_RETURNED: messages that this host will not get.</summary>
        public ulong Missed;
        /// <summary>The index of <c>peer</c>, as mmn_peer_index returns it: 0 for this node, for a peer that is not in the room, and where there is no <c>peer</c>.</summary>
        public uint PeerIndex;
        /// <summary>MMN_EVENT_MESSAGE: the channel that the sender named; 0 for the classic sends.</summary>
        public byte Channel;
        /// <summary>MMN_EVENT_MESSAGE: one of MMN_DELIVERY_...</summary>
        public DeliveryMode Delivery;
        /// <summary>MMN_EVENT_DISCOVERY_REFUSED: one of MMN_FOUND_...</summary>
        public ushort FoundBy;
        /// <summary>The room of the event.</summary>
        public ulong Room;
        /// <summary>The index of an entry of the room's state, from 1, or a position in a transfer, from 0.</summary>
        public ulong Index;
        /// <summary>The time of an entry of the room's state, in milliseconds.</summary>
        public ulong TimeMs;
        /// <summary>MMN_EVENT_PROPERTY: the peer id of the owner, or "". Never NULL.</summary>
        public IntPtr Owner;
    }

    /// <summary>Settings of a room, for mmn_open. Later versions of the library append fields; a field that an older host does not know keeps its default. Begin with the defaults, because 0 is no value for many fields:</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkOptions
    {
        /// <summary>sizeof(NetworkOptions) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>Election strategy of the room: MMN_STRATEGY_RAFT, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_SEEDED or MMN_STRATEGY_ETCD [MMN_STRATEGY_RAFT]. Any other value is MMN_NOT_SUPPORTED, and so is MMN_STRATEGY_ETCD in a build without it. The same for all members. With any strategy but MMN_STRATEGY_RAFT, election_timeout_min_ms, election_timeout_max_ms, manual_override_recovery, merge_policy and set_leader_authority have no effect. Gossip has no votes, and mmn_set_gossip_windows sets its times. MMN_STRATEGY_SEEDED needs seeded, which has its times, quorum_roster and state_directory. It excludes host_mode and eligible 0, and auto_election has no effect. MMN_STRATEGY_ETCD needs etcd, which has its times. It excludes host_mode, MMN_QUORUM_STATIC and any merge_policy and set_leader_authority but the defaults. The members need no link to each other for it: a room of one takes part in the election.</summary>
        public ElectionStrategy Strategy;
        /// <summary>The handler of all events of the room, messages included, from the first one on. NULL is none [NULL].</summary>
        public EventCallback OnEvent;
        /// <summary>Passed to on_event [NULL].</summary>
        public IntPtr UserData;
        /// <summary>Called once with user_data, when the room needs it no more; see mmn_set_event_handler. Without on_event it has no effect. NULL is none [NULL].</summary>
        public DropCallback DropFunction;
        /// <summary>The one address of this machine to use: IPv4 or IPv6, without port or brackets. NULL uses every address of both kinds [NULL].</summary>
        public IntPtr BindAddress;
        /// <summary>The room secret, secret_length bytes, which members must know besides the session id. A dial between members with different secrets fails with MMN_AUTHENTICATION_FAILED. NULL is no secret [NULL].</summary>
        public IntPtr Secret;
        /// <summary>An Ed25519 private key in PKCS#8 (DER), identity_key_length bytes. Pass one to keep this member's identity from one room to the next. NULL makes a new key at every start [NULL].</summary>
        public IntPtr IdentityKey;
        /// <summary>Directory of the state that must survive the process: the path of an existing directory that this member can write to. Each session id and peer id has a file of its own there. The file holds the roster, the votes and, if identity_key is NULL, the private key, which the first start makes and every later start reuses. A quorum_roster or identity_key that differs from the file is MMN_INVALID_ARGUMENT. Two processes cannot use one directory as the same member. Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED. Allowed with MMN_STRATEGY_ETCD, where it keeps the lease: a process that restarts within ttl_seconds then leads on and does not wait for its own earlier key. Else NULL [NULL].</summary>
        public IntPtr StateDirectory;
        /// <summary>The path of a file for a trace of the room's elections, which <c>examples/simulate.rs</c> draws. The library overwrites the file, writes up to 256 MiB, and records nothing that the host sends. A path that cannot be written is MMN_INVALID_ARGUMENT. NULL is no trace [NULL].</summary>
        public IntPtr TracePath;
        /// <summary>The voters of a static quorum: 1 to MMN_MAX_QUORUM_VOTERS peer ids, one per line. A space and the fingerprint of a voter's key may follow its id: the SHA-256 of the public key (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Then only the holder of that key is that voter. Spaces around a line and empty lines are ignored. The same voters for all members and for the whole session. A member that is not on the roster never leads and has no vote. Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED, else NULL [NULL].</summary>
        public IntPtr QuorumRoster;
        /// <summary>The settings of MMN_STRATEGY_SEEDED, which requires them. NULL with any other strategy [NULL].</summary>
        public IntPtr Seeded;
        /// <summary>The settings of MMN_STRATEGY_ETCD, which requires them. NULL with any other strategy [NULL].</summary>
        public IntPtr Etcd;
        /// <summary>Length of secret in bytes, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].</summary>
        public uint SecretLength;
        /// <summary>Length of identity_key in bytes, at most 1024. 0 makes a new key [0].</summary>
        public uint IdentityKeyLength;
        /// <summary>1 opens the default room, which the functions without a room act on; its classic callbacks run before on_event, and times that SetStartupGracePeriod and its like have set replace the ones of these options. 0 opens a room of its own [0].</summary>
        public uint IsDefault;
        /// <summary>Thread that runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL [MMN_DISPATCH_THREAD].</summary>
        public DispatchMode DispatchMode;
        /// <summary>The UDP port to bind, at most 65535 [0]. 0 is any free port.</summary>
        public uint BindPort;
        /// <summary>Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or MMN_DISCOVERY_CONNECT [MMN_DISCOVERY_OFF].</summary>
        public DiscoveryMode DiscoveryMode;
        /// <summary>UDP port of multicast discovery, at most 65535 [15353]. Above 0 unless discovery_mode is MMN_DISCOVERY_OFF.</summary>
        public uint MdnsPort;
        /// <summary>Most other members connected at a time, 1 to 65535 [64].</summary>
        public uint MaxConnections;
        /// <summary>Most other members that any member may have, as mmn_set_max_peers sets it, from the room's first leader on; 0 is no limit [0]. The leader's own value applies until a leader calls mmn_set_max_peers, so set the same value at all members that may lead.</summary>
        public uint MaxPeers;
        /// <summary>Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both values applies.</summary>
        public uint MaxMessageSize;
        /// <summary>Most messages queued for one peer, 1 to 65535 [4096]. A send beyond that returns MMN_SEND_QUEUE_FULL.</summary>
        public uint SendQueueCapacity;
        /// <summary>Most messages queued for the host, 1 to 65535 [4096]. Beyond that, senders wait.</summary>
        public uint IncomingQueueCapacity;
        /// <summary>Most bytes queued for one peer, and for the host, besides the limits in messages [4194304]. Above 0. An empty queue accepts one message of any allowed size.</summary>
        public uint QueueBytes;
        /// <summary>Whether messages wait for mmn_take_messages although there is an event handler, for at most 5 seconds after the room opens: 0 no, else yes [0]. For hosts that register their handler of messages after they open the room.</summary>
        public uint HoldMessages;
        /// <summary>Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512]. 0 tries every payload.</summary>
        public uint CompressionThreshold;
        /// <summary>Time between two heartbeats, in milliseconds [500].</summary>
        public uint HeartbeatIntervalMs;
        /// <summary>Heartbeat intervals of silence after which a peer is lost [3].</summary>
        public uint HeartbeatTimeoutMultiplier;
        /// <summary>Shortest time without a leader before an election, in milliseconds [1500]. Above heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and raises the longest time by the same amount.</summary>
        public uint ElectionTimeoutMinMs;
        /// <summary>Longest time without a leader before an election, in milliseconds [3000].</summary>
        public uint ElectionTimeoutMaxMs;
        /// <summary>Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each failed dial.</summary>
        public uint ReconnectInitialMs;
        /// <summary>Longest wait between two dials of a lost peer, in milliseconds [30000]. At least reconnect_initial_ms. In the first minute after a loss the waits are shorter (docs/life-of-a-peer.md, "Reconnection").</summary>
        public uint ReconnectMaxMs;
        /// <summary>Dials of a lost peer before the library gives it up [0]. 0 is unlimited.</summary>
        public uint ReconnectMaxRetries;
        /// <summary>Whether the library dials lost peers again: 0 no, else yes [1].</summary>
        public uint AutoReconnect;
        /// <summary>Time for which the room keeps a lost member's place, in milliseconds [60000]. Above 0. With MMN_STRATEGY_SEEDED at least until the leader has removed the member from the cluster.</summary>
        public uint MemberHoldMs;
        /// <summary>Longest time without an answer after which an mmn_connect ends, in milliseconds [5000]. Each step that gets an answer renews it, up to three times this in all; the first is the lookup of a host name.</summary>
        public uint HandshakeTimeoutMs;
        /// <summary>Longest time that a peer's library may read nothing before this one drops the link, in milliseconds [5000].</summary>
        public uint WriteTimeoutMs;
        /// <summary>Whether this member campaigns to become the leader: 0 no, else yes [1].</summary>
        public uint AutoElection;
        /// <summary>Whether this member may lead: 0 makes it an observer, else yes [1].</summary>
        public uint Eligible;
        /// <summary>Priority of this member in elections: the highest goes first [0]. Must be 0 with any strategy but MMN_STRATEGY_RAFT.</summary>
        public int Priority;
        /// <summary>Behaviour when a leader named by mmn_set_leader is lost: MMN_RECOVERY_HOLD or MMN_RECOVERY_AUTO_ELECT [MMN_RECOVERY_HOLD]. With MMN_AUTHORITY_LEADER_ONLY always the latter.</summary>
        public ManualOverrideRecovery ManualOverrideRecovery;
        /// <summary>Members that may call mmn_set_leader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY [MMN_AUTHORITY_ANYONE]. The same for all members.</summary>
        public SetLeaderAuthority SetLeaderAuthority;
        /// <summary>Leader that stays when two parts of a room merge: MMN_MERGE_LARGEST_SIDE or MMN_MERGE_HIGHEST_TERM [MMN_MERGE_LARGEST_SIDE]. The same for all members.</summary>
        public MergePolicy MergePolicy;
        /// <summary>Members whose majority elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC]. The same for all members. A room with a static quorum never has two leaders, and has none without a majority of the voters in quorum_roster. It excludes MMN_STRATEGY_GOSSIP and host_mode. With MMN_STRATEGY_SEEDED the quorum is static in any case.</summary>
        public QuorumPolicy QuorumPolicy;
        /// <summary>0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most MMN_MAX_QUORUM_VOTERS [0].</summary>
        public uint QuorumVoters;
        /// <summary>Flags of the strategy [0], the same for all members: with MMN_STRATEGY_GOSSIP MMN_GOSSIP_STRICT_LOWEST or 0; with MMN_STRATEGY_SEEDED the sum of MMN_SEEDED_STRICT_START and MMN_SEEDED_NEVER_ALONE, one of them, or 0; else 0.</summary>
        public uint StrategyFlags;
        /// <summary>Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST [MMN_HOST_MODE_OFF]. The fixed host leads when mmn_open returns, regardless of auto_election.</summary>
        public HostMode HostMode;
        /// <summary>Links of the room: MMN_TOPOLOGY_MESH or MMN_TOPOLOGY_STAR [MMN_TOPOLOGY_MESH]. The same for all members. In a star guests link to the fixed host alone, and everything that they send each other goes through it, encrypted from end to end. No guest learns the address of another, and one reachable port, the fixed host's, is enough. There is no host migration. A star needs host_mode.</summary>
        public Topology Topology;
        /// <summary>Entry of this member into the room: MMN_ENTRY_ANY, MMN_ENTRY_CREATE or MMN_ENTRY_JOIN [MMN_ENTRY_ANY]. Use MMN_ENTRY_CREATE behind a button "host a game" and MMN_ENTRY_JOIN behind "join a game": then a player whose dial fails does not become the leader of a room of its own, and its MMN_EVENT_LEADER_CHANGED means that it is in a room. Two members that both join refuse each other with MMN_LOOKING_FOR_ROOM. A member that joins and finds no room for 10 seconds receives MMN_EVENT_NO_ROOM_FOUND. Once it has followed a leader it is a member as any other. Other values than MMN_ENTRY_ANY exclude host_mode, MMN_QUORUM_STATIC, MMN_STRATEGY_SEEDED and MMN_STRATEGY_ETCD, and MMN_ENTRY_CREATE excludes eligible 0.</summary>
        public RoomEntry Entry;
        /// <summary>Longest time that the host may take no events while this member leads, in milliseconds, at least 1000 [0, unlimited]. In poll mode the library measures from the last mmn_poll, else from the start of the running callback. After that time the member yields to one that may lead and whose host has taken events within half of that time. Without such a member it leads on. It yields once in ten times that time. With host_mode and MMN_STRATEGY_SEEDED it never yields.</summary>
        public uint YieldAfterMs;
        /// <summary>In centralized mode, whether the leader relays each broadcast to all members but its origin: 0 no, else yes [1].</summary>
        public uint CentralizedAutoForward;
        /// <summary>MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Longest time that this member waits after opening the room for the number of members to settle, before it takes part in elections, in milliseconds [15000].</summary>
        public uint StartupGraceMs;
        /// <summary>MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Interval at which this member samples the number of members during startup_grace_ms, in milliseconds [1000].</summary>
        public uint SampleIntervalMs;
        /// <summary>MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time that this member waits for a declaration of the leader before it proposes itself, in milliseconds [10000].</summary>
        public uint AliveThresholdMs;
        /// <summary>MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time for which a member that proposed itself collects the proposals of others, in milliseconds [5000].</summary>
        public uint ElectionDurationMs;
        /// <summary>Most bytes a second that this member carries in all between members that have no direct path to each other, while it does not lead: 1500 or more, or 0 to carry for none [131072]. Packets beyond that wait, at most 150 milliseconds, and all pairs of members get the same share. A leader always carries, without this limit.</summary>
        public uint CarryBytesPerSecond;
        /// <summary>Paths that this member uses: MMN_PATHS_ALL or MMN_PATHS_RELAYED [MMN_PATHS_ALL]. With MMN_PATHS_RELAYED no other member learns this one's address; the relays do. It then dials no address and answers no dial, mmn_connect is MMN_NOT_SUPPORTED, and everything goes through a relay, which adds to the round trip. It needs relays, and excludes discovery_mode and MMN_STRATEGY_SEEDED.</summary>
        public RoomPaths Paths;
        /// <summary>The relays where members of this room meet: 1 or 2, one per line, in order of preference. A line is the address of a relay, <c>host:port</c>, <c>[ipv6]:port</c> or either without the port, which is 7843 then. Behind it may follow, after spaces, <c>key=</c> with the fingerprint that the relay shows (64 hexadecimal digits), so that no other process passes for the relay, and <c>token=</c> with its token (26 characters), if it asks for one. Spaces around a line and empty lines are ignored. The same for all members: members without a common relay do not meet there.</summary>
        public IntPtr Relays;
        /// <summary>The settings of the room's state, which mmn_submit and mmn_set_properties change and which outlives its leader: the same for all members, else a dial between them fails with MMN_POLICY_MISMATCH. NULL is a room without a state, where these functions are MMN_NOT_SUPPORTED [NULL].</summary>
        public IntPtr State;
        /// <summary>Whether this member asks its router for a port that leads to it: MMN_PORT_MAPPING_OFF or MMN_PORT_MAPPING_ON [MMN_PORT_MAPPING_OFF]. With MMN_PORT_MAPPING_ON it asks the default gateway of the network that it uses, and no other machine, by PCP or NAT-PMP, renews the port while the room is open, and gives it back when the room closes. MMN_EVENT_PORT_MAPPING reports the result, mmn_public_address returns the address, and the other members learn it. With such a port members link directly that could not, because their own routers admit only answers. IPv4 only. In a star only the host asks for a port, and the guests do not learn its address from the room: give it to the players. Excluded by MMN_PATHS_RELAYED.</summary>
        public PortMapping PortMapping;
        /// <summary>0.</summary>
        public uint Reserved;
        /// <summary>TURN servers (RFC 8656), for members whose network lets no UDP out: 1 to MMN_MAX_TURN_SERVERS, one per line, tried in this order until one gives a port. A line is the URL of a server, <c>turn:host:port</c> (UDP), <c>turn:host:port?transport=tcp</c> or <c>turns:host:port</c> (TLS over TCP; 443 passes most networks); without the port it is 3478, or 5349 of <c>turns:</c>. Behind it follow, after spaces, <c>username=</c> and <c>password=</c>, at most 508 bytes each: the server's long-term credentials, which the game's server makes for a limited time. <c>turns:</c> verifies the server's certificate with the certificates that the system trusts, or, with <c>key=</c> and the SHA-256 of the certificate's public key (SubjectPublicKeyInfo, DER; 64 hexadecimal digits), accepts only a certificate with that key. Spaces around a line and empty lines are ignored.</summary>
        public IntPtr Turn;
    }

    /// <summary>The card of a room, for mmn_show_card. Set what you do not use to 0 or NULL. Later versions only append fields.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct Card
    {
        /// <summary>sizeof(Card) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>MMN_CARD_OPEN or 0.</summary>
        public uint Flags;
        /// <summary>The game: 1 to 64 bytes of UTF-8, under the rules of a peer id. Browsers of other games do not list the room.</summary>
        public IntPtr Game;
        /// <summary>The room's name for players: 1 to 64 bytes of UTF-8, under the rules of a peer id. It need not be unique.</summary>
        public IntPtr Name;
        /// <summary>Bytes of the game, data_length of them. NULL is none.</summary>
        public IntPtr Data;
        /// <summary>Length of data, at most MMN_MAX_CARD_DATA_BYTES.</summary>
        public uint DataLength;
        /// <summary>Most players, to show; 0 is no number. It limits nothing: mmn_set_max_peers does.</summary>
        public uint MaxPlayers;
        /// <summary>UDP port of the browsers' questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT. Browsers need the same one.</summary>
        public uint Port;
        /// <summary>0.</summary>
        public uint Reserved;
    }

    /// <summary>Settings of a browser, for mmn_browse_open. Set what you do not use to 0 or NULL. Later versions only append fields.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct BrowseOptions
    {
        /// <summary>sizeof(BrowseOptions) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>Thread that runs on_room: MMN_DISPATCH_THREAD (one of the browser) or MMN_DISPATCH_POLL (the one that calls mmn_browse_poll).</summary>
        public DispatchMode DispatchMode;
        /// <summary>The game whose rooms are listed, as in Card.</summary>
        public IntPtr Game;
        /// <summary>Receives the changes of rooms. Not NULL.</summary>
        public ListedRoomCallback OnRoom;
        /// <summary>Passed to on_room.</summary>
        public IntPtr UserData;
        /// <summary>Called once with user_data, before mmn_browse_close returns. NULL is none.</summary>
        public DropCallback DropFunction;
        /// <summary>UDP port of the questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT.</summary>
        public uint Port;
        /// <summary>0.</summary>
        public uint Reserved;
    }

    /// <summary>A room in the list of a browser. The struct and everything that it points to are valid during the call only. Anybody in the network can show a card: treat its texts and bytes as a stranger's.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct ListedRoom
    {
        /// <summary>Bytes of this struct in the loaded library.</summary>
        public uint StructSize;
        /// <summary>The event: MMN_BROWSE_FOUND, MMN_BROWSE_CHANGED or MMN_BROWSE_GONE.</summary>
        public ListChange Change;
        /// <summary>The browser.</summary>
        public ulong Browser;
        /// <summary>The number of the room in this browser. It stays when another member becomes the room's leader, and no other room gets it.</summary>
        public ulong Id;
        /// <summary>The room's name for players. Never NULL.</summary>
        public IntPtr Name;
        /// <summary>The session id for mmn_open, if the card is MMN_CARD_OPEN; else "". Never NULL.</summary>
        public IntPtr SessionId;
        /// <summary>The leader's address for mmn_connect. Never NULL.</summary>
        public IntPtr Address;
        /// <summary>The fingerprint of the leader's key, as mmn_peer_fingerprint returns it. Never NULL.</summary>
        public IntPtr Fingerprint;
        /// <summary>Bytes of the game. Never NULL.</summary>
        public IntPtr Data;
        /// <summary>Length of data.</summary>
        public uint DataLength;
        /// <summary>Members of the room, at least 1.</summary>
        public uint Players;
        /// <summary>Most players; 0 is no number.</summary>
        public uint MaxPlayers;
        /// <summary>1 if a member needs a secret (NetworkOptions.secret) besides the session id, else 0.</summary>
        public uint NeedsSecret;
    }

    /// <summary>The windows of MMN_STRATEGY_GOSSIP, in milliseconds, all above 0. All members of a room should use the same values.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct GossipWindows
    {
        /// <summary>Set by the caller: sizeof(GossipWindows) as it was compiled.</summary>
        public uint StructSize;
        /// <summary>Longest time that a member waits after opening the room for the number of members to settle [15000]. After that it takes part in elections. The wait ends when it learns of a leader.</summary>
        public uint StartupGraceMs;
        /// <summary>Interval at which a member samples the number of members during startup_grace_ms [1000]. Two equal samples in a row end the wait.</summary>
        public uint SampleIntervalMs;
        /// <summary>Time that a member waits for a declaration of the leader before it proposes itself [10000]. The leader declares itself twice in that time. When the leader is lost, another leads after half to twice that time, plus election_duration_ms.</summary>
        public uint AliveThresholdMs;
        /// <summary>Time for which a member that proposed itself collects the proposals of others [5000]. Then it leads, unless a lower peer id also proposed itself or leads. If this is shorter than alive_threshold_ms, others may propose themselves too late, and the leader may not be the lowest id; see MMN_GOSSIP_STRICT_LOWEST.</summary>
        public uint ElectionDurationMs;
    }

    /// <summary>The settings of MMN_STRATEGY_SEEDED, for NetworkOptions. Begin with the defaults:</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct SeededOptions
    {
        /// <summary>sizeof(SeededOptions) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>Whether this member is a seed: 0 is no, else yes [0]. The id of a seed must be on quorum_roster.</summary>
        public uint IsSeed;
        /// <summary>The addresses of the seeds, 1 to MMN_MAX_SEEDS, one per line, each as mmn_connect takes it. Spaces around a line and empty lines are ignored. A seed may list itself. The library dials them, and dials them again for as long as it needs them. Required [NULL].</summary>
        public IntPtr Seeds;
        /// <summary>Interval at which a member checks its deadlines, in milliseconds [500, 50]. Above 0.</summary>
        public uint ProbeIntervalMs;
        /// <summary>Time between two keep-alives, in milliseconds [10000, 200]. At least probe_interval_ms.</summary>
        public uint HeartbeatIntervalMs;
        /// <summary>Silence after which the leader calls a member unreachable, and after which a leader without a majority resigns, in milliseconds [30000, 600]. Above heartbeat_interval_ms.</summary>
        public uint HeartbeatTimeoutMs;
        /// <summary>Silence after which the leader removes a member, and after which the members elect another leader, in milliseconds [90000, 1500]. Above heartbeat_timeout_ms.</summary>
        public uint TtlTimeoutMs;
        /// <summary>Time between two attempts to join a cluster or to elect a leader, in milliseconds [5000, 250]. Above 0.</summary>
        public uint RetryIntervalMs;
        /// <summary>0.</summary>
        public uint Reserved;
    }

    /// <summary>The settings of MMN_STRATEGY_ETCD, for NetworkOptions. Begin with the defaults:</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct EtcdOptions
    {
        /// <summary>sizeof(EtcdOptions) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>Time for which the leadership, or a lock, of a process survives its crash, in seconds: 2 to 86400 [10]. The servers may make it longer. A member that cannot reach them for two thirds of it stops leading.</summary>
        public uint TtlSeconds;
        /// <summary>The client endpoints of the etcd servers, 1 to MMN_MAX_ETCD_ENDPOINTS, one per line: http://host:port or https://host:port, all of one kind. Spaces around a line and empty lines are ignored. Required [NULL].</summary>
        public IntPtr Endpoints;
        /// <summary>Prefix of the room's keys: 1 to 256 bytes without control characters. The same for all members: members with another prefix elect a leader of their own, and are refused with MMN_POLICY_MISMATCH. The library adds a slash, so that "test" has no key of "testa". A slash at either end is refused, because it would give other keys for a prefix that looks the same. Required [NULL].</summary>
        public IntPtr Prefix;
        /// <summary>Address at which clients reach this member while it leads, as they read it in etcd: any text of at most 256 bytes without control characters. NULL is the first address of this member with the port it is bound to [NULL].</summary>
        public IntPtr Address;
        /// <summary>The file with the certificates that sign those of the servers. Only with https. NULL is the system's set of trusted certificates [NULL].</summary>
        public IntPtr CaFile;
        /// <summary>The file with the certificate by which the servers know this client. Only with https, and with key_file. NULL is none [NULL].</summary>
        public IntPtr CertFile;
        /// <summary>The file with the private key of cert_file [NULL].</summary>
        public IntPtr KeyFile;
        /// <summary>The etcd user to log in as, with password. NULL is none [NULL].</summary>
        public IntPtr User;
        /// <summary>The password of user [NULL].</summary>
        public IntPtr Password;
    }

    /// <summary>Options of a message. NULL instead of them, or 0 in every field but struct_size, is a reliable message of channel 0, in the order of the calls.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct SendOptions
    {
        /// <summary>Set by the caller: sizeof(SendOptions) as it was compiled.</summary>
        public uint StructSize;
        /// <summary>One of MMN_DELIVERY_... [MMN_DELIVERY_RELIABLE_ORDERED].</summary>
        public DeliveryMode Delivery;
        /// <summary>Channel that the receiver sees in NetworkEvent.channel. With MMN_DELIVERY_RELIABLE_ORDERED each channel keeps its own order, and in the network no channel waits for another [0].</summary>
        public byte Channel;
        /// <summary>Priority, MMN_PRIORITY_LOW to MMN_PRIORITY_HIGHEST: of the messages that wait for the link to a peer, the higher go first. Within a channel of MMN_DELIVERY_RELIABLE_ORDERED the order of the calls still holds [MMN_PRIORITY_NORMAL].</summary>
        public sbyte Priority;
        /// <summary>0 or MMN_SEND_PARTIAL (mmn_broadcast only) [0].</summary>
        public byte Flags;
        /// <summary>Lifetime of the message, in milliseconds; 0 is unlimited. A message that waits longer, here or in the queue to the receiver's host, is dropped and counted. MMN_DELIVERY_UNRELIABLE and MMN_DELIVERY_SEQUENCED only [0].</summary>
        public uint TtlMs;
        /// <summary>Flags of the host's own, which the receiver sees in NetworkEvent.flags. Bit 0 arrives clear [0].</summary>
        public byte UserFlags;
        /// <summary>0.</summary>
        public byte Reserved;
        /// <summary>0.</summary>
        public ushort Reserved2;
        /// <summary>Subject of the message, as the host numbers it. MMN_DELIVERY_SEQUENCED only [0].</summary>
        public ulong Key;
    }

    /// <summary>The settings of a room's state, for NetworkOptions. The same for all members. Begin with the defaults:</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct StateOptions
    {
        /// <summary>sizeof(StateOptions) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>Most confirmed entries that a member keeps: 256 to 65536 [4096]. A host that takes its events so late that it lacks older ones begins anew, with a snapshot.</summary>
        public uint TailEntries;
        /// <summary>Most bytes of these entries, 65536 to 67108864 [4194304].</summary>
        public uint TailBytes;
        /// <summary>Longest snapshot for mmn_provide_snapshot, in bytes, at most 67108864 [8388608].</summary>
        public uint MaxSnapshotBytes;
    }

    /// <summary>A change of one property, for mmn_set_properties. Set struct_size, key, and expected_version: with 0 the property must not exist.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct PropertyChange
    {
        /// <summary>sizeof(PropertyChange) as the host was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>The sum of MMN_PROPERTY_..., or 0. MMN_PROPERTY_REMOVE excludes MMN_PROPERTY_KEEP_VALUE, and MMN_PROPERTY_DIES_WITH_OWNER excludes MMN_PROPERTY_FALLS_TO_LEADER.</summary>
        public uint Flags;
        /// <summary>The name of the property: 1 to 64 bytes without control characters.</summary>
        public IntPtr Key;
        /// <summary>The id of its new owner, which must be in the room; "" is no owner. NULL keeps the owner; a new property then has none.</summary>
        public IntPtr Owner;
        /// <summary>Its value, length bytes. NULL is an empty one.</summary>
        public IntPtr Value;
        /// <summary>Length of value in bytes, at most 8192. 0 with MMN_PROPERTY_REMOVE and MMN_PROPERTY_KEEP_VALUE.</summary>
        public int Length;
        /// <summary>0.</summary>
        public uint Reserved;
        /// <summary>The version that the property must have: MMN_ANY_VERSION, 0 if it must not exist, or a version from MMN_EVENT_PROPERTY or mmn_property.</summary>
        public ulong ExpectedVersion;
    }

    /// <summary>A property beside its value, from mmn_property.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct PropertyInfo
    {
        /// <summary>Set by the caller: sizeof(PropertyInfo) as it was compiled. mmn_property does not change it.</summary>
        public uint StructSize;
        /// <summary>The sum of MMN_PROPERTY_OWNER_ONLY, MMN_PROPERTY_DIES_WITH_OWNER and MMN_PROPERTY_FALLS_TO_LEADER, as far as the property has them.</summary>
        public uint Flags;
        /// <summary>Its version: the index of the entry that changed it last. Within a history it grows with each change.</summary>
        public ulong Version;
        /// <summary>The id of its owner, or "". Never NULL. Valid as long as the value.</summary>
        public IntPtr Owner;
        /// <summary>Length of the value in bytes.</summary>
        public int Length;
        /// <summary>0.</summary>
        public uint Reserved;
    }

    /// <summary>Figures of the room's state at this member, from mmn_state_info.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct StateInfo
    {
        /// <summary>Set by the caller: sizeof(StateInfo) as it was compiled. mmn_state_info does not change it.</summary>
        public uint StructSize;
        /// <summary>Members that count for a majority.</summary>
        public uint Members;
        /// <summary>1 if a majority answered the last leader, or it was the room's first; 0 after a fork.</summary>
        public uint Exclusive;
        /// <summary>Requests of this host without a result.</summary>
        public uint Pending;
        /// <summary>The history of the state; 0 before the first.</summary>
        public ulong History;
        /// <summary>The number of the leadership under which this member follows the state; 0 before the first.</summary>
        public ulong Ballot;
        /// <summary>The index of the last entry of which this host has received an event.</summary>
        public ulong Index;
        /// <summary>The index up to which the entries are confirmed.</summary>
        public ulong Confirmed;
        /// <summary>Upper estimate of the memory in use, in bytes.</summary>
        public ulong Bytes;
    }

    /// <summary>Statistics of a peer, from mmn_peer_stats. Counts of bytes, packets and messages start at 0 when the peer joins, and continue when a lost link comes back.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct PeerStats
    {
        /// <summary>Set by the caller: sizeof(PeerStats) as it was compiled, at least 8. mmn_peer_stats does not change it.</summary>
        public uint StructSize;
        /// <summary>Smoothed round-trip time in microseconds (RFC 6298, from heartbeats). 0 before the first measurement.</summary>
        public uint RttUs;
        /// <summary>Mean deviation of the round-trip time in microseconds (RTTVAR of RFC 6298, from the same heartbeats). 0 before the first measurement.</summary>
        public uint JitterUs;
        /// <summary>Packets to the peer that were lost, in parts per million of those sent. The library sends lost packets again, so that they lose no messages.</summary>
        public uint LossPpm;
        /// <summary>Bytes sent to the peer in UDP payloads: messages, heartbeats, acknowledgements.</summary>
        public ulong BytesSent;
        /// <summary>Bytes received from the peer in UDP payloads.</summary>
        public ulong BytesReceived;
        /// <summary>Messages passed to the network for the peer, each counted once.</summary>
        public ulong MessagesSent;
        /// <summary>Messages of the peer that this node accepted.</summary>
        public ulong MessagesReceived;
        /// <summary>Messages in the queue to the peer that it has not acknowledged yet.</summary>
        public uint QueueMessages;
        /// <summary>Age of the oldest message in that queue, in milliseconds; 0 when the queue is empty.</summary>
        public uint QueueAgeMs;
        /// <summary>Bytes of the payloads in that queue.</summary>
        public ulong QueueBytes;
        /// <summary>Congestion window in bytes: the most that may be in flight to the peer. 0 while the link is lost.</summary>
        public ulong CongestionWindow;
        /// <summary>Largest UDP payload that the path carries, in bytes, as measured. 0 while the link is lost.</summary>
        public uint PathMtu;
        /// <summary>Number of times that the link was lost and came back.</summary>
        public uint Reconnects;
        /// <summary>Path of the messages to the peer, as mmn_peer_path returns it: MMN_PATH_DIRECT, MMN_PATH_THROUGH_LEADER, MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or MMN_PATH_THROUGH_TURN. MMN_PATH_DIRECT while the link is lost.</summary>
        public LinkPath Path;
        /// <summary>0.</summary>
        public uint Reserved;
        /// <summary>Time for which the peer's host had taken no events when the peer sent its newest heartbeat, in milliseconds: in poll mode the time since its last mmn_poll, else the time for which its running callback had been running. 0 while the link is lost.</summary>
        public uint HostSilentMs;
        /// <summary>0.</summary>
        public uint Reserved2;
    }

    /// <summary>Statistics of the room at this member, from mmn_room_stats.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct RoomStats
    {
        /// <summary>Set by the caller: sizeof(RoomStats) as it was compiled, at least 16. mmn_room_stats does not change it.</summary>
        public uint StructSize;
        /// <summary>Members of the room without a link to this member, because one of both has reached its <c>max_connections</c> (MMN_EVENT_UNLINKED_PEER): no broadcast of the one reaches the other.</summary>
        public uint UnlinkedPeers;
        /// <summary>Broadcasts that this member queued with success and that members without a link missed, one for each broadcast and each such member, since the room was opened. In a centralized room the leader counts the broadcasts that it relays.</summary>
        public ulong MissedBroadcasts;
        /// <summary>Maximum difference between mmn_room_time_ms here and at the leader, in microseconds: half of the best of the last round trips to it, the drift of the clocks since (at most one part in 500), and the correction that is under way. 0 at the leader. 4294967295 while no leader is known or nothing was measured.</summary>
        public uint RoomTimeErrorUs;
        /// <summary>0.</summary>
        public uint Reserved;
    }

    /// <summary>Settings for InitializeNetworkWithConfig: always 44 bytes. Set every field; its default is in brackets. A field must be above 0 unless its text allows 0.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkConfig
    {
        /// <summary>Longest wait between two dials of a lost peer, in milliseconds [30000]. At least reconnect_initial_ms. In the first minute after a loss the waits are shorter (docs/life-of-a-peer.md, "Reconnection").</summary>
        public uint ReconnectMaxMs;
        /// <summary>Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512]. 0 tries every payload.</summary>
        public uint CompressionThreshold;
        /// <summary>Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both values applies.</summary>
        public uint MaxMessageSize;
        /// <summary>Time between two heartbeats, in milliseconds [500].</summary>
        public ushort HeartbeatIntervalMs;
        /// <summary>Shortest time without a leader before an election, in milliseconds [1500]. Above heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and raises the longest time by the same amount.</summary>
        public ushort ElectionTimeoutMinMs;
        /// <summary>Longest time without a leader before an election, in milliseconds [3000].</summary>
        public ushort ElectionTimeoutMaxMs;
        /// <summary>Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each failed dial.</summary>
        public ushort ReconnectInitialMs;
        /// <summary>Longest time without an answer after which a ConnectToPeer ends, in milliseconds [5000]. Each step that gets an answer renews it, up to three times this in all; the first is the lookup of a host name.</summary>
        public ushort HandshakeTimeoutMs;
        /// <summary>Longest time that a peer's library may read nothing before this one drops the link, in milliseconds [5000].</summary>
        public ushort WriteTimeoutMs;
        /// <summary>Most messages queued for one peer [128]. A send beyond that returns MMN_SEND_QUEUE_FULL.</summary>
        public ushort SendQueueCapacity;
        /// <summary>Most messages queued for the host's Receive callback [256]. Beyond that, senders wait.</summary>
        public ushort IncomingQueueCapacity;
        /// <summary>Most other members connected at a time [64].</summary>
        public ushort MaxConnections;
        /// <summary>No effect: QUIC needs no TCP keep-alive [60].</summary>
        public ushort KeepaliveTimeSecs;
        /// <summary>No effect: QUIC needs no TCP keep-alive [10].</summary>
        public ushort KeepaliveIntervalSecs;
        /// <summary>UDP port of multicast discovery in the local network [15353]. 0 turns it off.</summary>
        public ushort MdnsPort;
        /// <summary>Heartbeat intervals of silence after which a peer is lost [3].</summary>
        public byte HeartbeatTimeoutMultiplier;
        /// <summary>No effect: QUIC needs no TCP keep-alive [3].</summary>
        public byte KeepaliveRetries;
        /// <summary>In centralized mode, whether the leader relays each broadcast to all members but its origin: 0 no, else yes [1].</summary>
        public byte CentralizedAutoForward;
        /// <summary>Whether this member campaigns to become the leader: 0 no, else yes [1].</summary>
        public byte AutoElectionEnabled;
        /// <summary>Behaviour when a leader named by SetLeader is lost: 1 is MMN_RECOVERY_AUTO_ELECT, anything else MMN_RECOVERY_HOLD [0]. With MMN_AUTHORITY_LEADER_ONLY always the former.</summary>
        public byte ManualOverrideRecovery;
        /// <summary>No effect: QUIC has no Nagle algorithm to switch off [1].</summary>
        public byte TcpNodelay;
        /// <summary>Whether the library dials lost peers again: 0 no, else yes [1].</summary>
        public byte AutoReconnectEnabled;
        /// <summary>Dials of a lost peer before the library gives it up [0]. 0 is unlimited.</summary>
        public byte ReconnectMaxRetries;
    }

    /// <summary>The kind of an event. New numbers come from newer libraries.</summary>
    public enum EventKind : uint
    {
        /// <summary>NetworkEvent.kind: <c>peer</c> is connected. This event precedes the peer's first message.</summary>
        Joined = 1,
        /// <summary>NetworkEvent.kind: the link to <c>peer</c> is lost and the library is dialling it again. It keeps the messages already accepted for the peer, and reliable messages that are sent meanwhile, as long as the send queue has room.</summary>
        Reconnecting = 2,
        /// <summary>NetworkEvent.kind: the link to <c>peer</c> is back. Messages that were queued for it arrive, once and in order. <c>count</c> and <c>missed</c> count each lost message once. This event precedes everything that the peer sends on the new link.</summary>
        Returned = 3,
        /// <summary>NetworkEvent.kind: <c>peer</c> is gone. This event follows the peer's last message.</summary>
        Left = 4,
        /// <summary>NetworkEvent.kind: <c>peer</c> sent <c>data</c>.</summary>
        Message = 5,
        /// <summary>NetworkEvent.kind: this node's mmn_set_leader for <c>peer</c> has ended.</summary>
        SetLeaderResult = 6,
        /// <summary>NetworkEvent.kind: this node is no longer in the room. MMN_EVENT_LEFT follows for every member, with MMN_LEFT_ROOM_ENDED (for a fixed host with the reason of its own departure). The host must still call mmn_close.</summary>
        RoomEnded = 7,
        /// <summary>NetworkEvent.kind: <c>peer</c> leads, or no member does.</summary>
        LeaderChanged = 8,
        /// <summary>NetworkEvent.kind: this node now leads. The fields are those of the preceding MMN_EVENT_LEADER_CHANGED.</summary>
        LeadershipGained = 9,
        /// <summary>NetworkEvent.kind: this node no longer leads. The fields are those of the preceding MMN_EVENT_LEADER_CHANGED.</summary>
        LeadershipLost = 10,
        /// <summary>NetworkEvent.kind: <c>peer</c> asks to join. The host answers with mmn_accept_join or mmn_reject_join.</summary>
        JoinRequest = 11,
        /// <summary>NetworkEvent.kind: discovery found a member in the local network.</summary>
        Discovered = 12,
        /// <summary>NetworkEvent.kind: a call of mmn_connect has ended.</summary>
        ConnectionResult = 13,
        /// <summary>NetworkEvent.kind: a call of mmn_broadcast with MMN_SEND_PARTIAL has left <c>peer</c> out, because the queue to it is full. One event stands for all such broadcasts until the host receives it, and for those of the second after that.</summary>
        SlowPeer = 14,
        /// <summary>NetworkEvent.kind: this node has dropped messages with MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED, because a queue was full, their ttl_ms was over, or the link is lost. One event a second comes for each peer and direction, and one with the rest before MMN_EVENT_LEFT. Messages that the network loses, or that a newer message replaces, are not counted.</summary>
        DataDropped = 15,
        /// <summary>NetworkEvent.kind: with MMN_STRATEGY_SEEDED, the state of the member <c>peer</c> has changed. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest state of each member.</summary>
        MemberState = 16,
        /// <summary>NetworkEvent.kind: a call of mmn_acquire_lock or mmn_try_lock has ended.</summary>
        LockResult = 17,
        /// <summary>NetworkEvent.kind: this node no longer holds a lock, since its lease has ended. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest loss of each lock.</summary>
        LockLost = 18,
        /// <summary>NetworkEvent.kind: the members <c>peer</c> and <c>other</c> have no link, since <c>other</c> is connected to max_connections members. Either may be this node; then the other one is no member here. Neither receives the other's broadcasts. The hosts of both and of the leader receive this event once, for as long as the link is missing.</summary>
        UnlinkedPeer = 22,
        /// <summary>NetworkEvent.kind: the ban of <c>peer</c> is void at this node. The leader has led for a few seconds, has no such ban and does not know the member that set it: two rooms became one, for example. The leader's host may ban again.</summary>
        BanDropped = 23,
        /// <summary>NetworkEvent.kind: a member that the library found and dialled by itself refused this node, or this node refused that member. The library goes on by itself; the event is for the player. The library reports it once a minute for each address and code. Two limits of 16 events a minute apply: one to MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED and MMN_VERSION_MISMATCH, which any process can cause, and one to the other codes.</summary>
        DiscoveryRefused = 21,
        /// <summary>NetworkEvent.kind: an MMN_EVENT_JOIN_REQUEST has ended without an answer of this host: the newcomer is gone, the time is up, or another member decides now. A host may close its dialog.</summary>
        JoinWithdrawn = 24,
        /// <summary>NetworkEvent.kind: the host of <c>peer</c> takes no events: it has not called mmn_poll, or is still in a callback. MMN_EVENT_HOST_BACK, MMN_EVENT_RECONNECTING or MMN_EVENT_LEFT ends it.</summary>
        HostSilent = 19,
        /// <summary>NetworkEvent.kind: the host of <c>peer</c> takes events again.</summary>
        HostBack = 20,
        /// <summary>NetworkEvent.kind: with MMN_ENTRY_JOIN, this node has found no room yet. It goes on looking, and reports this once.</summary>
        NoRoomFound = 25,
        /// <summary>NetworkEvent.kind: the messages to and from <c>peer</c> take another path from now on. The change loses and reorders no reliable message. mmn_peer_path returns the path of a peer that has just joined or returned. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest of each peer.</summary>
        PathChanged = 26,
        /// <summary>NetworkEvent.kind: this member has entered a relay of NetworkOptions.relays, or is not in it. While it is not, the library goes on trying, and links that need no relay stay. It reports a failure once, until the reason changes or it succeeds. It also reports that a relay sees this member at another address. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest of each relay.</summary>
        Relay = 27,
        /// <summary>NetworkEvent.kind: the room has confirmed an action of mmn_submit. The hosts of all members receive the same actions in the same order.</summary>
        Action = 28,
        /// <summary>NetworkEvent.kind: a call of mmn_submit or mmn_set_properties has ended. This event follows those of the call's entry.</summary>
        ActionResult = 29,
        /// <summary>NetworkEvent.kind: a property has changed, by mmn_set_properties, because its owner has left, or because this member has taken over other members' state. mmn_property already shows it so.</summary>
        Property = 30,
        /// <summary>NetworkEvent.kind: the host begins anew with the actions: it replaces its state by the snapshot, and receives the actions above <c>index</c>. Properties and members do not begin anew; events with their differences follow.</summary>
        StateReset = 31,
        /// <summary>NetworkEvent.kind: the room has taken over another history, which lacks an action that this host has received. One event comes for each such action, the lowest index first, before anything else of that history.</summary>
        RolledBack = 32,
        /// <summary>NetworkEvent.kind: another member's host needs a snapshot of this host's state, exactly as the events before this one have made it. Copy the state inside this event, and pass it to mmn_provide_snapshot then or later.</summary>
        SnapshotWanted = 33,
        /// <summary>NetworkEvent.kind: <c>peer</c> orders the requests to the room's state from now on, or no member does. Requests wait until then.</summary>
        StateOpened = 34,
        /// <summary>NetworkEvent.kind: a member has come into the room's state or gone from it: all hosts receive this at the same place among the actions. Only a member that is here may own a property.</summary>
        StateMember = 35,
        /// <summary>NetworkEvent.kind: <c>peer</c> offers a transfer (mmn_send_transfer). The host answers within 60 s with mmn_accept_transfer, mmn_accept_transfer_in_parts or mmn_cancel_transfer; it may do so in this event.</summary>
        TransferOffered = 39,
        /// <summary>NetworkEvent.kind: a transfer goes on. Both hosts receive this at most ten times a second for each transfer, and none while an earlier one waits for the host.</summary>
        TransferProgress = 40,
        /// <summary>NetworkEvent.kind: a transfer is over. Each end receives this exactly once, before MMN_EVENT_LEFT of <c>peer</c>.</summary>
        TransferResult = 41,
        /// <summary>NetworkEvent.kind: the next bytes of a transfer that this host takes with mmn_accept_transfer_in_parts.</summary>
        TransferPart = 42,
        /// <summary>NetworkEvent.kind: the state of the port that NetworkOptions.port_mapping asks the router for. The library goes on asking after a failure, and reports it once, until the reason changes. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest.</summary>
        PortMapping = 43,
        /// <summary>NetworkEvent.kind: a TURN server of NetworkOptions.turn or mmn_set_turn has given this member a port, or gives none, or the port is lost. While this member has none, the library goes on trying, each server in turn; links that do not go through the port stay. It reports a failure once, until the reason changes or it succeeds. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest of each server.</summary>
        Turn = 44,
    }

    /// <summary>The reason for which a member is gone. New numbers come from newer libraries.</summary>
    public enum LeftReason : int
    {
        /// <summary>MMN_EVENT_LEFT: the peer left the room (mmn_close), or it belongs to another room, with which this one cannot become one.</summary>
        Left = 0,
        /// <summary>MMN_EVENT_LEFT: the link was lost, and the peer did not return in time or automatic reconnection is off.</summary>
        Lost = 1,
        /// <summary>MMN_EVENT_LEFT: the host at either end called mmn_disconnect.</summary>
        Disconnected = 2,
        /// <summary>MMN_EVENT_LEFT: the peer restarted, or another process took its id.</summary>
        Replaced = 3,
        /// <summary>MMN_EVENT_LEFT: the leader removed the peer from the room.</summary>
        Kicked = 4,
        /// <summary>MMN_EVENT_LEFT: the peer broke the protocol.</summary>
        Violation = 5,
        /// <summary>MMN_EVENT_LEFT: the library stopped dialling the lost peer.</summary>
        GaveUp = 6,
        /// <summary>MMN_EVENT_LEFT: the room is over, for this node (MMN_EVENT_ROOM_ENDED precedes this event) or for the peer.</summary>
        RoomEnded = 7,
    }

    /// <summary>The reason for a change of the leader. New numbers come from newer libraries.</summary>
    public enum LeaderReason : int
    {
        /// <summary>MMN_EVENT_LEADER_CHANGED: the reason is unknown.</summary>
        Unknown = 0,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader was elected.</summary>
        Elected = 1,
        /// <summary>MMN_EVENT_LEADER_CHANGED: mmn_set_leader named the leader.</summary>
        Assigned = 2,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the previous leader transferred its leadership: it left, or called mmn_transfer_leadership or mmn_yield_leadership.</summary>
        Transferred = 3,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader already led when this node learned of it, by joining the room or because two parts of the room merged.</summary>
        Found = 4,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader fell silent, or this node lost its link to the leader.</summary>
        Lost = 5,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader left, was removed, or is no longer eligible.</summary>
        Left = 6,
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader resigned: too few members answered it, or it yielded to a higher claim.</summary>
        Resigned = 7,
    }

    /// <summary>The reason for which the room is over for this member. New numbers come from newer libraries.</summary>
    public enum EndReason : int
    {
        /// <summary>MMN_EVENT_ROOM_ENDED: the leader removed this node from the room.</summary>
        Kicked = 0,
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host left (mmn_close).</summary>
        HostLeft = 1,
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host is lost: it did not return within member_hold_ms, was given up before that, or broke the protocol.</summary>
        HostLost = 2,
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host called mmn_disconnect for this member, or this member called it for the fixed host.</summary>
        Disconnected = 3,
        /// <summary>MMN_EVENT_ROOM_ENDED: the room became one with another, in which another member has this node's id, and all others are there.</summary>
        DuplicateId = 4,
        /// <summary>MMN_EVENT_ROOM_ENDED: a fault inside the library ended this room. Other rooms of the process go on. Please report the log's error.</summary>
        Internal = 5,
    }

    /// <summary>The direction of messages that this member has dropped. New numbers come from newer libraries.</summary>
    public enum DroppedDirection : int
    {
        /// <summary>MMN_EVENT_DATA_DROPPED: messages to the peer.</summary>
        Sent = 0,
        /// <summary>MMN_EVENT_DATA_DROPPED: messages from the peer.</summary>
        Received = 1,
    }

    /// <summary>The reason for which a host begins anew with the room's state. New numbers come from newer libraries.</summary>
    public enum ResetReason : int
    {
        /// <summary>MMN_EVENT_STATE_RESET: the host has received nothing before.</summary>
        Joined = 0,
        /// <summary>MMN_EVENT_STATE_RESET: this member no longer has the actions that follow the last one that the host received.</summary>
        Behind = 1,
        /// <summary>MMN_EVENT_STATE_RESET: the room has taken over a history with other actions.</summary>
        RolledBack = 2,
    }

    /// <summary>The outcome of a transfer. New numbers come from newer libraries.</summary>
    public enum TransferOutcome : int
    {
        /// <summary>MMN_EVENT_TRANSFER_RESULT: all of it has arrived.</summary>
        Complete = 0,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the sender's host cancelled it.</summary>
        CancelledBySender = 1,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the receiver's host cancelled it after it had accepted it.</summary>
        CancelledByReceiver = 2,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the receiver's host refused the offer.</summary>
        Refused = 3,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the receiver's host did not answer within 60 s, or its library within 75 s.</summary>
        Unanswered = 4,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the receiver's host takes no events, so the library refused the offer.</summary>
        Busy = 5,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the peer has left; MMN_EVENT_LEFT follows with the reason.</summary>
        PeerLeft = 6,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the room is over.</summary>
        RoomEnded = 7,
        /// <summary>MMN_EVENT_TRANSFER_RESULT: the bytes that arrived have another SHA-256 than the bytes that were sent. Please report it.</summary>
        Corrupt = 8,
    }

    /// <summary>The way in which the library found a member. New numbers come from newer libraries.</summary>
    public enum FoundBy : int
    {
        /// <summary>MMN_EVENT_DISCOVERY_REFUSED: the member was found in the local network.</summary>
        InLocalNetwork = 1,
        /// <summary>MMN_EVENT_DISCOVERY_REFUSED: the member is one of the seeds in the options.</summary>
        AsSeed = 2,
        /// <summary>MMN_EVENT_DISCOVERY_REFUSED: the member is present at a relay in the options.</summary>
        AtRelay = 3,
    }

    /// <summary>The state of a member of a seeded cluster. New numbers come from newer libraries.</summary>
    public enum MemberState : int
    {
        /// <summary>The room has no such states, or the text is no id.</summary>
        Unknown = -1,
        /// <summary>mmn_member_state, MMN_EVENT_MEMBER_STATE: the peer is in no cluster.</summary>
        Init = 0,
        /// <summary>mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has accepted the member.</summary>
        Joining = 1,
        /// <summary>mmn_member_state, MMN_EVENT_MEMBER_STATE: the member takes part.</summary>
        Active = 2,
        /// <summary>mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for heartbeat_timeout_ms.</summary>
        Unreachable = 3,
        /// <summary>mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for ttl_timeout_ms, and removes it.</summary>
        Leaving = 4,
        /// <summary>MMN_EVENT_MEMBER_STATE: the leader has removed the member.</summary>
        Removed = 5,
    }

    /// <summary>The state of the link to one member. New numbers come from newer libraries.</summary>
    public enum PeerStatus : int
    {
        /// <summary>There is no such peer.</summary>
        Unknown = -1,
        /// <summary>mmn_peer_status: the peer is connected.</summary>
        Connected = 0,
        /// <summary>PeerStatusCallback: the link to the peer is lost. mmn_peer_status never returns it.</summary>
        Disconnected = 1,
        /// <summary>mmn_peer_status: the link is lost and the library is dialling the peer again.</summary>
        Reconnecting = 2,
        /// <summary>mmn_peer_status: the peer is being admitted.</summary>
        Handshaking = 3,
    }

    /// <summary>The path of the messages to one member. New numbers come from newer libraries.</summary>
    public enum LinkPath : uint
    {
        /// <summary>mmn_peer_path, PeerStats.path, MMN_EVENT_PATH_CHANGED: on a link of its own.</summary>
        Direct = 0,
        /// <summary>mmn_peer_path, PeerStats.path, MMN_EVENT_PATH_CHANGED: through the leader, encrypted from end to end. The round trip is that of both ways.</summary>
        ThroughLeader = 1,
        /// <summary>mmn_peer_path, PeerStats.path, MMN_EVENT_PATH_CHANGED: through a member that does not lead, as MMN_PATH_THROUGH_LEADER. mmn_peer_carrier names the member.</summary>
        ThroughMember = 2,
        /// <summary>mmn_peer_path, PeerStats.path, MMN_EVENT_PATH_CHANGED: over a relay, encrypted from end to end. A relay is no member: mmn_peer_carrier is NULL.</summary>
        ThroughRelay = 3,
        /// <summary>mmn_peer_path, PeerStats.path, MMN_EVENT_PATH_CHANGED: through this member's port at a TURN server of NetworkOptions.turn, encrypted from end to end. The other member sees a direct path. mmn_peer_carrier is NULL.</summary>
        ThroughTurn = 4,
    }

    /// <summary>The delivery of a message. New numbers come from newer libraries.</summary>
    public enum DeliveryMode : byte
    {
        /// <summary>SendOptions.delivery: each message arrives once, in the order of the calls with the same receiver and channel. Channel 0 is that of the classic sends.</summary>
        ReliableOrdered = 0,
        /// <summary>SendOptions.delivery: each message arrives once, in any order: no message waits for one that the network lost.</summary>
        ReliableUnordered = 1,
        /// <summary>SendOptions.delivery: a message arrives once or is lost, in any order.</summary>
        Unreliable = 2,
        /// <summary>SendOptions.delivery: as MMN_DELIVERY_UNRELIABLE, and the receiver drops a message that is older than the newest one that it has with the same sender and key. It remembers the 1024 most recently used keys of a sender.</summary>
        Sequenced = 3,
    }

    /// <summary>The election strategy of a room. New numbers come from newer libraries.</summary>
    public enum ElectionStrategy : uint
    {
        /// <summary>strategy: the connected members elect the leader by votes.</summary>
        Raft = 0,
        /// <summary>strategy: the lowest peer id that finds no leader leads, in every part of a partitioned room.</summary>
        Gossip = 1,
        /// <summary>strategy: a majority of the voters in quorum_roster elects the leader of a cluster that members enter through seeds.</summary>
        Seeded = 2,
        /// <summary>strategy: a cluster of etcd servers elects the leader. Only in the build for servers.</summary>
        Etcd = 3,
    }

    /// <summary>The entry of a member into its room. New numbers come from newer libraries.</summary>
    public enum RoomEntry : uint
    {
        /// <summary>entry: this member looks for others, and leads when it finds none.</summary>
        Any = 0,
        /// <summary>entry: this member creates the room: it leads at once.</summary>
        Create = 1,
        /// <summary>entry: this member joins a room that another one created. It neither leads nor admits any member before it has followed a leader.</summary>
        Join = 2,
    }

    /// <summary>Whether one fixed member leads. New numbers come from newer libraries.</summary>
    public enum HostMode : uint
    {
        /// <summary>host_mode: no fixed host; the room elects its leader.</summary>
        Off = 0,
        /// <summary>host_mode: this member is the room's fixed host. It leads from its start for as long as the room lives.</summary>
        Host = 1,
        /// <summary>host_mode: another member is the room's fixed host.</summary>
        Guest = 2,
    }

    /// <summary>The links between members. New numbers come from newer libraries.</summary>
    public enum Topology : uint
    {
        /// <summary>topology: every member links to all members that it can reach.</summary>
        Mesh = 0,
        /// <summary>topology: guests link to the fixed host alone, and to each other through it. Needs host_mode.</summary>
        Star = 1,
    }

    /// <summary>The paths that a member uses. New numbers come from newer libraries.</summary>
    public enum RoomPaths : uint
    {
        /// <summary>paths: this member uses every path, the best first: direct, over a relay, through a member.</summary>
        All = 0,
        /// <summary>paths: this member uses relays alone, so that no other member learns its address.</summary>
        Relayed = 1,
    }

    /// <summary>Whether a member asks its router for a port. New numbers come from newer libraries.</summary>
    public enum PortMapping : uint
    {
        /// <summary>port_mapping: this member asks no router for anything.</summary>
        Off = 0,
        /// <summary>port_mapping: this member asks its router for a port that leads to it.</summary>
        On = 1,
    }

    /// <summary>Discovery of members in the local network. New numbers come from newer libraries.</summary>
    public enum DiscoveryMode : uint
    {
        /// <summary>discovery_mode: announce nothing and search for nothing.</summary>
        Off = 0,
        /// <summary>discovery_mode: announce this member, and report the members found.</summary>
        Report = 1,
        /// <summary>discovery_mode: announce this member, and connect to the members found.</summary>
        Connect = 2,
    }

    /// <summary>The members whose majority elects a leader. New numbers come from newer libraries.</summary>
    public enum QuorumPolicy : uint
    {
        /// <summary>quorum_policy: a majority of the members that are connected when an election starts.</summary>
        Dynamic = 0,
        /// <summary>quorum_policy: a majority of the voters in quorum_roster, connected or not.</summary>
        Static = 1,
    }

    /// <summary>The leader that stays when two parts of a room merge. New numbers come from newer libraries.</summary>
    public enum MergePolicy : uint
    {
        /// <summary>merge_policy: the leader of the larger side stays; of equal sides, the one that has led longer.</summary>
        LargestSide = 0,
        /// <summary>merge_policy: the leader with the higher leadership record stays.</summary>
        HighestTerm = 1,
    }

    /// <summary>Members that may name the leader. New numbers come from newer libraries.</summary>
    public enum SetLeaderAuthority : uint
    {
        /// <summary>set_leader_authority: every member may call mmn_set_leader.</summary>
        Anyone = 0,
        /// <summary>set_leader_authority: only the leader may call mmn_set_leader. When the leader is lost, the room elects another regardless of manual_override_recovery, because no member could name one.</summary>
        LeaderOnly = 1,
    }

    /// <summary>Behaviour when a leader that was set by hand is lost. New numbers come from newer libraries.</summary>
    public enum ManualOverrideRecovery : uint
    {
        /// <summary>manual_override_recovery: when a leader named by mmn_set_leader is lost, the room has no leader until a host calls mmn_set_leader or mmn_set_auto_election. With MMN_AUTHORITY_LEADER_ONLY the room elects all the same.</summary>
        Hold = 0,
        /// <summary>manual_override_recovery: when a leader named by mmn_set_leader is lost, the room elects another.</summary>
        AutoElect = 1,
    }

    /// <summary>The thread that runs the callbacks. New numbers come from newer libraries.</summary>
    public enum DispatchMode : uint
    {
        /// <summary>dispatch_mode: a thread of the library runs the callbacks.</summary>
        Thread = 0,
        /// <summary>dispatch_mode: the thread that calls mmn_poll runs the callbacks.</summary>
        Poll = 1,
    }

    /// <summary>An event of a room in the list of a browser. New numbers come from newer libraries.</summary>
    public enum ListChange : uint
    {
        /// <summary>ListedRoom.change: the room is new in the list.</summary>
        Found = 36,
        /// <summary>ListedRoom.change: the card, the number of players or the address has changed.</summary>
        Changed = 37,
        /// <summary>ListedRoom.change: the room is no longer in the list. The other fields are those of the last report.</summary>
        Gone = 38,
    }

    /// <summary>Intervals of a seeded cluster. New numbers come from newer libraries.</summary>
    public enum SeededProfile : uint
    {
        /// <summary>mmn_default_seeded_options: intervals for machines in different places.</summary>
        Wan = 0,
        /// <summary>mmn_default_seeded_options: intervals for machines on one local network.</summary>
        Lan = 1,
    }

    /// <summary>Flags of the seeded strategy: a sum of these.</summary>
    public static class SeededFlags
    {
        /// <summary>strategy_flags of MMN_STRATEGY_SEEDED: at a first start, too, a seed waits for a majority.</summary>
        public const uint StrictStart = 1;
        /// <summary>strategy_flags of MMN_STRATEGY_SEEDED: no seed leads alone, however long the majority is missing.</summary>
        public const uint NeverAlone = 2;
    }

    /// <summary>Flags of a property: a sum of these.</summary>
    public static class PropertyFlags
    {
        /// <summary>PropertyChange.flags: the property goes.</summary>
        public const uint Remove = 1;
        /// <summary>PropertyChange.flags: the value stays; a new property has an empty one.</summary>
        public const uint KeepValue = 2;
        /// <summary>PropertyChange.flags, PropertyInfo.flags: only the owner changes the property, while it has one. Takes effect if the property is new, and stays with it.</summary>
        public const uint OwnerOnly = 4;
        /// <summary>PropertyChange.flags, PropertyInfo.flags: the property goes when its owner leaves the room. Takes effect if the property is new, and stays with it.</summary>
        public const uint DiesWithOwner = 8;
        /// <summary>PropertyChange.flags, PropertyInfo.flags: the leader owns the property when its owner leaves the room. Takes effect if the property is new, and stays with it.</summary>
        public const uint FallsToLeader = 16;
    }

    /// <summary>Flags of the gossip strategy.</summary>
    public static class GossipFlags
    {
        /// <summary>strategy_flags of MMN_STRATEGY_GOSSIP: the lowest peer id always succeeds a lost leader.</summary>
        public const uint StrictLowest = 1;
    }

    /// <summary>The verbosity of the log.</summary>
    public static class LogLevel
    {
        /// <summary>Log level: no records.</summary>
        public const int Off = 0;
        /// <summary>Log level: errors.</summary>
        public const int Error = 1;
        /// <summary>Log level: also warnings.</summary>
        public const int Warn = 2;
        /// <summary>Log level: also events of the room.</summary>
        public const int Info = 3;
        /// <summary>Log level: also their causes.</summary>
        public const int Debug = 4;
        /// <summary>Log level: also every detail.</summary>
        public const int Trace = 5;
    }

    /// <summary>The progress that the classic reconnect callback reports.</summary>
    public static class ReconnectStatus
    {
        /// <summary>ReconnectCallback: the link is lost and the library is dialling the peer again.</summary>
        public const byte Retrying = 0;
        /// <summary>ReconnectCallback: the link is back.</summary>
        public const byte Returned = 1;
        /// <summary>ReconnectCallback: the library has given the peer up.</summary>
        public const byte GaveUp = 2;
    }

    /// <summary>Reasons and states in words.</summary>
    public static class Descriptions
    {
        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this LeftReason number)
        {
            switch (number)
            {
                case LeftReason.Left: return "left";
                case LeftReason.Lost: return "lost";
                case LeftReason.Disconnected: return "disconnected";
                case LeftReason.Replaced: return "replaced";
                case LeftReason.Kicked: return "kicked";
                case LeftReason.Violation: return "violation";
                case LeftReason.GaveUp: return "gave up";
                case LeftReason.RoomEnded: return "room ended";
                default: return "unknown";
            }
        }

        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this LeaderReason number)
        {
            switch (number)
            {
                case LeaderReason.Unknown: return "unknown";
                case LeaderReason.Elected: return "elected";
                case LeaderReason.Assigned: return "assigned";
                case LeaderReason.Transferred: return "transferred";
                case LeaderReason.Found: return "found";
                case LeaderReason.Lost: return "lost";
                case LeaderReason.Left: return "left";
                case LeaderReason.Resigned: return "resigned";
                default: return "unknown";
            }
        }

        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this EndReason number)
        {
            switch (number)
            {
                case EndReason.Kicked: return "kicked";
                case EndReason.HostLeft: return "host left";
                case EndReason.HostLost: return "host lost";
                case EndReason.Disconnected: return "disconnected";
                case EndReason.DuplicateId: return "duplicate id";
                case EndReason.Internal: return "internal";
                default: return "unknown";
            }
        }

        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this ResetReason number)
        {
            switch (number)
            {
                case ResetReason.Joined: return "joined";
                case ResetReason.Behind: return "behind";
                case ResetReason.RolledBack: return "rolled back";
                default: return "unknown";
            }
        }

        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this TransferOutcome number)
        {
            switch (number)
            {
                case TransferOutcome.Complete: return "complete";
                case TransferOutcome.CancelledBySender: return "cancelled by sender";
                case TransferOutcome.CancelledByReceiver: return "cancelled by receiver";
                case TransferOutcome.Refused: return "refused";
                case TransferOutcome.Unanswered: return "unanswered";
                case TransferOutcome.Busy: return "busy";
                case TransferOutcome.PeerLeft: return "peer left";
                case TransferOutcome.RoomEnded: return "room ended";
                case TransferOutcome.Corrupt: return "corrupt";
                default: return "unknown";
            }
        }

        /// <summary>The number in words, such as "gave up".</summary>
        public static string Describe(this MemberState number)
        {
            switch (number)
            {
                case MemberState.Init: return "init";
                case MemberState.Joining: return "joining";
                case MemberState.Active: return "active";
                case MemberState.Unreachable: return "unreachable";
                case MemberState.Leaving: return "leaving";
                case MemberState.Removed: return "removed";
                default: return "unknown";
            }
        }
    }

    /// <summary>The library's codes. New ones are only ever appended, so expect numbers that are not listed here.</summary>
    public static class ErrorCode
    {
        /// <summary>Success.</summary>
        public const int Ok = 0;
        /// <summary>The room is not open, or none is: open one first.</summary>
        public const int NotInitialized = -1;
        /// <summary>The default room is already open: close it before opening it again.</summary>
        public const int AlreadyInitialized = -2;
        /// <summary>An argument is invalid: the last error's message names it and its limit.</summary>
        public const int InvalidArgument = -3;
        /// <summary>The connection failed: the address is unreachable, no process listens there, or no socket could be opened.</summary>
        public const int ConnectionFailed = -4;
        /// <summary>No connected peer has this id, or no open join request has this number.</summary>
        public const int PeerNotFound = -5;
        /// <summary>Only the leader may do this, or no leader is known.</summary>
        public const int NotLeader = -6;
        /// <summary>A queue is full and nothing was queued: try again later or send less.</summary>
        public const int SendQueueFull = -7;
        /// <summary>The message is longer than max_message_size, or something of the room's state is longer than its limit.</summary>
        public const int MessageTooLarge = -8;
        /// <summary>A message could not be encoded or decoded.</summary>
        public const int SerializationError = -9;
        /// <summary>The peer is in another session: compare the session ids of both ends.</summary>
        public const int SessionMismatch = -10;
        /// <summary>Another member already has this peer id.</summary>
        public const int DuplicatePeerId = -11;
        /// <summary>The peer speaks another version of the protocol.</summary>
        public const int VersionMismatch = -12;
        /// <summary>No place is free: max_connections at either end, the room's limit or its voters, or too many attempts at a time.</summary>
        public const int MaxConnectionsReached = -13;
        /// <summary>The peer is already connected: the existing connection stays.</summary>
        public const int AlreadyConnected = -14;
        /// <summary>The call would wait for itself: it is not allowed inside a callback, and one thread at a time polls a room.</summary>
        public const int WouldDeadlock = -15;
        /// <summary>This election strategy or this build does not support the function.</summary>
        public const int NotSupported = -16;
        /// <summary>The peer has a different room secret or session id.</summary>
        public const int AuthenticationFailed = -17;
        /// <summary>The request was refused: by the leader, its host, the room's rules, an earlier disconnect, or because the lock is another's.</summary>
        public const int Rejected = -18;
        /// <summary>No answer came in time.</summary>
        public const int Timeout = -19;
        /// <summary>The peer has different room rules: the connection result and the log name the rule and both values.</summary>
        public const int PolicyMismatch = -20;
        /// <summary>A newer request replaced this one.</summary>
        public const int Superseded = -21;
        /// <summary>Too many recent attempts failed as an attempt with a wrong session id or secret does: try again within a minute.</summary>
        public const int RateLimited = -22;
        /// <summary>The host name does not resolve, or no name server answered: check the name and the network connection, or give an IP address.</summary>
        public const int NameNotResolved = -23;
        /// <summary>The dialled member is also looking for a room: dial the member that created it.</summary>
        public const int LookingForRoom = -24;
        /// <summary>A property has another version than the expected one, or its new owner is not in the room: nothing has changed.</summary>
        public const int Conflict = -25;
        /// <summary>The room's properties have reached a limit, in number or in bytes, and nothing has changed: remove some first.</summary>
        public const int StateFull = -26;
        /// <summary>The library cannot know any more whether the room took the request: look at its state.</summary>
        public const int OutcomeUnknown = -27;
        /// <summary>A bug in the library: please report it with the log.</summary>
        public const int InternalError = -99;
    }
}
