using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Text;
using MetaMystia.Network;

/// <summary>Events of a <see cref="RoomLink"/>, for the transport of a networking layer.</summary>
internal interface IRoomLinkEvents
{
    /// <summary>Another member is the host now. Not for the first host of a room. Connections to the previous one have ended by then.</summary>
    void OnHostChanged(string host, bool isThisMember);

    void OnClientConnected();

    void OnClientDisconnected();

    /// <summary>Why the client is disconnected, which it reports next. The code is one of <see cref="ErrorCode"/>.</summary>
    void OnClientFailed(int code, string text);

    /// <summary>The data is valid until this returns, or until the next event of the room is taken.</summary>
    void OnClientReceived(ArraySegment<byte> data, bool reliable);

    void OnServerConnected(int id, string member);

    void OnServerDisconnected(int id);

    /// <summary>Why a client will be disconnected, which it reports next.</summary>
    void OnServerFailed(int id, int code, string text);

    /// <summary>As <see cref="OnClientReceived"/>.</summary>
    void OnServerReceived(int id, ArraySegment<byte> data, bool reliable);

    void OnWarning(string text);

    void OnException(Exception exception);
}

/// <summary>How a room is entered.</summary>
internal struct RoomLinkSettings
{
    internal string SessionId, Password, PlayerId;
    internal ushort Port;
    internal int TimeoutMs;
    internal bool KeepsState;
}

internal enum LinkDelivery
{
    /// <summary>In the order of the calls, up to <see cref="RoomLink.MaxReliable"/> bytes. If it cannot be sent, the connection ends.</summary>
    Reliable,
    /// <summary>Once or never, up to <see cref="RoomLink.MaxUnreliable"/> bytes.</summary>
    Unreliable,
    /// <summary>As Unreliable, and one that is older than the newest is dropped.</summary>
    Sequenced,
}

/// <summary>
/// A server and its clients on a room: the half of a transport that is the same for Mirror, Netcode for GameObjects and FishNet. The
/// room's leader is the host. Members ask it to connect, and it gives each a number, which the member keeps as long as it is in the
/// room. When the host is gone, the room elects another.
/// </summary>
internal sealed class RoomLink
{
    /// <summary>The library's default for the longest message, and the unreliable size that every path carries, in bytes.</summary>
    internal const int MaxReliable = 262144, MaxUnreliable = 1100;

    // Types of messages. The last three carry a byte: the client's attempt that they belong to.
    private const ushort Data = Room.FirstUserType, Connect = Data + 1, Accept = Data + 2, Disconnect = Data + 3;
    private const ulong SequenceKey = 1; // each member has its own
    private const string StillLeaving = "The previous room is left when its handlers have returned: try again in the next frame.";

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

    private readonly IRoomLinkEvents events;
    private Room room;
    private string host; // the last known
    private bool polling, leaving; // a room cannot be left inside its handlers
    private readonly Stopwatch clock = Stopwatch.StartNew();
    private byte[] incoming = new byte[4096]; // grows up to MaxReliable
    private readonly byte[] control = new byte[1];

    private bool serving;
    private int lastId;
    // Members that have asked to connect: each keeps its id until it leaves the room.
    private readonly Dictionary<string, Connection> byMember = new Dictionary<string, Connection>();
    private readonly Dictionary<int, Connection> byId = new Dictionary<int, Connection>();
    // Members that asked before this one's server was started: they learn of the new host at the same moment as the host itself.
    private readonly Dictionary<string, byte> waiting = new Dictionary<string, byte>();

    private ClientState state;
    private string server; // the member that this client asked, or is connected to
    private byte attempt;
    private bool asked;
    private int timeoutMs;
    private long deadline;

    internal RoomLink(IRoomLinkEvents events)
    {
        this.events = events;
    }

    /// <summary>null outside of a room.</summary>
    internal Room Room
    {
        get { return room; }
    }

    /// <summary>An address for newcomers to connect to, which may be any member's. null outside of a room.</summary>
    internal string Address
    {
        get { return room == null ? null : room.LocalAddress; }
    }

    /// <summary>The present host's id; null when there is none.</summary>
    internal string Host
    {
        get { return room == null ? null : room.Leader; }
    }

    internal bool IsServing
    {
        get { return serving; }
    }

    internal bool IsClientIdle
    {
        get { return state == ClientState.Idle; }
    }

    internal bool IsClientConnected
    {
        get { return state == ClientState.Connected; }
    }

    // ---------------------------------------------------------------- client

