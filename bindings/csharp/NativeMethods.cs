// Generated from src/ffi by `make header`: do not edit. Marshalling.cs has what is written by hand.
using System;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>
    /// The functions of the native library, exactly as its header declares them. Most programs want <see cref="Room"/> instead.
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

        /// <summary>Version of this header's ABI. It counts up when functions, codes or fields are added; nothing is ever removed or changed, except extended functions before the library's version 1.0.</summary>
        public const uint AbiVersion = 6;

        /// <summary>Longest peer id, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxPeerIdBytes = 64;

        /// <summary>Longest session id, in bytes of UTF-8 without the NUL.</summary>
        public const int MaxSessionIdBytes = 128;

        /// <summary>Smallest message type that an application may use; the smaller ones are the library's own.</summary>
        public const ushort MinMessageType = 256;

        /// <summary>Longest room secret of NetworkOptions, in bytes.</summary>
        public const uint MaxSecretBytes = 1024;

        /// <summary>Most voters of quorum_roster in NetworkOptions. It was 1024 before version 6 of the ABI.</summary>
        public const uint MaxQuorumVoters = 64;

        /// <summary>The ABI version of the loaded library. A host can use it where this is at least the MMN_ABI_VERSION that the host was compiled with. Works before initialization.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetAbiVersion();

        /// <summary>The version of the loaded library, as "major.minor.patch". Works before initialization.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLibraryVersion();

        /// <summary>Fills <c>options</c> with the defaults. The caller has set struct_size; bytes beyond it, and beyond what this version of the library knows, are left alone, and struct_size stays.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetDefaultNetworkOptions(ref NetworkOptions options);

        /// <summary>Opens the process's room as InitializeNetwork does, with the given options.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetworkWithOptions(byte[] peerId, byte[] sessionId, ref NetworkOptions options);

        /// <summary>Sets the callback for messages; NULL removes it. When the call returns, the old callback is not running (unless this is called from inside it) and never runs again; a running one is waited for.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReceiveCallback(ReceiveCallback callback);

        /// <summary>Sets the callback for changes of the leader; NULL removes it. The old one as with RegisterReceiveCallback. The new one is first told the present leader, where one is known.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLeaderChangedCallback(LeaderChangedCallback callback);

        /// <summary>Sets the callback for whether this node leads; NULL removes it. The old one as with RegisterReceiveCallback. The new one is first told 1, where this node leads at present. From there on it is told each loss and each gain once, in turn, and after the LeaderChanged callback of the same change. A leadership that ended before the application could be told of it is not told at all.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLeadershipCallback(LeadershipCallback callback);

        /// <summary>Sets the callback for connections and losses; NULL removes it. The old one as with RegisterReceiveCallback. The new one is first told of every connected peer.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterPeerStatusCallback(PeerStatusCallback callback);

        /// <summary>Sets the callback for the results of ConnectToPeer; NULL removes it. The old one as with RegisterReceiveCallback. Results that find no callback are discarded.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterConnectionResultCallback(ConnectionResultCallback callback);

        /// <summary>Sets the callback for what becomes of lost peers; NULL removes it. The old one as with RegisterReceiveCallback.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReconnectCallback(ReconnectCallback callback);

        /// <summary>Sets the one handler for everything that happens, messages included; NULL removes it. At any time: one that is registered before InitializeNetwork hears the room from its first event on. Where a callback of one kind is registered, too, that one is called first.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterEventHandler(EventCallback callback, IntPtr userData, DropCallback dropFunction);

        /// <summary>In poll mode, runs the callbacks of up to <c>max</c> events and messages that wait, in order, on the calling thread. Returns at once; never waits for the network. Call it once per frame, on the thread that is to run the callbacks.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int PollEvents(int max);

        /// <summary>Opens the process's room, with default settings: those of NetworkConfigFFI, but with room for 4096 messages in each queue. Does not wait for other members.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetwork(byte[] peerId, byte[] sessionId);

        /// <summary>Opens the process's room as InitializeNetwork does, with the given settings.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetworkWithConfig(byte[] peerId, byte[] sessionId, ref NetworkConfig config);

        /// <summary>Leaves the room and closes it: messages that were accepted are still sent for up to 1 second, the other members are told, every thread and socket is released. Takes at most 2 seconds, and as long as a callback that is running: that callback must not wait for the thread that calls this. A host name that the system is just resolving for ConnectToPeer is waited for, too: the system gives no way to stop that.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ShutdownNetwork();

        /// <summary>Whether a room is open: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsNetworkInitialized();

        /// <summary>Whether this member is announced in the local network: 1 or 0. It becomes 1 as soon as the announcement went out on a network interface, which takes milliseconds after the room is opened; it is 0 where discovery is off (mdns_port 0, or discovery_mode MMN_DISCOVERY_OFF), no interface can be used, or no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsMdnsActive();

        /// <summary>The code of the calling thread's last failure: MMN_OK where no call has failed on this thread. A call that succeeds leaves it alone.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetLastErrorCode();

        /// <summary>The sentence of the calling thread's last failure: it names the argument, its value, the limit and what to do. "" where no call has failed on this thread. Never NULL.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLastErrorMessage();

        /// <summary>What a code means, in one sentence; for a number that is no code, a sentence that says so. Works before initialization.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr DescribeError(int code);

        /// <summary>Connects to the member at <c>addr</c>: "ip:port", "[ipv6]:port" or "name:port", without blanks.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ConnectToPeer(byte[] address);

        /// <summary>Ends the connection to a peer, politely. Neither side dials the other again until one of them calls ConnectToPeer. A ConnectToPeer of this node that began before and reaches that peer ends with MMN_REJECTED. An id that is not known is MMN_OK. In a room with a fixed host the room is over for the guest of the two.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int DisconnectPeer(byte[] peerId);

        /// <summary>An address that other members can give to ConnectToPeer: the bound port at this machine's best address. A loopback address only where the machine has no other. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalAddr();

        /// <summary>This node's peer id. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalPeerId();

        /// <summary>The room's session id. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetSessionId();

        /// <summary>How many peers are connected, without this node. -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerCount();

        /// <summary>The ids of the connected peers, without this node: sorted as bytes, joined by '\n'. "" when there are none, NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetPeerList();

        /// <summary>Smoothed round-trip time to a peer, in milliseconds, rounded up. -1 when it is not measured yet, the peer is not known, <c>peer_id</c> is not an id, or no room is open; the last two are told by GetLastErrorCode.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerRTT(byte[] peerId);

        /// <summary>How a peer is linked to this node: MMN_PEER_CONNECTED, MMN_PEER_RECONNECTING or MMN_PEER_HANDSHAKING. -1 when the peer is not known, <c>peer_id</c> is not an id, or no room is open; the last two are told by GetLastErrorCode.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerStatus(byte[] peerId);

        /// <summary>Whether lost peers are dialled again (not 0, the default) or have left at once (0). With 0, peers that are reconnecting have left: ReconnectCallback 2.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetAutoReconnect(byte enabled);

        /// <summary>Whether lost peers are dialled again: 1 or 0. 0 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsAutoReconnectEnabled();

        /// <summary>Removes a peer from the room. It is told <c>code</c> and the <c>length</c> bytes at <c>data</c> (at most 3072; both are the application's own), every member drops it (left, MMN_LEFT_KICKED), and neither its id nor its key gets in again for as long as the room lives, whoever leads. Only the leader may.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int KickPeer(byte[] peerId, int code, byte[] data, int length);

        /// <summary>Limits the room: no member gets more than <c>max_peers</c> other members (as GetPeerCount counts them); 0 is no limit beside each member's own max_connections. Peers that are reconnecting keep their places. Nobody is removed. Holds under later leaders too, in place of the option max_peers. Only the leader may.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetMaxPeers(uint maxPeers);

        /// <summary>What this node says from now on when it enters a room, for the leader's application to decide on: <c>length</c> bytes at <c>data</c>, at most 8192; 0 for nothing.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetJoinPayload(byte[] data, int length);

        /// <summary>Whether this application decides, whenever this node leads, who may enter (not 0), or everybody who knows the room may (0, the default). Then every stranger is an event MMN_EVENT_JOIN_REQUEST, to be answered by AcceptJoin or RejectJoin within handshake_timeout_ms; no answer keeps it out (MMN_TIMEOUT there). Members that return are not asked about. Set it on every member that may come to lead.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableJoinRequests(byte enabled);

        /// <summary>Lets in whom the event MMN_EVENT_JOIN_REQUEST with this number named.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int AcceptJoin(ulong request);

        /// <summary>Keeps out whom the event MMN_EVENT_JOIN_REQUEST with this number named. Its ConnectToPeer ends with MMN_REJECTED, and its event with <c>code</c> (as reason) and the <c>length</c> bytes at <c>data</c> (at most 3072), both the application's own.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RejectJoin(ulong request, int code, byte[] data, int length);

        /// <summary>Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set. This node's own queries show the new leader when the call returns; the others follow within a round trip. MMN_EVENT_SET_LEADER_RESULT reports the outcome.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeader(byte[] peerId);

        /// <summary>Lets this node campaign for leadership (not 0) or not (0). It votes for others either way. With MMN_STRATEGY_GOSSIP: lets it propose itself or not. A leader leads on.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableAutoLeaderElection(byte enabled);

        /// <summary>Lets this node lead (not 0, the default) or not (0). One that may not lead is an observer: it has no vote, counts for no majority, and SetLeader to it is refused. If it leads, another member takes over at once; with MMN_STRATEGY_GOSSIP another is elected as after any loss. With MMN_QUORUM_STATIC a voter of quorum_roster that may not lead counts among the voters still, and a member that is not on the roster never leads.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderEligible(byte eligible);

        /// <summary>Hands the leadership over to a connected peer: it is told to be elected at once, and this node leads until it is. The next leader is elected and not set: where SetLeader named the present one, that has ended then. It may be asked of a peer that does not campaign by itself (EnableAutoLeaderElection). Only the leader may.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int TransferLeadership(byte[] peerId);

        /// <summary>Hands the leadership over as TransferLeadership does, to the peer that elections prefer: the one with the highest priority, of these the one with the largest id. Only the leader may.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int YieldLeadership();

        /// <summary>How much elections prefer this node from now on: the higher priority campaigns first; of equal ones the larger id. 0 is the default, any number is allowed. It decides who follows a leader that is lost, and takes no living leader's place.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetElectionPriority(int priority);

        /// <summary>The term of the newest claim to lead that this node knows: that of the leader, where there is one. It grows with every election and every SetLeader, though one SetLeader may begin it anew: compare the epoch first. Not negative, always 0 with MMN_STRATEGY_GOSSIP; -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long GetLeaderTerm();

        /// <summary>How many SetLeader calls the newest claim to lead builds on. It never falls. Not negative, always 0 with MMN_STRATEGY_GOSSIP and with MMN_QUORUM_STATIC; -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long GetLeaderEpoch();

        /// <summary>How this room elects its leader: MMN_STRATEGY_RAFT or MMN_STRATEGY_GOSSIP. -1 when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetElectionStrategy();

        /// <summary>The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no room is open.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetCurrentLeader();

        /// <summary>Whether this node is the leader: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsLeader();

        /// <summary>Sets how long a member of a room with MMN_STRATEGY_GOSSIP waits at most, after it opened the room, for the number of members to stay the same, in milliseconds [15000]. Above 0. Then it takes part in elections; a leader that it hears of ends the wait.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetStartupGracePeriod(uint milliseconds);

        /// <summary>What SetStartupGracePeriod set, or 15000. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetStartupGracePeriod();

        /// <summary>Sets how often the number of members is looked at during SetStartupGracePeriod, in milliseconds [1000]. Above 0: twice the same number ends it.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetMembershipSampleInterval(uint milliseconds);

        /// <summary>What SetMembershipSampleInterval set, or 1000. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMembershipSampleInterval();

        /// <summary>Sets how long a member waits for a word of the leader before it proposes itself, in milliseconds [10000]. Above 0. The leader says twice in that time that it leads. Another follows one that is lost after half to twice that time, and SetLeaderElectionDuration more.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderAliveThreshold(uint milliseconds);

        /// <summary>What SetLeaderAliveThreshold set, or 10000. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderAliveThreshold();

        /// <summary>Sets how long a member that proposed itself collects the proposals of others, in milliseconds [5000]. Above 0. It leads then unless a lower peer id proposed itself too, or leads. Where this is shorter than SetLeaderAliveThreshold, others may propose themselves too late, and the leader may be another than the lowest; see MMN_GOSSIP_STRICT_LOWEST.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderElectionDuration(uint milliseconds);

        /// <summary>What SetLeaderElectionDuration set, or 5000. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderElectionDuration();

        /// <summary>How long proposals and declarations of others are remembered, so that an older one is not heard again: ten times GetLeaderAliveThreshold, in milliseconds; UINT32_MAX is that much or more. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMsgExpirationTimeout();

        /// <summary>How often a leader says that it leads: twice in GetLeaderAliveThreshold, in milliseconds, rounded down. Since version 4 of the ABI.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeadershipDeclarationInterval();

        /// <summary>Sends a message to every connected peer, or to none. Without peers it is MMN_OK. In centralized mode it goes to the leader, which sends it on: see SetCentralizedMode.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int BroadcastMessage(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a message to one peer; to this node's own id, to the own ReceiveCallback. Arguments and promise as BroadcastMessage.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToPeer(byte[] peerId, byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a message to the leader; on the leader itself, to the own ReceiveCallback. Arguments as BroadcastMessage.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToLeader(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Sends a message as the leader to every connected peer, or to none. Receivers learn of this leadership before the message; those that know a newer leader drop it. Arguments as BroadcastMessage.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendFromLeader(byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Forwards a message in the name of <c>from</c>, this node or a connected peer: to the peer <c>to</c> (to this node's own id, to the own ReceiveCallback), or to every connected peer but <c>from</c> where <c>to</c> is NULL: all of them or none. Only the leader may: receivers drop what anybody else sends in another's name. Other arguments as BroadcastMessage.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ForwardMessage(byte[] from, byte[] to, byte[] data, int length, ushort messageType, byte flags);

        /// <summary>Lets this node's BroadcastMessage go through the leader (not 0) or directly to all (0, as at the start). The leader hands each to its own ReceiveCallback and, where it has auto-forward on, sends it on to all but its origin; receivers see the origin as the sender. All members of a centralized room turn it on.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedMode(byte enabled);

        /// <summary>Whether this node's broadcasts go through the leader: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedMode();

        /// <summary>Lets this node, while it leads, send others' broadcasts on to all members but their origin (not 0), or hand them to its own ReceiveCallback only (0), so that its host can send on what it approves of with ForwardMessage. At the start it is centralized_auto_forward of the configuration.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedAutoForward(byte enabled);

        /// <summary>Whether this node, while it leads, sends others' broadcasts on: 1 or 0.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedAutoForward();

        /// <summary>Sends payloads of more than <c>bytes</c> bytes compressed (LZ4) from now on, where that makes them shorter; 0 tries all. At the start it is compression_threshold of the configuration. Costs the network thread time; receivers take either. max_message_size holds for the payload as it is given.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCompressionThreshold(uint bytes);

        /// <summary>Writes figures of the link and the queue to a peer to <c>stats</c>, whose <c>struct_size</c> the caller has set. At most min(struct_size, what this library knows) bytes are written. Never waits for the network.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerStats(byte[] peerId, ref PeerStats stats);

        /// <summary>Switches the library's log on standard error on (not 0) or off (0). It is off at first. At any time, also before initialization; it holds for the process, across initializations.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableLogging(byte enabled);

        /// <summary>Sets how much EnableLogging writes on standard error: MMN_LOG_OFF to MMN_LOG_TRACE, MMN_LOG_INFO at first. At any time, also before initialization. The callback of RegisterLogCallback has its own level.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLogLevel(int level);

        /// <summary>Sets the callback for the library's log; NULL removes it. It is passed what <c>level</c> (MMN_LOG_OFF to MMN_LOG_TRACE) asks for, whether the log on standard error is on or not. At any time, also before initialization; ShutdownNetwork leaves it.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLogCallback(int level, LogCallback callback, IntPtr userData, DropCallback dropFunction);
    }

    // A delegate that is handed to the library must stay referenced by managed code (a static field is the simplest way)
    // for as long as it is registered: the garbage collector does not see the library's copy of the pointer.

    /// <summary>Takes messages. <c>peer</c> sent <c>length</c> bytes at <c>data</c> (never NULL); <c>msg_type</c> and <c>flags</c> are the sender's. All callbacks run one at a time and in order, on a thread of the library or, in poll mode, on the one that calls PollEvents; their arguments are valid during the call only. A callback may call every function but ShutdownNetwork and PollEvents, and must not throw.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReceiveCallback(IntPtr peer, IntPtr data, int length, ushort messageType, byte flags);

    /// <summary>Takes changes of the leader. <c>leader</c> is its peer id, "" when there is none.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LeaderChangedCallback(IntPtr leader);

    /// <summary>Takes whether this node leads: 1 when it leads from here on, 0 when it leads no longer, in turn.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LeadershipCallback(byte isLeader);

    /// <summary>Takes connections and losses. <c>status</c> is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void PeerStatusCallback(IntPtr peer, int status);

    /// <summary>Takes the result of a ConnectToPeer. <c>addr</c> is as it was given there; <c>success</c> is 1 when the peer is connected, else 0; <c>code</c> is MMN_OK, or says why (MMN_ALREADY_CONNECTED comes with success 1).</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ConnectionResultCallback(IntPtr address, byte success, int code);

    /// <summary>Takes what becomes of lost peers, where lost peers are dialled again. <c>status</c> is MMN_RECONNECT_RETRYING, MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The PeerStatus callback of the same event comes first.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReconnectCallback(IntPtr peer, byte status);

    /// <summary>Releases what was registered with a callback.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void DropCallback(IntPtr userData);

    /// <summary>Takes events. <c>user_data</c> is what was registered with it. Threads, order and what may be called inside are the same as for the other callbacks.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void EventCallback(IntPtr userData, IntPtr @event);

    /// <summary>Takes a record of the log: <c>level</c> is MMN_LOG_ERROR to MMN_LOG_TRACE, <c>message</c> one line without its end, valid during the call.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LogCallback(IntPtr userData, int level, IntPtr message);

    /// <summary>Settings for InitializeNetworkWithConfig: 44 bytes, fixed for ever. Fill in every field; the default of each is in brackets. Fields must be above 0 unless their text says otherwise.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkConfig
    {
        /// <summary>Longest wait between two dials of a lost peer, in milliseconds [30000]. At least reconnect_initial_ms. Waits are no longer than 2 seconds in the first minute after a loss, whatever this says.</summary>
        public uint ReconnectMaxMs;
        /// <summary>Payloads longer than this, in bytes, are sent compressed where that is shorter [512]. 0 tries all.</summary>
        public uint CompressionThreshold;
        /// <summary>Longest message that is sent or taken, in bytes [262144]. To a peer the smaller of both sides' holds.</summary>
        public uint MaxMessageSize;
        /// <summary>Time between two heartbeats, in milliseconds [500].</summary>
        public ushort HeartbeatIntervalMs;
        /// <summary>Shortest time without a leader before an election, in milliseconds [1500]. Above heartbeat_interval_ms, at most election_timeout_max_ms. Where it is below heartbeat_interval_ms * heartbeat_timeout_multiplier, that product is used, and the longest time is moved up alike.</summary>
        public ushort ElectionTimeoutMinMs;
        /// <summary>Longest time without a leader before an election, in milliseconds [3000].</summary>
        public ushort ElectionTimeoutMaxMs;
        /// <summary>Wait before the first dial of a lost peer, in milliseconds [1000]; doubles from there.</summary>
        public ushort ReconnectInitialMs;
        /// <summary>How long ConnectToPeer may take to its result, name resolution included, in milliseconds [5000].</summary>
        public ushort HandshakeTimeoutMs;
        /// <summary>How long a peer's library may take nothing before the link to it is given up, in milliseconds [5000].</summary>
        public ushort WriteTimeoutMs;
        /// <summary>Messages that wait for one peer [128]; more are refused with MMN_SEND_QUEUE_FULL.</summary>
        public ushort SendQueueCapacity;
        /// <summary>Messages that wait for the host's Receive callback [256]; senders wait while there are more.</summary>
        public ushort IncomingQueueCapacity;
        /// <summary>Most other members connected at a time [64].</summary>
        public ushort MaxConnections;
        /// <summary>No effect: QUIC needs no TCP keep-alive [60].</summary>
        public ushort KeepaliveTimeSecs;
        /// <summary>No effect: QUIC needs no TCP keep-alive [10].</summary>
        public ushort KeepaliveIntervalSecs;
        /// <summary>UDP port of multicast discovery in the local network [15353]. 0 is off.</summary>
        public ushort MdnsPort;
        /// <summary>Heartbeats that may be missed before a peer counts as lost [3].</summary>
        public byte HeartbeatTimeoutMultiplier;
        /// <summary>No effect: QUIC needs no TCP keep-alive [3].</summary>
        public byte KeepaliveRetries;
        /// <summary>In centralized mode, whether the leader sends broadcasts on to all but their origin: 0 no, else yes [1].</summary>
        public byte CentralizedAutoForward;
        /// <summary>Whether the room elects a leader by itself: 0 no, else yes [1].</summary>
        public byte AutoElectionEnabled;
        /// <summary>What follows when a leader that was set by hand is lost: 1 MMN_RECOVERY_AUTO_ELECT, else MMN_RECOVERY_HOLD [0]. Always the former with MMN_AUTHORITY_LEADER_ONLY.</summary>
        public byte ManualOverrideRecovery;
        /// <summary>No effect: QUIC has no Nagle algorithm to switch off [1].</summary>
        public byte TcpNodelay;
        /// <summary>Whether lost peers are dialled again: 0 no, else yes [1].</summary>
        public byte AutoReconnectEnabled;
        /// <summary>Dials of a lost peer before it is given up [0]. 0 is unlimited.</summary>
        public byte ReconnectMaxRetries;
    }

    /// <summary>Settings for InitializeNetworkWithOptions. Later versions of the library append fields; what an older program does not know keeps its default. Begin with the defaults:</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkOptions
    {
        /// <summary>sizeof(NetworkOptions) where the program was compiled, in bytes.</summary>
        public uint StructSize;
        /// <summary>The settings of InitializeNetworkWithConfig, with the same rules [the same defaults, but send_queue_capacity and incoming_queue_capacity 4096]. mdns_port counts where discovery_mode is not MMN_DISCOVERY_OFF, and must then be above 0.</summary>
        public NetworkConfig Config;
        /// <summary>The one address of this machine to use: IPv4 or IPv6, without port and brackets. NULL is every address of both kinds [NULL].</summary>
        public IntPtr BindAddress;
        /// <summary>What members must know beside the session id: secret_length bytes. Dialling a member that has another one fails with MMN_AUTHENTICATION_FAILED. NULL is none [NULL].</summary>
        public IntPtr Secret;
        /// <summary>The key by which others know this member, if it is to be the same in its next room: an Ed25519 private key in PKCS#8 (DER), identity_key_length bytes. NULL makes a new one at every start [NULL].</summary>
        public IntPtr IdentityKey;
        /// <summary>Bytes of secret, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].</summary>
        public uint SecretLength;
        /// <summary>Bytes of identity_key, at most 1024. 0 makes a new key [0].</summary>
        public uint IdentityKeyLength;
        /// <summary>How long the place of a lost member is kept, in milliseconds [60000]. Above 0.</summary>
        public uint MemberHoldMs;
        /// <summary>Bytes that wait for one peer at most, and for the host, beside the limits in messages [4194304]. Above 0. An empty queue takes one message of any allowed size.</summary>
        public uint QueueBytes;
        /// <summary>How the leader is elected: MMN_STRATEGY_RAFT or, since version 4 of the ABI, MMN_STRATEGY_GOSSIP [MMN_STRATEGY_RAFT]. Others are MMN_NOT_SUPPORTED. The same for all members. With gossip there are no votes: election_timeout_min_ms, election_timeout_max_ms, manual_override_recovery, merge_policy and set_leader_authority have no effect, and SetLeaderAliveThreshold and its like set the times.</summary>
        public uint Strategy;
        /// <summary>Whom elections prefer: the higher priority [0]. With MMN_STRATEGY_GOSSIP 0.</summary>
        public int Priority;
        /// <summary>The UDP port to bind [0]. 0 is any free one.</summary>
        public ushort BindPort;
        /// <summary>Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or MMN_DISCOVERY_CONNECT [MMN_DISCOVERY_OFF].</summary>
        public byte DiscoveryMode;
        /// <summary>Who runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL [MMN_DISPATCH_THREAD].</summary>
        public byte DispatchMode;
        /// <summary>Which leader stays when two parts of a room meet: MMN_MERGE_LARGEST_SIDE or MMN_MERGE_HIGHEST_TERM [MMN_MERGE_LARGEST_SIDE]. The same for all members.</summary>
        public byte MergePolicy;
        /// <summary>Who may call SetLeader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY [MMN_AUTHORITY_ANYONE]. The same for all members.</summary>
        public byte SetLeaderAuthority;
        /// <summary>Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST [MMN_HOST_MODE_OFF]. The host leads when InitializeNetworkWithOptions returns, whatever auto_election_enabled says.</summary>
        public byte HostMode;
        /// <summary>Whether this member may lead: 0 no, it observes; else yes [1].</summary>
        public byte Eligible;
        /// <summary>Where a static quorum keeps what must survive the process: the path of an existing directory in which this member may write, in a file of its own for each session id and peer id. The file holds the roster, the votes and, where identity_key is NULL, the private key, which is made at the first start and used again at every other. Another quorum_roster or identity_key than that of the file is MMN_INVALID_ARGUMENT. Two processes cannot be the same member with the same directory. Needed with MMN_QUORUM_STATIC, else NULL [NULL]. Since version 3 of the ABI.</summary>
        public IntPtr StateDirectory;
        /// <summary>The path of a file for a trace of the room's elections, of which <c>examples/simulate.rs</c> makes a picture. It is written anew, up to 256 MiB, and holds nothing that the application sends. One that cannot be written is MMN_INVALID_ARGUMENT. NULL is none [NULL]. Since version 3 of the ABI.</summary>
        public IntPtr TracePath;
        /// <summary>A majority of whom elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC]. The same for all members. A static quorum never has two leaders, and no leader without a majority of the voters of quorum_roster; it goes with no host_mode, and with MMN_STRATEGY_RAFT alone. Since version 3 of the ABI.</summary>
        public uint QuorumPolicy;
        /// <summary>0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most MMN_MAX_QUORUM_VOTERS [0]. Since version 3 of the ABI.</summary>
        public uint QuorumVoters;
        /// <summary>How the strategy elects, in bits [0]. With MMN_STRATEGY_GOSSIP MMN_GOSSIP_STRICT_LOWEST or 0, the same for all members; else 0. Since version 4 of the ABI.</summary>
        public uint StrategyFlags;
        /// <summary>0. Since version 4 of the ABI.</summary>
        public uint Reserved;
        /// <summary>Most other members of any member, as SetMaxPeers sets it, from the room's first leader on; 0 is no limit [0]. The leader's own value counts until SetMaxPeers is called: give it to all members that may lead. Since version 5 of the ABI.</summary>
        public uint MaxPeers;
        /// <summary>0. Since version 5 of the ABI.</summary>
        public uint Reserved2;
        /// <summary>The voters of a static quorum: their peer ids, one a line, 1 to MMN_MAX_QUORUM_VOTERS. After an id may follow a blank and the fingerprint of its key: the SHA-256 of the public key (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Nobody with another key is that voter then. Blanks around a line and empty lines are ignored. The same voters for all members and for as long as the session lives. A member that is not on it never leads and has no vote. Needed with MMN_QUORUM_STATIC, else NULL [NULL]. Since version 6 of the ABI.</summary>
        public IntPtr QuorumRoster;
    }

    /// <summary>Something that happened. Which fields say something depends on <c>kind</c>; the others are 0 or "". The struct and everything that it points to is valid during the call only.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct NetworkEvent
    {
        /// <summary>How many bytes of this struct the library has filled in.</summary>
        public uint StructSize;
        /// <summary>One of MMN_EVENT_...</summary>
        public uint Kind;
        /// <summary>The leader's term.</summary>
        public ulong Term;
        /// <summary>How many SetLeader calls the leader's term builds on.</summary>
        public ulong Epoch;
        /// <summary>Names a request to join.</summary>
        public ulong Request;
        /// <summary>How many, of what <c>kind</c> says.</summary>
        public ulong Count;
        /// <summary>A peer id, or "". Never NULL.</summary>
        public IntPtr Peer;
        /// <summary>Another peer id, or an address, or "". Never NULL.</summary>
        public IntPtr Other;
        /// <summary><c>length</c> bytes. Never NULL.</summary>
        public IntPtr Data;
        /// <summary>How many bytes <c>data</c> has.</summary>
        public int Length;
        /// <summary>One of the numbers that <c>kind</c> says.</summary>
        public int Reason;
        /// <summary>MMN_OK, an error, or an application's own number.</summary>
        public int Code;
        /// <summary>The sender's message type.</summary>
        public ushort MessageType;
        /// <summary>The sender's flags.</summary>
        public byte Flags;
        /// <summary>1 or 0.</summary>
        public byte Success;
    }

    /// <summary>Figures of a peer, from GetPeerStats. Counts of bytes, packets and messages begin with 0 when the peer joins and go on when a lost link comes back.</summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.
    public partial struct PeerStats
    {
        /// <summary>Set by the caller: sizeof(PeerStats) as it was compiled, at least 8. GetPeerStats leaves it alone.</summary>
        public uint StructSize;
        /// <summary>Smoothed round-trip time in microseconds (RFC 6298, of heartbeats). 0 before the first measurement.</summary>
        public uint RttUs;
        /// <summary>Mean deviation of the round-trip time in microseconds (RTTVAR of RFC 6298, of the same heartbeats). 0 before the first measurement.</summary>
        public uint JitterUs;
        /// <summary>Packets to the peer that count as lost, in parts per million of those sent. Lost packets are sent again: messages do not get lost by them.</summary>
        public uint LossPpm;
        /// <summary>Bytes sent to the peer in UDP payloads: messages, heartbeats, acknowledgements.</summary>
        public ulong BytesSent;
        /// <summary>Bytes received from the peer in UDP payloads.</summary>
        public ulong BytesReceived;
        /// <summary>Messages given to the network for the peer, each counted once.</summary>
        public ulong MessagesSent;
        /// <summary>Messages of the peer that were taken here.</summary>
        public ulong MessagesReceived;
        /// <summary>Messages in the queue to the peer: those that it has not taken yet.</summary>
        public uint QueueMessages;
        /// <summary>How long the oldest of them waits, in milliseconds; 0 when the queue is empty.</summary>
        public uint QueueAgeMs;
        /// <summary>Bytes of their payloads.</summary>
        public ulong QueueBytes;
        /// <summary>Congestion window in bytes: how much may be on its way to the peer at a time. 0 while the link is lost.</summary>
        public ulong CongestionWindow;
        /// <summary>Largest UDP payload of the path in bytes, as measured. 0 while the link is lost.</summary>
        public uint PathMtu;
        /// <summary>How often the link was lost and came back.</summary>
        public uint Reconnects;
    }

    /// <summary>What a <see cref="NetworkEvent"/> reports.</summary>
    public static class EventKind
    {
        /// <summary>NetworkEvent.kind: <c>peer</c> is connected. It comes before the peer's first message.</summary>
        public const uint Joined = 1;
        /// <summary>NetworkEvent.kind: the link to <c>peer</c> is lost and being dialled again; accepted messages wait.</summary>
        public const uint Reconnecting = 2;
        /// <summary>NetworkEvent.kind: <c>peer</c> is back after MMN_EVENT_RECONNECTING, and nothing was lost.</summary>
        public const uint Returned = 3;
        /// <summary>NetworkEvent.kind: <c>peer</c> is gone. <c>reason</c> is one of MMN_LEFT_...; <c>code</c> and <c>data</c> are what the application said that removed it; <c>count</c> is how many messages to it were accepted and are not known to be delivered. It comes after the peer's last message.</summary>
        public const uint Left = 4;
        /// <summary>NetworkEvent.kind: <c>peer</c> sent <c>data</c>, with <c>msg_type</c> and <c>flags</c>.</summary>
        public const uint Message = 5;
        /// <summary>NetworkEvent.kind: a SetLeader of this node that made <c>peer</c> the leader has ended. <c>success</c> is 1 when the peer leads; <c>code</c> is MMN_OK, MMN_TIMEOUT, MMN_SUPERSEDED, MMN_REJECTED (with MMN_QUORUM_STATIC: the leader refused to hand over), or says otherwise why not.</summary>
        public const uint SetLeaderResult = 6;
        /// <summary>NetworkEvent.kind: this node is in the room no more. <c>reason</c> is one of MMN_END_...; <c>code</c> and <c>data</c> are what the application of the leader said. ShutdownNetwork is still to be called.</summary>
        public const uint RoomEnded = 7;
        /// <summary>NetworkEvent.kind: <c>peer</c> leads, "" when nobody does; <c>other</c> is who led as far as this handler was told. With <c>term</c>, <c>epoch</c> (how many SetLeader calls the change builds on) and <c>reason</c>, one of MMN_LEADER_...</summary>
        public const uint LeaderChanged = 8;
        /// <summary>NetworkEvent.kind: this node leads from here on. Fields as in the MMN_EVENT_LEADER_CHANGED before it.</summary>
        public const uint LeadershipGained = 9;
        /// <summary>NetworkEvent.kind: this node leads no longer. Fields as in the MMN_EVENT_LEADER_CHANGED before it.</summary>
        public const uint LeadershipLost = 10;
        /// <summary>NetworkEvent.kind: <c>peer</c>, at the address <c>other</c>, asks to be let in and says <c>data</c>. <c>request</c> names the request in the answer.</summary>
        public const uint JoinRequest = 11;
        /// <summary>NetworkEvent.kind: a member of the room announces itself in the local network; <c>other</c> is an address for ConnectToPeer.</summary>
        public const uint Discovered = 12;
        /// <summary>NetworkEvent.kind: a ConnectToPeer has ended. <c>other</c> is the address as it was given there, <c>peer</c> who answered ("" when not known); <c>success</c> and <c>code</c> as in ConnectionResultCallback; <c>reason</c> and <c>data</c> are what the application of the room said that rejected; with MMN_POLICY_MISMATCH <c>data</c> is a sentence that names the rule and both values, with MMN_MAX_CONNECTIONS_REACHED one that names the limit, or nothing, with MMN_CONNECTION_FAILED one that says for how long the address is not dialled, or nothing.</summary>
        public const uint ConnectionResult = 13;
    }

    /// <summary>Why a member is gone: the reason of <see cref="EventKind.Left"/>.</summary>
    public static class LeftReason
    {
        /// <summary>MMN_EVENT_LEFT: the peer left by itself.</summary>
        public const int Left = 0;
        /// <summary>MMN_EVENT_LEFT: the peer was lost and did not come back in time, or lost peers are not dialled again.</summary>
        public const int Lost = 1;
        /// <summary>MMN_EVENT_LEFT: one of both hosts called DisconnectPeer.</summary>
        public const int Disconnected = 2;
        /// <summary>MMN_EVENT_LEFT: the peer was started anew, or another process took its id.</summary>
        public const int Replaced = 3;
        /// <summary>MMN_EVENT_LEFT: the leader removed the peer from the room.</summary>
        public const int Kicked = 4;
        /// <summary>MMN_EVENT_LEFT: the peer broke the protocol.</summary>
        public const int Violation = 5;
        /// <summary>MMN_EVENT_LEFT: dialling the peer again was given up.</summary>
        public const int GaveUp = 6;

        /// <summary>The reason in a word.</summary>
        public static string Describe(int reason)
        {
            switch (reason)
            {
                case Left: return "left";
                case Lost: return "lost";
                case Disconnected: return "disconnected";
                case Replaced: return "replaced";
                case Kicked: return "kicked";
                case Violation: return "violation";
                case GaveUp: return "gave up";
                default: return "unknown";
            }
        }
    }

    /// <summary>Why another member leads, or nobody: the reason of <see cref="EventKind.LeaderChanged"/>.</summary>
    public static class LeaderReason
    {
        /// <summary>MMN_EVENT_LEADER_CHANGED: the reason is not known.</summary>
        public const int Unknown = 0;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader was elected.</summary>
        public const int Elected = 1;
        /// <summary>MMN_EVENT_LEADER_CHANGED: SetLeader named the leader.</summary>
        public const int Assigned = 2;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader before handed over: it left, or called TransferLeadership or YieldLeadership.</summary>
        public const int Transferred = 3;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader led already when this node learned of it: by joining the room, or because two parts of the room met.</summary>
        public const int Found = 4;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader fell silent, or the link with it was lost.</summary>
        public const int Lost = 5;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader left, was removed, or may lead no longer.</summary>
        public const int Left = 6;
        /// <summary>MMN_EVENT_LEADER_CHANGED: the leader resigned: too few members answered it, or a higher claim ended its own.</summary>
        public const int Resigned = 7;

        /// <summary>The reason in a word.</summary>
        public static string Describe(int reason)
        {
            switch (reason)
            {
                case Unknown: return "unknown";
                case Elected: return "elected";
                case Assigned: return "assigned";
                case Transferred: return "transferred";
                case Found: return "found";
                case Lost: return "lost";
                case Left: return "left";
                case Resigned: return "resigned";
                default: return "unknown";
            }
        }
    }

    /// <summary>Why the room is over for this member: the reason of <see cref="EventKind.RoomEnded"/>.</summary>
    public static class EndReason
    {
        /// <summary>MMN_EVENT_ROOM_ENDED: the leader removed this node from the room.</summary>
        public const int Kicked = 0;
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host has left it politely (ShutdownNetwork).</summary>
        public const int HostLeft = 1;
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host was lost: not back within member_hold_ms, given up before that, or cut off because it broke the protocol.</summary>
        public const int HostLost = 2;
        /// <summary>MMN_EVENT_ROOM_ENDED: the room's fixed host called DisconnectPeer for this member, or this member for the host.</summary>
        public const int Disconnected = 3;

        /// <summary>The reason in a word.</summary>
        public static string Describe(int reason)
        {
            switch (reason)
            {
                case Kicked: return "kicked";
                case HostLeft: return "host left";
                case HostLost: return "host lost";
                case Disconnected: return "disconnected";
                default: return "unknown";
            }
        }
    }

    /// <summary>How much is logged.</summary>
    public static class LogLevel
    {
        /// <summary>Log levels: nothing.</summary>
        public const int Off = 0;
        /// <summary>Log levels: faults.</summary>
        public const int Error = 1;
        /// <summary>Log levels: and what may be wrong.</summary>
        public const int Warn = 2;
        /// <summary>Log levels: and what happens in the room.</summary>
        public const int Info = 3;
        /// <summary>Log levels: and how it comes about.</summary>
        public const int Debug = 4;
        /// <summary>Log levels: and every detail.</summary>
        public const int Trace = 5;
    }

    /// <summary>What a <see cref="ReconnectCallback"/> reports.</summary>
    public static class ReconnectStatus
    {
        /// <summary>ReconnectCallback: the peer is lost and being dialled again.</summary>
        public const byte Retrying = 0;
        /// <summary>ReconnectCallback: the peer is back.</summary>
        public const byte Returned = 1;
        /// <summary>ReconnectCallback: the peer has been given up.</summary>
        public const byte GaveUp = 2;
    }

    /// <summary>What happens when a leader that was set by hand is lost.</summary>
    public static class ManualOverrideRecovery
    {
        /// <summary>manual_override_recovery: a leader that was set by hand and is lost is not replaced until SetLeader or EnableAutoLeaderElection is called. With MMN_AUTHORITY_LEADER_ONLY it is replaced by an election all the same.</summary>
        public const byte Hold = 0;
        /// <summary>manual_override_recovery: a leader that was set by hand and is lost is replaced by an election.</summary>
        public const byte AutoElect = 1;
    }

    /// <summary>Which thread runs the callbacks.</summary>
    public static class DispatchMode
    {
        /// <summary>dispatch_mode: a thread of the library runs the callbacks.</summary>
        public const byte Thread = 0;
        /// <summary>dispatch_mode: the callbacks run on the thread that calls PollEvents.</summary>
        public const byte Poll = 1;
    }

    /// <summary>Which leader stays when two parts of a room merge.</summary>
    public static class MergePolicy
    {
        /// <summary>merge_policy: the leader of the larger side stays; of equal sides, the one that has led longer.</summary>
        public const byte LargestSide = 0;
        /// <summary>merge_policy: the leader with the higher leadership record stays.</summary>
        public const byte HighestTerm = 1;
    }

    /// <summary>Who may call <c>SetLeader</c>.</summary>
    public static class SetLeaderAuthority
    {
        /// <summary>set_leader_authority: every member may call SetLeader.</summary>
        public const byte Anyone = 0;
        /// <summary>set_leader_authority: the leader alone may call SetLeader. A leader that is lost is replaced by an election, whatever manual_override_recovery says: nobody else could name one.</summary>
        public const byte LeaderOnly = 1;
    }

    /// <summary>How <see cref="ElectionStrategy.Gossip"/> elects.</summary>
    public static class GossipFlags
    {
        /// <summary>strategy_flags of MMN_STRATEGY_GOSSIP: the lowest peer id always follows a leader that is lost.</summary>
        public const uint StrictLowest = 1;
    }

    /// <summary>The state of the link to one member.</summary>
    public enum PeerStatus : int
    {
        /// <summary>There is no such peer.</summary>
        Unknown = -1,
        /// <summary>GetPeerStatus, PeerStatusCallback: the peer is connected.</summary>
        Connected = 0,
        /// <summary>PeerStatusCallback: the connection to the peer is lost. GetPeerStatus never answers it.</summary>
        Disconnected = 1,
        /// <summary>GetPeerStatus: the connection is lost and being dialled again.</summary>
        Reconnecting = 2,
        /// <summary>GetPeerStatus: the peer is being admitted.</summary>
        Handshaking = 3,
    }

    /// <summary>Discovery of members in the local network.</summary>
    public enum DiscoveryMode : byte
    {
        /// <summary>discovery_mode: nothing is announced, nothing is found.</summary>
        Off = 0,
        /// <summary>discovery_mode: announce this member, and report the members that are found.</summary>
        Report = 1,
        /// <summary>discovery_mode: announce this member, and connect to the members that are found.</summary>
        Connect = 2,
    }

    /// <summary>How a room elects its leader.</summary>
    public enum ElectionStrategy : uint
    {
        /// <summary>strategy: the leader is elected by votes of the connected members.</summary>
        Raft = 0,
        /// <summary>strategy: the lowest peer id that finds no leader leads, in every part of a room that is cut.</summary>
        Gossip = 1,
    }

    /// <summary>A majority of whom elects a leader.</summary>
    public enum QuorumPolicy : uint
    {
        /// <summary>quorum_policy: a majority of the members that are connected when an election starts.</summary>
        Dynamic = 0,
        /// <summary>quorum_policy: a majority of the voters of quorum_roster, connected or not.</summary>
        Static = 1,
    }

    /// <summary>Whether one fixed member leads.</summary>
    public enum HostMode : byte
    {
        /// <summary>host_mode: no fixed host; the room elects its leader.</summary>
        Off = 0,
        /// <summary>host_mode: this member is the room's host, and leads from its start on, for as long as the room lives.</summary>
        Host = 1,
        /// <summary>host_mode: another member is the room's host.</summary>
        Guest = 2,
    }

    /// <summary>The library's codes. New ones are only ever appended, so expect numbers that are not listed here.</summary>
    public static class ErrorCode
    {
        /// <summary>The call did what it says.</summary>
        public const int Ok = 0;
        /// <summary>No room is open in this process: call InitializeNetwork first.</summary>
        public const int NotInitialized = -1;
        /// <summary>A room is already open in this process: call ShutdownNetwork before opening another.</summary>
        public const int AlreadyInitialized = -2;
        /// <summary>An argument is not allowed: GetLastErrorMessage names it and its limit.</summary>
        public const int InvalidArgument = -3;
        /// <summary>The network refused: the address cannot be reached, nobody listens there, or no socket could be opened.</summary>
        public const int ConnectionFailed = -4;
        /// <summary>No connected peer has that id, or no open request that number.</summary>
        public const int PeerNotFound = -5;
        /// <summary>Only the leader may do this, or no leader is known.</summary>
        public const int NotLeader = -6;
        /// <summary>A queue is full and nothing was queued: try again later or send less.</summary>
        public const int SendQueueFull = -7;
        /// <summary>The message is longer than max_message_size.</summary>
        public const int MessageTooLarge = -8;
        /// <summary>A message could not be encoded or decoded.</summary>
        public const int SerializationError = -9;
        /// <summary>The peer is in another session.</summary>
        public const int SessionMismatch = -10;
        /// <summary>Another member already has this peer id.</summary>
        public const int DuplicatePeerId = -11;
        /// <summary>The peer speaks another version of the protocol.</summary>
        public const int VersionMismatch = -12;
        /// <summary>There is no place: max_connections of either end, the room's limit or its voters, or too many attempts at a time.</summary>
        public const int MaxConnectionsReached = -13;
        /// <summary>The peer is already connected: the connection stands.</summary>
        public const int AlreadyConnected = -14;
        /// <summary>The call would wait for itself: it is not allowed inside a callback, and PollEvents only in one thread at a time.</summary>
        public const int WouldDeadlock = -15;
        /// <summary>This election strategy or this build does not have the function.</summary>
        public const int NotSupported = -16;
        /// <summary>The peer has another room secret or another session id.</summary>
        public const int AuthenticationFailed = -17;
        /// <summary>It was refused: by the leader, its application, the room's rules, or because of a DisconnectPeer.</summary>
        public const int Rejected = -18;
        /// <summary>No answer came in time.</summary>
        public const int Timeout = -19;
        /// <summary>The peer plays by other room rules: MMN_EVENT_CONNECTION_RESULT and the log name the rule and both values.</summary>
        public const int PolicyMismatch = -20;
        /// <summary>A newer request took the place of this one.</summary>
        public const int Superseded = -21;
        /// <summary>A fault inside the library: please report it with the log.</summary>
        public const int InternalError = -99;
    }
}
