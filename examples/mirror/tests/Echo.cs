// A program with the structure of a Mirror game on RoomTransport, without Mirror: a server that sends everything back, and clients
// that send on both channels. When the host is gone, one client continues as the server and the other connects to it. Prints its
// events, one line each, and the managed memory that they took. Its input are commands, a line each, and its end ends the program:
// connect [ADDRESS], disconnect (the client); serve, drop ID, stop (the server); address.
//
//   mcs -langversion:7 -out:Echo.exe examples/mirror/*.cs examples/mirror/tests/{Stub,Echo}.cs \
//     examples/unity/RoomLink.cs examples/unity/tests/{Unity,Commands}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Echo.exe server SESSION
//   LD_LIBRARY_PATH=target/release mono Echo.exe client SESSION ADDRESS

using System;
using System.Collections.Generic;
using System.Threading;
using Mirror;

internal sealed class Echo
{
    // A round of a client: the uncounted warm-up, the counted messages, and the limit of messages under way.
    private const int WarmUp = 500, Counted = 4000, Window = 32;

    private readonly RoomTransport transport;
    private readonly byte[] data = new byte[64];
    private Exception failure;

    // As server.
    private int served;
    private bool counting;
    private long serverStart;

    // As client.
    private int sent, reliable, unreliable;
    private bool talking;
    private long clientStart;

    private Echo(RoomTransport transport)
    {
        this.transport = transport;
        transport.OnServerConnectedWithAddress = (id, address) =>
        {
            Must(id > 0 && address.Length > 0, "connection " + id + " of " + address);
            Must(transport.ServerGetClientAddress(id) == address, "another address");
            Commands.Say("client " + id + " " + address);
        };
        transport.OnServerDisconnected = id => Commands.Say("client " + id + " gone");
        transport.OnServerDataReceived = OnServerData;
        transport.OnServerError = (id, error, text) => Commands.Say("error of client " + id + ": " + text);
        transport.OnClientConnected = () =>
        {
            Must(transport.ClientConnected(), "not connected");
            sent = reliable = unreliable = 0;
            talking = true;
            Commands.Say("connected to " + transport.Host);
        };
        transport.OnClientDisconnected = () =>
        {
            talking = false;
            Commands.Say("disconnected");
        };
        transport.OnClientDataReceived = OnClientData;
        transport.OnClientError = (error, text) => Commands.Say("error " + error + ": " + text);
        transport.HostChanged += OnHostChanged;
    }

    // The game's reaction to a new host.
    private void OnHostChanged(string host, bool isThisMember)
    {
        Must(!transport.ClientConnected(), "still connected to the previous host");
        if (isThisMember)
        {
            transport.ServerStart();
            Commands.Say("host");
        }
        else
        {
            transport.ClientConnect("");
        }
    }

    private void OnServerData(int id, ArraySegment<byte> segment, int channel)
    {
        // Checks Mirror's channels and whole messages: each contains the number of its channel.
        if (segment.Count != data.Length || segment.Array[segment.Offset] != channel)
        {
            failure = failure ?? new InvalidOperationException("a damaged message of " + segment.Count + " bytes on channel " + channel);
        }
        if (served == WarmUp)
        {
            counting = true;
            serverStart = GC.GetAllocatedBytesForCurrentThread();
        }
        served++;
        transport.ServerSend(id, segment, channel);
        if (counting && served == WarmUp + Counted)
        {
            counting = false;
            long bytes = GC.GetAllocatedBytesForCurrentThread() - serverStart;
            Commands.Say("served " + Counted + " messages with " + bytes + " bytes");
        }
    }

