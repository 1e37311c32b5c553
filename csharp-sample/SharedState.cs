using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;
using MetaMystia.Network;

/// <summary>A command of this member, until it is confirmed.</summary>
internal sealed class Command
{
    public string Verb, Text;
    /// <summary>Assigned when it is first sent: one more than this member's last.</summary>
    public long Number;
    /// <summary>The version of the state that contains it.</summary>
    public long Version;
    /// <summary>In seconds; negative: not sent.</summary>
    public double SentAt = -1;
}

/// <summary>A replica that a new leader may continue from.</summary>
internal sealed class Replica
{
    public (long Leadership, long Version) Position;
    /// <summary>It belongs to a side of the room whose leader did not stay.</summary>
    public bool Superseded;
    /// <summary>Null for the new leader's own.</summary>
    public byte[] Data;
}

/// <summary>
/// State that a room shares and that survives its leader: a counter and a chat log. Pass it every event of the room, and call
/// <see cref="Tick"/> once per frame, after <c>Poll</c>. docs/state-by-hand.md explains it.
/// </summary>
/// <remarks>
/// The leader is the authority: members send it commands, it applies them and sends every member the numbered updates. Every
/// member keeps a replica. A new leader asks for all replicas, continues from the freshest, and announces it.
/// examples/python/shared_state.py and examples/cpp/shared_state.hpp implement it in other languages with the same messages,
/// so that the leadership may pass between them.
/// </remarks>
internal sealed class SharedState
{
    private const ushort CommandType = Room.FirstUserType + 0x10;  // member to leader: number, verb, text
    private const ushort UpdateType = Room.FirstUserType + 0x11;   // leader to all: version, author, number, verb, text
    private const ushort SnapshotType = Room.FirstUserType + 0x12; // leader to all: the state
    private const ushort ReplicaType = Room.FirstUserType + 0x13;  // member to leader: "here is my state; send me yours"
    private const ushort HaveType = Room.FirstUserType + 0x14;     // member to leader: leadership and version of its replica
    private const ushort SupersededType = Room.FirstUserType + 0x15; // as ReplicaType, from a side of the room whose leader did not stay

    private const int ChatLines = 50;
    private const int Authors = 256; // number of authors whose last number is kept; more than a room has members
    private const int MaxPending = 256;
    private const int MaxTextBytes = 400;
    private const double GatherSeconds = 3; // time for which a new leader waits for the replicas of connected members
    private const double AskSeconds = 0.5;
    private const double ResendSeconds = 1;
    private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

    public event Action<string, string> Chat;
    public event Action<Command> Confirmed;

    private readonly Room room;
    private readonly string id;
    private readonly Stopwatch clock = Stopwatch.StartNew();

    // The replica. It is fresher than another when its (leadership, version) is larger.
    private long leadership, version, counter;
    private List<(string Author, string Text)> chat = new List<(string, string)>();
    private List<(string Author, long Number)> numbers = new List<(string, long)>(); // the number of each author's last command
    private string source; // the leader whose state it is; null before the first one, and once another side's leader has stayed

    // This member's state.
    private string leader;
    private bool leads;
    private bool synced; // the replica is the present leader's state; at the leader: it has been announced
    private double askedAt = -1;
    private string reported; // the last Have
    private readonly List<Command> pending = new List<Command>();
    private readonly HashSet<string> lost = new HashSet<string>(); // members that may come back

    // State of the leader.
    private double gatherUntil = -1; // negative: the gathering is over
    private HashSet<string> awaited = new HashSet<string>(); // members whose replica is still to come
    private readonly Dictionary<string, Replica> replicas = new Dictionary<string, Replica>(); // of all members, also this one's
    private bool wanted; // a member asked for the state
    private long held;   // the newest version that another member also has

    public SharedState(Room room, string id)
    {
        this.room = room;
        this.id = id;
    }

    /// <summary>Queues a command ("add" and a number, or "say" and a line); false if it is not a command, or too many are pending.</summary>
    public bool Submit(string verb, string text)
    {
        text = text.Trim();
        if (pending.Count >= MaxPending || !IsCommand(verb, text))
        {
            return false;
        }
        pending.Add(new Command { Verb = verb, Text = text });
        return true;
    }

