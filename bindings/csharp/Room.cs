using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;

namespace MetaMystia.Network
{
    /// <summary>A message from another member.</summary>
    public struct Message
    {
        /// <summary>The id of the sender.</summary>
        public string From;
        public byte[] Data;
        /// <summary>The sender's message type, 0x0100 or higher.</summary>
        public ushort Type;
        public byte Flags;
    }

    /// <summary>Delivery of a message: <c>Delivery.Sequenced(unit)</c>. The default is the classic send.</summary>
    public struct Delivery
    {
        private static readonly uint OptionsSize = (uint)Marshal.SizeOf(typeof(SendOptions));

        internal byte Mode;
        internal ulong Key;
        /// <summary>Channel, which the receiver sees in <see cref="RoomEvent.Channel"/>. With ReliableOrdered each channel keeps its own order.</summary>
        public byte Channel;
        /// <summary>0 to 3; higher priorities go first. Null is 1.</summary>
        public byte? Priority;
        /// <summary>Lifetime of the message, in milliseconds; 0 is unlimited. Unreliable and Sequenced only.</summary>
        public uint TtlMs;

        /// <summary>Each message arrives once, in the order of the calls with that channel.</summary>
        public static Delivery ReliableOrdered(byte channel = 0)
        {
            return new Delivery { Mode = NativeMethods.DeliveryReliableOrdered, Channel = channel };
        }

        /// <summary>Each message arrives once, and waits for no other.</summary>
        public static Delivery ReliableUnordered(byte channel = 0)
        {
            return new Delivery { Mode = NativeMethods.DeliveryReliableUnordered, Channel = channel };
        }

        /// <summary>A message arrives once or is lost. At most <see cref="Room.MaxDatagramSize"/> bytes.</summary>
        public static Delivery Unreliable(byte channel = 0)
        {
            return new Delivery { Mode = NativeMethods.DeliveryUnreliable, Channel = channel };
        }

        /// <summary>As <see cref="Unreliable"/>, and the receiver drops a message that is older than the newest of its key.</summary>
        public static Delivery Sequenced(ulong key, byte channel = 0)
        {
            return new Delivery { Mode = NativeMethods.DeliverySequenced, Key = key, Channel = channel };
        }

        internal SendOptions Options(byte flags)
        {
            SendOptions options = new SendOptions();
            options.StructSize = OptionsSize;
            options.Delivery = Mode;
            options.Channel = Channel;
            options.Priority = Priority ?? 1;
            options.Flags = flags;
            options.TtlMs = TtlMs;
            options.Key = Key;
            return options;
        }
    }

    /// <summary>The result of one <see cref="Room.Connect"/>.</summary>
    public struct ConnectionResult
    {
        /// <summary>The address as passed to <see cref="Room.Connect"/>.</summary>
        public string Address;
        public bool Success;
        /// <summary>An <see cref="ErrorCode"/>; -14 AlreadyConnected comes with success.</summary>
        public int Code;
    }

    /// <summary>An event of the room: a copy, yours to keep. <see cref="Kind"/> determines which fields are set.</summary>
    public sealed class RoomEvent
    {
        /// <summary>An <see cref="EventKind"/>; ignore unknown ones.</summary>
        public uint Kind;
        /// <summary>The member that the event concerns; "" if there is none (no leader).</summary>
        public string Peer;
        /// <summary>An address (JoinRequest, Discovered, ConnectionResult, DiscoveryRefused), the previous leader (LeaderChanged), the other member (UnlinkedPeer), the leader (BanDropped), or a lock (LockResult, LockLost).</summary>
        public string Other;
        /// <summary>The message; the payload of a join request; the data of a kick or a rejection. Never null.</summary>
        public byte[] Data;
        /// <summary>A <see cref="LeftReason"/>, a <see cref="LeaderReason"/>, an <see cref="EndReason"/>, a <see cref="MetaMystia.Network.MemberState"/>, or the number passed to <see cref="Room.RejectJoin"/>.</summary>
        public int Reason;
        /// <summary>An <see cref="ErrorCode"/>, or the number passed to <see cref="Room.Kick"/>.</summary>
        public int Code;
        public bool Success;
        public ushort MessageType;
        public byte Flags;
        /// <summary>Message: the channel that the sender named.</summary>
        public byte Channel;
        /// <summary>Message: its delivery, one of NativeMethods.Delivery...</summary>
        public byte DeliveryMode;
        /// <summary><see cref="Room.IndexOf"/> of <see cref="Peer"/>; 0 for this member and for one that is not in the room.</summary>
        public uint PeerIndex;
        /// <summary>DiscoveryRefused: how the member was found, one of NativeMethods.Found...</summary>
        public ushort FoundBy;
        /// <summary>Left: the number of reliable messages for the member that are not known to be delivered. Returned: the number of messages that it will not get. DataDropped: the number of messages. HostSilent and NoRoomFound: milliseconds.</summary>
        public ulong Undelivered;
        /// <summary>Returned: the number of the member's reliable messages that this host will not get.</summary>
        public ulong Missed;
        /// <summary>JoinRequest, JoinWithdrawn: for <see cref="Room.AcceptJoin"/> and <see cref="Room.RejectJoin"/>; LockResult: the lock call.</summary>
        public ulong Request;
        public ulong Term;
        public ulong Epoch;

        /// <summary>LockResult with success, and LockLost: the fencing token of the lock.</summary>
        public ulong Token
        {
            get { return Undelivered; }
        }
    }

    /// <summary>Settings to enter a room. Settings that you do not change keep the library's defaults, except that <see cref="Poll"/> is on.</summary>
    public sealed class RoomOptions
    {
        /// <summary>Every setting that needs no memory of its own. The pointers, the lengths and the dispatch mode are set by <see cref="Room.Join(string, string, RoomOptions)"/>.</summary>
        public NetworkOptions Settings = NetworkOptions.Default();
        /// <summary>true: handlers run inside <see cref="Room.Poll"/>; false: on a thread of the library.</summary>
        public bool Poll = true;
        /// <summary>The one address of this machine to use; null is every address.</summary>
        public string BindAddress;
        /// <summary>The room secret, which members must know besides the session id; null is none.</summary>
        public byte[] Secret;
        /// <summary>An Ed25519 private key in PKCS#8, which keeps this member's identity; null makes a new one.</summary>
        public byte[] IdentityKey;
        /// <summary>Directory of the state that must survive the process; it must exist. Null is none.</summary>
        public string StateDirectory;
        /// <summary>The voters of a static quorum: their ids, each optionally followed by a space and the fingerprint of its key; else null. One text with a voter a line also works: <c>new[] { text }</c>.</summary>
        public IEnumerable<string> QuorumRoster;
        /// <summary>The settings of <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/>; null with any other strategy.</summary>
        public SeededOptions? Seeded;
        /// <summary>With <see cref="Seeded"/>: the addresses of the seeds, as <see cref="Room.Connect"/> takes them.</summary>
        public IEnumerable<string> Seeds;
        /// <summary>The settings of <see cref="MetaMystia.Network.ElectionStrategy.Etcd"/>; null with any other strategy.</summary>
        public EtcdSettings Etcd;
        /// <summary>A file for a trace of the elections; null is none.</summary>
        public string TracePath;

