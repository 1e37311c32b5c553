using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;

namespace MetaMystia.Network
{
    /// <summary>The options of a message: <c>Delivery.Sequenced(unit)</c>. The default is a reliable message in the order of the calls.</summary>
    public struct Delivery
    {
        private static readonly uint OptionsSize = (uint)Marshal.SizeOf(typeof(SendOptions));

        internal DeliveryMode Mode;
        internal ulong Key;
        /// <summary>Channel, which the receiver sees in <see cref="Message.Channel"/>. With ReliableOrdered each channel keeps its own order.</summary>
        public byte Channel;
        /// <summary>0 is normal; higher ones go first: NativeMethods.PriorityLow (-1) to NativeMethods.PriorityHighest (2).</summary>
        public sbyte Priority;
        /// <summary>Lifetime of the message, in milliseconds; 0 is unlimited. Unreliable and Sequenced only.</summary>
        public uint TtlMs;

        /// <summary>Each message arrives once, in the order of the calls with that channel.</summary>
        public static Delivery ReliableOrdered(byte channel = 0)
        {
            return new Delivery { Mode = DeliveryMode.ReliableOrdered, Channel = channel };
        }

        /// <summary>Each message arrives once, and waits for no other.</summary>
        public static Delivery ReliableUnordered(byte channel = 0)
        {
            return new Delivery { Mode = DeliveryMode.ReliableUnordered, Channel = channel };
        }

        /// <summary>A message arrives once or is lost. At most <see cref="Room.MaxDatagramSize"/> bytes.</summary>
        public static Delivery Unreliable(byte channel = 0)
        {
            return new Delivery { Mode = DeliveryMode.Unreliable, Channel = channel };
        }

        /// <summary>As <see cref="Unreliable"/>, and the receiver drops a message that is older than the newest of its key.</summary>
        public static Delivery Sequenced(ulong key, byte channel = 0)
        {
            return new Delivery { Mode = DeliveryMode.Sequenced, Key = key, Channel = channel };
        }

        internal SendOptions Options(byte userFlags, byte flags = 0)
        {
            SendOptions options = new SendOptions();
            options.StructSize = OptionsSize;
            options.Delivery = Mode;
            options.Channel = Channel;
            options.Priority = Priority;
            options.Flags = flags;
            options.TtlMs = TtlMs;
            options.UserFlags = userFlags;
            options.Key = Key;
            return options;
        }
    }

    /// <summary>Settings to enter a room. Settings that you do not change keep the library's defaults, except that <see cref="Poll"/> is on.</summary>
    public sealed class RoomOptions
    {
        /// <summary>Every setting that needs no memory of its own. <see cref="Room.Join(string, string, RoomOptions, Action{Room})"/> sets the handler, the pointers, the lengths and the dispatch mode.</summary>
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
        /// <summary>The relays where the members of the room meet, one or two, each as <c>host:port [key=FINGERPRINT] [token=TOKEN]</c>; null is none. The session id is then a code of <see cref="Room.CreateCode"/>, however the player writes it. One text with a relay a line also works: <c>new[] { text }</c>.</summary>
        public IEnumerable<string> Relays;

        /// <summary>
        /// TURN servers for members whose network lets no UDP out, in order of preference: each <c>turns:host:443 username=NAME
        /// password=PASSWORD</c>, as <c>MmnOptions.turn</c> describes. Null contacts none.
        /// </summary>
        public IEnumerable<string> Turn;
        /// <summary>The settings of <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/>; null with any other strategy.</summary>
        public SeededOptions? Seeded;
        /// <summary>With <see cref="Seeded"/>: the addresses of the seeds, as <see cref="Room.Connect"/> takes them.</summary>
        public IEnumerable<string> Seeds;
        /// <summary>The settings of <see cref="MetaMystia.Network.ElectionStrategy.Etcd"/>; null with any other strategy.</summary>
        public EtcdSettings Etcd;
        /// <summary>The settings of the room's state: <c>new StateOptions()</c> for the defaults, the same for all members. Null is a room without a state.</summary>
        public StateOptions? State;
        /// <summary>A file for a trace of the elections; null is none.</summary>
        public string TracePath;

