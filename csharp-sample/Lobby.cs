// A lobby on the console: members, round-trip times, the players' positions, and a counter, a chat and a map that survive any
// leader (docs/host-migration.md). The samples in the other languages (examples/cpp, examples/python, examples/c) accept the same
// arguments, print the same lines and share the state. The library is used in poll mode: Frame corresponds to Update in a Unity
// mod.
//
//   mcs -langversion:7 -out:Lobby.exe csharp-sample/*.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id alice --session tea
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id bob --session tea --connect ADDRESS_OF_ALICE
//
// Players at home meet at a relay (docs/internet.md). The first one passes no session, and the lobby prints a new code:
//
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id alice --relays relay.example.org
//   LD_LIBRARY_PATH=target/release mono Lobby.exe --id bob --relays relay.example.org --session CODE_OF_ALICE
//
// This one also prints the links of the room (/panel) and the rooms that show a card in the local network (/rooms, --card).

using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using MetaMystia.Network;

internal sealed class Lobby
{
    private const ushort Hello = Room.FirstUserType;
    private const ushort Position = Room.FirstUserType + 1;
    private const ushort Add = Room.FirstUserType, Speak = Room.FirstUserType + 1; // types of actions
    private const int ChatLines = 50;
    private const ulong PlayerKey = 1; // each member's own: it moves one thing, its player
    private const byte PositionChannel = 1;
    private const int RowLength = 100;
    private const int FrameMs = 16, StepMs = 100, BeatMs = 1000, LeaveMs = 3000;
    private const string Usage =
        "usage: Lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
        + "             [--relays RELAY,...], and then --session CODE, or none for a new code\n"
        + "             [--card NAME], which shows the room in the local network under this name\n"
        + "             [--strategy raft|gossip|seeded] [--alive-ms N]\n"
        + "             [--voters ID,... --seeds ADDR,... --port N --state DIRECTORY]\n"
        + "Standard input, on a terminal or with --interactive: text is chat, /add N, /map NAME, /leader NAME,\n"
        + "/transfer NAME, /yield, /kick NAME, /panel, /rooms, /quit.";

    private static string id, session, connect, card;
    private static double seconds = double.PositiveInfinity;
    private static bool interactive = !Console.IsInputRedirected;
    private static RoomOptions options;
    private static volatile bool interrupted; // by Ctrl-C

    private readonly Room room;
    private readonly Panel panel;
    // Shared by all members. Act and Load alone change them: each member does the same in the same order.
    private long counter;
    private List<byte[]> chat = new List<byte[]>();
    private readonly Dictionary<string, string> positions = new Dictionary<string, string>();
    private readonly ConcurrentQueue<string> input = new ConcurrentQueue<string>();
    private string ended; // why the room is over for this member; null while it is not

    private static int Main(string[] arguments)
    {
        UseUtf8();
        Console.CancelKeyPress += (sender, e) => interrupted = e.Cancel = true;
        try
        {
            if (!Parse(arguments))
            {
                Console.Error.WriteLine(Usage);
                return 2;
            }
            using (Room room = Room.Join(id, session ?? Room.CreateCode(), options))
            {
                Lobby lobby = new Lobby(room);
                using (lobby.panel)
                {
                    lobby.Run();
                }
            }
            Say("closed");
            return 0;
        }
        catch (NetworkException exception)
        {
            if (exception.Code == ErrorCode.NotInitialized)
            {
                // At SIGTERM, CoreCLR leaves the room and then ends the process. Mono ends as at a crash.
                Thread.Sleep(LeaveMs);
            }
            Fail(exception);
            return 1;
        }
    }

    private Lobby(Room room)
    {
        this.room = room;
        panel = new Panel(room, Say);
        room.State.Action += Act;
        room.State.Save = Save;
        room.State.Load = Load;
        room.State.RolledBack += RollBack;
        room.HandlerFailed += Fail;
        room.Happened += OnEvent;
        room.LeadershipChanged += leads => Say(leads ? "I lead" : "I lead no longer");
    }

