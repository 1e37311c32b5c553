using System;
using System.Collections.Generic;
using FishNet.Managing;
using FishNet.Transporting;
using MetaMystia.Network;
using UnityEngine;

/// <summary>
/// A transport for FishNet on a room of meta_mystia_network. All players are members of one room, and its leader is the host. When the
/// host is gone, the room elects another, and <see cref="HostChanged"/> names it: that member starts its server, the others connect to
/// it, and the game continues.
/// </summary>
/// <remarks>
/// The room outlives FishNet's clients and servers: StopConnection stays in it, and <see cref="Shutdown"/> leaves. The client of a host
/// is not in the room a second time: its messages go from one queue of this object to the other.
/// </remarks>
public class FishRoomTransport : Transport, IRoomLinkEvents
{
    /// <summary>The connection id of a host's own client. The others begin at 1.</summary>
    public const int LocalClientId = 0;

    // Limit of the events in one frame: a frame with more would take ever longer.
    private const int MaxEventsPerFrame = 2000;

    [Tooltip("The room's name: the same for all players of one game, and of no other.")]
    public string sessionId = "my game";
    [Tooltip("What else players must know to enter; empty for nothing.")]
    public string password = "";
    [Tooltip("This player's id, unique in the room; empty for a random one.")]
    public string playerId = "";
    [Tooltip("For a client that is in no room yet: the address of any member, IP:PORT.")]
    public string address = "";
    [Tooltip("The UDP port of the first host, and of an address without a port. Clients take any free port.")]
    public ushort port = 7777;
    [Tooltip("How long a client tries to connect, in milliseconds. Enough for the others to elect a host.")]
    public int timeoutMs = 15000;
    [Tooltip("The room keeps a state that outlives its host. The same for all players.")]
    public bool keepsState;

    private readonly RoomLink link;
    private LocalConnectionState serverState = LocalConnectionState.Stopped, clientState = LocalConnectionState.Stopped;
    private bool local; // the client is that of the host
    private readonly LocalQueue toServer = new LocalQueue(), toClient = new LocalQueue();
    private readonly List<int> early = new List<int>(); // clients that were waiting for the server to start
    private string newHost; // to be reported; null for none

    public FishRoomTransport()
    {
        link = new RoomLink(this);
    }

    public override event Action<ClientConnectionStateArgs> OnClientConnectionState;
    public override event Action<ServerConnectionStateArgs> OnServerConnectionState;
    public override event Action<RemoteConnectionStateArgs> OnRemoteConnectionState;
    public override event Action<ClientReceivedDataArgs> OnClientReceivedData;
    public override event Action<ServerReceivedDataArgs> OnServerReceivedData;

    /// <summary>
    /// Another member is the host now: its id, and whether it is this member. Not raised for the first host of a room. A client that
    /// was connected to the previous one, and the server of a previous host, are stopped by then.
    /// </summary>
    public event Action<string, bool> HostChanged;

    /// <summary>The room, for functions without a call in FishNet: kicks, statistics, a leadership transfer, the state. null outside of a room.</summary>
    public Room Room
    {
        get { return link.Room; }
    }

    /// <summary>An address for newcomers to connect to, which may be any member's. null outside of a room.</summary>
    public string Address
    {
        get { return link.Address; }
    }

    /// <summary>The present host's id; null when there is none.</summary>
    public string Host
    {
        get { return link.Host; }
    }

    // ---------------------------------------------------------------- settings

    /// <summary>The client's id in the room. It serves better than an address: it is bound to a key.</summary>
    public override string GetConnectionAddress(int connectionId)
    {
        string member = connectionId == LocalClientId && link.Room != null ? link.Room.PeerId : link.MemberOf(connectionId);
        return member ?? "";
    }

    public override void SetClientAddress(string address)
    {
        this.address = address;
    }

    public override string GetClientAddress()
    {
        return address;
    }

    public override void SetPort(ushort port)
    {
        this.port = port;
    }

    public override ushort GetPort()
    {
        return port;
    }

    /// <summary>1100 bytes on both channels, which every path carries. FishNet splits longer messages, and sends the parts reliably.</summary>
    public override int GetMTU(byte channel)
    {
        return RoomLink.MaxUnreliable;
    }

    private RoomLinkSettings Settings()
    {
        return new RoomLinkSettings
        {
            SessionId = sessionId, Password = password, PlayerId = playerId, Port = port, TimeoutMs = timeoutMs, KeepsState = keepsState,
        };
    }

    // ---------------------------------------------------------------- start and stop

    /// <summary>
    /// A server makes this member the host: outside of a room it opens one. A client connects to the room's host, or to the server of
    /// this object; outside of a room it first enters the room at <see cref="address"/>.
    /// </summary>
    public override bool StartConnection(bool server)
    {
        return server ? StartServer() : StartClient();
    }