        // The settings of the published library: those of the struct, and discovery in the local network.
        internal static RoomOptions Of(NetworkConfig? config, bool poll)
        {
            RoomOptions options = new RoomOptions();
            options.Poll = poll;
            if (config.HasValue)
            {
                options.Settings.Apply(config.Value);
            }
            options.Settings.DiscoveryMode = options.Settings.MdnsPort == 0 ? DiscoveryMode.Off : DiscoveryMode.Connect;
            return options;
        }

        // Opens a room whose events go to a handler. On failure the library does not use the handler's data.
        internal int Open(byte[] peer, byte[] session, bool takesMessages, EventCallback handler, IntPtr userData, DropCallback drop, ref ulong room)
        {
            NetworkOptions options = Settings;
            options.OnEvent = handler;
            options.UserData = userData;
            options.DropFunction = drop;
            options.DispatchMode = Poll ? DispatchMode.Poll : DispatchMode.Thread;
            options.HoldMessages = takesMessages ? options.HoldMessages : 1;
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
                options.Relays = Pin(pinned, Utf8.ToNative(Relays == null ? null : string.Join("\n", Relays)));
                options.Turn = Pin(pinned, Utf8.ToNative(Turn == null ? null : string.Join("\n", Turn)));
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
                if (State.HasValue)
                {
                    pinned.Add(GCHandle.Alloc(State.Value.Filled(), GCHandleType.Pinned));
                    options.State = pinned[pinned.Count - 1].AddrOfPinnedObject();
                }
                return NativeMethods.mmn_open(peer, session, ref options, ref room);
            }
            finally
            {
                foreach (GCHandle handle in pinned)
                {
                    handle.Free();
                }
            }
        }

        internal static IntPtr Pin(List<GCHandle> pinned, byte[] bytes)
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
    /// A room that this process is in: <see cref="Join(string, string, RoomOptions, Action{Room})"/> enters it, <see cref="Dispose"/>
    /// leaves it. A process may be in several rooms at a time, each with its own object, threads and socket.
    /// </summary>
    /// <remarks>
    /// <para>All members may be used from any thread, and from inside event handlers, except that <see cref="Dispose"/> and
    /// <see cref="Poll"/> are refused (-15) inside a handler of any room; <see cref="Leave"/> is not. After <see cref="Dispose"/> a
    /// call is -1 NotInitialized, and a query has no answer.</para>
    /// <para>A room stays open until it is disposed of, or its scripts are unloaded, or the process ends: also if the program has
    /// no reference to it.</para>
    /// <para>Handlers run one at a time, in order, on a thread of the library. A host that must handle them on its own thread
    /// (Unity's main thread) joins with <see cref="RoomOptions"/> and calls <see cref="Poll"/> once per frame.</para>
    /// <para>An exception from a handler never reaches native code; <see cref="HandlerFailed"/> receives it.</para>
    /// <para>The first subscription to an event receives the present state: the leader, if one is known, and every connected peer.
    /// Reliable messages wait for the first handler of messages, for 5 s after Join, and slow their senders down; later ones without a
    /// handler are discarded. A handler that must miss nothing, such as the result of a dial, is subscribed in the <c>subscribe</c>
    /// function of Join.</para>
    /// </remarks>
    public sealed partial class Room : IDisposable
    {
        /// <summary>Message types below this one belong to the library.</summary>
        public const ushort FirstUserType = 0x0100;

        // Static, so that the garbage collector never collects them while the library may call them, and because IL2CPP makes native entry
        // points for static methods only.
        private static readonly EventCallback EventThunk = OnEvent;
        internal static readonly DropCallback DropThunk = OnDropped;
        private static readonly LogCallback LogThunk = OnLog;
        private static readonly DropCallback LogDroppedThunk = OnLogDropped;

        // Guarded by itself. The rooms of this domain that are not disposed of.
        private static readonly List<Room> rooms = new List<Room>();
        private static int exitHooked;
        private static Action<int, string> log;
        // Number of log callbacks of this domain that the library has: another domain may have replaced it.
        private static int logsRegistered;

        private ulong handle;
        private int disposed;
        private RoomState state; // null in a room without a state

        private Room()
        {
        }