    private void OnClientData(ArraySegment<byte> segment, int channel)
    {
        if (segment.Count != data.Length || segment.Array[segment.Offset] != channel)
        {
            failure = failure ?? new InvalidOperationException("a damaged message of " + segment.Count + " bytes on channel " + channel);
        }
        if (channel == Channels.Unreliable)
        {
            unreliable++;
            return;
        }
        int number = BitConverter.ToInt32(segment.Array, segment.Offset + 4);
        if (number != reliable)
        {
            failure = failure ?? new InvalidOperationException("message " + number + " came after " + reliable + " others");
        }
        reliable++;
        if (reliable == WarmUp)
        {
            clientStart = GC.GetAllocatedBytesForCurrentThread();
        }
        if (reliable == WarmUp + Counted)
        {
            long bytes = GC.GetAllocatedBytesForCurrentThread() - clientStart;
            talking = false;
            // On loopback almost none is lost.
            Must(unreliable > WarmUp + Counted / 2, "only " + unreliable + " unreliable messages came back");
            Commands.Say("echoed " + Counted + " messages on both channels with " + bytes + " bytes");
        }
    }

    private void Talk()
    {
        while (talking && sent < WarmUp + Counted && sent - reliable < Window)
        {
            // Little-endian, without an array of its own.
            for (int index = 0; index < 4; index++)
            {
                data[4 + index] = (byte)(sent >> (8 * index));
            }
            sent++;
            data[0] = Channels.Reliable;
            transport.ClientSend(new ArraySegment<byte>(data), Channels.Reliable);
            if (talking)
            {
                data[0] = Channels.Unreliable;
                transport.ClientSend(new ArraySegment<byte>(data), Channels.Unreliable);
            }
        }
    }

    private void Obey(string command)
    {
        string[] words = command.Split(' ');
        switch (words[0])
        {
            case "connect":
                transport.ClientConnect(words.Length > 1 ? words[1] : "");
                break;
            case "serve":
                transport.ServerStart();
                Commands.Say("address " + transport.Address);
                break;
            case "disconnect":
                transport.ClientDisconnect();
                break;
            case "drop":
                transport.ServerDisconnect(int.Parse(words[1]));
                break;
            case "stop":
                transport.ServerStop();
                Must(!transport.ServerActive(), "the server is active");
                break;
            case "address":
                Commands.Say("address " + transport.Address);
                break;
            default:
                Must(false, "no command: " + command);
                break;
        }
    }

    private void Run(Commands commands)
    {
        while (true)
        {
            string command = commands.Next();
            if (command == null)
            {
                return;
            }
            if (command.Length > 0)
            {
                Obey(command);
            }
            transport.ServerEarlyUpdate();
            transport.ClientEarlyUpdate();
            Talk();
            transport.ClientLateUpdate();
            transport.ServerLateUpdate();
            if (failure != null)
            {
                throw failure;
            }
            Thread.Sleep(1);
        }
    }

    private static void Must(bool holds, string text)
    {
        if (!holds)
        {
            Console.Error.WriteLine("FAILED: " + text);
            Environment.Exit(1);
        }
    }

    private static int Main(string[] arguments)
    {
        if (arguments.Length < 2)
        {
            Console.Error.WriteLine("usage: Echo ID SESSION [ADDRESS]");
            return 2;
        }
        Commands commands = new Commands();
        RoomTransport transport = new RoomTransport();
        transport.playerId = arguments[0];
        transport.sessionId = arguments[1];
        transport.password = "a secret";
        transport.port = 0; // any free port
        try
        {
            Must(transport.Available(), "not available");
            Must(transport.GetMaxPacketSize(Channels.Reliable) == 262144 && transport.GetMaxPacketSize(Channels.Unreliable) == 1100, "sizes");
            Echo echo = new Echo(transport);
            if (arguments.Length == 2)
            {
                transport.ServerStart();
                Must(transport.ServerActive() && transport.ServerUri().Port > 0, "the server is not active");
                Commands.Say("address " + transport.Address);
            }
            else
            {
                transport.ClientConnect(arguments[2]);
            }
            echo.Run(commands);
            transport.enabled = false;
            transport.OnDisable();
            Must(transport.Address != null, "out of the room while a scene is loaded");
            transport.enabled = true;
            transport.OnDisable();
            Must(!transport.ServerActive() && !transport.ClientConnected() && transport.Address == null, "not shut down");
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }
}
