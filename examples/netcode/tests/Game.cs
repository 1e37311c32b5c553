// A game on NetcodeRoomTransport and NetcodeHostMigration, with a stub of Netcode: a host that sends everything back, and clients that
// send every kind of message. When the host is gone, one client continues as the host and the others connect to it. Prints its
// events, one line each. Its input are commands, a line each, and its end ends the program: address; rtt; stop and disconnect
// (shut the session down, and stay in the room), start (as client), drop ID (the host disconnects a client), big BYTES DELIVERY.
//
//   mcs -langversion:7 -out:Game.exe examples/netcode/*.cs examples/netcode/tests/*.cs \
//     examples/unity/RoomLink.cs examples/unity/tests/{Unity,Commands,Talker}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Game.exe ann SESSION
//   LD_LIBRARY_PATH=target/release mono Game.exe bob SESSION ADDRESS

using System;
using System.Threading;
using Unity.Netcode;
using UnityEngine;

internal sealed class Game
{
    private static readonly NetworkDelivery[] kinds =
    {
        NetworkDelivery.ReliableSequenced, NetworkDelivery.Unreliable, NetworkDelivery.UnreliableSequenced,
    };

    private readonly NetworkManager manager = new NetworkManager();
    private readonly NetcodeRoomTransport transport = new NetcodeRoomTransport();
    private readonly Talker talker;
    private bool hosts;

    private Game(string id, string session)
    {
        manager.NetworkConfig.NetworkTransport = transport;
        transport.playerId = id;
        transport.sessionId = session;
        transport.password = "a secret";
        transport.port = 0; // any free port
        talker = new Talker(3, (data, kind) => transport.Send(transport.ServerClientId, data, kinds[kind]));
        manager.Connected = OnConnected;
        manager.Disconnected = OnDisconnected;
        manager.Received = OnReceived;
        new NetcodeHostMigration { manager = manager, transport = transport }.OnEnable();
        Debug.Logged = text => Commands.Say("log " + text);
    }

    private void OnConnected(ulong id)
    {
        if (manager.IsServer)
        {
            Commands.Say("client " + id + " " + transport.MemberOf(id));
        }
        else
        {
            talker.Begin();
            Commands.Say("connected to " + transport.Host);
        }
    }

    private void OnDisconnected(ulong id)
    {
        talker.Talks = false;
        Commands.Say(manager.IsServer ? "client " + id + " gone" : "disconnected");
    }

    private void OnReceived(ulong id, ArraySegment<byte> payload)
    {
        if (payload.Count > 1000)
        {
            Commands.Say("big " + payload.Count + " ends with " + payload.Array[payload.Offset + payload.Count - 1]);
        }
        else if (manager.IsServer)
        {
            transport.Send(id, payload, kinds[talker.OnMessage(payload)]);
        }
        else
        {
            talker.OnEcho(payload);
        }
    }

    private void Obey(string[] words)
    {
        switch (words[0])
        {
            case "address":
                Commands.Say("address " + transport.Address);
                break;
            case "rtt":
                Commands.Say("rtt " + transport.GetCurrentRtt(words.Length > 1 ? ulong.Parse(words[1]) : transport.ServerClientId));
                break;
            case "stop":
            case "disconnect":
                manager.Shutdown();
                break;
            case "start":
                manager.StartClient();
                break;
            case "drop":
                manager.DisconnectClient(ulong.Parse(words[1]));
                break;
            case "big":
                byte[] data = new byte[int.Parse(words[1])];
                data[data.Length - 1] = 77;
                NetworkDelivery delivery = (NetworkDelivery)Enum.Parse(typeof(NetworkDelivery), words[2]);
                transport.Send(words.Length > 3 ? ulong.Parse(words[3]) : transport.ServerClientId, new ArraySegment<byte>(data), delivery);
                break;
            default:
                throw new ArgumentException(words[0]);
        }
    }

    // Unity's order of a frame.
    private void Frame()
    {
        manager.EarlyUpdate();
        transport.Update();
        MonoBehaviour.RunCoroutines();
        if (manager.IsServer != hosts)
        {
            hosts = manager.IsServer;
            Commands.Say(hosts ? "host" : "no host any more");
        }
        talker.Frame();
        manager.PostLateUpdate();
    }

    private void Run(Commands commands)
    {
        while (true)
        {
            string command = commands.Next();
            if (command == null)
            {
                break;
            }
            if (command.Length > 0)
            {
                Obey(command.Split(' '));
            }
            Frame();
            Thread.Sleep(1);
        }
        transport.OnDisable();
        Must(transport.Room == null && transport.Address == null, "still in the room");
    }

    private static void Must(bool holds, string text)
    {
        if (!holds)
        {
            throw new InvalidOperationException(text);
        }
    }

    private static int Main(string[] arguments)
    {
        Commands commands = new Commands();
        try
        {
            Game game = new Game(arguments[0], arguments[1]);
            Must(game.transport.IsSupported && game.transport.ServerClientId == 0, "not supported");
            if (arguments.Length == 2)
            {
                Must(game.manager.StartHost(), "the host does not start");
                Commands.Say("address " + game.transport.Address);
            }
            else
            {
                game.transport.address = arguments[2];
                Must(game.manager.StartClient(), "the client does not start");
            }
            Must(game.manager.MaximumTransmissionUnitSize == 1100, "batches of " + game.manager.MaximumTransmissionUnitSize + " bytes");
            game.Run(commands);
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }
}