    /// <summary>Stays in the room. A host whose server stops hands over to another member, if there is one.</summary>
    public override bool StopConnection(bool server)
    {
        return server ? StopServer() : StopClient();
    }

    public override bool StopConnection(int connectionId, bool immediately)
    {
        return connectionId == LocalClientId ? local && StopClient() : link.StopClient(connectionId);
    }

    /// <summary>Stops both, and leaves the room. The others elect another host at once.</summary>
    public override void Shutdown()
    {
        StopConnection(false);
        StopConnection(true);
        link.Shutdown();
        newHost = null;
    }

    // Unity calls this when the object, the scene or the game ends, and before the editor reloads scripts.
    public void OnDisable()
    {
        Shutdown();
    }

    private bool StartServer()
    {
        if (serverState != LocalConnectionState.Stopped)
        {
            return false;
        }
        SetServer(LocalConnectionState.Starting);
        try
        {
            link.StartServer(Settings());
        }
        catch (Exception exception) when (exception is NetworkException || exception is InvalidOperationException)
        {
            Debug.LogError("FishRoomTransport: the server does not start: " + exception.Message);
            early.Clear();
            EndServer();
            return false;
        }
        SetServer(LocalConnectionState.Started);
        foreach (int id in early.ToArray())
        {
            SetRemote(id, RemoteConnectionState.Started);
        }
        early.Clear();
        return true;
    }

    private bool StopServer()
    {
        if (serverState != LocalConnectionState.Started)
        {
            return false;
        }
        if (local)
        {
            StopClient();
        }
        link.StopServer();
        EndServer();
        return true;
    }

    private void EndServer()
    {
        SetServer(LocalConnectionState.Stopping);
        SetServer(LocalConnectionState.Stopped);
    }

    private bool StartClient()
    {
        if (clientState != LocalConnectionState.Stopped)
        {
            return false;
        }
        SetClient(LocalConnectionState.Starting);
        if (serverState == LocalConnectionState.Started)
        {
            local = true;
            SetRemote(LocalClientId, RemoteConnectionState.Started);
            SetClient(LocalConnectionState.Started);
            return true;
        }
        link.StartClient(Settings(), address);
        return clientState != LocalConnectionState.Stopped;
    }

    private bool StopClient()
    {
        if (clientState == LocalConnectionState.Stopped)
        {
            return false;
        }
        if (local)
        {
            local = false;
            toServer.Clear();
            toClient.Clear();
            EndClient();
            SetRemote(LocalClientId, RemoteConnectionState.Stopped);
        }
        else
        {
            link.StopClient(); // which calls EndClient
        }
        return true;
    }

    private void EndClient()
    {
        SetClient(LocalConnectionState.Stopping);
        SetClient(LocalConnectionState.Stopped);
    }

    public override LocalConnectionState GetConnectionState(bool server)
    {
        return server ? serverState : clientState;
    }

    public override RemoteConnectionState GetConnectionState(int connectionId)
    {
        bool open = connectionId == LocalClientId ? local : link.IsOpen(connectionId);
        return open ? RemoteConnectionState.Started : RemoteConnectionState.Stopped;
    }

    // ---------------------------------------------------------------- messages

    public override void SendToServer(byte channelId, ArraySegment<byte> segment)
    {
        if (!local)
        {
            link.SendToServer(segment, DeliveryOf(channelId));
        }
        else
        {
            Add(toServer, segment, channelId);
        }
    }

    public override void SendToClient(byte channelId, ArraySegment<byte> segment, int connectionId)
    {
        if (connectionId != LocalClientId)
        {
            link.SendToClient(connectionId, segment, DeliveryOf(channelId));
        }
        else if (local)
        {
            Add(toClient, segment, channelId);
        }
    }

    private void Add(LocalQueue queue, ArraySegment<byte> segment, byte channelId)
    {
        if (!queue.Add(segment, channelId))
        {
            Debug.LogError("FishRoomTransport: the host's own client is stopped: more than " + LocalQueue.MaxBytes + " bytes wait for a frame.");
            StopClient();
        }
    }

    private static LinkDelivery DeliveryOf(byte channelId)
    {
        return channelId == (byte)Channel.Unreliable ? LinkDelivery.Unreliable : LinkDelivery.Reliable;
    }

    private static Channel ChannelOf(bool reliable)
    {
        return reliable ? Channel.Reliable : Channel.Unreliable;
    }

    // ---------------------------------------------------------------- frames