        internal int Initialize(byte[] peer, byte[] session)
        {
            NetworkOptions options = Settings;
            options.DispatchMode = Poll ? (byte)1 : (byte)0;
            List<GCHandle> pinned = new List<GCHandle>();
            try
            {
                options.BindAddress = Pin(pinned, Utf8.ToNative(BindAddress));
                options.Secret = Pin(pinned, Secret);
                options.SecretLength = Secret == null ? 0 : (uint)Secret.Length;
                options.IdentityKey = Pin(pinned, IdentityKey);
                options.IdentityKeyLength = IdentityKey == null ? 0 : (uint)IdentityKey.Length;
                options.StateDirectory = Pin(pinned, Utf8.ToNative(StateDirectory));
                options.QuorumRoster = Pin(pinned, Utf8.ToNative(QuorumRoster == null ? null : string.Join("\n", QuorumRoster)));
                options.TracePath = Pin(pinned, Utf8.ToNative(TracePath));
                if (Seeded.HasValue)
                {
                    SeededOptions seeded = Seeded.Value;
                    seeded.Seeds = Pin(pinned, Utf8.ToNative(Seeds == null ? null : string.Join("\n", Seeds)));
                    pinned.Add(GCHandle.Alloc(seeded, GCHandleType.Pinned));
                    options.Seeded = pinned[pinned.Count - 1].AddrOfPinnedObject();
                }
                if (Etcd != null)
                {
                    EtcdOptions etcd = Etcd.Settings;
                    etcd.Endpoints = Pin(pinned, Utf8.ToNative(Etcd.Endpoints == null ? null : string.Join("\n", Etcd.Endpoints)));
                    etcd.Prefix = Pin(pinned, Utf8.ToNative(Etcd.Prefix));
                    etcd.Address = Pin(pinned, Utf8.ToNative(Etcd.Address));
                    etcd.CaFile = Pin(pinned, Utf8.ToNative(Etcd.CaFile));
                    etcd.CertFile = Pin(pinned, Utf8.ToNative(Etcd.CertFile));
                    etcd.KeyFile = Pin(pinned, Utf8.ToNative(Etcd.KeyFile));
                    etcd.User = Pin(pinned, Utf8.ToNative(Etcd.User));
                    etcd.Password = Pin(pinned, Utf8.ToNative(Etcd.Password));
                    pinned.Add(GCHandle.Alloc(etcd, GCHandleType.Pinned));
                    options.Etcd = pinned[pinned.Count - 1].AddrOfPinnedObject();
                }
                return NativeMethods.InitializeNetworkWithOptions(peer, session, ref options);
            }
            finally
            {
                foreach (GCHandle handle in pinned)
                {
                    handle.Free();
                }
            }
        }

        private static IntPtr Pin(List<GCHandle> pinned, byte[] bytes)
        {
            if (bytes == null || bytes.Length == 0)
            {
                return IntPtr.Zero;
            }
            GCHandle handle = GCHandle.Alloc(bytes, GCHandleType.Pinned);
            pinned.Add(handle);
            return handle.AddrOfPinnedObject();
        }
    }

    /// <summary>The settings of <see cref="MetaMystia.Network.ElectionStrategy.Etcd"/>, with the library's defaults.</summary>
    public sealed class EtcdSettings
    {
        /// <summary>The numbers; the library fills in the pointers.</summary>
        public EtcdOptions Settings = EtcdOptions.Default();
        /// <summary>The client endpoints of the servers, as http://host:port or https://host:port.</summary>
        public IEnumerable<string> Endpoints;
        /// <summary>Prefix of the room's keys, without a slash at either end.</summary>
        public string Prefix;
        /// <summary>Address at which clients reach this member while it leads; null is its first address.</summary>
        public string Address;
        /// <summary>The file (PEM) with the certificates that sign those of the servers; null is the system's set of trusted certificates.</summary>
        public string CaFile;
        /// <summary>The file (PEM) with the certificate of this client; null is none.</summary>
        public string CertFile;
        /// <summary>The file (PEM) with the private key of <see cref="CertFile"/>.</summary>
        public string KeyFile;
        /// <summary>The user to log in as; null is none.</summary>
        public string User;
        /// <summary>The password of <see cref="User"/>.</summary>
        public string Password;
    }

    /// <summary>
    /// The times of <see cref="MetaMystia.Network.ElectionStrategy.Gossip"/>, in milliseconds above 0. They belong to the process:
    /// they apply from the next window of the room on, and to later rooms. The same for all members.
    /// </summary>
    public static class GossipWindows
    {
        /// <summary>Longest wait at the start for the number of members to settle; 15000.</summary>
        public static uint StartupGracePeriod
        {
            get { return NativeMethods.GetStartupGracePeriod(); }
            set { Room.Check(NativeMethods.SetStartupGracePeriod(value)); }
        }

        /// <summary>Interval between samples of that number; 1000.</summary>
        public static uint MembershipSampleInterval
        {
            get { return NativeMethods.GetMembershipSampleInterval(); }
            set { Room.Check(NativeMethods.SetMembershipSampleInterval(value)); }
        }

        /// <summary>Time for which a member waits for a declaration of the leader before it proposes itself; 10000.</summary>
        public static uint LeaderAliveThreshold
        {
            get { return NativeMethods.GetLeaderAliveThreshold(); }
            set { Room.Check(NativeMethods.SetLeaderAliveThreshold(value)); }
        }

