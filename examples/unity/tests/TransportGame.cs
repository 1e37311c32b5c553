using System;
using System.Threading;
using MetaMystia.Network;
using UnityEngine;

// A game on a transport, with a stub of its networking layer: a host that sends everything back, and clients that send every kind of
// message. When the host is gone, one client continues as the host and the others connect to it. Prints its events, one line each. Its
// input are commands, a line each, and its end ends the program: address; stop (the session; the member stays in the room), start (as
// client), leave (the room), drop ID (the host disconnects a client), big BYTES KIND [ID] (a message to the host or to a client),
// score N (a value that outlives its host), score (prints it).
internal abstract class TransportGame
{
    private readonly Talker talker;
    private bool hosts;

    protected TransportGame(byte kinds)
    {
        talker = new Talker(kinds, SendToServer);
        Debug.Logged = text => Commands.Say("log " + text);
    }

    protected abstract bool IsServer { get; }

    protected abstract Room Room { get; }

    protected abstract string Address { get; }

    protected abstract string Host { get; }

    protected abstract void Start(bool host);

    protected abstract void Stop();

    protected abstract void Drop(int id);

    protected abstract string MemberOf(int id);

    protected abstract void SendToServer(ArraySegment<byte> data, byte kind);

    protected abstract void SendToClient(int id, ArraySegment<byte> data, byte kind);

    protected abstract void EarlyFrame();

    protected abstract void LateFrame();

    // Leaves the room.
    protected abstract void End();

    protected virtual void Obey(string[] words)
    {
        switch (words[0])
        {
            case "address":
                Commands.Say("address " + Address);
                break;
            case "stop":
                Stop();
                break;
            case "start":
                Start(false);
                break;
            case "leave":
                End();
                break;
            case "drop":
                Drop(int.Parse(words[1]));
                break;
            case "big":
                byte[] data = new byte[int.Parse(words[1])];
                data[data.Length - 1] = 77;
                byte kind = words[2] == "reliable" ? Talker.Reliable : Talker.Unreliable;
                if (words.Length > 3)
                {
                    SendToClient(int.Parse(words[3]), new ArraySegment<byte>(data), kind);
                }
                else
                {
                    SendToServer(new ArraySegment<byte>(data), kind);
                }
                break;
            case "score":
                if (words.Length > 1)
                {
                    Room.State["score"] = words[1];
                }
                else
                {
                    Commands.Say("score " + (Room.State["score"] ?? "none"));
                }
                break;
            default:
                throw new ArgumentException(words[0]);
        }
    }

    // ---------------------------------------------------------------- events of the networking layer

    protected void OnClientConnected()
    {
        talker.Begin();
        Commands.Say("connected to " + Host);
    }

    protected void OnClientDisconnected()
    {
        talker.Talks = false;
        Commands.Say("disconnected");
    }

    protected void OnClientReceived(ArraySegment<byte> data)
    {
        if (!IsBig(data))
        {
            talker.OnEcho(data);
        }
    }

    protected void OnServerConnected(int id)
    {
        Commands.Say("client " + id + " " + MemberOf(id));
    }

    protected void OnServerDisconnected(int id)
    {
        Commands.Say("client " + id + " gone");
    }

    protected void OnServerReceived(int id, ArraySegment<byte> data)
    {
        if (!IsBig(data))
        {
            SendToClient(id, data, talker.OnMessage(data));
        }
    }

    private static bool IsBig(ArraySegment<byte> data)
    {
        if (data.Count <= 1000)
        {
            return false;
        }
        Commands.Say("big " + data.Count + " ends with " + data.Array[data.Offset + data.Count - 1]);
        return true;
    }

    // ---------------------------------------------------------------- frames

    // Unity's order of a frame.
    private void Frame()
    {
        EarlyFrame();
        MonoBehaviour.RunCoroutines();
        if (IsServer != hosts)
        {
            hosts = IsServer;
            Commands.Say(hosts ? "host" : "no host any more");
        }
        talker.Frame();
        LateFrame();
    }

    // The game's arguments, after its player and its session: the address of a member, or none for the first host.
    internal int Run(string[] arguments)
    {
        Commands commands = new Commands();
        try
        {
            Start(arguments.Length == 2);
            if (arguments.Length == 2)
            {
                Commands.Say("address " + Address);
            }
            for (string command = ""; command != null; command = commands.Next())
            {
                if (command.Length > 0)
                {
                    Obey(command.Split(' '));
                }
                Frame();
                Thread.Sleep(1);
            }
            End();
            Must(Address == null, "still in the room");
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }

    protected static void Must(bool holds, string text)
    {
        if (!holds)
        {
            throw new InvalidOperationException(text);
        }
    }
}
