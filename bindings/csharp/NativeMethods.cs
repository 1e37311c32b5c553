using System;
using System.Runtime.InteropServices;
using System.Text;

namespace MetaMystia.Network
{
    /// <summary>
    /// The functions of the native library, exactly as its header declares them.
    /// </summary>
    /// <remarks>
    /// Text goes in as NUL-terminated UTF-8 (<see cref="Utf8.ToNative"/>) and comes out as a pointer that must be copied
    /// at once (<see cref="Utf8.FromNative"/>). The runtime's own string marshalling is not used anywhere: it means the ANSI
    /// code page on some runtimes, which mangles names in other scripts, and it would free strings that the library owns.
    /// Flags are bytes, because the runtime's default for <c>bool</c> is four bytes wide.
    /// Most programs want <see cref="Room"/> instead.
    /// </remarks>
    public static class NativeMethods
    {
        /// <summary>The library's name without prefix and suffix; every runtime completes it for its platform.</summary>
        public const string Library = "meta_mystia_network";

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetwork(byte[] peerId, byte[] sessionId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetworkWithConfig(byte[] peerId, byte[] sessionId, ref NetworkConfig config);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ShutdownNetwork();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsNetworkInitialized();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetLastErrorCode();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLastErrorMessage();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ConnectToPeer(byte[] address);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int DisconnectPeer(byte[] peerId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalAddr();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLocalPeerId();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetSessionId();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerCount();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetPeerList();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerRTT(byte[] peerId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerStatus(byte[] peerId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeader(byte[] peerId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableAutoLeaderElection(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetCurrentLeader();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsLeader();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int BroadcastMessage(byte[] data, int length, ushort messageType, byte flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToPeer(byte[] peerId, byte[] data, int length, ushort messageType, byte flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendToLeader(byte[] data, int length, ushort messageType, byte flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SendFromLeader(byte[] data, int length, ushort messageType, byte flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReceiveCallback(ReceiveCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLeaderChangedCallback(LeaderChangedCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterPeerStatusCallback(PeerStatusCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterConnectionResultCallback(ConnectionResultCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableLogging(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLogLevel(int level);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLogCallback(int level, LogCallback callback, IntPtr userData, DropCallback dropFunction);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterReconnectCallback(ReconnectCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterEventHandler(EventCallback callback, IntPtr userData, DropCallback dropFunction);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int PollEvents(int max);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetAbiVersion();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr GetLibraryVersion();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern IntPtr DescribeError(int code);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedMode(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedMode();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCentralizedAutoForward(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsCentralizedAutoForward();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetCompressionThreshold(uint bytes);

        /// <summary>A null <paramref name="to"/> is every peer but <paramref name="from"/>.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int ForwardMessage(byte[] from, byte[] to, byte[] data, int length, ushort messageType, byte flags);

        /// <summary><c>StructSize</c> must be set; see <see cref="NetworkOptions.Default"/>.</summary>
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetDefaultNetworkOptions(ref NetworkOptions options);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int InitializeNetworkWithOptions(byte[] peerId, byte[] sessionId, ref NetworkOptions options);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsMdnsActive();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetAutoReconnect(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte IsAutoReconnectEnabled();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int KickPeer(byte[] peerId, int code, byte[] data, int length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetMaxPeers(uint maxPeers);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetJoinPayload(byte[] data, int length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int EnableJoinRequests(byte enabled);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int AcceptJoin(ulong request);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RejectJoin(ulong request, int code, byte[] data, int length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderEligible(byte eligible);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int TransferLeadership(byte[] peerId);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int YieldLeadership();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetElectionPriority(int priority);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long GetLeaderTerm();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern long GetLeaderEpoch();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetElectionStrategy();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetStartupGracePeriod(uint milliseconds);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetStartupGracePeriod();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetMembershipSampleInterval(uint milliseconds);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMembershipSampleInterval();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderAliveThreshold(uint milliseconds);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderAliveThreshold();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int SetLeaderElectionDuration(uint milliseconds);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeaderElectionDuration();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetMsgExpirationTimeout();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint GetLeadershipDeclarationInterval();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int RegisterLeadershipCallback(LeadershipCallback callback);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int GetPeerStats(byte[] peerId, ref PeerStats stats);
    }

    // A delegate that is handed to the library must stay referenced by managed code (a static field is the simplest way)
    // for as long as it is registered: the garbage collector does not see the library's copy of the pointer.

    /// <summary>A message came. <c>data</c> may be NULL when <c>length</c> is 0; both pointers are valid during the call only.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReceiveCallback(IntPtr peerId, IntPtr data, int length, ushort messageType, byte flags);

    /// <summary>The room's leader changed; the empty string means that there is none.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LeaderChangedCallback(IntPtr leaderId);

    /// <summary>This member leads from here on (1), or no longer (0); in turn.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LeadershipCallback(byte isLeader);

    /// <summary>A link came up (0) or was lost (1).</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void PeerStatusCallback(IntPtr peerId, int status);

    /// <summary>What became of one ConnectToPeer; <c>code</c> is an <see cref="ErrorCode"/>.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ConnectionResultCallback(IntPtr address, byte success, int code);

    /// <summary>What becomes of a lost member: 0 it is being dialled again, 1 it is back, 2 it has been given up.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void ReconnectCallback(IntPtr peerId, byte status);

    /// <summary>Something happened: <c>networkEvent</c> points to a <see cref="NetworkEvent"/>, valid during the call only.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void EventCallback(IntPtr userData, IntPtr networkEvent);

    /// <summary>Releases what was registered with a callback: called exactly once, after the callback's last call.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void DropCallback(IntPtr userData);

    /// <summary>A record of the log, on whatever thread it was made; <c>level</c> is a <see cref="LogLevel"/>.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void LogCallback(IntPtr userData, int level, IntPtr message);

    /// <summary>
    /// <c>NetworkEvent</c>: something that happened. Which fields say something depends on <see cref="Kind"/>; the header says
    /// which. The pointers are valid during the callback only and never NULL.
    /// </summary>
    [StructLayout(LayoutKind.Sequential)] // Largest first: aligned as C aligns it, without padding.
    public struct NetworkEvent
    {
        /// <summary>How many bytes the library has filled in: at least those of this struct.</summary>
        public uint StructSize;
        /// <summary>An <see cref="EventKind"/>; ignore those that you do not know.</summary>
        public uint Kind;
        public ulong Term;
        public ulong Epoch;
        /// <summary>Names a request to join.</summary>
        public ulong Request;
        public ulong Count;
        /// <summary>A member's id or the empty string, for <see cref="Utf8.FromNative"/>.</summary>
        public IntPtr Peer;
        /// <summary>Another member's id, or an address, or the empty string, for <see cref="Utf8.FromNative"/>.</summary>
        public IntPtr Other;
        public IntPtr Data;
        public int Length;
        public int Reason;
        public int Code;
        public ushort MessageType;
        public byte Flags;
        public byte Success;

        /// <summary>The struct at a pointer that an <see cref="EventCallback"/> was given.</summary>
        public static NetworkEvent At(IntPtr networkEvent)
        {
            return (NetworkEvent)Marshal.PtrToStructure(networkEvent, typeof(NetworkEvent));
        }

        /// <summary>A copy of the event's bytes.</summary>
        public byte[] Bytes()
        {
            return Utf8.Bytes(Data, Length);
        }
    }

    /// <summary>What a <see cref="NetworkEvent"/> tells. New ones are only ever appended.</summary>
    public static class EventKind
    {
        public const uint Joined = 1;
        public const uint Reconnecting = 2;
        public const uint Returned = 3;
        public const uint Left = 4;
        public const uint Message = 5;
        public const uint SetLeaderResult = 6;
        public const uint RoomEnded = 7;
        public const uint LeaderChanged = 8;
        public const uint LeadershipGained = 9;
        public const uint LeadershipLost = 10;
        public const uint JoinRequest = 11;
        public const uint Discovered = 12;
        public const uint ConnectionResult = 13;
    }

    /// <summary>Why a member is gone: <see cref="NetworkEvent.Reason"/> of <see cref="EventKind.Left"/>.</summary>
    public static class LeftReason
    {
        public const int Left = 0;
        public const int Lost = 1;
        public const int Disconnected = 2;
        public const int Replaced = 3;
        public const int Kicked = 4;
        public const int Violation = 5;
        public const int GaveUp = 6;
    }

    /// <summary>Why another member leads, or nobody: <see cref="NetworkEvent.Reason"/> of <see cref="EventKind.LeaderChanged"/>.</summary>
    public static class LeaderReason
    {
        public const int Unknown = 0;
        public const int Elected = 1;
        /// <summary>SetLeader named it.</summary>
        public const int Assigned = 2;
        /// <summary>The leader before handed over: it left, transferred its leadership or yielded.</summary>
        public const int Transferred = 3;
        /// <summary>It led already when this member learned of it.</summary>
        public const int Found = 4;
        public const int Lost = 5;
        public const int Left = 6;
        /// <summary>Too few members answered it, or a higher claim ended its own.</summary>
        public const int Resigned = 7;

        /// <summary>The reason in a word.</summary>
        public static string Describe(int reason)
        {
            switch (reason)
            {
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

    /// <summary>Why this member is in the room no more: <see cref="NetworkEvent.Reason"/> of <see cref="EventKind.RoomEnded"/>.</summary>
    public static class EndReason
    {
        /// <summary>The leader removed this member.</summary>
        public const int Kicked = 0;
        /// <summary>The room's fixed host left politely.</summary>
        public const int HostLeft = 1;
        /// <summary>The room's fixed host was lost for good.</summary>
        public const int HostLost = 2;
        /// <summary>The room's fixed host disconnected this member, or this member the host.</summary>
        public const int Disconnected = 3;
    }

    /// <summary>How much is logged.</summary>
    public static class LogLevel
    {
        public const int Off = 0;
        public const int Error = 1;
        public const int Warn = 2;
        public const int Info = 3;
        public const int Debug = 4;
        public const int Trace = 5;
    }

    /// <summary>
    /// <c>NetworkConfigFFI</c>: 44 bytes, in the library's order. Start from <see cref="Default"/>; a struct of zeros breaks
    /// the library's rules and is refused with -3.
    /// </summary>
    [StructLayout(LayoutKind.Sequential)] // 3 x 4, 12 x 2, 8 x 1 bytes: aligned as C aligns it, without padding.
    public struct NetworkConfig
    {
        public uint ReconnectMaxMs;
        /// <summary>Payloads larger than this many bytes are sent compressed where that is smaller.</summary>
        public uint CompressionThreshold;
        /// <summary>Bytes; a longer message is refused with -8.</summary>
        public uint MaxMessageSize;
        public ushort HeartbeatIntervalMs;
        public ushort ElectionTimeoutMinMs;
        public ushort ElectionTimeoutMaxMs;
        public ushort ReconnectInitialMs;
        public ushort HandshakeTimeoutMs;
        public ushort WriteTimeoutMs;
        /// <summary>Messages per peer; one more is refused with -7.</summary>
        public ushort SendQueueCapacity;
        /// <summary>Messages that may wait for this program's handlers before the senders are slowed down.</summary>
        public ushort IncomingQueueCapacity;
        /// <summary>Other members at the same time.</summary>
        public ushort MaxConnections;
        /// <summary>Accepted for compatibility; no effect over QUIC.</summary>
        public ushort KeepaliveTimeSecs;
        /// <summary>Accepted for compatibility; no effect over QUIC.</summary>
        public ushort KeepaliveIntervalSecs;
        /// <summary>0 switches discovery on the local network off.</summary>
        public ushort MdnsPort;
        public byte HeartbeatTimeoutMultiplier;
        /// <summary>Accepted for compatibility; no effect over QUIC.</summary>
        public byte KeepaliveRetries;
        public byte CentralizedAutoForward;
        public byte AutoElectionEnabled;
        /// <summary>0 hold a leader that was set by hand, 1 elect a new one when it is lost.</summary>
        public byte ManualOverrideRecovery;
        /// <summary>Accepted for compatibility; no effect over QUIC.</summary>
        public byte TcpNodelay;
        public byte AutoReconnectEnabled;
        /// <summary>0 is unlimited.</summary>
        public byte ReconnectMaxRetries;

        /// <summary>What <c>InitializeNetwork</c> uses when it is given no configuration.</summary>
        public static NetworkConfig Default()
        {
            NetworkConfig config = new NetworkConfig();
            config.ReconnectMaxMs = 30000;
            config.CompressionThreshold = 512;
            config.MaxMessageSize = 262144;
            config.HeartbeatIntervalMs = 500;
            config.ElectionTimeoutMinMs = 1500;
            config.ElectionTimeoutMaxMs = 3000;
            config.ReconnectInitialMs = 1000;
            config.HandshakeTimeoutMs = 5000;
            config.WriteTimeoutMs = 5000;
            // 4096 and not the struct's classic 128 and 256: a loading screen must not stop the other players.
            config.SendQueueCapacity = 4096;
            config.IncomingQueueCapacity = 4096;
            config.MaxConnections = 64;
            config.KeepaliveTimeSecs = 60;
            config.KeepaliveIntervalSecs = 10;
            config.MdnsPort = 15353;
            config.HeartbeatTimeoutMultiplier = 3;
            config.KeepaliveRetries = 3;
            config.CentralizedAutoForward = 1;
            config.AutoElectionEnabled = 1;
            config.ManualOverrideRecovery = 0;
            config.TcpNodelay = 1;
            config.AutoReconnectEnabled = 1;
            config.ReconnectMaxRetries = 0;
            return config;
        }
    }

    /// <summary>
    /// <c>NetworkOptions</c>: every setting there is. Start from <see cref="Default"/>. Most programs want
    /// <see cref="RoomOptions"/>, which takes care of the pointers.
    /// </summary>
    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it, without padding; tests compare it with the header.
    public struct NetworkOptions
    {
        public uint StructSize;
        public NetworkConfig Config;
        /// <summary>NUL-terminated text: the one address to use; NULL is all.</summary>
        public IntPtr BindAddress;
        /// <summary><see cref="SecretLength"/> bytes; NULL is none.</summary>
        public IntPtr Secret;
        /// <summary><see cref="IdentityKeyLength"/> bytes; NULL makes a new key at every start.</summary>
        public IntPtr IdentityKey;
        public uint SecretLength;
        public uint IdentityKeyLength;
        /// <summary>How long a lost member's place is kept.</summary>
        public uint MemberHoldMs;
        public uint QueueBytes;
        /// <summary>An <see cref="MetaMystia.Network.ElectionStrategy"/>.</summary>
        public uint Strategy;
        /// <summary>Elections prefer the higher one; 0 with gossip.</summary>
        public int Priority;
        /// <summary>0 is any free port.</summary>
        public ushort BindPort;
        /// <summary>A <see cref="DiscoveryMode"/>.</summary>
        public byte DiscoveryMode;
        /// <summary>1: callbacks run inside <c>PollEvents</c>; 0: on a thread of the library.</summary>
        public byte DispatchMode;
        /// <summary>Which leader stays when two parts of a room meet: 0 that of the larger part, 1 that with the higher record.</summary>
        public byte MergePolicy;
        /// <summary>Who may call <c>SetLeader</c>: 0 anyone, 1 the leader.</summary>
        public byte SetLeaderAuthority;
        /// <summary>A <see cref="HostMode"/>.</summary>
        public byte HostMode;
        /// <summary>0: this member never leads, it observes.</summary>
        public byte Eligible;
        /// <summary>NUL-terminated text: where a static quorum keeps what must survive the process; else NULL.</summary>
        public IntPtr StateDirectory;
        /// <summary>NUL-terminated text: a file for a trace of the elections; NULL is none.</summary>
        public IntPtr TracePath;
        /// <summary>A <see cref="MetaMystia.Network.QuorumPolicy"/>.</summary>
        public uint QuorumPolicy;
        /// <summary>With a static quorum, how many voters there are in all; else 0.</summary>
        public uint QuorumVoters;
        /// <summary>With gossip, 1: the lowest id always follows a leader that is lost; else 0.</summary>
        public uint StrategyFlags;
        /// <summary>0.</summary>
        public uint Reserved;
        /// <summary>Most other members of any member, while this member leads and <c>SetMaxPeers</c> was not called; 0: no limit.</summary>
        public uint MaxPeers;
        /// <summary>0.</summary>
        public uint Reserved2;

        /// <summary>The library's defaults.</summary>
        public static NetworkOptions Default()
        {
            NetworkOptions options = new NetworkOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(NetworkOptions));
            NativeMethods.GetDefaultNetworkOptions(ref options);
            return options;
        }
    }

    /// <summary>Discovery of members in the local network.</summary>
    public enum DiscoveryMode : byte
    {
        Off = 0,
        /// <summary>Found members are events.</summary>
        Report = 1,
        /// <summary>Found members are dialled.</summary>
        Connect = 2,
    }

    /// <summary>How a room elects its leader.</summary>
    public enum ElectionStrategy : uint
    {
        /// <summary>By votes of the connected members.</summary>
        Raft = 0,
        /// <summary>The lowest id that finds no leader leads, in every part of a room that is cut.</summary>
        Gossip = 1,
    }

    /// <summary>A majority of whom elects a leader.</summary>
    public enum QuorumPolicy : uint
    {
        /// <summary>Of the members that are connected.</summary>
        Dynamic = 0,
        /// <summary>Of a fixed number of voters, connected or not.</summary>
        Static = 1,
    }

    /// <summary>Whether one fixed member leads.</summary>
    public enum HostMode : byte
    {
        /// <summary>The room elects its leader.</summary>
        Off = 0,
        /// <summary>This member leads, for as long as the room lives.</summary>
        Host = 1,
        /// <summary>Another member does.</summary>
        Guest = 2,
    }

    /// <summary>Figures of one peer, as <c>GetPeerStats</c> writes them. Start from <see cref="Empty"/>, which sets the size.</summary>
    [StructLayout(LayoutKind.Sequential)] // 80 bytes: aligned as C aligns it, without padding.
    public struct PeerStats
    {
        public uint StructSize;
        public uint RttUs;
        public uint JitterUs;
        /// <summary>Lost packets, in parts per million of those sent.</summary>
        public uint LossPpm;
        public ulong BytesSent;
        public ulong BytesReceived;
        public ulong MessagesSent;
        public ulong MessagesReceived;
        /// <summary>Messages that the peer has not taken yet.</summary>
        public uint QueueMessages;
        /// <summary>How long the oldest of them waits, in milliseconds.</summary>
        public uint QueueAgeMs;
        public ulong QueueBytes;
        /// <summary>Bytes; 0 while the link is lost.</summary>
        public ulong CongestionWindow;
        /// <summary>Bytes; 0 while the link is lost.</summary>
        public uint PathMtu;
        public uint Reconnects;

        public static PeerStats Empty()
        {
            PeerStats stats = new PeerStats();
            stats.StructSize = (uint)Marshal.SizeOf(typeof(PeerStats));
            return stats;
        }
    }

    /// <summary>The library's codes. New ones are only ever appended, so expect numbers that are not listed here.</summary>
    public static class ErrorCode
    {
        public const int Ok = 0;
        public const int NotInitialized = -1;
        public const int AlreadyInitialized = -2;
        public const int InvalidArgument = -3;
        public const int ConnectionFailed = -4;
        public const int PeerNotFound = -5;
        public const int NotLeader = -6;
        public const int SendQueueFull = -7;
        public const int MessageTooLarge = -8;
        public const int SerializationError = -9;
        public const int SessionMismatch = -10;
        public const int DuplicatePeerId = -11;
        public const int VersionMismatch = -12;
        public const int MaxConnectionsReached = -13;
        public const int AlreadyConnected = -14;
        public const int WouldDeadlock = -15;
        public const int NotSupported = -16;
        public const int AuthenticationFailed = -17;
        public const int Rejected = -18;
        public const int Timeout = -19;
        public const int PolicyMismatch = -20;
        public const int Superseded = -21;
        public const int InternalError = -99;
    }

    /// <summary>Text between .NET and the library, always UTF-8.</summary>
    public static class Utf8
    {
        // Strict: half a surrogate pair has no UTF-8 form, and two different names must not become the same bytes.
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        /// <summary>NUL-terminated bytes for the library; null stays NULL.</summary>
        /// <exception cref="ArgumentException">The text holds a NUL, where C would silently cut it, or is not valid UTF-16.</exception>
        public static byte[] ToNative(string text)
        {
            if (text == null)
            {
                return null;
            }
            if (text.IndexOf('\0') >= 0)
            {
                throw new ArgumentException("The text contains a NUL character, at which C would cut it off.", "text");
            }
            byte[] bytes = new byte[Strict.GetByteCount(text) + 1];
            Strict.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        /// <summary>A copy of the library's string; NULL becomes null.</summary>
        public static string FromNative(IntPtr text)
        {
            if (text == IntPtr.Zero)
            {
                return null;
            }
            int length = 0;
            while (Marshal.ReadByte(text, length) != 0)
            {
                length++;
            }
            return Encoding.UTF8.GetString(Bytes(text, length));
        }

        internal static byte[] Bytes(IntPtr data, int length)
        {
            byte[] copy = new byte[length];
            if (length > 0)
            {
                Marshal.Copy(data, copy, 0, length);
            }
            return copy;
        }
    }

    /// <summary>
    /// Marks a static method that native code calls. Unity's IL2CPP looks for an attribute of this name, in any namespace,
    /// to know which methods need a native entry point; other runtimes ignore it.
    /// </summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type delegateType)
        {
        }
    }
}
