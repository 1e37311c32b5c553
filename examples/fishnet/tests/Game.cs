// A game on FishRoomTransport and FishHostMigration, with a stub of FishNet. Its commands are those of TransportGame.
//
//   mcs -langversion:7 -out:Game.exe examples/fishnet/*.cs examples/fishnet/tests/*.cs \
//     examples/unity/RoomLink.cs examples/unity/tests/{Unity,Commands,Talker,TransportGame}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Game.exe ann SESSION
//   LD_LIBRARY_PATH=target/release mono Game.exe bob SESSION ADDRESS

using System;
using FishNet.Managing;
using FishNet.Transporting;
using MetaMystia.Network;

internal sealed class Game : TransportGame
{
    private readonly NetworkManager manager = new NetworkManager();
    private readonly FishRoomTransport transport = new FishRoomTransport();

    private Game(string[] arguments)
        : base(2)
    {
        manager.Use(transport);
        transport.playerId = arguments[0];
        transport.sessionId = arguments[1];
        transport.password = "a secret";
        transport.keepsState = true;
        transport.SetPort(0); // any free port
        transport.SetClientAddress(arguments.Length > 2 ? arguments[2] : "");
        manager.RemoteChanged = OnRemote;
        manager.ClientChanged = OnClient;
        manager.ServerReceived = OnServerReceived;
        manager.ClientReceived = OnClientReceived;
        transport.HostChanged += (host, isThisMember) =>
            Must(!manager.ServerManager.Started && !manager.ClientManager.Started, "still with the previous host");
        new FishHostMigration { manager = manager, transport = transport }.OnEnable();
        Must(transport.GetMTU((byte)Channel.Reliable) == 1100 && transport.GetMTU((byte)Channel.Unreliable) == 1100, "sizes");
    }

    protected override bool IsServer
    {
        get { return manager.ServerManager.Started; }
    }

    protected override Room Room
    {
        get { return transport.Room; }
    }

    protected override string Address
    {
        get { return transport.Address; }
    }

    protected override string Host
    {
        get { return transport.Host; }
    }

    private void OnRemote(int id, bool started)
    {
        Must((transport.GetConnectionState(id) == RemoteConnectionState.Started) == started, "the state of client " + id);
        if (started)
        {
            OnServerConnected(id);
        }
        else
        {
            OnServerDisconnected(id);
        }
    }

    private void OnClient(bool started)
    {
        Must((transport.GetConnectionState(false) == LocalConnectionState.Started) == started, "the state of the client");
        if (started)
        {
            OnClientConnected();
        }
        else
        {
            OnClientDisconnected();
        }
    }

    // A host has a client of its own, which talks as the others do.
    protected override void Start(bool host)
    {
        Must(!host || manager.ServerManager.StartConnection(), "the server does not start");
        Must(manager.ClientManager.StartConnection(), "the client does not start");
        Must(!manager.ClientManager.StartConnection(), "the client starts twice");
    }

    protected override void Stop()
    {
        manager.ClientManager.StopConnection();
        manager.ServerManager.StopConnection(true);
    }

    protected override void Drop(int id)
    {
        Must(transport.StopConnection(id, true), "no client " + id);
    }

    protected override string MemberOf(int id)
    {
        return transport.GetConnectionAddress(id);
    }

    protected override void SendToServer(ArraySegment<byte> data, byte kind)
    {
        transport.SendToServer(kind, data);
    }

    protected override void SendToClient(int id, ArraySegment<byte> data, byte kind)
    {
        transport.SendToClient(kind, data, id);
    }

    protected override void EarlyFrame()
    {
        manager.Iterate();
        transport.Update();
    }

    protected override void LateFrame()
    {
    }

    protected override void End()
    {
        transport.OnDisable();
        Must(!manager.ServerManager.Started && !manager.ClientManager.Started, "not stopped");
    }

    private static int Main(string[] arguments)
    {
        return new Game(arguments).Run(arguments);
    }
}
