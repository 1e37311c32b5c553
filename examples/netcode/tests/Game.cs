// A game on NetcodeRoomTransport and NetcodeHostMigration, with a stub of Netcode. Beside the commands of TransportGame: rtt [ID], lag MS.
//
//   mcs -langversion:7 -out:Game.exe examples/netcode/*.cs examples/netcode/tests/*.cs \
//     examples/unity/RoomLink.cs examples/unity/tests/{Unity,Commands,Talker,TransportGame}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Game.exe ann SESSION
//   LD_LIBRARY_PATH=target/release mono Game.exe bob SESSION ADDRESS

using System;
using MetaMystia.Network;
using Unity.Netcode;

internal sealed class Game : TransportGame
{
    // By the kinds of messages of the talker.
    private static readonly NetworkDelivery[] deliveries =
    {
        NetworkDelivery.ReliableFragmentedSequenced, NetworkDelivery.Unreliable, NetworkDelivery.UnreliableSequenced,
    };

    private readonly NetworkManager manager = new NetworkManager();
    private readonly NetcodeRoomTransport transport = new NetcodeRoomTransport();

    private Game(string[] arguments)
        : base(3)
    {
        manager.NetworkConfig.NetworkTransport = transport;
        transport.playerId = arguments[0];
        transport.sessionId = arguments[1];
        transport.password = "a secret";
        transport.keepsState = true;
        transport.port = 0; // any free port
        transport.address = arguments.Length > 2 ? arguments[2] : "";
        manager.Connected = OnConnected;
        manager.Disconnected = OnDisconnected;
        manager.Received = OnReceived;
        transport.HostChanged += (host, isThisMember) => Must(manager.Clients.Count == 0, "still with the previous host");
        new NetcodeHostMigration { manager = manager, transport = transport }.OnEnable();
        Must(transport.IsSupported && transport.ServerClientId == 0, "not supported");
    }

    protected override bool IsServer
    {
        get { return manager.IsServer; }
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

    private void OnConnected(ulong id)
    {
        if (manager.IsServer)
        {
            OnServerConnected((int)id);
        }
        else
        {
            OnClientConnected();
        }
    }

    private void OnDisconnected(ulong id)
    {
        if (manager.IsServer)
        {
            OnServerDisconnected((int)id);
        }
        else
        {
            OnClientDisconnected();
        }
    }

    private void OnReceived(ulong id, ArraySegment<byte> data)
    {
        if (manager.IsServer)
        {
            OnServerReceived((int)id, data);
        }
        else
        {
            OnClientReceived(data);
        }
    }

    protected override void Start(bool host)
    {
        Must(host ? manager.StartHost() : manager.StartClient(), "it does not start");
        Must(manager.MaximumTransmissionUnitSize == 1100, "batches of " + manager.MaximumTransmissionUnitSize + " bytes");
    }

    protected override void Stop()
    {
        manager.Shutdown();
    }

    protected override void Drop(int id)
    {
        manager.DisconnectClient((ulong)id);
    }

    protected override string MemberOf(int id)
    {
        return transport.MemberOf((ulong)id);
    }

    protected override void SendToServer(ArraySegment<byte> data, byte kind)
    {
        transport.Send(transport.ServerClientId, data, deliveries[kind]);
    }

    protected override void SendToClient(int id, ArraySegment<byte> data, byte kind)
    {
        transport.Send((ulong)id, data, deliveries[kind]);
    }

    protected override void Obey(string[] words)
    {
        if (words[0] == "rtt")
        {
            Commands.Say("rtt " + transport.GetCurrentRtt(words.Length > 1 ? ulong.Parse(words[1]) : transport.ServerClientId));
        }
        else if (words[0] == "lag")
        {
            transport.Room.SimulateNetwork(uint.Parse(words[1]), 0, 0);
        }
        else
        {
            base.Obey(words);
        }
    }

    protected override void EarlyFrame()
    {
        manager.EarlyUpdate();
        transport.Update();
    }

    protected override void LateFrame()
    {
        manager.PostLateUpdate();
    }

    protected override void End()
    {
        transport.OnDisable();
    }

    private static int Main(string[] arguments)
    {
        return new Game(arguments).Run(arguments);
    }
}