    private void Run()
    {
        Say("listening on " + room.LocalAddress);
        if (options.Relays != null)
        {
            Say("the room's code is " + room.SessionId);
        }
        if (connect != null)
        {
            room.Connect(connect);
        }
        if (card != null)
        {
            room.ShowCard(new RoomCard { Game = Panel.Game, Name = card, IsOpen = true });
        }
        if (interactive)
        {
            new Thread(ReadInput) { IsBackground = true }.Start();
        }
        Stopwatch clock = Stopwatch.StartNew();
        for (int beat = 1, step = 1; clock.Elapsed.TotalSeconds < seconds && !interrupted && Frame(); Thread.Sleep(FrameMs))
        {
            if (clock.ElapsedMilliseconds >= (long)step * StepMs)
            {
                Walk(step++);
            }
            if (clock.ElapsedMilliseconds >= (long)beat * BeatMs)
            {
                Attempt(() => room.Broadcast(Encoding.UTF8.GetBytes("hello " + beat + " from " + id), Hello));
                Say(Members());
                Say(Shared());
                beat++;
            }
        }
    }

    // Handles events here, on this thread and at this moment, and nowhere else. False: the player leaves, or has to.
    private bool Frame()
    {
        room.Poll();
        panel.Frame();
        if (ended != null)
        {
            Say(ended);
            return false;
        }
        while (input.TryDequeue(out string line))
        {
            if (line == "/quit")
            {
                return false;
            }
            Obey(line);
        }
        return true;
    }

    // Moves along a row, and on in the next one. A lost position is not sent again: the next one replaces it.
    private void Walk(int step)
    {
        positions[id] = step % RowLength + "," + step / RowLength;
        byte[] place = Encoding.UTF8.GetBytes(positions[id]);
        Attempt(() => room.Broadcast(place, Delivery.Sequenced(PlayerKey, PositionChannel), Position));
    }

    private void OnEvent(RoomEvent e)
    {
        if (e is LeaderChanged change)
        {
            Say((change.Leader == null ? "no leader" : "leader is " + change.Leader) + " (" + change.Reason.Describe() + ")");
        }
        else if (e is MemberStateChanged member)
        {
            Say("member " + member.Peer + " is " + member.State.Describe() + ", version " + member.Version);
        }
        else if (e is PeerJoined joined)
        {
            Say("peer " + joined.Peer + " connected");
        }
        else if (e is PeerReconnecting lost)
        {
            Say("peer " + lost.Peer + " is lost and dialled again");
        }
        else if (e is PeerReturned returned)
        {
            Say("peer " + returned.Peer + " is back");
        }
        else if (e is PeerLeft left)
        {
            Say("peer " + left.Peer + " left");
        }
        else if (e is Message message && message.Type == Hello)
        {
            Say("from " + message.From + ": " + Encoding.UTF8.GetString(message.Data));
        }
        else if (e is Message place && place.Type == Position)
        {
            positions[place.From] = Encoding.UTF8.GetString(place.Data);
        }
        else if (e is ConnectionResult result)
        {
            string outcome = result.Success ? "ok" : "error " + result.Code + " " + Room.Describe(result.Code);
            Say("dialled " + result.Address + ": " + outcome);
        }
        else if (e is PropertyChanged property)
        {
            Say(property.Key + " is " + property.Text);
        }
        else if (e is StateOpened opened)
        {
            string how = opened.Leader == null ? "waits for a leader" : opened.Exclusive ? "goes on under " : "forks under ";
            Say("the state " + how + opened.Leader);
        }
        else if (e is ActionResult request && request.Code != ErrorCode.Ok)
        {
            Say("not confirmed: error " + request.Code + " " + Room.Describe(request.Code));
        }
        else if (e is RelayChanged relay)
        {
            Say("relay " + relay.Relay + ": " + (relay.Success ? "entered" : Encoding.UTF8.GetString(relay.Data)));
        }
        else if (e is RoomEnded end)
        {
            ended = "the room is over for me: " + end.Reason.Describe();
        }
    }