        /// <summary>Time for which it then collects the proposals of others; 5000.</summary>
        public static uint LeaderElectionDuration
        {
            get { return NativeMethods.GetLeaderElectionDuration(); }
            set { Room.Check(NativeMethods.SetLeaderElectionDuration(value)); }
        }

        /// <summary>Time for which a member remembers proposals and declarations of others.</summary>
        public static uint MsgExpirationTimeout
        {
            get { return NativeMethods.GetMsgExpirationTimeout(); }
        }

        /// <summary>Interval at which a leader declares itself.</summary>
        public static uint LeadershipDeclarationInterval
        {
            get { return NativeMethods.GetLeadershipDeclarationInterval(); }
        }
    }

    /// <summary>A call was refused. The message comes from the library: it names the argument, its value and what to do.</summary>
    public sealed class NetworkException : Exception
    {
        public NetworkException(int code, string message)
            : base(message)
        {
            Code = code;
        }

        /// <summary>One of <see cref="ErrorCode"/>.</summary>
        public int Code { get; private set; }
    }

    /// <summary>
    /// The room that this process is in. The library holds one room per process: <see cref="Join"/> enters it,
    /// <see cref="Dispose"/> leaves it.
    /// </summary>
    /// <remarks>
    /// <para>All members may be used from any thread, and from inside event handlers, except that <see cref="Dispose"/> is refused
    /// inside a handler (-15) unless events are queued.</para>
    /// <para>Handlers run one at a time, in order, on a thread of the library. A host that must handle them on its own thread
    /// (Unity's main thread) joins with <see cref="RoomOptions"/> and calls <see cref="Poll"/> once per frame.</para>
    /// <para>An exception from a handler never reaches native code; <see cref="HandlerFailed"/> receives it.</para>
    /// <para>The first subscription to an event receives the present state: the leader, if one is known, and every connected peer.
    /// Subscribe to <see cref="MessageReceived"/> within 5 s after Join: until then messages wait, and afterwards the library
    /// discards messages without a handler.</para>
    /// </remarks>
    public sealed partial class Room : IDisposable
    {
        /// <summary>Message types below this one belong to the library.</summary>
        public const ushort FirstUserType = 0x0100;

        // Limit of the events that wait for Pump, with queueEvents. At the limit the library's thread waits, its own queue fills, and the
        // senders slow down: nothing is lost and memory stays bounded.
        private const int QueueCapacity = 4096;

        // Static, so that the garbage collector never collects them while the library may call them, and because IL2CPP makes native entry
        // points for static methods only.
        private static readonly ReceiveCallback ReceiveThunk = OnReceive;
        private static readonly LeaderChangedCallback LeaderChangedThunk = OnLeaderChanged;
        private static readonly LeadershipCallback LeadershipThunk = OnLeadership;
        private static readonly PeerStatusCallback PeerStatusThunk = OnPeerStatus;
        private static readonly ConnectionResultCallback ConnectionResultThunk = OnConnectionResult;
        private static readonly EventCallback EventThunk = OnEvent;
        private static readonly LogCallback LogThunk = OnLog;
        private static readonly DropCallback LogDroppedThunk = OnLogDropped;

        private static Room current;
        private static int exitHooked;
        private static Action<int, string> log;
        // Number of log callbacks of this domain that the library has: another domain may have replaced it.
        private static int logsRegistered;

        private readonly ActionQueue queue; // null: handlers run on the library's thread
        private bool closing; // guarded by queue
        private int overflowing; // guarded by queue: number of calls that wait for the library's thread, which must not wait meanwhile
        private int disposed;

        private Action<Message> messageReceived;
        private Dictionary<ushort, Action<Message>> typed = new Dictionary<ushort, Action<Message>>(); // replaced, never changed
        private Action<string> leaderChanged;
        private Action<bool> leadershipChanged;
        private Action<string, PeerStatus> peerStatusChanged;
        private Action<ConnectionResult> connectionResult;
        private Action<RoomEvent> happened, changed;
        private int receiveRegistered, leaderRegistered, leadershipRegistered, statusRegistered, resultRegistered;

        private Room(bool queueEvents)
        {
            queue = queueEvents ? new ActionQueue() : null;
        }

        /// <summary>
        /// Enters the room <paramref name="sessionId"/> as <paramref name="peerId"/>; handlers run on a thread of the library.
        /// </summary>
        /// <param name="peerId">1 to 64 bytes of UTF-8, unique in the room.</param>
        /// <param name="sessionId">1 to 128 bytes of UTF-8, the same at every member.</param>
        /// <param name="config">null for the defaults; else start from <see cref="NetworkConfig.Default"/>.</param>
        /// <param name="queueEvents">true: events wait for <see cref="Pump"/>.</param>
        /// <exception cref="NetworkException">-2 when this process is already in a room, -3 when an argument is invalid.</exception>
        public static Room Join(string peerId, string sessionId, NetworkConfig? config = null, bool queueEvents = false)
        {
            byte[] peer = Utf8.ToNative(peerId);
            byte[] session = Utf8.ToNative(sessionId);
            return Enter(queueEvents, () =>
            {
                if (!config.HasValue)
                {
                    return NativeMethods.InitializeNetwork(peer, session);
                }
                NetworkConfig value = config.Value;
                return NativeMethods.InitializeNetworkWithConfig(peer, session, ref value);
            });
        }

        /// <summary>
        /// Enters the room <paramref name="sessionId"/> with settings, by default in poll mode: handlers run on the thread that
        /// calls <see cref="Poll"/>, and on no other.
        /// </summary>
        /// <exception cref="NetworkException">-2 when this process is already in a room, -3 when an argument or a setting is
        /// invalid, -4 when the address or the port cannot be bound.</exception>
        public static Room Join(string peerId, string sessionId, RoomOptions options)
        {
            byte[] peer = Utf8.ToNative(peerId);
            byte[] session = Utf8.ToNative(sessionId);
            return Enter(false, () => options.Initialize(peer, session));
        }

        /// <summary>
        /// Enters a room with an initialization of your own: one of the Initialize functions of <see cref="NativeMethods"/>, whose
        /// code it returns.
        /// </summary>
        /// <exception cref="NetworkException">The code, if it is an error.</exception>
        public static Room Enter(bool queueEvents, Func<int> initialize)
        {
            // First: the hook does nothing without a room, and a room without a hook would survive its scripts.
            HookExit();
            Check(initialize());
            Room room = new Room(queueEvents);
            Volatile.Write(ref current, room);
            return room;
        }

