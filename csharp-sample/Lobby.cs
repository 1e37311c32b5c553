// A lobby on the console: members, round-trip times, where the players are, and a counter and a chat log that survive their
// leader (SharedState.cs).
// The samples in the other languages (examples/cpp, examples/python, and, without the shared state, examples/c) take the same
// arguments and print the same lines. The library is used in poll mode: Frame is what a Unity mod does in Update.
//
//   mcs -langversion:7 -out:Lobby.exe csharp-sample/*.cs bindings/csharp/*.cs
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
    private const ushort Hello = Room.FirstUserType;
    private const ushort Position = Room.FirstUserType + 1;
    private const int FrameMs = 16;
    private const int StepMs = 100;
    private const int RowLength = 100;
    private const ulong PlayerKey = 1; // each member's own: it moves one thing, its player
    private const byte PositionChannel = 1;
    private const string Usage =
        "usage: Lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
        + "             [--strategy raft|gossip|seeded] [--alive-ms N]\n"
        + "             [--voters ID,... --seeds ADDR,... --port N --state DIRECTORY]\n"
        + "Standard input, on a terminal or with --interactive: text is chat, /add N, /leader NAME, /transfer NAME, /yield, /quit.";

    private static readonly object InputLock = new object();
    private static readonly Queue<string> Input = new Queue<string>();
    private static bool inputEnded;
    private static readonly Dictionary<string, string> Positions = new Dictionary<string, string>();

    private static string id, session, connect;
    private static double seconds = double.PositiveInfinity;
    private static bool interactive;
    private static ElectionStrategy strategy;
    private static uint aliveMs;
    // With the strategy seeded; a member with a port is a seed.
    private static string voters = "", seeds = "", state;
    private static ushort port;

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
            if (aliveMs > 0)
            {
                SetWindows();
            }
            RoomOptions options = new RoomOptions();
            options.Settings.Strategy = (uint)strategy;
            if (strategy == ElectionStrategy.Seeded)
            {
                JoinCluster(options);
            }
            using (Room room = Room.Join(id, session, options))
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

    // Gossip, in one local network: everybody starts at about the same time, and hears the others at once.
    private static void SetWindows()
    {
        GossipWindows.StartupGracePeriod = aliveMs;
        GossipWindows.MembershipSampleInterval = Math.Max(aliveMs / 5, 1);
        GossipWindows.LeaderAliveThreshold = aliveMs;
        GossipWindows.LeaderElectionDuration = Math.Max(aliveMs / 2, 1);
    }

    // A group that never splits, with the times of one local network.
    private static void JoinCluster(RoomOptions options)
    {
        SeededOptions seeded = SeededOptions.Default(SeededProfile.Lan);
        seeded.IsSeed = port > 0 ? 1u : 0u;
        options.Seeded = seeded;
        options.Seeds = seeds.Split(',');
        options.QuorumRoster = voters.Split(',');
        options.StateDirectory = state;
        options.Settings.BindPort = port;
    }

    private static void Run(Room room)
    {
        Say("listening on " + room.LocalAddress);
        SharedState state = new SharedState(room, id);
        state.Chat += (author, text) => Say("chat " + author + ": " + text);
        state.Confirmed += command => Say("confirmed " + command.Verb + " " + command.Text);
        room.HandlerFailed += Fail;
        room.Happened += state.OnEvent;
        room.Happened += OnEvent;
        room.LeadershipChanged += leads => Say(leads ? "I lead" : "I lead no longer");
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
        for (int beat = 1, step = 1; clock.Elapsed.TotalSeconds < seconds; Thread.Sleep(FrameMs))
        {
            if (!Frame(room, state))
            {
                return;
            }
            if (clock.ElapsedMilliseconds >= (long)step * StepMs)
            {
                Walk(room, step++);
            }
            if (clock.Elapsed.TotalSeconds >= beat)
            {
                Attempt(() => room.Broadcast(Encoding.UTF8.GetBytes("hello " + beat + " from " + id), Hello));
                Say(Members(room));
                Say(state.ToString());
                beat++;
            }
        }
    }

    // What came is handled here, on this thread and at this moment, and nowhere else. False: the player wants to leave.
    private static bool Frame(Room room, SharedState state)
    {
        room.Poll();
        state.Tick();
        string line;
        while (NextLine(out line))
        {
            if (line == null || line == "/quit")
            {
                return false;
            }
            Obey(room, state, line);
        }
        return true;
    }

    // Along a row, and on in the next one. A position that is lost is not sent again: the next one replaces it.
    private static void Walk(Room room, int step)
    {
        Positions[id] = step % RowLength + "," + step / RowLength;
        byte[] place = Encoding.UTF8.GetBytes(Positions[id]);
        Attempt(() => room.Broadcast(place, Delivery.Sequenced(PlayerKey, PositionChannel), Position));
    }

    private static void OnEvent(RoomEvent e)
    {
        switch (e.Kind)
        {
            case EventKind.LeaderChanged:
                Say((e.Peer.Length == 0 ? "no leader" : "leader is " + e.Peer) + " (" + LeaderReason.Describe(e.Reason) + ")");
                break;
            case EventKind.MemberState:
                Say("member " + e.Peer + " is " + MemberState.Describe(e.Reason) + ", version " + e.Term);
                break;
            case EventKind.Joined:
                Say("peer " + e.Peer + " connected");
                break;
            case EventKind.Reconnecting:
                Say("peer " + e.Peer + " is lost and dialled again");
                break;
            case EventKind.Returned:
                Say("peer " + e.Peer + " is back");
                break;
            case EventKind.Left:
                Say("peer " + e.Peer + " left");
                break;
            case EventKind.Message:
                if (e.MessageType == Hello)
                {
                    Say("from " + e.Peer + ": " + Encoding.UTF8.GetString(e.Data));
                }
                else if (e.MessageType == Position)
                {
                    Positions[e.Peer] = Encoding.UTF8.GetString(e.Data);
                }
                break;
            case EventKind.ConnectionResult:
                Say("dialled " + e.Other + ": " + (e.Success ? "ok" : "error " + e.Code + " " + Room.Describe(e.Code)));
                break;
        }
    }

    private static void Obey(Room room, SharedState state, string line)
    {
        if (line.StartsWith("/leader ", StringComparison.Ordinal))
        {
            Attempt(() => room.SetLeader(line.Substring("/leader ".Length).Trim()));
            return;
        }
        if (line.StartsWith("/transfer ", StringComparison.Ordinal))
        {
            Attempt(() => room.TransferLeadership(line.Substring("/transfer ".Length).Trim()));
            return;
        }
        if (line == "/yield")
        {
            Attempt(room.YieldLeadership);
            return;
        }
        bool add = line.StartsWith("/add ", StringComparison.Ordinal);
        if (line.Length > 0 && !state.Submit(add ? "add" : "say", add ? line.Substring("/add ".Length) : line))
        {
            Console.Error.WriteLine("[" + id + "] error: not taken: " + line);
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
            string position;
            if (Positions.TryGetValue(name, out position))
            {
                text.Append(" at ").Append(position);
            }
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
            }
        }
        lock (InputLock)
        {
            inputEnded = true;
        }
    }

    // False when there is none; a null line is the end of the input.
    private static bool NextLine(out string line)
    {
        lock (InputLock)
        {
            line = Input.Count > 0 ? Input.Dequeue() : null;
            return line != null || inputEnded;
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
                case "--strategy":
                    if (value != "raft" && value != "gossip" && value != "seeded")
                    {
                        return false;
                    }
                    strategy = value == "raft" ? ElectionStrategy.Raft : value == "gossip" ? ElectionStrategy.Gossip : ElectionStrategy.Seeded;
                    break;
                case "--voters":
                    voters = value;
                    break;
                case "--seeds":
                    seeds = value;
                    break;
                case "--state":
                    state = value;
                    break;
                case "--port":
                    if (!ushort.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out port))
                    {
                        return false;
                    }
                    break;
                case "--alive-ms":
                    if (!uint.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out aliveMs))
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