    private void Obey(string line)
    {
        string[] words = line.Split(new[] { ' ' }, 2);
        string rest = words.Length > 1 ? words[1].Trim() : "";
        switch (words[0])
        {
            case "/leader":
                Attempt(() => room.SetLeader(rest));
                break;
            case "/transfer":
                Attempt(() => room.TransferLeadership(rest));
                break;
            case "/yield":
                Attempt(room.YieldLeadership);
                break;
            case "/kick":
                Attempt(() => room.Kick(rest));
                break;
            case "/panel":
                panel.ShowLinks();
                break;
            case "/rooms":
                Attempt(panel.ShowRooms);
                break;
            case "/map":
                Attempt(() => room.State["map"] = rest);
                break;
            case "/add":
                Submit(Add, Encoding.UTF8.GetBytes(rest));
                break;
            default:
                Submit(Speak, Encoding.UTF8.GetBytes(line));
                break;
        }
    }

    private void Submit(ushort type, byte[] data)
    {
        if (IsLegal(type, data))
        {
            Attempt(() => room.State.Submit(type, data));
        }
        else if (data.Length > 0)
        {
            Print(Console.Error, "error: not taken: " + Encoding.UTF8.GetString(data));
        }
    }

    // Each member ignores illegal actions, in whatever program their author runs.
    private static bool IsLegal(ushort type, byte[] data)
    {
        return type == Add ? Regex.IsMatch(Encoding.UTF8.GetString(data), @"^-?[0-9]{1,9}\z")
            : type == Speak && data.Length > 0 && !data.Contains((byte)'\n');
    }

    private void Act(RoomAction action)
    {
        if (!IsLegal(action.Type, action.Data))
        {
            return;
        }
        if (action.Type == Add)
        {
            counter += int.Parse(action.Text, CultureInfo.InvariantCulture);
        }
        else
        {
            chat.Add(Encoding.UTF8.GetBytes(action.Author + ": ").Concat(action.Data).ToArray());
            if (chat.Count > ChatLines)
            {
                chat.RemoveAt(0);
            }
            Say("chat " + action.Author + ": " + action.Text);
        }
        if (action.Mine)
        {
            Say("confirmed " + Command(action.Type, action.Text));
        }
    }

    private byte[] Save()
    {
        IEnumerable<byte> first = Encoding.UTF8.GetBytes(counter.ToString(CultureInfo.InvariantCulture) + "\n");
        return chat.Aggregate(first, (lines, line) => lines.Concat(line).Concat(new[] { (byte)'\n' })).ToArray();
    }

    private void Load(byte[] snapshot)
    {
        List<byte[]> lines = new List<byte[]>();
        for (int from = 0, to; (to = Array.IndexOf(snapshot, (byte)'\n', from)) >= 0; from = to + 1)
        {
            lines.Add(snapshot.Skip(from).Take(to - from).ToArray());
        }
        counter = lines.Count == 0 ? 0 : long.Parse(Encoding.UTF8.GetString(lines[0]), CultureInfo.InvariantCulture);
        chat = lines.Skip(1).ToList();
        Say("loaded " + counter + ", " + chat.Count + " lines");
    }

    private void RollBack(RolledBack action)
    {
        Say("rolled back " + action.Author + ": " + Command(action.Type, action.Text));
        if (action.Mine && action.Type == Speak) // a line may come twice; a number must not
        {
            Submit(Speak, action.Data);
        }
    }

    private static string Command(ushort type, string text)
    {
        return (type == Add ? "add " : "say ") + text;
    }

    private string Shared()
    {
        uint digest = 0x811C9DC5; // FNV-1a: equal at every member, in every language
        foreach (byte part in Save())
        {
            digest = unchecked((digest ^ part) * 0x01000193);
        }
        StateInfo info = room.State.Info;
        return "state: " + counter + ", " + chat.Count + " lines, map " + (room.State["map"] ?? "-") + ", index " + info.Index
            + ", digest " + digest.ToString("x8", CultureInfo.InvariantCulture) + ", " + info.Pending + " unconfirmed";
    }

