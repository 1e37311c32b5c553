// A lobby on the console: members, round-trip times, the players' positions, and a counter and a chat log that survive their
// leader (SharedState.cs). On a terminal it is a panel with keys (Panel.cs); otherwise it prints lines (Lines.cs). The samples
// in the other languages (examples/cpp, examples/python, and, without the shared state, examples/c) accept the same arguments,
// except those of the panel, and print the same lines. The library is used in poll mode: Frame corresponds to Update in a Unity
// mod.
//
//   mcs -langversion:7 -out:Lobby.exe csharp-sample/*.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id alice --session tea
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id bob --session tea --connect ADDRESS_OF_ALICE

using System;
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
    private const ushort Role = Room.FirstUserType + 2; // to members that join: whether the sender may lead
    private const string Observer = "observer";
    private const int FrameMs = 16;
    private const int StepMs = 100;
    private const int RowLength = 100;
    private const ulong PlayerKey = 1; // each member's own: it moves one thing, its player
    private const byte PositionChannel = 1;
    private const string Usage =
        "usage: Lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive] [--plain]\n"
        + "             [--observer] [--lag MS] [--jitter MS] [--loss PERMILLE]\n"
        + "             [--strategy raft|gossip|seeded] [--alive-ms N]\n"
        + "             [--voters ID,... --seeds ADDR,... --port N --state DIRECTORY]\n"
        + "On a terminal, a panel; with --plain, and elsewhere, lines. --observer never leads. --lag and the two after it simulate\n"
        + "a bad network.\n"
        + "Input, on a terminal or with --interactive: text is chat, /add N, /leader NAME, /transfer NAME, /yield, /kick NAME, /quit.";

    private static string id, session, connect;
    private static double seconds = double.PositiveInfinity;
    private static bool interactive, plain, observer;
    private static uint lagMs, jitterMs, lossPermille;
    private static ElectionStrategy strategy;
    private static uint aliveMs;
    // With the strategy seeded; a member with a port is a seed.
    private static string voters = "", seeds = "", state;
    private static ushort port;

    private static IView view;
    private static string walked = "";
    private static string ended;         // why the room is over for this member; null while it is not
    private static volatile bool leave;  // Ctrl-C
    private static volatile bool exiting; // the process is ending, by whatever cause

    private static int Main(string[] arguments)
    {
        UseUtf8();
        if (!Parse(arguments))
        {
            Console.Error.WriteLine(Usage);
            return 2;
        }
        // Before the room has its own handler of this event, which closes it.
        AppDomain.CurrentDomain.ProcessExit += (sender, e) => exiting = true;
        try
        {
            if (aliveMs > 0)
            {
                SetWindows();
            }
            RoomOptions options = new RoomOptions();
            options.Settings.Strategy = (uint)strategy;
            options.Settings.Eligible = observer ? (byte)0 : (byte)1;
            if (strategy == ElectionStrategy.Seeded)
            {
                JoinCluster(options);
            }
            using (Room room = Room.Join(id, session, options))
            using (view = Open(room))
            {
                Run(room);
            }
            if (ended != null)
            {
                Lines.Write(id, ended);
            }
            Lines.Write(id, "closed");
            return 0;
        }
        catch (Exception exception)
        {
            if (exiting)
            {
                // The process was ended from outside (SIGTERM on CoreCLR), and its room is closed: that is no error.
                Thread.Sleep(Timeout.Infinite);
            }
            // Here, and not left to the runtime: the terminal is restored by now, and shows this.
            Lines.WriteError(id, exception is NetworkException ? Sentence(exception) : exception.ToString());
            return 1;
        }
    }

    // .NET would otherwise use the terminal's code page, and names may be in any script. On Windows, a process without a
    // console cannot set one, so a redirected stream gets its own reader or writer.
    private static void UseUtf8()
    {
        Encoding utf8 = new UTF8Encoding(false);
        if (!Console.IsOutputRedirected || !Console.IsErrorRedirected)
        {
            Console.OutputEncoding = utf8;
        }
        if (Console.IsOutputRedirected)
        {
            Console.SetOut(new StreamWriter(Console.OpenStandardOutput(), utf8) { AutoFlush = true });
        }
        if (Console.IsErrorRedirected)
        {
            Console.SetError(new StreamWriter(Console.OpenStandardError(), utf8) { AutoFlush = true });
        }
        if (Console.IsInputRedirected)
        {
            Console.SetIn(new StreamReader(Console.OpenStandardInput(), utf8));
        }
        else
        {
            Console.InputEncoding = utf8;
        }
    }

    // Gossip, in one local network: all members start at about the same time, and receive the others' messages at once.
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

    private static IView Open(Room room)
    {
        Terminal terminal = plain || !interactive ? null : Terminal.Open();
        // With TERM=dumb, Mono sends the terminal no queries, and Ctrl-C ends the process at once.
        if (terminal != null || interactive && !Console.IsInputRedirected)
        {
            Console.CancelKeyPress += (sender, e) => leave = e.Cancel = true;
        }
        return terminal != null ? new Panel(terminal, room, id, session) : (IView)new Lines(room, id, interactive);
    }

    private static void Run(Room room)
    {
        view.Say("listening on " + room.LocalAddress);
        SharedState shared = new SharedState(room, id);
        shared.Chat += view.Chat;
        shared.Confirmed += view.Confirmed;
        room.HandlerFailed += exception => view.Fail(Sentence(exception));
        room.Happened += shared.OnEvent;
        room.Happened += view.OnEvent;
        room.Happened += e => OnEvent(room, e);
        room.LeadershipChanged += leads => view.Say(leads ? "I lead" : "I lead no longer");
        if (lagMs + jitterMs + lossPermille > 0)
        {
            room.SimulateNetwork(lagMs, jitterMs, lossPermille);
        }
        if (observer)
        {
            view.Eligible(id, false);
        }
        if (connect != null)
        {
            room.Connect(connect);
        }

        Stopwatch clock = Stopwatch.StartNew();
        for (int beat = 1, step = 1; clock.Elapsed.TotalSeconds < seconds && !leave; Thread.Sleep(FrameMs))
        {
            if (!Frame(room, shared))
            {
                return;
            }
            if (clock.ElapsedMilliseconds >= (long)step * StepMs)
            {
                Walk(room, step++);
            }
            if (clock.Elapsed.TotalSeconds >= beat)
            {
                Attempt(room, () => room.Broadcast(Encoding.UTF8.GetBytes("hello " + beat + " from " + id), Hello));
                view.Beat(shared);
                beat++;
            }
        }
    }

    // Handles events here, on this thread and at this moment, and nowhere else. False: the player leaves, or has to.
    private static bool Frame(Room room, SharedState shared)
    {
        room.Poll();
        if (ended != null)
        {
            return false;
        }
        shared.Tick();
        string line;
        while (view.NextLine(out line))
        {
            if (line == null || line == "/quit")
            {
                return false;
            }
            Obey(room, shared, line);
        }
        view.Frame(shared);
        return true;
    }

    // Moves along a row, and on in the next one. A lost position is not sent again: the next one replaces it.
    private static void Walk(Room room, int step)
    {
        walked = step % RowLength + "," + step / RowLength;
        view.Moved(id, walked);
        byte[] place = Encoding.UTF8.GetBytes(walked);
        Attempt(room, () => room.Broadcast(place, Delivery.Sequenced(PlayerKey, PositionChannel), Position));
    }

    private static void OnEvent(Room room, RoomEvent e)
    {
        switch (e.Kind)
        {
            case EventKind.LeaderChanged:
                view.Say((e.Peer.Length == 0 ? "no leader" : "leader is " + e.Peer) + " (" + LeaderReason.Describe(e.Reason) + ")");
                break;
            case EventKind.MemberState:
                view.Say("member " + e.Peer + " is " + MemberState.Describe(e.Reason) + ", version " + e.Term);
                break;
            case EventKind.Joined:
                view.Say("peer " + e.Peer + " connected");
                if (observer)
                {
                    Attempt(room, () => room.SendTo(e.Peer, Encoding.UTF8.GetBytes(Observer), Role));
                }
                break;
            case EventKind.Reconnecting:
                view.Say("peer " + e.Peer + " is lost and dialled again");
                break;
            case EventKind.Returned:
                view.Say("peer " + e.Peer + " is back");
                break;
            case EventKind.Left:
                view.Say("peer " + e.Peer + " left");
                break;
            case EventKind.Message:
                if (e.MessageType == Hello)
                {
                    view.Heard(e.Peer, Encoding.UTF8.GetString(e.Data));
                }
                else if (e.MessageType == Position)
                {
                    view.Moved(e.Peer, Encoding.UTF8.GetString(e.Data));
                }
                else if (e.MessageType == Role)
                {
                    view.Eligible(e.Peer, Encoding.UTF8.GetString(e.Data) != Observer);
                }
                break;
            case EventKind.ConnectionResult:
                view.Say("dialled " + e.Other + ": " + (e.Success ? "ok" : "error " + e.Code + " " + Room.Describe(e.Code)));
                break;
            case EventKind.RoomEnded:
                ended = "the room is over for me: " + EndReason.Describe(e.Reason);
                break;
        }
    }

    private static void Obey(Room room, SharedState shared, string line)
    {
        string text;
        if (Says(line, "/leader ", out text))
        {
            Attempt(room, () => room.SetLeader(text));
        }
        else if (Says(line, "/transfer ", out text))
        {
            Attempt(room, () => room.TransferLeadership(text));
        }
        else if (Says(line, "/kick ", out text))
        {
            Attempt(room, () => room.Kick(text));
        }
        else if (line == "/yield")
        {
            Attempt(room, room.YieldLeadership);
        }
        else
        {
            string verb = Says(line, "/add ", out text) ? "add" : "say";
            if (line.Length > 0 && !shared.Submit(verb, text))
            {
                view.Fail("not taken: " + line);
            }
        }
    }

    // Whether a line begins with a command; `text` is the rest after it, or the whole line.
    private static bool Says(string line, string command, out string text)
    {
        bool says = line.StartsWith(command, StringComparison.Ordinal);
        text = says ? line.Substring(command.Length).Trim() : line;
        return says;
    }

    // Shows a refused call as a line: the program and its room continue.
    private static void Attempt(Room room, Action call)
    {
        try
        {
            call();
        }
        catch (NetworkException exception)
        {
            view.Fail(Sentence(exception));
        }
        catch (ArgumentException exception)
        {
            // Text that a C library cannot accept, such as half a character.
            view.Fail(exception.Message);
        }
    }

    private static string Sentence(Exception exception)
    {
        NetworkException refused = exception as NetworkException;
        return exception.Message + (refused == null ? "" : " (" + refused.Code + ")");
    }

    private static bool Parse(string[] arguments)
    {
        interactive = !Console.IsInputRedirected;
        for (int i = 0; i < arguments.Length; i++)
        {
            switch (arguments[i])
            {
                case "--interactive":
                    interactive = true;
                    continue;
                case "--plain":
                    plain = true;
                    continue;
                case "--observer":
                    observer = true;
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
                case "--lag":
                    if (!uint.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out lagMs))
                    {
                        return false;
                    }
                    break;
                case "--jitter":
                    if (!uint.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out jitterMs))
                    {
                        return false;
                    }
                    break;
                case "--loss":
                    if (!uint.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out lossPermille))
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