        /// <summary>
        /// Enters the room <paramref name="sessionId"/> as <paramref name="peerId"/>; handlers run on a thread of the library.
        /// </summary>
        /// <param name="peerId">1 to 64 bytes of UTF-8, unique in the room.</param>
        /// <param name="sessionId">1 to 128 bytes of UTF-8, the same at every member.</param>
        /// <param name="config">null for the defaults; else start from <see cref="NetworkConfig.Default"/>.</param>
        /// <param name="queueEvents">true: handlers run inside <see cref="Poll"/>.</param>
        /// <exception cref="NetworkException">-3 when an argument is invalid, -4 when no socket could be opened, -13 when the process is
        /// in 4096 rooms.</exception>
        public static Room Join(string peerId, string sessionId, NetworkConfig? config = null, bool queueEvents = false)
        {
            return Open(peerId, sessionId, RoomOptions.Of(config, queueEvents), null);
        }

        /// <summary>
        /// Enters the room <paramref name="sessionId"/> with settings, by default in poll mode: handlers run on the thread that
        /// calls <see cref="Poll"/>, and on no other.
        /// </summary>
        /// <param name="peerId">1 to 64 bytes of UTF-8, unique in the room.</param>
        /// <param name="sessionId">1 to 128 bytes of UTF-8, the same at every member.</param>
        /// <param name="options">The settings; one object serves any number of rooms.</param>
        /// <param name="subscribe">Runs before the room opens, so that its handlers miss no event; null is none. In poll mode no event
        /// precedes the first <see cref="Poll"/>, so subscribing before that is enough, to messages within 5 s.</param>
        /// <exception cref="NetworkException">-3 when an argument or a setting is invalid, -4 when the address or the port cannot be
        /// bound, -13 when the process is in 4096 rooms.</exception>
        public static Room Join(string peerId, string sessionId, RoomOptions options, Action<Room> subscribe = null)
        {
            if (options == null)
            {
                throw new ArgumentNullException("options");
            }
            return Open(peerId, sessionId, options, subscribe);
        }

        private static Room Open(string peerId, string sessionId, RoomOptions options, Action<Room> subscribe)
        {
            byte[] peer = Utf8.ToNative(peerId);
            byte[] session = Utf8.ToNative(sessionId);
            // First: a room without a hook would survive its scripts.
            HookExit();
            Room room = new Room();
            if (options.State.HasValue)
            {
                room.state = new RoomState(room, peerId);
            }
            if (subscribe != null)
            {
                subscribe(room);
            }
            lock (rooms)
            {
                rooms.Add(room);
            }
            // Freed by the library's call of DropThunk, or here if the library has not taken it.
            GCHandle self = GCHandle.Alloc(room);
            int code = options.Open(peer, session, room.takesMessages, EventThunk, GCHandle.ToIntPtr(self), DropThunk, ref room.handle);
            if (code < 0)
            {
                NetworkException refused = LastError(code);
                self.Free();
                room.Forget();
                throw refused;
            }
            return room;
        }

        private void Forget()
        {
            lock (rooms)
            {
                rooms.Remove(this);
            }
        }

        /// <summary>The number of the room, for the functions of <see cref="NativeMethods"/>. No later room of the process has it.</summary>
        public ulong Handle
        {
            get { return handle; }
        }

        /// <summary>Whether the room is open: until <see cref="Leave"/> or <see cref="Dispose"/>.</summary>
        public bool IsOpen
        {
            get { return NativeMethods.mmn_is_open(handle) != 0; }
        }

        /// <summary>The state that the members share.</summary>
        /// <exception cref="NetworkException">-16 in a room without a state.</exception>
        public RoomState State
        {
            get
            {
                if (state == null)
                {
                    throw new NetworkException(ErrorCode.NotSupported, "This room has no state: set RoomOptions.State before Join, in all members.");
                }
                return state;
            }
        }

        /// <summary>A handler threw. Without a subscriber the exception is written to standard error.</summary>
        public event Action<Exception> HandlerFailed;

        /// <summary>This member's id.</summary>
        public string PeerId
        {
            get { return CheckText(NativeMethods.mmn_local_id(handle)); }
        }

        public string SessionId
        {
            get { return CheckText(NativeMethods.mmn_session_id(handle)); }
        }

        /// <summary>An address that another member can pass to <see cref="Connect"/>.</summary>
        public string LocalAddress
        {
            get { return CheckText(NativeMethods.mmn_local_address(handle)); }
        }