        /// <summary>
        /// All events, messages included, in one order. The first subscription receives the present state: the leader, if
        /// one is known, and every member. A program that uses it needs no event below.
        /// </summary>
        public event Action<RoomEvent> Happened
        {
            add
            {
                Combine(ref happened, value);
                RegisterAllEvents();
            }
            remove { Subtract(ref happened, value); }
        }

        /// <summary>
        /// <see cref="Happened"/> without messages, for a program that receives messages by <see cref="DataReceived"/>. Subscribe to one of
        /// the two: the first subscription receives the present state.
        /// </summary>
        public event Action<RoomEvent> Changed
        {
            add
            {
                Combine(ref changed, value);
                RegisterAllEvents();
            }
            remove { Subtract(ref changed, value); }
        }

        /// <summary>
        /// A message from another member (or from this one, if it sent to itself) whose type has no handler of its own: a copy, yours to
        /// keep. <see cref="DataReceived"/> makes none.
        /// </summary>
        public event Action<Message> MessageReceived
        {
            add
            {
                Combine(ref messageReceived, value);
                Receive();
            }
            remove { Subtract(ref messageReceived, value); }
        }

        /// <summary>
        /// The handler of the messages of one type, which <see cref="MessageReceived"/> then does not report; null removes it.
        /// </summary>
        public void OnType(ushort type, Action<Message> handler)
        {
            if (type < FirstUserType)
            {
                throw new ArgumentOutOfRangeException("type", type, "Types below 0x0100 belong to the library.");
            }
            Dictionary<ushort, Action<Message>> seen, next;
            do
            {
                seen = Volatile.Read(ref typed);
                next = new Dictionary<ushort, Action<Message>>(seen);
                next.Remove(type);
                if (handler != null)
                {
                    next.Add(type, handler);
                }
            }
            while (Interlocked.CompareExchange(ref typed, next, seen) != seen);
            Receive();
        }

        private void Receive()
        {
            if (Interlocked.Exchange(ref receiveRegistered, 1) == 0)
            {
                Check(NativeMethods.RegisterReceiveCallback(ReceiveThunk));
            }
        }

        private void Route(Message message)
        {
            Action<Message> handler;
            Raise(Volatile.Read(ref typed).TryGetValue(message.Type, out handler) ? handler : messageReceived, message);
        }

        /// <summary>The leader's id; null when the room has none.</summary>
        public event Action<string> LeaderChanged
        {
            add
            {
                Combine(ref leaderChanged, value);
                if (Interlocked.Exchange(ref leaderRegistered, 1) == 0)
                {
                    Check(NativeMethods.RegisterLeaderChangedCallback(LeaderChangedThunk));
                }
            }
            remove { Subtract(ref leaderChanged, value); }
        }

        /// <summary>
        /// This member now leads (true), or no longer leads (false): alternately, each after its <see cref="LeaderChanged"/>. The
        /// first subscription receives true if this member leads already.
        /// </summary>
        public event Action<bool> LeadershipChanged
        {
            add
            {
                Combine(ref leadershipChanged, value);
                if (Interlocked.Exchange(ref leadershipRegistered, 1) == 0)
                {
                    Check(NativeMethods.RegisterLeadershipCallback(LeadershipThunk));
                }
            }
            remove { Subtract(ref leadershipChanged, value); }
        }

        /// <summary>A member's link came up (<see cref="PeerStatus.Connected"/>) or was lost (<see cref="PeerStatus.Disconnected"/>).</summary>
        public event Action<string, PeerStatus> PeerStatusChanged
        {
            add
            {
                Combine(ref peerStatusChanged, value);
                if (Interlocked.Exchange(ref statusRegistered, 1) == 0)
                {
                    Check(NativeMethods.RegisterPeerStatusCallback(PeerStatusThunk));
                }
            }
            remove { Subtract(ref peerStatusChanged, value); }
        }

        /// <summary>One event per successful call of <see cref="Connect"/>.</summary>
        public event Action<ConnectionResult> ConnectionResult
        {
            add
            {
                Combine(ref connectionResult, value);
                RegisterResults();
            }
            remove { Subtract(ref connectionResult, value); }
        }

        /// <summary>A handler threw. Without a subscriber the exception is written to standard error.</summary>
        public event Action<Exception> HandlerFailed;

        /// <summary>This member's id.</summary>
        public string PeerId
        {
            get { return CheckText(NativeMethods.GetLocalPeerId()); }
        }

        public string SessionId
        {
            get { return CheckText(NativeMethods.GetSessionId()); }
        }

        /// <summary>An address that another member can pass to <see cref="Connect"/>.</summary>
        public string LocalAddress
        {
            get { return CheckText(NativeMethods.GetLocalAddr()); }
        }

