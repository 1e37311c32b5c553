using System;
using System.Collections.Generic;
using MetaMystia.Network;
using Unity.Netcode;
using UnityEngine;
using NetworkEvent = Unity.Netcode.NetworkEvent; // the binding has a struct of that name

/// <summary>
/// A transport for Netcode for GameObjects on a room of meta_mystia_network. All players are members of one room, and its leader is the
/// host. When the host is gone, the room elects another, and <see cref="HostChanged"/> names it: that member calls StartHost, the
/// others StartClient, and the game continues.
/// </summary>
/// <remarks>
/// Netcode shuts its transport down whenever a session ends, also that of a lost host. So <see cref="Shutdown"/> stays in the room, and
/// <see cref="LeaveRoom"/> leaves it. Between two sessions Update takes the room's events.
/// </remarks>
public class NetcodeRoomTransport : NetworkTransport, IRoomLinkEvents
{
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

    private struct Pending
    {
        internal NetworkEvent Type;
        internal ulong Client;
        internal ArraySegment<byte> Payload;
    }

    private readonly RoomLink link;
    private readonly Queue<Pending> pending = new Queue<Pending>();
    private int taken; // events of the room in this frame
    private bool serves; // as Netcode knows it
    private bool quiet; // Netcode ends a connection itself, and polls no event of it
    private string newHost; // to be reported; null for none

    public NetcodeRoomTransport()
    {
        link = new RoomLink(this);
    }

    /// <summary>
    /// Another member is the host now: its id, and whether it is this member. Not raised for the first host of a room. It is raised in
    /// Update, after Netcode has received the end of its connections to the previous host.
    /// </summary>
    public event Action<string, bool> HostChanged;

    /// <summary>The room, for functions without a call in Netcode: kicks, statistics, a leadership transfer, the state. null outside of a room.</summary>
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

    public override ulong ServerClientId
    {
        get { return 0; }
    }

    public override bool IsSupported
    {
        get { return IntPtr.Size == 8; } // The library is for 64-bit desktops.
    }

    /// <summary>The id of a client's member in the room, at the host; null for no client. Its number here is the transport's.</summary>
    public string MemberOf(ulong clientId)
    {
        return clientId > int.MaxValue ? null : link.MemberOf((int)clientId);
    }

    public override void Initialize(NetworkManager networkManager = null)
    {
        pending.Clear();
        if (networkManager != null)
        {
            // Netcode's own size of unreliable batches is more than every path carries. It rounds down to a multiple of 8.
            networkManager.MaximumTransmissionUnitSize = RoomLink.MaxUnreliable;
        }
    }

    /// <summary>
    /// Connects to the room's host. Outside of a room, or alone in one, it first enters the room at <see cref="address"/>. In a room
    /// with others it needs no address, because the room knows its host.
    /// </summary>
    public override bool StartClient()
    {
        link.StartClient(Settings(), address);
        if (link.IsClientIdle)
        {
            pending.Clear();
        }
        return !link.IsClientIdle;
    }

    /// <summary>Makes this member the host: outside of a room it opens one. It accepts the clients that are waiting for the new host.</summary>
    public override bool StartServer()
    {
        try
        {
            link.StartServer(Settings());
            serves = true;
            return true;
        }
        catch (Exception exception) when (exception is NetworkException || exception is InvalidOperationException)
        {
            Debug.LogError("NetcodeRoomTransport: the server does not start: " + exception.Message);
            return false;
        }
    }

