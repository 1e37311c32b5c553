using System;
using System.Collections.Generic;
using System.Diagnostics;
using MetaMystia.Network;
using Mirror;
using UnityEngine;
using Debug = UnityEngine.Debug;

/// <summary>
/// A transport for Mirror on a room of meta_mystia_network. All players are members of one room, and its leader is the host: the
/// member whose Mirror server the others' clients connect to. When the host is gone, the room elects another, and
/// <see cref="HostChanged"/> names it: that member starts its server, the others connect to it, and the game continues.
/// </summary>
/// <remarks>
/// The room outlives Mirror's clients and servers: <see cref="ServerStop"/> and <see cref="ClientDisconnect"/> stay in it, and
/// <see cref="Shutdown"/> leaves. Each transport has a room of its own.
/// </remarks>
public class RoomTransport : Transport
{
    // Types of messages. The last three carry a byte: the client's attempt that they belong to.
    private const ushort Data = Room.FirstUserType, Connect = Data + 1, Accept = Data + 2, Disconnect = Data + 3;

    // The library's default for the longest message, and the unreliable size that every path carries. Constants, because Mirror
    // asks early.
    private const int MaxReliable = 262144, MaxUnreliable = 1100, Batch = 4096;
    // Limit of the events in one frame: a frame with more would take ever longer.
    private const int MaxEventsPerUpdate = 2000;
    private const string StillLeaving = "The previous room is left when its handlers have returned: try again in the next frame.";

    [Tooltip("The room's name: the same for all players of one game, and of no other.")]
    public string sessionId = "my game";
    [Tooltip("What else players must know to enter; empty for nothing.")]
    public string password = "";
    [Tooltip("This player's id, unique in the room; empty for a random one.")]
    public string playerId = "";
    [Tooltip("The UDP port of the first host, and of an address without a port. Clients take any free port.")]
    public ushort port = 7777;
    [Tooltip("How long a client tries to connect, in milliseconds. Enough for the others to elect a host.")]
    public int timeoutMs = 15000;
    [Tooltip("The room keeps a state that outlives its host. The same for all players; RoomWorld sets it.")]
    public bool keepsState;

    /// <summary>
    /// Another member is the host now: its id, and whether it is this member. Not raised for the first host of a room. A client that
    /// was connected to the previous one is disconnected by then.
    /// </summary>
    public event Action<string, bool> HostChanged;

    private sealed class Connection
    {
        internal int Id;
        internal string Member;
        internal byte Attempt;
        internal bool Open;
    }

    private enum ClientState
    {
        Idle,
        Connecting,
        Connected,
    }

    private Room room;
    private string host; // the last known
    private bool polling, leaving; // a room cannot be left inside its handlers
    private readonly Stopwatch clock = Stopwatch.StartNew();
    private byte[] incoming = new byte[4096]; // grows up to MaxReliable
    private readonly byte[] control = new byte[1];

    private bool serving;
    private int lastId; // 0 is Mirror's own client of a host
    // Members that have asked to connect: each keeps its id until it leaves the room.
    private readonly Dictionary<string, Connection> byMember = new Dictionary<string, Connection>();
    private readonly Dictionary<int, Connection> byId = new Dictionary<int, Connection>();
    // Members that asked before this one's server was started: they learn of the new host at the same moment as the host itself.
    private readonly Dictionary<string, byte> waiting = new Dictionary<string, byte>();

    private ClientState state;
    private string server; // the member that this client asked, or is connected to
    private byte attempt;
    private bool asked;
    private long deadline;

    /// <summary>The room, for functions without a call in Mirror: kicks, statistics, a leadership transfer. null outside of a room.</summary>
    public Room Room
    {
        get { return room; }
    }

    /// <summary>An address for newcomers to connect to, which may be any member's. null outside of a room.</summary>
    public string Address
    {
        get { return room == null ? null : room.LocalAddress; }
    }

    /// <summary>The present host's id; null when there is none.</summary>
    public string Host
    {
        get { return room == null ? null : room.Leader; }
    }

    public override bool Available()
    {
        return IntPtr.Size == 8; // The library is for 64-bit desktops.
    }

    public override int GetMaxPacketSize(int channelId = Channels.Reliable)
    {
        return channelId == Channels.Unreliable ? MaxUnreliable : MaxReliable;
    }