        /// <summary>All such addresses, the likeliest first, each followed by a blank and the name of its interface.</summary>
        public string[] LocalAddresses
        {
            get { return CheckText(NativeMethods.GetLocalAddresses()).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The ids of the connected members, without this one, sorted.</summary>
        public string[] Peers
        {
            get { return CheckText(NativeMethods.GetPeerList()).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The ids of the connected and the reconnecting members, sorted.</summary>
        public string[] Members
        {
            get { return CheckText(NativeMethods.GetMembers()).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The index of a member: a number from 1, from its Joined to its Left event, which no earlier member had. 0 for others.</summary>
        public uint IndexOf(string peerId)
        {
            return NativeMethods.GetPeerIndex(Utf8.ToNative(peerId));
        }

        /// <summary>The member with this index; null for none.</summary>
        public string PeerAt(uint index)
        {
            return Utf8.FromNative(NativeMethods.GetPeerIdByIndex(index));
        }

        /// <summary>The address at which a member accepts links, for <see cref="Connect"/>; null for one that is not in the room.</summary>
        public string AddressOf(string peerId)
        {
            return Utf8.FromNative(NativeMethods.GetPeerAddress(Utf8.ToNative(peerId)));
        }

        /// <summary>The SHA-256 of a member's key, in 64 hexadecimal digits; null for one that is not in the room.</summary>
        public string FingerprintOf(string peerId)
        {
            return Utf8.FromNative(NativeMethods.GetPeerFingerprint(Utf8.ToNative(peerId)));
        }

        /// <summary>The SHA-256 of this member's key, in 64 hexadecimal digits.</summary>
        public string IdentityFingerprint
        {
            get { return CheckText(NativeMethods.GetIdentityFingerprint()); }
        }

        /// <summary>A new private key for <see cref="RoomOptions.IdentityKey"/>. A host that keeps it is the same member at every start.</summary>
        public static byte[] GenerateIdentityKey()
        {
            byte[] key = new byte[NativeMethods.IdentityKeyBytes];
            Check(NativeMethods.GenerateIdentityKey(key, key.Length));
            return key;
        }

        /// <summary>The leader's id; null when there is none.</summary>
        public string Leader
        {
            get { return NullIfEmpty(CheckText(NativeMethods.GetCurrentLeader())); }
        }

        public bool IsLeader
        {
            get { return NativeMethods.IsLeader() != 0; }
        }

        /// <summary>The round-trip time in milliseconds; -1 for an unknown member, and until it is measured.</summary>
        public int RoundTripMs(string peerId)
        {
            return NativeMethods.GetPeerRTT(Utf8.ToNative(peerId, ref idBuffer));
        }

        public PeerStatus StatusOf(string peerId)
        {
            return (PeerStatus)NativeMethods.GetPeerStatus(Utf8.ToNative(peerId, ref idBuffer));
        }

        /// <summary>Dials <c>ip:port</c>, <c>[v6]:port</c> or <c>name:port</c>. The outcome is a <see cref="ConnectionResult"/> event.</summary>
        public void Connect(string address)
        {
            Check(NativeMethods.ConnectToPeer(Utf8.ToNative(address)));
        }

        public void Disconnect(string peerId)
        {
            Check(NativeMethods.DisconnectPeer(Utf8.ToNative(peerId)));
        }

        /// <summary>Ends the link with a member, with a reason for its host: a code and up to 3072 bytes.</summary>
        public void Disconnect(string peerId, int code, byte[] data = null)
        {
            Check(NativeMethods.DisconnectPeerEx(Utf8.ToNative(peerId), code, data, LengthOf(data)));
        }

        /// <summary>Makes the member, which may be this one, the room's leader.</summary>
        public void SetLeader(string peerId)
        {
            Check(NativeMethods.SetLeader(Utf8.ToNative(peerId)));
        }

        /// <summary>Whether this member campaigns when the room has no leader.</summary>
        public void SetAutoElection(bool enabled)
        {
            Check(NativeMethods.EnableAutoLeaderElection(Flag(enabled)));
        }

        /// <summary>Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority.</summary>
        public void SetLeaderEligible(bool eligible)
        {
            Check(NativeMethods.SetLeaderEligible(Flag(eligible)));
        }

        /// <summary>Transfers the leadership to a member; this one leads until that one is elected. Leader only (-6).</summary>
        public void TransferLeadership(string peerId)
        {
            Check(NativeMethods.TransferLeadership(Utf8.ToNative(peerId)));
        }

        /// <summary>
        /// Transfers the leadership to the member that elections prefer. Leader only (-6); -5 when no member may lead. With gossip this
        /// member stops leading at once, and does not lead again for a while; with etcd it goes to the end of the line.
        /// </summary>
        public void YieldLeadership()
        {
            Check(NativeMethods.YieldLeadership());
        }

        /// <summary>Priority of this member in elections: the highest goes first, of equal ones the largest id. 0 is the default.</summary>
        public void SetElectionPriority(int priority)
        {
            Check(NativeMethods.SetElectionPriority(priority));
        }

        /// <summary>The term of the newest claim to lead; compare <see cref="LeaderEpoch"/> first.</summary>
        public long LeaderTerm
        {
            get { return NativeMethods.GetLeaderTerm(); }
        }

        /// <summary>The number of <see cref="SetLeader"/> calls that the newest claim to lead builds on.</summary>
        public long LeaderEpoch
        {
            get { return NativeMethods.GetLeaderEpoch(); }
        }

        /// <summary>The election strategy: an <see cref="MetaMystia.Network.ElectionStrategy"/>.</summary>
        public int ElectionStrategy
        {
            get { return NativeMethods.GetElectionStrategy(); }
        }

        /// <summary>
        /// With <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/> a <see cref="MetaMystia.Network.MemberState"/>, of this member, too;
        /// with others, and for a text that is no id, -1.
        /// </summary>
        public int StateOf(string peerId)
        {
            return NativeMethods.GetMemberState(Utf8.ToNative(peerId));
        }

        /// <summary>With <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/> the version of the cluster; with others -1.</summary>
        public long ClusterVersion
        {
            get { return NativeMethods.GetClusterVersion(); }
        }

        /// <summary>With <see cref="MetaMystia.Network.ElectionStrategy.Etcd"/> the token of this member's leadership, 0 while it does not lead; with others -1.</summary>
        public long FencingToken
        {
            get { return NativeMethods.GetFencingToken(); }
        }

        /// <summary>Sets the text that clients of etcd read of this member while it leads.</summary>
        public void Proclaim(string value)
        {
            Check(NativeMethods.Proclaim(Utf8.ToNative(value)));
        }

        /// <summary>
        /// Acquires a lock of etcd. The outcome is an <see cref="EventKind.LockResult"/> with the returned number. A timeout of 0 is none.
        /// </summary>
        public ulong AcquireLock(string name, uint timeoutMs = 0)
        {
            ulong request = 0;
            Check(NativeMethods.AcquireLock(Utf8.ToNative(name), timeoutMs, ref request));
            return request;
        }

        /// <summary>Acquires a lock as <see cref="AcquireLock"/> does, if it is free.</summary>
        public ulong TryLock(string name)
        {
            ulong request = 0;
            Check(NativeMethods.TryLock(Utf8.ToNative(name), ref request));
            return request;
        }

        /// <summary>Releases a lock, or stops waiting for it.</summary>
        public void ReleaseLock(string name)
        {
            Check(NativeMethods.ReleaseLock(Utf8.ToNative(name)));
        }

        /// <summary>Whether the library dials lost members again (the default) or treats every loss as a leave.</summary>
        public bool AutoReconnect
        {
            get { return NativeMethods.IsAutoReconnectEnabled() != 0; }
            set { Check(NativeMethods.SetAutoReconnect(Flag(value))); }
        }

        /// <summary>As <see cref="Kick"/>; unless it is banned, the member may come back.</summary>
        public void KickEx(string peerId, bool ban, int code = 0, byte[] data = null)
        {
            Check(NativeMethods.KickPeerEx(Utf8.ToNative(peerId), ban ? NativeMethods.KickBan : 0, code, data, LengthOf(data)));
        }

        /// <summary>Lifts the ban of an id and of its keys. Leader only (-6); -5 when it is not banned.</summary>
        public void Unban(string peerId)
        {
            Check(NativeMethods.UnbanPeer(Utf8.ToNative(peerId)));
        }

        /// <summary>Removes a member until <see cref="Unban"/> or the room's end; its host receives the code and up to 3072 bytes. Leader only (-6).</summary>
        public void Kick(string peerId, int code = 0, byte[] data = null)
        {
            Check(NativeMethods.KickPeer(Utf8.ToNative(peerId), code, data, LengthOf(data)));
        }

        /// <summary>Limits the other members of each member; 0 is no limit. Removes no member. Leader only (-6).</summary>
        public void SetMaxPeers(uint maxPeers)
        {
            Check(NativeMethods.SetMaxPeers(maxPeers));
        }

        /// <summary>The payload that the leader's host receives when this member asks to join, up to 16384 bytes; null is none.</summary>
        public void SetJoinPayload(byte[] data)
        {
            Check(NativeMethods.SetJoinPayload(data, LengthOf(data)));
        }

        /// <summary>
        /// Whether this host decides about admission while this member leads: each newcomer is then an <see cref="EventKind.JoinRequest"/>, which
        /// the host answers within the handshake timeout. Set it on every member that may come to lead.
        /// </summary>
        public void EnableJoinRequests(bool enabled)
        {
            Check(NativeMethods.EnableJoinRequests(Flag(enabled)));
        }

        /// <summary>Admits a newcomer. -5 when the request was already answered, or has expired.</summary>
        public void AcceptJoin(ulong request)
        {
            Check(NativeMethods.AcceptJoin(request));
        }

        /// <summary>Refuses a newcomer, which receives the code and up to 3072 bytes. -5 as <see cref="AcceptJoin"/>.</summary>
        public void RejectJoin(ulong request, int code = 0, byte[] data = null)
        {
            Check(NativeMethods.RejectJoin(request, code, data, LengthOf(data)));
        }

        /// <summary>Whether broadcasts of this member go through the leader.</summary>
        public bool Centralized
        {
            get { return NativeMethods.IsCentralizedMode() != 0; }
            set { Check(NativeMethods.SetCentralizedMode(Flag(value))); }
        }

        /// <summary>Whether this member, while it leads, relays the broadcasts of others, or leaves that to <see cref="Forward"/>.</summary>
        public bool CentralizedAutoForward
        {
            get { return NativeMethods.IsCentralizedAutoForward() != 0; }
            set { Check(NativeMethods.SetCentralizedAutoForward(Flag(value))); }
        }

        /// <summary>The payload length in bytes above which the library compresses, if that makes it shorter; <c>uint.MaxValue</c> is never.</summary>
        public void SetCompressionThreshold(uint bytes)
        {
            Check(NativeMethods.SetCompressionThreshold(bytes));
        }

        /// <summary>
        /// Simulates a bad network, for tests of a game: every packet that this member sends waits <paramref name="lagMs"/> and up to
        /// <paramref name="jitterMs"/> more (at most 10000 each), and <paramref name="lossPermille"/> packets in a thousand are lost. Three zeros
        /// end it.
        /// </summary>
        public void SimulateNetwork(uint lagMs, uint jitterMs, uint lossPermille)
        {
            Check(NativeMethods.SetNetworkSimulation(lagMs, jitterMs, lossPermille));
        }

        /// <summary>Whether this member is announced in the local network.</summary>
        public bool IsDiscovering
        {
            get { return NativeMethods.IsMdnsActive() != 0; }
        }

        /// <summary>Statistics of the link and the queue to a member; -5 when it is not one.</summary>
        public PeerStats StatsOf(string peerId)
        {
            PeerStats stats = PeerStats.Empty();
            Check(NativeMethods.GetPeerStats(Utf8.ToNative(peerId), ref stats));
            return stats;
        }

        /// <summary>Statistics of the room at this member: the members without a link to it, and the broadcasts that they missed.</summary>
        public RoomStats Stats
        {
            get
            {
                RoomStats stats = RoomStats.Empty();
                Check(NativeMethods.GetRoomStats(ref stats));
                return stats;
            }
        }

        /// <summary>The longest unreliable message for a member, or (null) for a broadcast, in bytes; -1 when the member is not connected, or none is.</summary>
        public int MaxDatagramSize(string peerId = null)
        {
            return NativeMethods.GetMaxDatagramSize(Utf8.ToNative(peerId, ref idBuffer));
        }

        /// <summary>
        /// Runs the handlers of the queued events, on the calling thread, and returns their number. Only for rooms joined with
        /// <c>queueEvents: true</c>.
        /// </summary>
        public int Pump(int max = int.MaxValue)
        {
            if (queue == null)
            {
                throw new InvalidOperationException("Join the room with queueEvents: true to pump its events.");
            }
            int ran = 0;
            while (ran < max)
            {
                Action next;
                lock (queue)
                {
                    if (queue.Count == 0)
                    {
                        break;
                    }
                    next = queue.Dequeue();
                    Monitor.PulseAll(queue);
                }
                Guarded(next);
                ran++;
            }
            return ran;
        }

        /// <summary>
        /// In poll mode, runs the handlers of up to <paramref name="max"/> queued events, on the calling thread, and returns their
        /// number. Never waits. Call it once per frame, also during loading screens: a member that takes no events slows the senders.
        /// </summary>
        /// <exception cref="NetworkException">-3 when the room is not in poll mode or <paramref name="max"/> is not above 0, -15
        /// inside a handler and while another thread polls.</exception>
        public int Poll(int max = int.MaxValue)
        {
            int ran = NativeMethods.PollEvents(max);
            Check(ran);
            return ran;
        }

        /// <summary>
        /// Leaves the room and releases everything; takes at most about 2 s. After it returns, no handler runs. It waits for a running
        /// handler, which therefore must not wait for the thread that disposes.
        /// </summary>
        /// <exception cref="NetworkException">-15 when called inside a handler on the library's thread; the room stays open.</exception>
        public void Dispose()
        {
            if (Interlocked.Exchange(ref disposed, 1) != 0)
            {
                return;
            }
            // The library's thread may be waiting for space in the queue, and the shutdown waits for that thread.
            SetClosing(true);
            int code = NativeMethods.ShutdownNetwork();
            if (code == ErrorCode.WouldDeadlock)
            {
                NetworkException refused = LastError(code);
                SetClosing(false);
                Interlocked.Exchange(ref disposed, 0);
                throw refused;
            }
            // A new room may have been joined on another thread since the shutdown.
            Interlocked.CompareExchange(ref current, null, this);
            EndDials();
        }

        /// <summary>Logs to standard error, on and off at any time.</summary>
        public static void EnableLogging(bool enabled)
        {
            Check(NativeMethods.EnableLogging(Flag(enabled)));
        }

        /// <summary>
        /// Passes the library's log up to <paramref name="level"/> (a <see cref="LogLevel"/>) to a function; null removes it. It runs on any
        /// thread, on several at a time, and may call only queries.
        /// </summary>
        public static void SetLog(int level, Action<int, string> handler)
        {
            if (handler == null)
            {
                Check(NativeMethods.RegisterLogCallback(level, null, IntPtr.Zero, null));
                Volatile.Write(ref log, null);
                return;
            }
            HookExit();
            Volatile.Write(ref log, handler);
            Interlocked.Increment(ref logsRegistered);
            int code = NativeMethods.RegisterLogCallback(level, LogThunk, IntPtr.Zero, LogDroppedThunk);
            if (code < 0)
            {
                Interlocked.Decrement(ref logsRegistered);
            }
            Check(code);
        }

        /// <summary>The library's name for a code.</summary>
        public static string Describe(int code)
        {
            return Utf8.FromNative(NativeMethods.DescribeError(code));
        }

        [MonoPInvokeCallback(typeof(ReceiveCallback))]
        private static void OnReceive(IntPtr peerId, IntPtr data, int length, ushort messageType, byte flags)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                Message message = new Message();
                message.From = Utf8.FromNative(peerId);
                message.Data = Utf8.Bytes(data, length);
                message.Type = messageType;
                message.Flags = flags;
                room.Deliver(() => room.Route(message));
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        [MonoPInvokeCallback(typeof(LeaderChangedCallback))]
        private static void OnLeaderChanged(IntPtr leaderId)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                string leader = NullIfEmpty(Utf8.FromNative(leaderId));
                room.Deliver(() => Raise(room.leaderChanged, leader));
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        [MonoPInvokeCallback(typeof(LeadershipCallback))]
        private static void OnLeadership(byte isLeader)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                bool leads = isLeader != 0;
                room.Deliver(() => Raise(room.leadershipChanged, leads));
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        [MonoPInvokeCallback(typeof(PeerStatusCallback))]
        private static void OnPeerStatus(IntPtr peerId, int status)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                string peer = Utf8.FromNative(peerId);
                room.Deliver(() =>
                {
                    Action<string, PeerStatus> handler = room.peerStatusChanged;
                    if (handler != null)
                    {
                        handler(peer, (PeerStatus)status);
                    }
                });
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        [MonoPInvokeCallback(typeof(ConnectionResultCallback))]
        private static void OnConnectionResult(IntPtr address, byte success, int code)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                ConnectionResult result = new ConnectionResult();
                result.Address = Utf8.FromNative(address);
                result.Success = success != 0;
                result.Code = code;
                room.Deliver(() =>
                {
                    room.Settle(result);
                    Raise(room.connectionResult, result);
                });
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        [MonoPInvokeCallback(typeof(EventCallback))]
        private static void OnEvent(IntPtr userData, IntPtr networkEvent)
        {
            Room room = Volatile.Read(ref current);
            if (room == null)
            {
                return;
            }
            try
            {
                uint kind = NetworkEvent.KindOf(networkEvent);
                if (kind == EventKind.Message)
                {
                    room.OnMessage(networkEvent);
                }
                if (userData == (IntPtr)AllEvents && (room.happened != null || (room.changed != null && kind != EventKind.Message)))
                {
                    room.OnHappened(networkEvent);
                }
                if (kind == EventKind.Left)
                {
                    room.names.Forget(NetworkEvent.PeerOf(networkEvent));
                }
            }
            catch (Exception exception)
            {
                room.Surface(exception);
            }
        }

        private void OnHappened(IntPtr networkEvent)
        {
            NetworkEvent native = NetworkEvent.At(networkEvent);
            RoomEvent copy = new RoomEvent();
            copy.Kind = native.Kind;
            copy.Peer = Utf8.FromNative(native.Peer);
            copy.Other = Utf8.FromNative(native.Other);
            copy.Data = native.Bytes();
            copy.Reason = native.Reason;
            copy.Code = native.Code;
            copy.Success = native.Success != 0;
            copy.MessageType = native.MessageType;
            copy.Flags = native.Flags;
            copy.Channel = native.Channel;
            copy.DeliveryMode = native.Delivery;
            copy.Undelivered = native.Count;
            copy.Missed = native.Missed;
            copy.PeerIndex = native.PeerIndex;
            copy.FoundBy = native.FoundBy;
            copy.Request = native.Request;
            copy.Term = native.Term;
            copy.Epoch = native.Epoch;
            Deliver(() =>
            {
                Raise(happened, copy);
                if (copy.Kind != EventKind.Message)
                {
                    Raise(changed, copy);
                }
            });
        }

        [MonoPInvokeCallback(typeof(LogCallback))]
        private static void OnLog(IntPtr userData, int level, IntPtr message)
        {
            try
            {
                Action<int, string> handler = Volatile.Read(ref log);
                if (handler != null)
                {
                    handler(level, Utf8.FromNative(message));
                }
            }
            catch (Exception)
            {
                // A log that cannot be written must not end the game, and this error has no other place to go.
            }
        }

        [MonoPInvokeCallback(typeof(DropCallback))]
        private static void OnLogDropped(IntPtr userData)
        {
            Interlocked.Decrement(ref logsRegistered);
        }

        private void Deliver(Action run)
        {
            if (queue == null)
            {
                run();
                return;
            }
            lock (queue)
            {
                while (queue.Count >= QueueCapacity && overflowing == 0 && !closing)
                {
                    Monitor.Wait(queue);
                }
                if (!closing)
                {
                    queue.Enqueue(run);
                }
            }
        }

        private void SetClosing(bool value)
        {
            if (queue == null)
            {
                return;
            }
            lock (queue)
            {
                closing = value;
                if (value)
                {
                    queue.Clear();
                }
                Monitor.PulseAll(queue);
            }
        }

        private void AllowOverflow(int change)
        {
            if (queue == null)
            {
                return;
            }
            lock (queue)
            {
                overflowing += change;
                Monitor.PulseAll(queue);
            }
        }

        private void Guarded(Action run)
        {
            try
            {
                run();
            }
            catch (Exception exception)
            {
                Surface(exception);
            }
        }

        // The last handler before native frames: no exception may leave this method.
        private void Surface(Exception exception)
        {
            try
            {
                Action<Exception> handler = HandlerFailed;
                if (handler != null)
                {
                    handler(exception);
                }
                else
                {
                    Console.Error.WriteLine("meta_mystia_network: an event handler failed: " + exception);
                }
            }
            catch (Exception)
            {
            }
        }

        private static void Raise<T>(Action<T> handler, T argument)
        {
            if (handler != null)
            {
                handler(argument);
            }
        }

        // Lock-free, because a running handler could need a lock that is held during a call of the library.
        private static void Combine<T>(ref T field, T value) where T : class
        {
            T seen;
            do
            {
                seen = Volatile.Read(ref field);
            }
            while (Interlocked.CompareExchange(ref field, (T)(object)Delegate.Combine((Delegate)(object)seen, (Delegate)(object)value), seen) != seen);
        }

        private static void Subtract<T>(ref T field, T value) where T : class
        {
            T seen;
            do
            {
                seen = Volatile.Read(ref field);
            }
            while (Interlocked.CompareExchange(ref field, (T)(object)Delegate.Remove((Delegate)(object)seen, (Delegate)(object)value), seen) != seen);
        }

        // Without this, a process that ends, or a Unity editor that reloads its scripts, would leave the library's threads calling methods
        // that no longer exist.
        private static void HookExit()
        {
            if (Interlocked.Exchange(ref exitHooked, 1) != 0)
            {
                return;
            }
            AppDomain.CurrentDomain.ProcessExit += OnExit;
            AppDomain.CurrentDomain.DomainUnload += OnExit;
            HookLoadContext();
        }

        // CoreCLR has one domain, and unloads AssemblyLoadContexts. The other runtimes have no such type, and C# of this version
        // may be compiled without it.
        private static void HookLoadContext()
        {
            try
            {
                Type type = Type.GetType("System.Runtime.Loader.AssemblyLoadContext, System.Private.CoreLib");
                if (type == null)
                {
                    return;
                }
                object context = type.GetMethod("GetLoadContext").Invoke(null, new object[] { typeof(Room).Assembly });
                EventInfo unloading = type.GetEvent("Unloading");
                MethodInfo handler = typeof(Room).GetMethod("OnUnloading", BindingFlags.NonPublic | BindingFlags.Static);
                unloading.AddEventHandler(context, Delegate.CreateDelegate(unloading.EventHandlerType, handler));
            }
            catch (Exception)
            {
                // A runtime that hides it does not unload it either.
            }
        }

        private static void OnExit(object sender, EventArgs arguments)
        {
            Volatile.Write(ref domainEnds, 1);
            Withdraw();
        }

        private static void OnUnloading(object context)
        {
            // The domain outlives the context, and would keep it.
            AppDomain.CurrentDomain.ProcessExit -= OnExit;
            AppDomain.CurrentDomain.DomainUnload -= OnExit;
            Withdraw();
        }

        // Unregisters every callback: when this returns, the library has no reference to this domain.
        private static void Withdraw()
        {
            try
            {
                Room room = Volatile.Read(ref current);
                if (room != null)
                {
                    room.Guarded(room.Leave);
                }
                if (Volatile.Read(ref logsRegistered) > 0)
                {
                    NativeMethods.RegisterLogCallback(LogLevel.Off, null, IntPtr.Zero, null);
                }
            }
            catch (Exception)
            {
                // The process or the domain ends: no code is left to notify.
            }
        }

        // Unloaded inside a handler, where leaving is refused: the room stays, but calls no handler.
        private void Leave()
        {
            try
            {
                Dispose();
            }
            catch (NetworkException)
            {
                NativeMethods.RegisterEventHandler(null, IntPtr.Zero, null);
                NativeMethods.RegisterReceiveCallback(null);
                NativeMethods.RegisterLeaderChangedCallback(null);
                NativeMethods.RegisterLeadershipCallback(null);
                NativeMethods.RegisterPeerStatusCallback(null);
                NativeMethods.RegisterConnectionResultCallback(null);
            }
        }

        private static byte Flag(bool value)
        {
            return value ? (byte)1 : (byte)0;
        }

        private static int LengthOf(byte[] data)
        {
            return data == null ? 0 : data.Length;
        }

        private static string NullIfEmpty(string text)
        {
            return string.IsNullOrEmpty(text) ? null : text;
        }

        internal static void Check(int code)
        {
            if (code < 0)
            {
                throw LastError(code);
            }
        }

        private static string CheckText(IntPtr text)
        {
            if (text == IntPtr.Zero)
            {
                throw LastError(NativeMethods.GetLastErrorCode());
            }
            return Utf8.FromNative(text);
        }

        private static NetworkException LastError(int code)
        {
            return new NetworkException(code, Utf8.FromNative(NativeMethods.GetLastErrorMessage()));
        }
    }

    // System.Collections.Generic.Queue: in Mono it is in mscorlib, elsewhere in System. An assembly that Mono's compiler made with it would
    // not load in .NET.
    internal sealed class ActionQueue
    {
        private Action[] actions = new Action[16]; // a power of two
        private int first;

        internal int Count { get; private set; }

        internal void Enqueue(Action action)
        {
            if (Count == actions.Length)
            {
                Action[] longer = new Action[2 * Count];
                Array.Copy(actions, first, longer, 0, Count - first);
                Array.Copy(actions, 0, longer, Count - first, first);
                actions = longer;
                first = 0;
            }
            actions[(first + Count) & (actions.Length - 1)] = action;
            Count++;
        }

        internal Action Dequeue()
        {
            Action action = actions[first];
            actions[first] = null;
            first = (first + 1) & (actions.Length - 1);
            Count--;
            return action;
        }

        internal void Clear()
        {
            Array.Clear(actions, 0, actions.Length);
            first = Count = 0;
        }
    }
}
