using System;
using MetaMystia.Network;
using Mirror;
using UnityEngine;

/// <summary>
/// A transport for Mirror on a room of meta_mystia_network. All players are members of one room, and its leader is the host: the
/// member whose Mirror server the others' clients connect to. When the host is gone, the room elects another, and
/// <see cref="HostChanged"/> names it: that member starts its server, the others connect to it, and the game continues.
/// </summary>
/// <remarks>
/// The room outlives Mirror's clients and servers: <see cref="ServerStop"/> and <see cref="ClientDisconnect"/> stay in it, and
/// <see cref="Shutdown"/> leaves. Each transport has a room of its own.
/// </remarks>
public class RoomTransport : Transport, IRoomLinkEvents
{
    private const int Batch = 4096;
    // Limit of the events in one frame: a frame with more would take ever longer.
    private const int MaxEventsPerUpdate = 2000;

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

    private readonly RoomLink link;

    public RoomTransport()
    {
        link = new RoomLink(this);
    }

    /// <summary>
    /// Another member is the host now: its id, and whether it is this member. Not raised for the first host of a room. A client that
    /// was connected to the previous one is disconnected by then.
    /// </summary>
    public event Action<string, bool> HostChanged;

    /// <summary>The room, for functions without a call in Mirror: kicks, statistics, a leadership transfer. null outside of a room.</summary>
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

    public override bool Available()
    {
        return IntPtr.Size == 8; // The library is for 64-bit desktops.
    }

    public override int GetMaxPacketSize(int channelId = Channels.Reliable)
    {
        return channelId == Channels.Unreliable ? RoomLink.MaxUnreliable : RoomLink.MaxReliable;
    }

    public override int GetBatchThreshold(int channelId = Channels.Reliable)
    {
        return channelId == Channels.Unreliable ? RoomLink.MaxUnreliable : Batch;
    }

    private RoomLinkSettings Settings()
    {
        return new RoomLinkSettings
        {
            SessionId = sessionId, Password = password, PlayerId = playerId, Port = port, TimeoutMs = timeoutMs, KeepsState = keepsState,
        };
    }

    private static LinkDelivery DeliveryOf(int channelId)
    {
        return channelId == Channels.Unreliable ? LinkDelivery.Unreliable : LinkDelivery.Reliable;
    }

    private static int ChannelOf(bool reliable)
    {
        return reliable ? Channels.Reliable : Channels.Unreliable;
    }

    // ---------------------------------------------------------------- client

    public override bool ClientConnected()
    {
        return link.IsClientConnected;
    }

    /// <summary>
    /// Connects to the room's host. Outside of a room, or alone in one, it first enters the room at the address, which may be that of
    /// any member. In a room with others it needs no address, because the room knows its host.
    /// </summary>
    public override void ClientConnect(string address)
    {
        link.StartClient(Settings(), address);
    }

    public override void ClientConnect(Uri uri)
    {
        ClientConnect(uri.IsDefaultPort || uri.Port < 0 ? uri.Host : uri.Host + ":" + uri.Port);
    }

    public override void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable)
    {
        Action<ArraySegment<byte>, int> sent = OnClientDataSent;
        if (link.SendToServer(segment, DeliveryOf(channelId)) && sent != null)
        {
            sent(segment, channelId);
        }
    }

    public override void ClientDisconnect()
    {
        link.StopClient();
    }

    // ---------------------------------------------------------------- server

    public override Uri ServerUri()
    {
        string address = Address ?? "localhost:" + port;
        return new Uri("room://" + address);
    }

    public override bool ServerActive()
    {
        return link.IsServing;
    }

    /// <summary>
    /// Makes this member the host: outside of a room it opens one. After <see cref="HostChanged"/> has named this member, it accepts
    /// the clients that are waiting.
    /// </summary>
    /// <exception cref="NetworkException">The room cannot be opened, for example because the port is taken (-4).</exception>
    public override void ServerStart()
    {
        link.StartServer(Settings());
    }

    public override void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable)
    {
        Action<int, ArraySegment<byte>, int> sent = OnServerDataSent;
        if (link.SendToClient(connectionId, segment, DeliveryOf(channelId)) && sent != null)
        {
            sent(connectionId, segment, channelId);
        }
    }

    public override void ServerDisconnect(int connectionId)
    {
        link.StopClient(connectionId);
    }

    /// <summary>
    /// The id of the client's member. It serves better than an address: it is bound to a key, and <see cref="Room.Kick"/> with a ban keeps both out.
    /// </summary>
    public override string ServerGetClientAddress(int connectionId)
    {
        return link.MemberOf(connectionId) ?? "";
    }

    /// <summary>Stops serving. The room continues: another member, if there is one, becomes the host.</summary>
    public override void ServerStop()
    {
        link.StopServer();
    }

    // ---------------------------------------------------------------- frames

    public override void ClientEarlyUpdate()
    {
        Poll();
    }

    public override void ServerEarlyUpdate()
    {
        Poll();
    }

    private void Poll()
    {
        // One at a time: Mirror may disable the component between two, for example while a scene is loaded.
        for (int number = 0; number < MaxEventsPerUpdate && enabled && link.PollOne(); number++)
        {
        }
        link.Tick();
    }

    /// <summary>Leaves the room, as client and as server. The others elect another host at once.</summary>
    public override void Shutdown()
    {
        link.Shutdown();
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

    // ---------------------------------------------------------------- events of the link

    void IRoomLinkEvents.OnHostChanged(string host, bool isThisMember)
    {
        Action<string, bool> handler = HostChanged;
        if (handler != null)
        {
            handler(host, isThisMember);
        }
    }

    void IRoomLinkEvents.OnClientConnected()
    {
        Action connected = OnClientConnected;
        if (connected != null)
        {
            connected();
        }
    }

    void IRoomLinkEvents.OnClientDisconnected()
    {
        Action disconnected = OnClientDisconnected;
        if (disconnected != null)
        {
            disconnected();
        }
    }

    void IRoomLinkEvents.OnClientFailed(int code, string text)
    {
        Action<TransportError, string> failed = OnClientError;
        if (failed != null)
        {
            failed(ErrorOf(code), text);
        }
    }

    void IRoomLinkEvents.OnClientReceived(ArraySegment<byte> data, bool reliable)
    {
        Action<ArraySegment<byte>, int> received = OnClientDataReceived;
        if (received != null)
        {
            received(data, ChannelOf(reliable));
        }
    }

    void IRoomLinkEvents.OnServerConnected(int id, string member)
    {
        Action<int, string> connected = OnServerConnectedWithAddress;
        if (connected != null)
        {
            connected(id, member);
        }
    }

    void IRoomLinkEvents.OnServerDisconnected(int id)
    {
        Action<int> disconnected = OnServerDisconnected;
        if (disconnected != null)
        {
            disconnected(id);
        }
    }

    void IRoomLinkEvents.OnServerFailed(int id, int code, string text)
    {
        Action<int, TransportError, string> failed = OnServerError;
        if (failed != null)
        {
            failed(id, ErrorOf(code), text);
        }
    }

    void IRoomLinkEvents.OnServerReceived(int id, ArraySegment<byte> data, bool reliable)
    {
        Action<int, ArraySegment<byte>, int> received = OnServerDataReceived;
        if (received != null)
        {
            received(id, data, ChannelOf(reliable));
        }
    }

    void IRoomLinkEvents.OnWarning(string text)
    {
        Debug.LogWarning("RoomTransport: " + text);
    }

    void IRoomLinkEvents.OnException(Exception exception)
    {
        Debug.LogException(exception);
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
