// A lobby on the console: members, round-trip times, the leader and a little chat. The samples in the other languages
// (examples/c, examples/cpp, examples/python) take the same arguments and print the same lines.
//
//   mcs -out:Lobby.exe csharp-sample/Lobby.cs bindings/csharp/NativeMethods.cs bindings/csharp/Room.cs
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id alice --session tea
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id bob --session tea --connect ADDRESS_OF_ALICE

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;
using MetaMystia.Network;

internal static class Lobby
{
    private const ushort Chat = Room.FirstUserType;
    private const string Usage =
        "usage: Lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
        + "Standard input, on a terminal or with --interactive: text is chat, /leader NAME, /quit.";

    private static readonly object InputLock = new object();
    private static readonly Queue<string> Input = new Queue<string>();
    private static bool inputEnded;

    private static string id, session, connect;
    private static double seconds = double.PositiveInfinity;
    private static bool interactive;

    private static int Main(string[] arguments)
    {
        // .NET would otherwise use the terminal's code page, and names may be in any script.
        Console.OutputEncoding = new UTF8Encoding(false);
        Console.InputEncoding = new UTF8Encoding(false);
        if (!Parse(arguments))
        {
            Console.Error.WriteLine(Usage);
            return 2;
        }
        try
        {
            using (Room room = Room.Join(id, session))
            {
                Run(room);
            }
            Say("closed");
            return 0;
        }
        catch (NetworkException exception)
        {
            Fail(exception);
            return 1;
        }
    }

    private static void Run(Room room)
    {
        Say("listening on " + room.LocalAddress);
        room.HandlerFailed += Fail;
        room.LeaderChanged += leader => Say(leader == null ? "no leader" : "leader is " + leader);
        room.PeerStatusChanged += (peer, status) => Say("peer " + peer + (status == PeerStatus.Connected ? " connected" : " left"));
        room.MessageReceived += message =>
        {
            if (message.Type == Chat)
            {
                Say("from " + message.From + ": " + Encoding.UTF8.GetString(message.Data));
            }
        };
        room.ConnectionResult += result =>
            Say("dialled " + result.Address + ": " + (result.Success ? "ok" : "error " + result.Code + " " + Room.Describe(result.Code)));

        if (connect != null)
        {
            room.Connect(connect);
        }
        if (interactive)
        {
            Thread reader = new Thread(ReadInput);
            reader.IsBackground = true;
            reader.Start();
        }

        Stopwatch clock = Stopwatch.StartNew();
        for (int beat = 1; ; beat++)
        {
            while (true)
            {
                double left = Math.Min(beat, seconds) - clock.Elapsed.TotalSeconds;
                string line;
                if (left <= 0)
                {
                    break;
                }
                if (!NextLine(left, out line))
                {
                    continue;
                }
                if (line == null || line == "/quit")
                {
                    return;
                }
                Obey(room, line);
            }
            if (clock.Elapsed.TotalSeconds >= seconds)
            {
                return;
            }
            Attempt(() => room.Broadcast(Encoding.UTF8.GetBytes("hello " + beat + " from " + id), Chat));
            Say(Members(room));
        }
    }

    private static void Obey(Room room, string line)
    {
        if (line.StartsWith("/leader ", StringComparison.Ordinal))
        {
            Attempt(() => room.SetLeader(line.Substring("/leader ".Length).Trim()));
        }
        else if (line.Length > 0)
        {
            Attempt(() => room.Broadcast(Encoding.UTF8.GetBytes(line), Chat));
        }
    }

    private static string Members(Room room)
    {
        List<string> names = new List<string>(room.Peers);
        names.Add(id);
        names.Sort(StringComparer.Ordinal);
        StringBuilder text = new StringBuilder("members:");
        foreach (string name in names)
        {
            int rtt = name == id ? 0 : room.RoundTripMs(name);
            text.Append(' ').Append(name).Append('(').Append(rtt < 0 ? "-" : rtt.ToString(CultureInfo.InvariantCulture)).Append(" ms)");
        }
        string leader = room.Leader;
        return text.Append(leader == null ? "; no leader" : "; leader: " + leader).ToString();
    }

    // A refused call is worth a line, not the end of the program: the room goes on.
    private static void Attempt(Action call)
    {
        try
        {
            call();
        }
        catch (NetworkException exception)
        {
            Fail(exception);
        }
    }

    private static void Say(string text)
    {
        Console.WriteLine("[" + id + "] " + text);
    }

    private static void Fail(Exception exception)
    {
        NetworkException refused = exception as NetworkException;
        string code = refused == null ? "" : " (" + refused.Code + ")";
        Console.Error.WriteLine("[" + id + "] error: " + exception.Message + code);
    }

    private static void ReadInput()
    {
        TextReader reader = Console.In;
        string line;
        while ((line = reader.ReadLine()) != null)
        {
            lock (InputLock)
            {
                Input.Enqueue(line);
                Monitor.Pulse(InputLock);
            }
        }
        lock (InputLock)
        {
            inputEnded = true;
            Monitor.Pulse(InputLock);
        }
    }

    // False when nothing came in time; a null line is the end of the input.
    private static bool NextLine(double timeoutSeconds, out string line)
    {
        line = null;
        lock (InputLock)
        {
            if (Input.Count == 0 && !inputEnded)
            {
                Monitor.Wait(InputLock, TimeSpan.FromSeconds(Math.Max(0.001, timeoutSeconds)));
            }
            if (Input.Count > 0)
            {
                line = Input.Dequeue();
                return true;
            }
            return inputEnded;
        }
    }

    private static bool Parse(string[] arguments)
    {
        interactive = !Console.IsInputRedirected;
        for (int i = 0; i < arguments.Length; i++)
        {
            if (arguments[i] == "--interactive")
            {
                interactive = true;
                continue;
            }
            if (i + 1 == arguments.Length)
            {
                return false;
            }
            string value = arguments[i + 1];
            switch (arguments[i])
            {
                case "--id":
                    id = value;
                    break;
                case "--session":
                    session = value;
                    break;
                case "--connect":
                    connect = value;
                    break;
                case "--seconds":
                    if (!double.TryParse(value, NumberStyles.Float, CultureInfo.InvariantCulture, out seconds))
                    {
                        return false;
                    }
                    break;
                default:
                    return false;
            }
            i++;
        }
        return id != null && session != null;
    }
}