    private string Members()
    {
        IEnumerable<string> members = room.Peers.Concat(new[] { id }).OrderBy(name => name, StringComparer.Ordinal).Select(name =>
        {
            int rtt = name == id ? 0 : room.RoundTripMs(name);
            string place = positions.TryGetValue(name, out place) ? " at " + place : "";
            string path = name == id ? "" : ", " + PathTo(name);
            return name + "(" + (rtt < 0 ? "-" : rtt.ToString(CultureInfo.InvariantCulture)) + " ms" + path + ")" + place;
        });
        string leader = room.Leader;
        return "members: " + string.Join(" ", members) + (leader == null ? "; no leader" : "; leader: " + leader);
    }

    private string PathTo(string name)
    {
        LinkPath? path = room.PathOf(name);
        string carrier = room.CarrierOf(name);
        if (path == LinkPath.ThroughRelay)
        {
            return "over a relay";
        }
        return carrier == null ? "direct" : "through " + carrier + (path == LinkPath.ThroughLeader ? " (leader)" : "");
    }

    private void ReadInput()
    {
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            input.Enqueue(line);
        }
        input.Enqueue("/quit");
    }

    // Prints a refused call: the program and its room continue.
    private static void Attempt(Action call)
    {
        try
        {
            call();
        }
        catch (Exception exception) when (exception is NetworkException || exception is ArgumentException)
        {
            Fail(exception); // ArgumentException: text that a C library cannot accept, such as half a character
        }
    }

    private static void Say(string text)
    {
        Print(Console.Out, text);
    }

    private static void Fail(Exception exception)
    {
        Print(Console.Error, "error: " + exception.Message + (exception is NetworkException refused ? " (" + refused.Code + ")" : ""));
    }

    // Text of other members must not control this terminal.
    private static void Print(TextWriter writer, string text)
    {
        writer.WriteLine("[" + id + "] " + Regex.Replace(text, @"[\p{Cc}\p{Cf}]", "\ufffd"));
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

    private static bool Parse(string[] arguments)
    {
        options = new RoomOptions { State = new StateOptions() };
        Dictionary<string, Action<string>> known = new Dictionary<string, Action<string>>
        {
            ["--id"] = value => id = value,
            ["--session"] = value => session = value,
            ["--relays"] = value => options.Relays = value.Split(','),
            ["--connect"] = value => connect = value,
            ["--card"] = value => card = value,
            ["--seconds"] = value => seconds = double.Parse(value, CultureInfo.InvariantCulture),
            ["--strategy"] = value => options.Settings.Strategy = (ElectionStrategy)Enum.Parse(typeof(ElectionStrategy), value, true),
            ["--alive-ms"] = value => SetWindows(uint.Parse(value, CultureInfo.InvariantCulture)),
            ["--voters"] = value => options.QuorumRoster = value.Split(','),
            ["--seeds"] = value => options.Seeds = value.Split(','),
            ["--port"] = value => options.Settings.BindPort = ushort.Parse(value, CultureInfo.InvariantCulture),
            ["--state"] = value => options.StateDirectory = value,
        };
        try
        {
            for (int i = 0; i < arguments.Length; i++)
            {
                if (arguments[i] == "--interactive")
                {
                    interactive = true;
                }
                else
                {
                    known[arguments[i]](arguments[++i]);
                }
            }
        }
        catch (SystemException)
        {
            return false; // an unknown name, no value, or no number
        }
        if (options.Settings.Strategy == ElectionStrategy.Seeded)
        {
            // A group that never splits, with the times of one local network; a member with a port is a seed.
            SeededOptions seeded = SeededOptions.Default(SeededProfile.Lan);
            seeded.IsSeed = options.Settings.BindPort > 0 ? 1u : 0u;
            options.Seeded = seeded;
        }
        return id != null && (session != null || options.Relays != null);
    }

    // Gossip, in one local network: all members start at about the same time, and receive the others' messages at once.
    private static void SetWindows(uint aliveMs)
    {
        options.Settings.StartupGraceMs = aliveMs;
        options.Settings.SampleIntervalMs = Math.Max(aliveMs / 5, 1);
        options.Settings.AliveThresholdMs = aliveMs;
        options.Settings.ElectionDurationMs = Math.Max(aliveMs / 2, 1);
    }
}