        /// <summary>All such addresses, the likeliest first, each followed by a blank and the name of its interface.</summary>
        public string[] LocalAddresses
        {
            get { return CheckText(NativeMethods.mmn_local_addresses(handle)).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The address at which members on the internet see this one: the router's, behind a router. Null if none does.</summary>
        public string PublicAddress
        {
            get { return Utf8.FromNative(NativeMethods.mmn_public_address(handle)); }
        }

        /// <summary>The ids of the connected members, without this one, sorted.</summary>
        public string[] Peers
        {
            get { return CheckText(NativeMethods.mmn_peers(handle)).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The ids of the connected and the reconnecting members, sorted.</summary>
        public string[] Members
        {
            get { return CheckText(NativeMethods.mmn_members(handle)).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries); }
        }

        /// <summary>The index of a member: a number from 1, from its Joined to its Left event, which no earlier member had. 0 for others.</summary>
        public uint IndexOf(string peerId)
        {
            return NativeMethods.mmn_peer_index(handle, Utf8.ToNative(peerId));
        }

        /// <summary>The member with this index; null for none.</summary>
        public string PeerAt(uint index)
        {
            return Utf8.FromNative(NativeMethods.mmn_peer_id(handle, index));
        }

        /// <summary>The address at which a member accepts links, for <see cref="Connect"/>; null for one that is not in the room.</summary>
        public string AddressOf(string peerId)
        {
            return Utf8.FromNative(NativeMethods.mmn_peer_address(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>The path of the messages to and from a member: directly, over a relay, or through another member. Null without a link to it.</summary>
        public LinkPath? PathOf(string peerId)
        {
            int path = NativeMethods.mmn_peer_path(handle, Utf8.ToNative(peerId));
            if (path == ErrorCode.PeerNotFound)
            {
                return null;
            }
            Check(path);
            return (LinkPath)path;
        }

        /// <summary>The member that carries this one's packets to a member; null where the path is direct or over a relay, and without a link to it.</summary>
        public string CarrierOf(string peerId)
        {
            return Utf8.FromNative(NativeMethods.mmn_peer_carrier(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>The SHA-256 of a member's key, in 64 hexadecimal digits; null for one that is not in the room.</summary>
        public string FingerprintOf(string peerId)
        {
            return Utf8.FromNative(NativeMethods.mmn_peer_fingerprint(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>The SHA-256 of this member's key, in 64 hexadecimal digits.</summary>
        public string IdentityFingerprint
        {
            get { return CheckText(NativeMethods.mmn_local_fingerprint(handle)); }
        }

        /// <summary>A new private key for <see cref="RoomOptions.IdentityKey"/>. A host that keeps it is the same member at every start.</summary>
        public static byte[] GenerateIdentityKey()
        {
            byte[] key = new byte[NativeMethods.IdentityKeyBytes];
            Check(NativeFile.First(() => NativeMethods.mmn_generate_identity_key(key, key.Length)));
            return key;
        }

        /// <summary>A new room code, as K7QM-3XP9-TRWF: the session id of a room with <see cref="RoomOptions.Relays"/>. Works without a room and without a network. Show it to the player, who gives it to others.</summary>
        public static string CreateCode()
        {
            byte[] code = new byte[NativeMethods.RoomCodeBytes];
            Check(NativeFile.First(() => NativeMethods.mmn_generate_room_code(code, code.Length)));
            return Utf8.FromNative(code);
        }

        /// <summary>A room code as <see cref="CreateCode"/> shows codes, from what a player typed or pasted. If it is no code, the exception's message names the fault: which character, the length, or a typo.</summary>
        public static string NormalizeCode(string text)
        {
            byte[] native = Utf8.ToNative(text);
            byte[] code = new byte[NativeMethods.RoomCodeBytes];
            Check(NativeFile.First(() => NativeMethods.mmn_normalize_room_code(native, code, code.Length)));
            return Utf8.FromNative(code);
        }

        /// <summary>The leader's id; null when there is none.</summary>
        public string Leader
        {
            get { return NullIfEmpty(CheckText(NativeMethods.mmn_leader(handle))); }
        }

        public bool IsLeader
        {
            get { return NativeMethods.mmn_is_leader(handle) != 0; }
        }

        /// <summary>The round-trip time in milliseconds; -1 for an unknown member, and until it is measured.</summary>
        public int RoundTripMs(string peerId)
        {
            return NativeMethods.mmn_peer_rtt_ms(handle, Utf8.ToNative(peerId, ref idBuffer));
        }

        public PeerStatus StatusOf(string peerId)
        {
            return (PeerStatus)NativeMethods.mmn_peer_status(handle, Utf8.ToNative(peerId, ref idBuffer));
        }

        /// <summary>Dials <c>ip:port</c>, <c>[v6]:port</c> or <c>name:port</c>. The outcome is a <see cref="ConnectionResult"/> event.</summary>
        public void Connect(string address)
        {
            Check(NativeMethods.mmn_connect(handle, Utf8.ToNative(address)));
        }

        /// <summary>Replaces the TURN servers and their credentials, as <see cref="RoomOptions.Turn"/> has them; null uses none from now on.</summary>
        public void SetTurn(IEnumerable<string> servers)
        {
            Check(NativeMethods.mmn_set_turn(handle, Utf8.ToNative(servers == null ? null : string.Join("\n", servers))));
        }

        /// <summary>Ends the link with a member, with a reason for its host: a code and up to 3072 bytes.</summary>
        public void Disconnect(string peerId, int code = 0, byte[] data = null)
        {
            Check(NativeMethods.mmn_disconnect(handle, Utf8.ToNative(peerId), code, data, LengthOf(data)));
        }

        /// <summary>Makes the member, which may be this one, the room's leader.</summary>
        public void SetLeader(string peerId)
        {
            Check(NativeMethods.mmn_set_leader(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>Whether this member campaigns when the room has no leader.</summary>
        public void SetAutoElection(bool enabled)
        {
            Check(NativeMethods.mmn_set_auto_election(handle, Flag(enabled)));
        }

        /// <summary>Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority.</summary>
        public void SetLeaderEligible(bool eligible)
        {
            Check(NativeMethods.mmn_set_eligible(handle, Flag(eligible)));
        }

        /// <summary>Transfers the leadership to a member; this one leads until that one is elected. Leader only (-6).</summary>
        public void TransferLeadership(string peerId)
        {
            Check(NativeMethods.mmn_transfer_leadership(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>
        /// Transfers the leadership to the member that elections prefer. Leader only (-6); -5 when no member may lead. With gossip this
        /// member stops leading at once, and does not lead again for a while; with etcd it goes to the end of the line.
        /// </summary>
        public void YieldLeadership()
        {
            Check(NativeMethods.mmn_yield_leadership(handle));
        }

        /// <summary>Priority of this member in elections: the highest goes first, of equal ones the largest id. 0 is the default.</summary>
        public void SetElectionPriority(int priority)
        {
            Check(NativeMethods.mmn_set_priority(handle, priority));
        }

        /// <summary>The term of the newest claim to lead; compare <see cref="LeaderEpoch"/> first.</summary>
        public long LeaderTerm
        {
            get { return NativeMethods.mmn_leader_term(handle); }
        }

        /// <summary>The number of <see cref="SetLeader"/> calls that the newest claim to lead builds on.</summary>
        public long LeaderEpoch
        {
            get { return NativeMethods.mmn_leader_epoch(handle); }
        }

        public ElectionStrategy ElectionStrategy
        {
            get
            {
                int strategy = NativeMethods.mmn_strategy(handle);
                Check(strategy);
                return (ElectionStrategy)strategy;
            }
        }

        /// <summary>
        /// With <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/> the state of a member, of this one, too; else
        /// <see cref="MemberState.Unknown"/>.
        /// </summary>
        public MemberState StateOf(string peerId)
        {
            return (MemberState)NativeMethods.mmn_member_state(handle, Utf8.ToNative(peerId));
        }

        /// <summary>With <see cref="MetaMystia.Network.ElectionStrategy.Seeded"/> the version of the cluster; with others -1.</summary>
        public long ClusterVersion
        {
            get { return NativeMethods.mmn_cluster_version(handle); }
        }

        /// <summary>With <see cref="MetaMystia.Network.ElectionStrategy.Etcd"/> the token of this member's leadership, 0 while it does not lead; with others -1.</summary>
        public long FencingToken
        {
            get { return NativeMethods.mmn_fencing_token(handle); }
        }

        /// <summary>Sets the text that clients of etcd read of this member while it leads.</summary>
        public void Proclaim(string value)
        {
            Check(NativeMethods.mmn_proclaim(handle, Utf8.ToNative(value)));
        }

        /// <summary>
        /// Acquires a lock of etcd. The outcome is a <see cref="LockResult"/> with the returned number. A timeout of 0 is none.
        /// </summary>
        public ulong AcquireLock(string name, uint timeoutMs = 0)
        {
            ulong request = 0;
            Check(NativeMethods.mmn_acquire_lock(handle, Utf8.ToNative(name), timeoutMs, ref request));
            return request;
        }

        /// <summary>Acquires a lock as <see cref="AcquireLock"/> does, if it is free.</summary>
        public ulong TryLock(string name)
        {
            ulong request = 0;
            Check(NativeMethods.mmn_try_lock(handle, Utf8.ToNative(name), ref request));
            return request;
        }

        /// <summary>Releases a lock, or stops waiting for it.</summary>
        public void ReleaseLock(string name)
        {
            Check(NativeMethods.mmn_release_lock(handle, Utf8.ToNative(name)));
        }

        /// <summary>Whether the library dials lost members again (the default) or treats every loss as a leave.</summary>
        public bool AutoReconnect
        {
            get { return NativeMethods.mmn_auto_reconnect(handle) != 0; }
            set { Check(NativeMethods.mmn_set_auto_reconnect(handle, Flag(value))); }
        }

        /// <summary>Lifts the ban of an id and of its keys. Leader only (-6); -5 when it is not banned.</summary>
        public void Unban(string peerId)
        {
            Check(NativeMethods.mmn_unban(handle, Utf8.ToNative(peerId)));
        }

        /// <summary>
        /// Removes a member; its host receives the code and up to 3072 bytes. It may enter again, unless it is banned: then its id and its
        /// key stay out until <see cref="Unban"/> or the room's end. Leader only (-6).
        /// </summary>
        public void Kick(string peerId, int code = 0, byte[] data = null, bool ban = false)
        {
            Check(NativeMethods.mmn_kick(handle, Utf8.ToNative(peerId), ban ? NativeMethods.KickBan : 0, code, data, LengthOf(data)));
        }

        /// <summary>Limits the other members of each member; 0 is no limit. Removes no member. Leader only (-6).</summary>
        public void SetMaxPeers(uint maxPeers)
        {
            Check(NativeMethods.mmn_set_max_peers(handle, maxPeers));
        }

        /// <summary>The payload that the leader's host receives when this member asks to join, up to 16384 bytes; null is none.</summary>
        public void SetJoinPayload(byte[] data)
        {
            Check(NativeMethods.mmn_set_join_payload(handle, data, LengthOf(data)));
        }

        /// <summary>
        /// Whether this host decides about admission while this member leads: each newcomer is then a <see cref="JoinRequest"/>, which
        /// the host answers within the handshake timeout. Set it on every member that may come to lead.
        /// </summary>
        public void EnableJoinRequests(bool enabled)
        {
            Check(NativeMethods.mmn_set_join_requests(handle, Flag(enabled)));
        }

        /// <summary>Admits a newcomer. -5 when the request was already answered, or has expired.</summary>
        public void AcceptJoin(ulong request)
        {
            Check(NativeMethods.mmn_accept_join(handle, request));
        }

        /// <summary>Refuses a newcomer, which receives the code and up to 3072 bytes. -5 as <see cref="AcceptJoin"/>.</summary>
        public void RejectJoin(ulong request, int code = 0, byte[] data = null)
        {
            Check(NativeMethods.mmn_reject_join(handle, request, code, data, LengthOf(data)));
        }

        /// <summary>Whether broadcasts of this member go through the leader.</summary>
        public bool Centralized
        {
            get { return NativeMethods.mmn_centralized(handle) != 0; }
            set { Check(NativeMethods.mmn_set_centralized(handle, Flag(value))); }
        }

        /// <summary>Whether this member, while it leads, relays the broadcasts of others, or leaves that to <see cref="Forward"/>.</summary>
        public bool CentralizedAutoForward
        {
            get { return NativeMethods.mmn_auto_forward(handle) != 0; }
            set { Check(NativeMethods.mmn_set_auto_forward(handle, Flag(value))); }
        }

        /// <summary>The payload length in bytes above which the library compresses, if that makes it shorter; <c>uint.MaxValue</c> is never.</summary>
        public void SetCompressionThreshold(uint bytes)
        {
            Check(NativeMethods.mmn_set_compression_threshold(handle, bytes));
        }

        /// <summary>
        /// Simulates a bad network, for tests of a game: every packet that this member sends waits <paramref name="lagMs"/> and up to
        /// <paramref name="jitterMs"/> more (at most 10000 each), and <paramref name="lossPermille"/> packets in a thousand are lost. Three zeros
        /// end it.
        /// </summary>
        public void SimulateNetwork(uint lagMs, uint jitterMs, uint lossPermille)
        {
            Check(NativeMethods.mmn_simulate_network(handle, lagMs, jitterMs, lossPermille));
        }

        /// <summary>Simulates a bad network by name: "home", "mobile", "bad-wifi", "satellite"; "none" ends it.</summary>
        public void SimulateNetwork(string preset)
        {
            Check(NativeMethods.mmn_simulate_preset(handle, Utf8.ToNative(preset)));
        }

        /// <summary>Whether this member is announced in the local network.</summary>
        public bool IsDiscovering
        {
            get { return NativeMethods.mmn_is_announced(handle) != 0; }
        }

        /// <summary>Statistics of the link and the queue to a member; -5 when it is not one.</summary>
        public PeerStats StatsOf(string peerId)
        {
            PeerStats stats = PeerStats.Empty();
            Check(NativeMethods.mmn_peer_stats(handle, Utf8.ToNative(peerId), ref stats));
            return stats;
        }

        /// <summary>The room's time in milliseconds, the same at all members within RoomTimeErrorUs of Stats. It never goes back. -1 when the room is closed.</summary>
        public long TimeMs
        {
            get { return NativeMethods.mmn_room_time_ms(handle); }
        }

        /// <summary>Statistics of the room at this member: the members without a link to it, the broadcasts that they missed, and the error of TimeMs.</summary>
        public RoomStats Stats
        {
            get
            {
                RoomStats stats = RoomStats.Empty();
                Check(NativeMethods.mmn_room_stats(handle, ref stats));
                return stats;
            }
        }

        /// <summary>The longest unreliable message for a member, or (null) for a broadcast, in bytes; -1 when the member is not connected, or none is.</summary>
        public int MaxDatagramSize(string peerId = null)
        {
            return NativeMethods.mmn_max_datagram_size(handle, Utf8.ToNative(peerId, ref idBuffer));
        }

        /// <summary>
        /// The times of <see cref="MetaMystia.Network.ElectionStrategy.Gossip"/>, from the next window on. They should be the same for all members.
        /// <see cref="RoomOptions.Settings"/> has those at the start.
        /// </summary>
        public GossipWindows GossipWindows
        {
            get
            {
                GossipWindows windows = GossipWindows.Empty();
                Check(NativeMethods.mmn_gossip_windows(handle, ref windows));
                return windows;
            }
            set { Check(NativeMethods.mmn_set_gossip_windows(handle, ref value)); }
        }

        /// <summary>
        /// In poll mode, runs the handlers of up to <paramref name="max"/> queued events, on the calling thread, and returns the number
        /// of events. Never waits. Call it once per frame, also during loading screens: a member that takes no events slows the senders.
        /// </summary>
        /// <exception cref="NetworkException">-3 when the room is not in poll mode or <paramref name="max"/> is not above 0, -15
        /// inside a handler and while another thread polls.</exception>
        public int Poll(int max = int.MaxValue)
        {
            int ran = NativeMethods.mmn_poll(handle, max);
            Check(ran);
            return ran;
        }

        /// <summary>
        /// Begins to leave the room, and returns at once, also inside a handler; <see cref="Dispose"/> must follow. To leave several rooms
        /// in the time of one, begin with all of them, and dispose of them then.
        /// </summary>
        public void Leave()
        {
            Check(NativeMethods.mmn_leave(handle));
        }

        /// <summary>
        /// Leaves the room and releases everything; takes at most about 2 s. After it returns, no handler runs. It waits for a running
        /// handler, which therefore must not wait for the thread that disposes.
        /// </summary>
        /// <exception cref="NetworkException">-15 when called inside a handler of any room; the room stays open.</exception>
        public void Dispose()
        {
            if (Interlocked.Exchange(ref disposed, 1) != 0)
            {
                return;
            }
            int code = NativeMethods.mmn_close(handle);
            if (code == ErrorCode.WouldDeadlock)
            {
                NetworkException refused = LastError(code);
                Interlocked.Exchange(ref disposed, 0);
                throw refused;
            }
            Forget();
            FreeBuffers();
            EndRequests();
        }

        /// <summary>Logs to standard error, on and off at any time, up to a <see cref="LogLevel"/>. For all rooms of the process.</summary>
        public static void EnableLogging(bool enabled, int level = LogLevel.Info)
        {
            Check(NativeFile.First(() => NativeMethods.mmn_set_log_stderr(enabled ? level : LogLevel.Off)));
        }

        /// <summary>
        /// Passes the library's log up to <paramref name="level"/> (a <see cref="LogLevel"/>) to a function; null removes it. The log is that of
        /// all rooms of the process. It runs on any
        /// thread, on several at a time, and may call only queries.
        /// </summary>
        public static void SetLog(int level, Action<int, string> handler)
        {
            if (handler == null)
            {
                Check(NativeFile.First(() => NativeMethods.mmn_set_log(level, null, IntPtr.Zero, null)));
                Volatile.Write(ref log, null);
                return;
            }
            HookExit();
            Volatile.Write(ref log, handler);
            Interlocked.Increment(ref logsRegistered);
            int code = ErrorCode.NotInitialized;
            try
            {
                code = NativeFile.First(() => NativeMethods.mmn_set_log(level, LogThunk, IntPtr.Zero, LogDroppedThunk));
            }
            finally
            {
                if (code < 0)
                {
                    Interlocked.Decrement(ref logsRegistered);
                }
            }
            Check(code);
        }

        /// <summary>The library's name for a code.</summary>
        public static string Describe(int code)
        {
            return Utf8.FromNative(NativeFile.First(() => NativeMethods.mmn_describe_error(code)));
        }

        [MonoPInvokeCallback(typeof(LogCallback))]
        private static void OnLog(IntPtr userData, ulong room, int level, IntPtr message)
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

        // The last handler before native frames: no exception may leave this method.
        internal void Surface(Exception exception)
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

        // Lock-free, because a running handler could need a lock that is held during a call of the library.
        internal static void Combine<T>(ref T field, T value) where T : class
        {
            T seen;
            do
            {
                seen = Volatile.Read(ref field);
            }
            while (Interlocked.CompareExchange(ref field, (T)(object)Delegate.Combine((Delegate)(object)seen, (Delegate)(object)value), seen) != seen);
        }

        internal static void Subtract<T>(ref T field, T value) where T : class
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
        internal static void HookExit()
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

        // Unregisters every callback: when this returns, the library has no reference to this domain. Only inside a handler, where closing is
        // refused, it keeps the rooms' user data until the handler has returned.
        private static void Withdraw()
        {
            RoomBrowser.Withdraw();
            Room[] open;
            lock (rooms)
            {
                open = rooms.ToArray();
                rooms.Clear();
            }
            try
            {
                foreach (Room room in open)
                {
                    Volatile.Write(ref room.disposed, 1);
                    NativeMethods.mmn_set_event_handler(room.handle, null, IntPtr.Zero, null);
                }
                // All at once: they take the time of one.
                foreach (Room room in open)
                {
                    NativeMethods.mmn_leave(room.handle);
                }
                foreach (Room room in open)
                {
                    NativeMethods.mmn_close(room.handle);
                    room.EndRequests();
                }
                if (Volatile.Read(ref logsRegistered) > 0)
                {
                    NativeMethods.mmn_set_log(LogLevel.Off, null, IntPtr.Zero, null);
                }
            }
            catch (Exception)
            {
                // The process or the domain ends: no code is left to notify.
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

        internal static string NullIfEmpty(string text)
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

        internal static string CheckText(IntPtr text)
        {
            if (text == IntPtr.Zero)
            {
                throw LastError(NativeMethods.mmn_last_error_code());
            }
            return Utf8.FromNative(text);
        }

        internal static NetworkException LastError(int code)
        {
            return new NetworkException(code, Utf8.FromNative(NativeMethods.mmn_last_error_message()));
        }
    }
}