    /// <summary>
    /// Connects to the room's host. Outside of a room, or alone in one, it first enters the room at the address, which may be that of
    /// any member. In a room with others it needs no address, because the room knows its host.
    /// </summary>
    internal void StartClient(RoomLinkSettings settings, string address)
    {
        if (state != ClientState.Idle)
        {
            events.OnWarning("the client is already connected, or connecting.");
            return;
        }
        state = ClientState.Connecting;
        server = null;
        asked = false;
        timeoutMs = settings.TimeoutMs;
        deadline = clock.ElapsedMilliseconds + timeoutMs;
        if (leaving)
        {
            EndClient(ErrorCode.WouldDeadlock, StillLeaving);
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
                Enter(settings, 0, false);
            }
            if (room.Peers.Length == 0 && !string.IsNullOrEmpty(address))
            {
                room.Connect(WithPort(address, settings.Port));
            }
            Ask();
        }
        catch (NetworkException exception)
        {
            EndClient(exception.Code, exception.Message);
        }
    }

    /// <summary>Whether the message is under way. If a reliable one is not, the client is disconnected.</summary>
    internal bool SendToServer(ArraySegment<byte> data, LinkDelivery delivery)
    {
        if (state != ClientState.Connected)
        {
            events.OnWarning("a send of a client that is not connected.");
            return false;
        }
        string text;
        int code = Send(server, attempt, data, delivery, out text);
        if (code != ErrorCode.Ok && delivery == LinkDelivery.Reliable)
        {
            SendControl(server, Disconnect, attempt);
            EndClient(code, "A reliable message to the host was refused: " + text);
        }
        return code == ErrorCode.Ok;
    }

    internal void StopClient()
    {
        if (state == ClientState.Idle)
        {
            return;
        }
        if (asked)
        {
            SendControl(server, Disconnect, attempt);
        }
        EndClient(ErrorCode.Ok, null);
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

    private void EndClient(int code, string text)
    {
        if (state == ClientState.Idle)
        {
            return;
        }
        state = ClientState.Idle;
        server = null;
        asked = false;
        if (code != ErrorCode.Ok)
        {
            events.OnClientFailed(code, text);
        }
        events.OnClientDisconnected();
    }

    // ---------------------------------------------------------------- server

    /// <summary>
    /// Makes this member the host: outside of a room it opens one. After <see cref="IRoomLinkEvents.OnHostChanged"/> has named this
    /// member, it accepts the clients that are waiting.
    /// </summary>
    /// <exception cref="NetworkException">The room cannot be opened, for example because the port is taken (-4).</exception>
    internal void StartServer(RoomLinkSettings settings)
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
            Enter(settings, settings.Port, true);
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

    /// <summary>Whether the message is under way. If a reliable one is not, the client is disconnected.</summary>
    internal bool SendToClient(int id, ArraySegment<byte> data, LinkDelivery delivery)
    {
        Connection connection;
        if (!byId.TryGetValue(id, out connection) || !connection.Open)
        {
            return false;
        }
        string text;
        int code = Send(connection.Member, connection.Attempt, data, delivery, out text);
        if (code != ErrorCode.Ok && delivery == LinkDelivery.Reliable)
        {
            events.OnServerFailed(id, code, "A reliable message was refused: " + text);
            StopClient(id);
        }
        return code == ErrorCode.Ok;
    }

    /// <summary>Ends a client's connection; the member stays in the room. Returns whether there was one.</summary>
    internal bool StopClient(int id)
    {
        Connection connection;
        if (!byId.TryGetValue(id, out connection) || !connection.Open)
        {
            return false;
        }
        SendControl(connection.Member, Disconnect, connection.Attempt);
        Close(connection);
        return true;
    }

    internal bool IsOpen(int id)
    {
        Connection connection;
        return byId.TryGetValue(id, out connection) && connection.Open;
    }

    /// <summary>The client's member; null for no client.</summary>
    internal string MemberOf(int id)
    {
        Connection connection;
        return byId.TryGetValue(id, out connection) ? connection.Member : null;
    }

    /// <summary>Stops serving, and reports no client's end. The room continues: another member, if there is one, becomes the host.</summary>
    internal void StopServer()
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
                events.OnWarning("no member takes over: " + exception.Message);
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
        if (connection.Open)
        {
            events.OnServerConnected(connection.Id, member);
        }
    }

    private void Close(Connection connection)
    {
        if (connection.Open)
        {
            connection.Open = false;
            events.OnServerDisconnected(connection.Id);
        }
    }

    private void CloseAll()
    {
        foreach (Connection connection in new List<Connection>(byId.Values))
        {
            Close(connection);
        }
    }

    // ---------------------------------------------------------------- the room

    /// <summary>Takes one event of the room. False when there is none, outside of a room, and inside an event.</summary>
    internal bool PollOne()
    {
        if (room == null || polling)
        {
            return false;
        }
        bool found;
        polling = true;
        try
        {
            found = room.Poll(1) > 0;
        }
        finally
        {
            polling = false;
        }
        if (leaving)
        {
            Leave();
            return false;
        }
        return found;
    }

    /// <summary>Once per frame, after its events: a client that has no host yet asks for it, up to its time.</summary>
    internal void Tick()
    {
        if (room == null || polling)
        {
            return;
        }
        Ask();
        if (state == ClientState.Connecting && clock.ElapsedMilliseconds > deadline)
        {
            string text = room.Leader == null ? "The room has no host." : "The host " + room.Leader + " does not accept this client.";
            if (asked)
            {
                SendControl(server, Disconnect, attempt);
            }
            EndClient(ErrorCode.Timeout, text + " Waited " + timeoutMs + " ms.");
        }
    }

    /// <summary>Leaves the room, as client and as server. The others elect another host at once.</summary>
    internal void Shutdown()
    {
        leaving = true;
        StopClient();
        StopServer();
        if (!polling)
        {
            Leave();
        }
    }

    private void Enter(RoomLinkSettings settings, ushort bindPort, bool campaigns)
    {
        RoomOptions options = new RoomOptions();
        options.Settings.BindPort = bindPort;
        options.Settings.AutoElection = campaigns ? 1u : 0u;
        // The first host is set, so that it leads at once; after it, the room elects.
        options.Settings.ManualOverrideRecovery = ManualOverrideRecovery.AutoElect;
        if (settings.KeepsState)
        {
            options.State = new StateOptions();
        }
        if (!string.IsNullOrEmpty(settings.Password))
        {
            options.Secret = Encoding.UTF8.GetBytes(settings.Password);
        }
        string id = string.IsNullOrEmpty(settings.PlayerId) ? Guid.NewGuid().ToString("N").Substring(0, 16) : settings.PlayerId;
        room = Room.Join(id, settings.SessionId, options);
        leaving = false;
        host = null;
        room.HandlerFailed += events.OnException;
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
                EndClient(result.Code, result.Address + ": " + Room.Describe(result.Code));
            }
        }
        else if (e is RoomEnded end)
        {
            leaving = true; // when the handlers have returned
            serving = false;
            EndClient(ErrorCode.PeerNotFound, "The room has ended: " + end.Reason.Describe() + ".");
            CloseAll();
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
            CloseAll();
        }
        if (state == ClientState.Connected && server != leader)
        {
            EndClient(ErrorCode.PeerNotFound, "The host " + server + " is gone.");
        }
        else if (state == ClientState.Connecting && asked && server != leader)
        {
            // If that member becomes the host later, it must not treat this client as waiting.
            SendControl(server, Disconnect, attempt);
            asked = false;
        }
        if (state == ClientState.Connecting && leader == room.PeerId)
        {
            EndClient(ErrorCode.Rejected, "This member is the host now.");
        }
        if (changed)
        {
            events.OnHostChanged(leader, leader == room.PeerId);
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
            EndClient(ErrorCode.PeerNotFound, "The host " + member + " is gone.");
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
                    events.OnClientConnected();
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
            EndClient(ErrorCode.Ok, null);
        }
    }

    private void OnSegment(MessageView message)
    {
        // A datagram of an earlier attempt may be late; the reliable channel keeps its order.
        bool reliable = message.Delivery == DeliveryMode.ReliableOrdered;
        Connection connection;
        if (serving && byMember.TryGetValue(message.From, out connection))
        {
            if (connection.Open && (reliable || message.Channel == connection.Attempt))
            {
                events.OnServerReceived(connection.Id, Copied(message), reliable);
            }
        }
        else if (state == ClientState.Connected && message.From == server && (reliable || message.Channel == attempt))
        {
            events.OnClientReceived(Copied(message), reliable);
        }
    }

    // Engines read arrays.
    private ArraySegment<byte> Copied(MessageView message)
    {
        if (incoming.Length < message.Length)
        {
            incoming = new byte[Math.Max(message.Length, 2 * incoming.Length)];
        }
        message.CopyTo(incoming);
        return new ArraySegment<byte>(incoming, 0, message.Length);
    }

    private int Send(string member, byte connectionAttempt, ArraySegment<byte> data, LinkDelivery delivery, out string text)
    {
        text = null;
        int limit = delivery == LinkDelivery.Reliable ? MaxReliable : MaxUnreliable;
        int code = room == null ? ErrorCode.NotInitialized : data.Count > limit ? ErrorCode.MessageTooLarge : TrySend(member, connectionAttempt, data, delivery);
        if (code == ErrorCode.MessageTooLarge)
        {
            text = "it has " + data.Count + " bytes; the limit is " + limit + ".";
            if (delivery != LinkDelivery.Reliable)
            {
                events.OnWarning("an unreliable message was dropped: " + text);
            }
        }
        else if (code != ErrorCode.Ok)
        {
            text = Room.Describe(code);
        }
        return code;
    }

    private int TrySend(string member, byte connectionAttempt, ArraySegment<byte> data, LinkDelivery delivery)
    {
        Delivery options = delivery == LinkDelivery.Reliable ? default(Delivery)
            : delivery == LinkDelivery.Sequenced ? Delivery.Sequenced(SequenceKey, connectionAttempt)
            : Delivery.Unreliable(connectionAttempt);
        return room.TrySendTo(member, data, options, Data);
    }

    private bool SendControl(string member, ushort type, byte connectionAttempt)
    {
        control[0] = connectionAttempt;
        return room != null && room.TrySendTo(member, control, type) == ErrorCode.Ok;
    }

    private static string WithPort(string address, ushort port)
    {
        int colon = address.LastIndexOf(':');
        if (colon < 0 || address.EndsWith("]", StringComparison.Ordinal))
        {
            return address + ":" + port;
        }
        // An IPv6 address without brackets has several colons.
        return address.IndexOf(':') != colon && address[0] != '[' ? "[" + address + "]:" + port : address;
    }
}