    public void OnEvent(RoomEvent e)
    {
        if (e is LeaderChanged change)
        {
            if (change.Reason == LeaderReason.Found && change.Leader != source)
            {
                source = null;
            }
            leader = change.Leader;
            leads = synced = false;
            askedAt = gatherUntil = -1;
        }
        else if (e is LeadershipGained)
        {
            leads = wanted = true;
            synced = false;
            held = 0;
            gatherUntil = Now + GatherSeconds;
            awaited = new HashSet<string>(room.Peers);
            replicas.Clear();
            replicas[id] = new Replica { Position = (leadership, version), Superseded = source == null };
        }
        else if (e is PeerReconnecting reconnecting)
        {
            lost.Add(reconnecting.Peer);
            awaited.Remove(reconnecting.Peer);
        }
        else if (e is PeerJoined joined)
        {
            lost.Remove(joined.Peer);
        }
        else if (e is PeerReturned returned)
        {
            lost.Remove(returned.Peer);
        }
        else if (e is PeerLeft left)
        {
            lost.Remove(left.Peer);
            awaited.Remove(left.Peer);
            synced &= left.Peer != leader;
        }
        else if (e is Message message)
        {
            try
            {
                OnMessage(message.From, message.Type, message.Data);
            }
            catch (Exception exception) when (exception is FormatException || exception is ArgumentException || exception is OverflowException)
            {
                // From another program, or from a newer version of this one.
            }
        }
    }

    /// <summary>Once per frame.</summary>
    public void Tick()
    {
        if (leads)
        {
            Lead();
        }
        else if (leader != null)
        {
            Follow();
        }
        if (synced)
        {
            Settle();
            SendPending();
        }
    }

    // ---------------------------------------------------------------- messages

    private void OnMessage(string peer, ushort type, byte[] data)
    {
        // SendFromLeader stamps the first two: those of a replaced leader do not arrive here.
        if (peer == leader && !leads)
        {
            if (type == SnapshotType)
            {
                Adopt(data);
                source = peer;
                Renumber();
            }
            else if (type == UpdateType && synced)
            {
                string[] update = Fields(Strict.GetString(data), 5);
                if (Number(update[0]) != version + 1)
                {
                    synced = false; // an update is missing: ask again
                    return;
                }
                Apply(update[1], Number(update[2]), update[3], update[4]);
            }
        }
        else if (leads && type == CommandType && synced)
        {
            string[] command = Fields(Strict.GetString(data), 3);
            Obey(peer, Number(command[0]), command[1], command[2]);
        }
        else if (leads && (type == ReplicaType || type == SupersededType))
        {
            wanted = true;
            awaited.Remove(peer);
            string[] head = Fields(Strict.GetString(data).Split('\n')[0], 3);
            var theirs = (Number(head[0]), Number(head[1]));
            if (gatherUntil >= 0)
            {
                replicas[peer] = new Replica { Position = theirs, Superseded = type == SupersededType, Data = data };
            }
        }
        else if (leads && type == HaveType)
        {
            string[] have = Fields(Strict.GetString(data), 2);
            if (Number(have[0]) == leadership)
            {
                held = Math.Max(held, Number(have[1]));
            }
        }
    }

    private void Obey(string author, long number, string verb, string text)
    {
        // A command with an earlier number is a repetition; one with a later number comes again, behind the missing ones.
        if (number != LastOf(author) + 1 || !IsCommand(verb, text))
        {
            return;
        }
        // Sent first, then applied: a command that cannot be sent has no effect, and its author sends it again.
        if (Sent(room.SendFromLeader, (version + 1) + "\t" + author + "\t" + number + "\t" + verb + "\t" + text, UpdateType))
        {
            Apply(author, number, verb, text);
        }
    }

    // ---------------------------------------------------------------- once per frame

    private void Lead()
    {
        if (gatherUntil >= 0)
        {
            if (awaited.Count > 0 && Now < gatherUntil)
            {
                return;
            }
            // A side that did not stay may have counted more leaderships than the one that did.
            long limit = replicas.Values.Where(replica => !replica.Superseded).Select(replica => replica.Position.Leadership)
                .DefaultIfEmpty(long.MaxValue).Max();
            Replica freshest = replicas.Values.Where(replica => replica.Position.Leadership <= limit)
                .OrderByDescending(replica => replica.Position).First();
            if (freshest.Data != null)
            {
                Adopt(freshest.Data);
            }
            leadership = replicas.Values.Max(replica => replica.Position.Leadership) + 1;
            gatherUntil = -1;
            replicas.Clear();
            source = id;
            Renumber();
        }
        if (wanted && Sent(room.SendFromLeader, Encode(), SnapshotType))
        {
            wanted = false;
            synced = true;
        }
    }

    private void Follow()
    {
        string have = leadership + "\t" + version;
        if (!synced && (askedAt < 0 || Now - askedAt >= AskSeconds))
        {
            askedAt = Now;
            Sent(room.SendToLeader, Encode(), source == null ? SupersededType : ReplicaType);
        }
        else if (synced && have != reported && Sent(room.SendToLeader, have, HaveType))
        {
            reported = have;
        }
    }