    public override int GetBatchThreshold(int channelId = Channels.Reliable)
    {
        return channelId == Channels.Unreliable ? MaxUnreliable : Batch;
    }

    // ---------------------------------------------------------------- client

    public override bool ClientConnected()
    {
        return state == ClientState.Connected;
    }

    /// <summary>
    /// Connects to the room's host. Outside of a room, or alone in one, it first enters the room at the address, which may be that of
    /// any member. In a room with others it needs no address, because the room knows its host.
    /// </summary>
    public override void ClientConnect(string address)
    {
        if (state != ClientState.Idle)
        {
            Debug.LogWarning("RoomTransport: the client is already connected, or connecting.");
            return;
        }
        state = ClientState.Connecting;
        server = null;
        asked = false;
        deadline = clock.ElapsedMilliseconds + timeoutMs;
        if (leaving)
        {
            EndClient(TransportError.Unexpected, StillLeaving);
            return;
        }
        try
        {
            if (room != null && !polling && room.Peers.Length == 0 && !string.IsNullOrEmpty(address))
            {
                Leave(); // The room has no other member, and the settings may have changed.
            }
            if (room == null)
            {
                // Alone it would elect itself before it has found the others.
                Enter(0, false);
            }
            if (room.Peers.Length == 0 && !string.IsNullOrEmpty(address))
            {
                room.Connect(WithPort(address));
            }
            Ask();
        }
        catch (NetworkException exception)
        {
            EndClient(ErrorOf(exception.Code), exception.Message);
        }
    }

    public override void ClientConnect(Uri uri)
    {
        ClientConnect(uri.IsDefaultPort || uri.Port < 0 ? uri.Host : uri.Host + ":" + uri.Port);
    }