    /// <summary>Takes the events of the room, whichever side FishNet asks for first, and then the messages between a host and its own client.</summary>
    public override void IterateIncoming(bool asServer)
    {
        Poll();
        LocalQueue queue = asServer ? toServer : toClient;
        ArraySegment<byte> data;
        byte channel;
        // As many as there are now: the answer to one may be another.
        for (int count = queue.Count; count > 0 && queue.Take(out data, out channel); count--)
        {
            if (asServer)
            {
                HandleServerReceivedDataArgs(new ServerReceivedDataArgs(data, (Channel)channel, LocalClientId, Index));
            }
            else
            {
                HandleClientReceivedDataArgs(new ClientReceivedDataArgs(data, (Channel)channel, Index));
            }
        }
    }

    /// <summary>Nothing: messages leave when they are sent.</summary>
    public override void IterateOutgoing(bool asServer)
    {
    }

    // Also while FishNet has neither a server nor a client: the room may make this member the host.
    public void Update()
    {
        Poll();
        if (newHost != null)
        {
            string host = newHost;
            newHost = null;
            Action<string, bool> handler = HostChanged;
            if (handler != null && link.Room != null)
            {
                handler(host, host == link.Room.PeerId);
            }
        }
    }

    private void Poll()
    {
        for (int number = 0; number < MaxEventsPerFrame && link.PollOne(); number++)
        {
        }
        link.Tick();
        if (serverState == LocalConnectionState.Started && !link.IsServing)
        {
            if (local)
            {
                StopClient();
            }
            EndServer(); // Another member leads, or the room is over for this one.
        }
    }

    // ---------------------------------------------------------------- events for FishNet

    public override void HandleClientConnectionState(ClientConnectionStateArgs connectionStateArgs)
    {
        Raise(OnClientConnectionState, connectionStateArgs);
    }

    public override void HandleServerConnectionState(ServerConnectionStateArgs connectionStateArgs)
    {
        Raise(OnServerConnectionState, connectionStateArgs);
    }

    public override void HandleRemoteConnectionState(RemoteConnectionStateArgs connectionStateArgs)
    {
        Raise(OnRemoteConnectionState, connectionStateArgs);
    }

    public override void HandleClientReceivedDataArgs(ClientReceivedDataArgs receivedDataArgs)
    {
        Raise(OnClientReceivedData, receivedDataArgs);
    }

    public override void HandleServerReceivedDataArgs(ServerReceivedDataArgs receivedDataArgs)
    {
        Raise(OnServerReceivedData, receivedDataArgs);
    }

    private static void Raise<T>(Action<T> handler, T args)
    {
        if (handler != null)
        {
            handler(args);
        }
    }

    private void SetServer(LocalConnectionState state)
    {
        serverState = state;
        HandleServerConnectionState(new ServerConnectionStateArgs(state, Index));
    }

    private void SetClient(LocalConnectionState state)
    {
        clientState = state;
        HandleClientConnectionState(new ClientConnectionStateArgs(state, Index));
    }

    private void SetRemote(int id, RemoteConnectionState state)
    {
        HandleRemoteConnectionState(new RemoteConnectionStateArgs(state, id, Index));
    }

    // ---------------------------------------------------------------- events of the link

    void IRoomLinkEvents.OnHostChanged(string host, bool isThisMember)
    {
        newHost = host;
    }

    void IRoomLinkEvents.OnClientConnected()
    {
        SetClient(LocalConnectionState.Started);
    }

    void IRoomLinkEvents.OnClientDisconnected()
    {
        EndClient();
    }

    void IRoomLinkEvents.OnClientFailed(int code, string text)
    {
        Debug.LogWarning("FishRoomTransport: " + text + " (" + code + ")");
    }

    void IRoomLinkEvents.OnClientReceived(ArraySegment<byte> data, bool reliable)
    {
        HandleClientReceivedDataArgs(new ClientReceivedDataArgs(data, ChannelOf(reliable), Index));
    }

    void IRoomLinkEvents.OnServerConnected(int id, string member)
    {
        if (serverState == LocalConnectionState.Started)
        {
            SetRemote(id, RemoteConnectionState.Started);
        }
        else
        {
            early.Add(id);
        }
    }

    void IRoomLinkEvents.OnServerDisconnected(int id)
    {
        SetRemote(id, RemoteConnectionState.Stopped);
    }

    void IRoomLinkEvents.OnServerFailed(int id, int code, string text)
    {
        Debug.LogError("FishRoomTransport: client " + id + " is disconnected: " + text + " (" + code + ")");
    }

    void IRoomLinkEvents.OnServerReceived(int id, ArraySegment<byte> data, bool reliable)
    {
        HandleServerReceivedDataArgs(new ServerReceivedDataArgs(data, ChannelOf(reliable), id, Index));
    }

    void IRoomLinkEvents.OnWarning(string text)
    {
        Debug.LogWarning("FishRoomTransport: " + text);
    }

    void IRoomLinkEvents.OnException(Exception exception)
    {
        Debug.LogException(exception);
    }
}