    /// <summary>
    /// Sends to a client, or with <see cref="ServerClientId"/> to the host. Reliable messages are ordered and have up to 262144 bytes,
    /// others up to 1100. A reliable message that cannot be sent disconnects its receiver; others are dropped.
    /// </summary>
    public override void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery networkDelivery)
    {
        LinkDelivery delivery = networkDelivery == NetworkDelivery.Unreliable ? LinkDelivery.Unreliable
            : networkDelivery == NetworkDelivery.UnreliableSequenced ? LinkDelivery.Sequenced
            : LinkDelivery.Reliable;
        if (clientId == ServerClientId)
        {
            link.SendToServer(payload, delivery);
        }
        else
        {
            link.SendToClient((int)clientId, payload, delivery);
        }
    }

    /// <summary>The next event. The payload is valid until the next call.</summary>
    public override NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime)
    {
        while (pending.Count == 0 && taken < MaxEventsPerFrame && link.PollOne())
        {
            taken++;
        }
        if (pending.Count == 0)
        {
            taken = 0;
            link.Tick();
            EndServer();
        }
        receiveTime = Time.realtimeSinceStartup;
        Pending next = pending.Count > 0 ? pending.Dequeue() : new Pending { Type = NetworkEvent.Nothing };
        clientId = next.Client;
        payload = next.Payload;
        return next.Type;
    }

    // A host that only loses its leadership learns of it by HostChanged. One without a room has nothing to migrate to.
    private void EndServer()
    {
        if (serves && link.Room == null)
        {
            serves = false;
            Debug.LogError("NetcodeRoomTransport: the host is out of its room.");
            Add(NetworkEvent.TransportFailure, ServerClientId);
        }
    }

    public override void DisconnectRemoteClient(ulong clientId)
    {
        quiet = true;
        link.StopClient((int)clientId);
        quiet = false;
    }

    /// <summary>Disconnects this client. Netcode learns of it at once, as with its own transport, because it does not poll any more.</summary>
    public override void DisconnectLocalClient()
    {
        bool connected = link.IsClientConnected;
        quiet = true;
        link.StopClient();
        quiet = false;
        pending.Clear();
        if (connected)
        {
            InvokeOnTransportEvent(NetworkEvent.Disconnect, ServerClientId, default(ArraySegment<byte>), Time.realtimeSinceStartup);
        }
    }

    /// <summary>The round trip to a client, or with <see cref="ServerClientId"/> to the host, in milliseconds; 0 until it is measured.</summary>
    public override ulong GetCurrentRtt(ulong clientId)
    {
        string member = clientId == ServerClientId ? link.Host : MemberOf(clientId);
        int milliseconds = member == null ? 0 : link.Room.RoundTripMs(member);
        return milliseconds < 0 ? 0 : (ulong)milliseconds;
    }

    /// <summary>Ends the session, and stays in the room. A host hands over to another member, if there is one.</summary>
    public override void Shutdown()
    {
        link.StopClient();
        link.StopServer();
        serves = false;
        pending.Clear();
    }

    /// <summary>Leaves the room, as client and as server. The others elect another host at once.</summary>
    public void LeaveRoom()
    {
        link.Shutdown();
        newHost = null;
    }

    // Unity calls this when the object, the scene or the game ends, and before the editor reloads scripts.
    public void OnDisable()
    {
        LeaveRoom();
    }

    // Netcode does not poll between two sessions.
    public void Update()
    {
        if (!link.IsServing && link.IsClientIdle && pending.Count == 0)
        {
            for (int number = 0; number < MaxEventsPerFrame && link.PollOne(); number++)
            {
            }
        }
        if (newHost != null && pending.Count == 0)
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

    private RoomLinkSettings Settings()
    {
        return new RoomLinkSettings
        {
            SessionId = sessionId, Password = password, PlayerId = playerId, Port = port, TimeoutMs = timeoutMs, KeepsState = keepsState,
        };
    }

    // ---------------------------------------------------------------- events of the link

    private void Add(NetworkEvent type, ulong client, ArraySegment<byte> payload = default(ArraySegment<byte>))
    {
        pending.Enqueue(new Pending { Type = type, Client = client, Payload = payload });
    }

    void IRoomLinkEvents.OnHostChanged(string host, bool isThisMember)
    {
        newHost = host;
    }

    void IRoomLinkEvents.OnClientConnected()
    {
        Add(NetworkEvent.Connect, ServerClientId);
    }

    void IRoomLinkEvents.OnClientDisconnected()
    {
        if (!quiet)
        {
            Add(NetworkEvent.Disconnect, ServerClientId);
        }
    }

    void IRoomLinkEvents.OnClientFailed(int code, string text)
    {
        Debug.LogWarning("NetcodeRoomTransport: " + text + " (" + code + ")");
    }

    void IRoomLinkEvents.OnClientReceived(ArraySegment<byte> data, bool reliable)
    {
        Add(NetworkEvent.Data, ServerClientId, data);
    }

    void IRoomLinkEvents.OnServerConnected(int id, string member)
    {
        Add(NetworkEvent.Connect, (ulong)id);
    }

    void IRoomLinkEvents.OnServerDisconnected(int id)
    {
        if (!quiet)
        {
            Add(NetworkEvent.Disconnect, (ulong)id);
        }
    }

    void IRoomLinkEvents.OnServerFailed(int id, int code, string text)
    {
        Debug.LogError("NetcodeRoomTransport: client " + id + " is disconnected: " + text + " (" + code + ")");
    }

    void IRoomLinkEvents.OnServerReceived(int id, ArraySegment<byte> data, bool reliable)
    {
        Add(NetworkEvent.Data, (ulong)id, data);
    }

    void IRoomLinkEvents.OnWarning(string text)
    {
        Debug.LogWarning("NetcodeRoomTransport: " + text);
    }

    void IRoomLinkEvents.OnException(Exception exception)
    {
        Debug.LogException(exception);
    }
}