    private void SendPending()
    {
        long applied = LastOf(id), last = applied;
        foreach (Command command in pending)
        {
            if (command.Number == 0)
            {
                command.Number = last + 1;
            }
            last = command.Number;
            if (command.Number > applied && (command.SentAt < 0 || Now - command.SentAt >= ResendSeconds))
            {
                if (!Sent(room.SendToLeader, command.Number + "\t" + command.Verb + "\t" + command.Text, CommandType))
                {
                    return;
                }
                command.SentAt = Now;
            }
        }
    }

    // Confirms commands that are safe: a follower's are in its replica, the leader's in that of another member.
    private void Settle()
    {
        bool alone = lost.Count == 0 && room.Peers.Length == 0;
        List<Command> applied = pending.FindAll(command => command.Number > 0 && command.Number <= LastOf(id));
        foreach (Command command in applied.Where(command => command.Version == 0))
        {
            command.Version = version;
        }
        List<Command> safe = applied.FindAll(command => !leads || alone || command.Version <= held);
        pending.RemoveAll(safe.Contains);
        safe.ForEach(command => Confirmed?.Invoke(command));
    }

    // ---------------------------------------------------------------- the state

    private void Apply(string author, long number, string verb, string text)
    {
        if (verb == "add")
        {
            counter += Number(text);
        }
        else if (verb == "say")
        {
            chat.Add((author, text));
            if (chat.Count > ChatLines)
            {
                chat.RemoveAt(0);
            }
            Chat?.Invoke(author, text);
        }
        // The author of the last command comes last.
        numbers.RemoveAll(entry => entry.Author == author);
        numbers.Add((author, number));
        if (numbers.Count > Authors)
        {
            numbers.RemoveAt(0);
        }
        version++;
    }

    private void Adopt(byte[] data)
    {
        string[] lines = Strict.GetString(data).Split('\n');
        string[] head = Fields(lines[0], 3);
        List<string[]> rows = lines.Skip(1).Select(line => Fields(line, 3)).ToList();
        List<(string, long)> newNumbers = rows.FindAll(row => row[0] == "n").ConvertAll(row => (row[1], Number(row[2])));
        leadership = Number(head[0]);
        version = Number(head[1]);
        counter = Number(head[2]);
        numbers = newNumbers;
        chat = rows.FindAll(row => row[0] == "c").ConvertAll(row => (row[1], row[2]));
        synced = !leads;
    }

    // Runs after another state replaced this one: sends the commands that it does not contain again, without a gap.
    private void Renumber()
    {
        Settle();
        long applied = LastOf(id), last = applied;
        foreach (Command command in pending.Where(command => command.Number > applied))
        {
            // At once: the update with this command may be the next message.
            command.Number = ++last;
            command.Version = 0;
            command.SentAt = -1;
        }
    }

    private string Encode()
    {
        return leadership + "\t" + version + "\t" + counter
            + string.Concat(numbers.Select(entry => "\nn\t" + entry.Author + "\t" + entry.Number))
            + string.Concat(chat.Select(line => "\nc\t" + line.Author + "\t" + line.Text));
    }

    public override string ToString()
    {
        uint digest = 0x811C9DC5; // FNV-1a: equal at every member, in every language
        foreach (byte part in Strict.GetBytes(Encode()))
        {
            digest = unchecked((digest ^ part) * 0x01000193);
        }
        return "state: " + counter + ", " + chat.Count + " lines, version " + leadership + "." + version + ", digest "
            + digest.ToString("x8", CultureInfo.InvariantCulture) + ", " + pending.Count + " unconfirmed";
    }

    // ---------------------------------------------------------------- helpers

    // Commands that the leader accepts; the other members accept the leader's updates.
    private static bool IsCommand(string verb, string text)
    {
        if (verb == "add")
        {
            return Regex.IsMatch(text, @"^-?[0-9]{1,9}\z");
        }
        try
        {
            int bytes = Strict.GetByteCount(text);
            return verb == "say" && bytes > 0 && bytes <= MaxTextBytes && text.All(character => character >= ' ');
        }
        catch (ArgumentException)
        {
            return false; // half a surrogate pair
        }
    }

    private double Now => clock.Elapsed.TotalSeconds;

    private long LastOf(string author) => numbers.Find(entry => entry.Author == author).Number; // 0 when there is none

    // False if the library refused: no leader, a full queue. Every such send is tried again.
    private static bool Sent(Action<Payload, ushort, byte> send, string text, ushort type)
    {
        try
        {
            send(Strict.GetBytes(text), type, 0);
            return true;
        }
        catch (NetworkException)
        {
            return false;
        }
    }

    private static string[] Fields(string text, int count)
    {
        string[] fields = text.Split('\t');
        if (fields.Length != count)
        {
            throw new FormatException("not " + count + " fields");
        }
        return fields;
    }

    private static long Number(string text)
    {
        return long.Parse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture);
    }
}