    public override void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable)
    {
        if (state != ClientState.Connected)
        {
            Debug.LogWarning("RoomTransport: a send of a client that is not connected.");
            return;
        }
        int code = Send(server, attempt, segment, channelId);
        if (code == ErrorCode.Ok)
        {
            Action<ArraySegment<byte>, int> sent = OnClientDataSent;
            if (sent != null)
            {
                sent(segment, channelId);
            }
        }
        else if (channelId != Channels.Unreliable)
        {
            // Mirror's reliable channel delivers or disconnects.
            SendControl(server, Disconnect, attempt);
            EndClient(ErrorOf(code), "A reliable message to the host was refused: " + Room.Describe(code));
        }
    }

    public override void ClientDisconnect()
    {
        if (state == ClientState.Idle)
        {
            return;
        }
        if (asked)
        {
            SendControl(server, Disconnect, attempt);
        }
        EndClient(null, null);
    }

    // Asks the leader, as soon as there is one and a link to it.
    private void Ask()
    {
        if (state != ClientState.Connecting || asked || room == null)
        {
            return;
        }
        string leader = room.Leader;
        if (leader == null || room.IsLeader || room.StatusOf(leader) != PeerStatus.Connected)
        {
            return;
        }
        attempt++;
        server = leader;
        asked = SendControl(leader, Connect, attempt);
    }

    private void EndClient(TransportError? error, string text)
    {
        if (state == ClientState.Idle)
        {
            return;
        }
        state = ClientState.Idle;
        server = null;
        asked = false;
        Action<TransportError, string> failed = OnClientError;
        if (error.HasValue && failed != null)
        {
            failed(error.Value, text);
        }
        Action disconnected = OnClientDisconnected;
        if (disconnected != null)
        {
            disconnected();
        }
    }

    // ---------------------------------------------------------------- server

    public override Uri ServerUri()
    {
        string address = Address ?? "localhost:" + port;
        return new Uri("room://" + address);
    }

    public override bool ServerActive()
    {
        return serving;
    }

    /// <summary>
    /// Makes this member the host: outside of a room it opens one. After <see cref="HostChanged"/> has named this member, it accepts
    /// the clients that are waiting.
    /// </summary>
    /// <exception cref="NetworkException">The room cannot be opened, for example because the port is taken (-4).</exception>
    public override void ServerStart()
    {
        if (serving)
        {
            return;
        }
        if (leaving)
        {
            throw new InvalidOperationException(StillLeaving);
        }
        if (room != null && !polling && room.Peers.Length == 0 && !room.IsLeader)
        {
            Leave(); // A client's room without other members. The room of a lost host has this member as its leader.
        }
        if (room == null)
        {
            Enter(port, true);
        }
        if (!room.IsLeader)
        {
            room.SetLeader(room.PeerId);
        }
        host = room.PeerId;
        serving = true;
        foreach (KeyValuePair<string, byte> client in new List<KeyValuePair<string, byte>>(waiting))
        {
            Admit(client.Key, client.Value);
        }
        waiting.Clear();
    }

    public override void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable)
    {
        Connection connection;
        if (!byId.TryGetValue(connectionId, out connection) || !connection.Open)
        {
            return;
        }
        int code = Send(connection.Member, connection.Attempt, segment, channelId);
        if (code == ErrorCode.Ok)
        {
            Action<int, ArraySegment<byte>, int> sent = OnServerDataSent;
            if (sent != null)
            {
                sent(connectionId, segment, channelId);
            }
        }
        else if (channelId != Channels.Unreliable)
        {
            Action<int, TransportError, string> failed = OnServerError;
            if (failed != null)
            {
                failed(connectionId, ErrorOf(code), "A reliable message was refused: " + Room.Describe(code));
            }
            ServerDisconnect(connectionId);
        }
    }

    public override void ServerDisconnect(int connectionId)
    {
        Connection connection;
        if (byId.TryGetValue(connectionId, out connection) && connection.Open)
        {
            SendControl(connection.Member, Disconnect, connection.Attempt);
            Close(connection);
        }
    }

    /// <summary>
    /// The id of the client's member. It serves better than an address: it is bound to a key, and <see cref="Room.Kick"/> with a ban keeps both out.
    /// </summary>
    public override string ServerGetClientAddress(int connectionId)
    {
        Connection connection;
        return byId.TryGetValue(connectionId, out connection) ? connection.Member : "";
    }

    /// <summary>Stops serving. The room continues: another member, if there is one, becomes the host.</summary>
    public override void ServerStop()
    {
        if (!serving)
        {
            return;
        }
        serving = false;
        foreach (Connection connection in byId.Values)
        {
            if (connection.Open)
            {
                SendControl(connection.Member, Disconnect, connection.Attempt);
                connection.Open = false;
            }
        }
        waiting.Clear();
        if (room != null && !leaving && room.IsLeader && room.Peers.Length > 0)
        {
            try
            {
                room.YieldLeadership();
            }
            catch (NetworkException exception)
            {
                Debug.LogWarning("RoomTransport: no member takes over: " + exception.Message);
            }
        }
    }

    private void Admit(string member, byte clientAttempt)
    {
        Connection connection;
        if (!byMember.TryGetValue(member, out connection))
        {
            connection = new Connection();
            connection.Id = ++lastId;
            connection.Member = member;
            byMember.Add(member, connection);
            byId.Add(connection.Id, connection);
        }
        else
        {
            Close(connection);
        }
        connection.Attempt = clientAttempt;
        connection.Open = SendControl(member, Accept, clientAttempt);
        Action<int, string> connected = OnServerConnectedWithAddress;
        if (connection.Open && connected != null)
        {
            connected(connection.Id, member);
        }
    }

    private void Close(Connection connection)
    {
        if (!connection.Open)
        {
            return;
        }
        connection.Open = false;
        Action<int> disconnected = OnServerDisconnected;
        if (disconnected != null)
        {
            disconnected(connection.Id);
        }
    }

    // ---------------------------------------------------------------- the room

    public override void ClientEarlyUpdate()
    {
        Poll();
    }

    public override void ServerEarlyUpdate()
    {
        Poll();
    }

    /// <summary>Leaves the room, as client and as server. The others elect another host at once.</summary>
    public override void Shutdown()
    {
        leaving = true;
        ClientDisconnect();
        ServerStop();
        if (!polling)
        {
            Leave();
        }
    }

    // Unity calls this when the object, the scene or the game ends, and before the editor reloads scripts. Mirror disables its
    // transport while it loads a scene: `enabled` is false then, and the member stays in the room.
    public void OnDisable()
    {
        if (enabled)
        {
            Shutdown();
        }
    }

    private void Enter(ushort bindPort, bool campaigns)
    {
        RoomOptions options = new RoomOptions();
        options.Settings.BindPort = bindPort;
        options.Settings.AutoElection = campaigns ? 1u : 0u;
        // The first host is set, so that it leads at once; after it, the room elects.
        options.Settings.ManualOverrideRecovery = ManualOverrideRecovery.AutoElect;
        if (keepsState)
        {
            options.State = new StateOptions();
        }
        if (!string.IsNullOrEmpty(password))
        {
            options.Secret = System.Text.Encoding.UTF8.GetBytes(password);
        }
        string id = string.IsNullOrEmpty(playerId) ? Guid.NewGuid().ToString("N").Substring(0, 16) : playerId;
        room = Room.Join(id, sessionId, options);
        leaving = false;
        host = null;
        room.HandlerFailed += Debug.LogException;
        room.Changed += OnChanged;
        room.DataReceived += OnData;
    }

    private void Leave()
    {
        leaving = false;
        Room left = room;
        room = null;
        host = null;
        byMember.Clear();
        byId.Clear();
        waiting.Clear();
        if (left != null)
        {
            left.Dispose();
        }
    }

    private void Poll()
    {
        if (room == null || polling)
        {
            return;
        }
        polling = true;
        try
        {
            // One at a time: Mirror may disable the component between two, for example while a scene is loaded.
            for (int number = 0; number < MaxEventsPerUpdate && enabled && !leaving && room.Poll(1) > 0; number++)
            {
            }
        }
        finally
        {
            polling = false;
        }
        if (leaving)
        {
            Leave();
            return;
        }
        Ask();
        if (state == ClientState.Connecting && clock.ElapsedMilliseconds > deadline)
        {
            string text = room.Leader == null ? "The room has no host." : "The host " + room.Leader + " does not accept this client.";
            ClientTimedOut(text);
        }
    }

    private void ClientTimedOut(string text)
    {
        if (asked)
        {
            SendControl(server, Disconnect, attempt);
        }
        EndClient(TransportError.Timeout, text + " Waited " + timeoutMs + " ms.");
    }

    private void OnChanged(RoomEvent e)
    {
        if (e is LeaderChanged change)
        {
            OnLeader(change.Leader);
        }
        else if (e is PeerLeft left)
        {
            OnLeft(left.Peer);
        }
        else if (e is ConnectionResult result)
        {
            if (!result.Success && state == ClientState.Connecting && room.Peers.Length == 0)
            {
                EndClient(ErrorOf(result.Code), result.Address + ": " + Room.Describe(result.Code));
            }
        }
        else if (e is RoomEnded end)
        {
            leaving = true; // when the handlers have returned
            serving = false;
            EndClient(TransportError.ConnectionClosed, "The room has ended: " + end.Reason.Describe() + ".");
            foreach (Connection connection in new List<Connection>(byId.Values))
            {
                Close(connection);
            }
        }
    }

    private void OnLeader(string leader)
    {
        if (leader == null)
        {
            return; // It may come back. If another member is elected, the host is gone.
        }
        bool changed = host != null && host != leader;
        host = leader;
        if (serving && leader != room.PeerId)
        {
            serving = false;
            foreach (Connection connection in new List<Connection>(byId.Values))
            {
                Close(connection);
            }
        }
        if (state == ClientState.Connected && server != leader)
        {
            EndClient(TransportError.ConnectionClosed, "The host " + server + " is gone.");
        }
        else if (state == ClientState.Connecting && asked && server != leader)
        {
            // If that member becomes the host later, it must not treat this client as waiting.
            SendControl(server, Disconnect, attempt);
            asked = false;
        }
        if (state == ClientState.Connecting && leader == room.PeerId)
        {
            EndClient(TransportError.Refused, "This member is the host now.");
        }
        Action<string, bool> handler = HostChanged;
        if (changed && handler != null)
        {
            handler(leader, leader == room.PeerId);
        }
        Ask();
    }

    private void OnLeft(string member)
    {
        waiting.Remove(member);
        Connection connection;
        if (byMember.TryGetValue(member, out connection))
        {
            byMember.Remove(member);
            byId.Remove(connection.Id);
            Close(connection);
        }
        if (state == ClientState.Connected && member == server)
        {
            EndClient(TransportError.ConnectionClosed, "The host " + member + " is gone.");
        }
        else if (asked && member == server)
        {
            asked = false;
        }
    }

    private void OnData(MessageView message)
    {
        switch (message.Type)
        {
            case Data:
                OnSegment(message);
                return;
            case Connect:
                if (message.Length == 1 && serving)
                {
                    Admit(message.From, message[0]);
                }
                else if (message.Length == 1)
                {
                    waiting[message.From] = message[0];
                }
                return;
            case Accept:
                if (message.Length == 1 && state == ClientState.Connecting && asked && message.From == server && message[0] == attempt)
                {
                    state = ClientState.Connected;
                    room.SetAutoElection(true); // From now on this member may become the host.
                    Action connected = OnClientConnected;
                    if (connected != null)
                    {
                        connected();
                    }
                }
                return;
            case Disconnect:
                OnDisconnect(message);
                return;
        }
    }

    private void OnDisconnect(MessageView message)
    {
        if (message.Length != 1)
        {
            return;
        }
        byte waitingAttempt;
        if (waiting.TryGetValue(message.From, out waitingAttempt) && waitingAttempt == message[0])
        {
            waiting.Remove(message.From);
        }
        Connection connection;
        if (byMember.TryGetValue(message.From, out connection) && connection.Attempt == message[0])
        {
            Close(connection);
        }
        if (asked && message.From == server && message[0] == attempt)
        {
            EndClient(null, null);
        }
    }

    private void OnSegment(MessageView message)
    {
        // An unreliable message of an earlier attempt may be late; the reliable channel keeps its order.
        bool unreliable = message.Delivery == DeliveryMode.Unreliable;
        int channel = unreliable ? Channels.Unreliable : Channels.Reliable;
        Connection connection;
        if (serving && byMember.TryGetValue(message.From, out connection))
        {
            Action<int, ArraySegment<byte>, int> received = OnServerDataReceived;
            if (connection.Open && received != null && (!unreliable || message.Channel == connection.Attempt))
            {
                received(connection.Id, Copied(message), channel);
            }
        }
        else if (state == ClientState.Connected && message.From == server)
        {
            Action<ArraySegment<byte>, int> received = OnClientDataReceived;
            if (received != null && (!unreliable || message.Channel == attempt))
            {
                received(Copied(message), channel);
            }
        }
    }

    // Mirror reads arrays. Its handler no longer uses this one when it returns.
    private ArraySegment<byte> Copied(MessageView message)
    {
        if (incoming.Length < message.Length)
        {
            incoming = new byte[Math.Max(message.Length, 2 * incoming.Length)];
        }
        message.CopyTo(incoming);
        return new ArraySegment<byte>(incoming, 0, message.Length);
    }

    private int Send(string member, byte connectionAttempt, ArraySegment<byte> segment, int channelId)
    {
        if (room == null)
        {
            return ErrorCode.NotInitialized;
        }
        if (segment.Count > GetMaxPacketSize(channelId))
        {
            return ErrorCode.MessageTooLarge;
        }
        Delivery delivery = channelId == Channels.Unreliable ? Delivery.Unreliable(connectionAttempt) : default(Delivery);
        return room.TrySendTo(member, segment, delivery, Data);
    }

    private bool SendControl(string member, ushort type, byte connectionAttempt)
    {
        control[0] = connectionAttempt;
        return room != null && room.TrySendTo(member, control, type) == ErrorCode.Ok;
    }

    private string WithPort(string address)
    {
        int colon = address.LastIndexOf(':');
        if (colon < 0 || address.EndsWith("]", StringComparison.Ordinal))
        {
            return address + ":" + port;
        }
        // An IPv6 address without brackets has several colons.
        return address.IndexOf(':') != colon && address[0] != '[' ? "[" + address + "]:" + port : address;
    }

    private static TransportError ErrorOf(int code)
    {
        switch (code)
        {
            case ErrorCode.SendQueueFull:
                return TransportError.Congestion;
            case ErrorCode.Timeout:
                return TransportError.Timeout;
            case ErrorCode.PeerNotFound:
                return TransportError.ConnectionClosed;
            case ErrorCode.MessageTooLarge:
                return TransportError.InvalidSend;
            case ErrorCode.ConnectionFailed:
            case ErrorCode.AuthenticationFailed:
            case ErrorCode.Rejected:
            case ErrorCode.MaxConnectionsReached:
            case ErrorCode.SessionMismatch:
            case ErrorCode.VersionMismatch:
            case ErrorCode.DuplicatePeerId:
                return TransportError.Refused;
            default:
                return TransportError.Unexpected;
        }
    }
}
