using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using MetaMystia.Network;

/// <summary>
/// A lobby as a panel: the members, the quality of each link, a log, and keys for the player's actions. One thread: it polls keys
/// without waiting, and draws the screen between two frames.
/// </summary>
internal sealed class Panel : IView
{
    private const int Samples = 20;
    private const int SampleMs = 500; // interval of heartbeats, which measure the round trip
    private const int DrawMs = 250;   // without another reason
    private const int StoppedMs = 1000; // without a frame: the process was stopped, and another program wrote to the terminal
    private const int NoticeMs = 6000;
    private const int LogLines = 500;
    private const int MostInput = 400;
    private const double LeastSpanMs = 10, LeastSpan = 0.3; // of the mean: the range of a bar's height, so that a good line looks calm
    private const double GoodMs = 80, FairMs = 200;
    private const string Bars = "▁▂▃▄▅▆▇█";

    // Parameters of SGR.
    private const string Dim = "90", Bold = "1", Red = "31", Green = "32", Yellow = "33", Title = "48;5;24", Head = "38;5;255;1", Chosen = "48;5;237";
    private static readonly string[] Names = { "36", "35", "34", "32", "33", "96", "95", "94" };

    private sealed class Member
    {
        public string Id, Place = "";
        public bool Lost, Observes;
        /// <summary>In milliseconds, the newest last; negative while the link is lost.</summary>
        public readonly Queue<double> Rtt = new Queue<double>();
        public double LossPercent;
        public uint Queued;
    }

    private sealed class Entry
    {
        public string Time, Author, Text, Style;
    }

    private readonly Terminal terminal;
    private readonly Room room;
    private readonly string id, session, address;
    private readonly Stopwatch clock = Stopwatch.StartNew();
    private readonly SortedDictionary<string, Member> members = new SortedDictionary<string, Member>(StringComparer.Ordinal);
    private readonly List<Entry> log = new List<Entry>();
    private readonly Queue<string> lines = new Queue<string>();
    private string input = "";
    private string notice = "", noticeStyle = "";
    private string chosen;      // a member
    private string kicking;     // the member that the next F4 kicks
    private int back;           // rows that the log is scrolled back
    private int width, height;
    private bool changed = true;
    private long sampledAt = -SampleMs, drawnAt, framedAt, noticedAt;

    public Panel(Terminal terminal, Room room, string id, string session)
    {
        this.terminal = terminal;
        this.room = room;
        this.id = chosen = id;
        this.session = session;
        address = room.LocalAddress;
        members.Add(id, new Member { Id = id });
    }

    public void Dispose()
    {
        terminal.Dispose();
    }

    // ---------------------------------------------------------------- events

    public void OnEvent(RoomEvent e)
    {
        changed |= e.Kind != EventKind.Message;
        switch (e.Kind)
        {
            case EventKind.Joined:
            case EventKind.Returned:
                Of(e.Peer).Lost = false;
                break;
            case EventKind.Reconnecting:
                Of(e.Peer).Lost = true;
                break;
            case EventKind.Left:
                members.Remove(e.Peer);
                if (chosen == e.Peer)
                {
                    chosen = id;
                }
                break;
        }
    }

    public void Say(string text)
    {
        Log(null, text, Dim);
    }

    public void Chat(string author, string text)
    {
        Log(author, text, "");
    }

    public void Heard(string peer, string text)
    {
    }

    public void Confirmed(Command command)
    {
        if (command.Verb == "add")
        {
            Say("the counter has your " + command.Text);
        }
    }

    public void Eligible(string peer, bool eligible)
    {
        Member member;
        if (members.TryGetValue(peer, out member))
        {
            member.Observes = !eligible;
            changed = true;
        }
    }

    public void Moved(string peer, string place)
    {
        Member member;
        if (members.TryGetValue(peer, out member))
        {
            member.Place = place;
        }
    }

    public void Fail(string text)
    {
        Log(null, text, Red);
        Notice(text, Red);
    }

    public void Beat(SharedState state)
    {
    }

    private Member Of(string peer)
    {
        Member member;
        if (!members.TryGetValue(peer, out member))
        {
            members.Add(peer, member = new Member { Id = peer });
        }
        return member;
    }

    private void Log(string author, string text, string style)
    {
        string time = DateTime.Now.ToString("HH:mm:ss", CultureInfo.InvariantCulture);
        log.Add(new Entry { Time = time, Author = author == null ? null : Columns.Clean(author), Text = Columns.Clean(text), Style = style });
        if (log.Count > LogLines)
        {
            log.RemoveAt(0);
        }
        changed = true;
    }

    private void Notice(string text, string style)
    {
        notice = Columns.Clean(text);
        noticeStyle = style;
        noticedAt = clock.ElapsedMilliseconds;
        changed = true;
    }

    // ---------------------------------------------------------------- once per frame

    public void Frame(SharedState state)
    {
        long now = clock.ElapsedMilliseconds;
        if (now - framedAt > StoppedMs)
        {
            terminal.Forget();
            changed = true;
        }
        framedAt = now;
        ReadKeys();
        if (now - sampledAt >= SampleMs)
        {
            sampledAt = now;
            Sample();
        }
        if (notice.Length > 0 && now - noticedAt > NoticeMs)
        {
            Notice("", "");
        }
        if (changed || now - drawnAt >= DrawMs || width != terminal.Width || height != terminal.Height)
        {
            changed = false;
            drawnAt = now;
            Draw(state);
        }
    }

    private void Sample()
    {
        foreach (Member member in members.Values)
        {
            if (member.Id == id)
            {
                continue;
            }
            double rtt = -1;
            try
            {
                PeerStats stats = room.StatsOf(member.Id);
                member.LossPercent = stats.LossPpm / 1e4;
                member.Queued = stats.QueueMessages;
                rtt = member.Lost ? -1 : stats.RttUs / 1e3;
            }
            catch (NetworkException)
            {
                // It has left, and its Left event has not been handled yet.
            }
            member.Rtt.Enqueue(rtt);
            if (member.Rtt.Count > Samples)
            {
                member.Rtt.Dequeue();
            }
        }
        changed = true;
    }

    // ---------------------------------------------------------------- keys

    public bool NextLine(out string line)
    {
        line = lines.Count > 0 ? lines.Dequeue() : null;
        return line != null;
    }

    private void ReadKeys()
    {
        foreach (Key key in terminal.Keys())
        {
            OnKey(key);
            changed = true;
        }
    }

    private void OnKey(Key key)
    {
        string armed = kicking;
        kicking = null;
        switch (key.Name)
        {
            case ConsoleKey.UpArrow:
                Choose(-1);
                return;
            case ConsoleKey.DownArrow:
                Choose(+1);
                return;
            case ConsoleKey.PageUp:
                back += Math.Max(height / 4, 1);
                return;
            case ConsoleKey.PageDown:
                back = Math.Max(back - Math.Max(height / 4, 1), 0);
                return;
            case ConsoleKey.F2:
                Command("hand over", "/transfer ");
                return;
            case ConsoleKey.F3:
                if (Leads("yield"))
                {
                    lines.Enqueue("/yield");
                }
                return;
            case ConsoleKey.F4:
                Kick(armed);
                return;
            case ConsoleKey.F10:
                lines.Enqueue("/quit");
                return;
            case ConsoleKey.Enter:
                lines.Enqueue(input.Trim());
                input = "";
                back = 0;
                return;
            case ConsoleKey.Clear:
                terminal.Forget();
                return;
            case ConsoleKey.OemClear:
                input = "";
                return;
            case ConsoleKey.Backspace:
                int last = input.Length > 1 && char.IsLowSurrogate(input[input.Length - 1]) ? 2 : 1;
                input = input.Substring(0, Math.Max(input.Length - last, 0));
                return;
        }
        if (key.Text != null && input.Length < MostInput)
        {
            input += key.Text;
        }
    }

    private void Choose(int step)
    {
        List<string> ids = new List<string>(members.Keys);
        int at = ids.IndexOf(chosen) + step;
        chosen = ids[Math.Max(0, Math.Min(at, ids.Count - 1))];
    }

    private void Kick(string armed)
    {
        if (armed == chosen)
        {
            Command("kick", "/kick ");
            Notice("", "");
        }
        else if (Leads("kick") && Other("kick"))
        {
            kicking = chosen;
            Notice("F4 again kicks " + chosen + ", for as long as the room lives", Yellow);
        }
    }

    private void Command(string verb, string line)
    {
        if (Leads(verb) && Other(verb))
        {
            lines.Enqueue(line + chosen);
        }
    }

    private bool Leads(string verb)
    {
        string leader = room.Leader;
        if (leader != id)
        {
            Notice("only the leader can " + verb + ", and " + (leader == null ? "the room has none now" : "that is " + leader), Red);
        }
        return leader == id;
    }

    private bool Other(string verb)
    {
        if (chosen == id)
        {
            Notice(verb + " whom? Choose another member with the arrows", Red);
        }
        return chosen != id;
    }

    // ---------------------------------------------------------------- the screen

    private void Draw(SharedState state)
    {
        width = terminal.Width;
        height = terminal.Height;
        List<string> rows = new List<string>();
        rows.Add(TitleRow(state));
        // The rows around the table and the log: the title, the heads, a blank row, the notice, the input, the keys.
        int most = Math.Max(1, Math.Max((height - 6) / 2, height - 6 - log.Count));
        Table table = new Table(this, width);
        rows.Add(table.Heads());
        List<Member> shown = Shown(most);
        foreach (Member member in shown)
        {
            rows.Add(table.Line(member));
        }
        rows.Add(new Row(width).Put(members.Count > shown.Count ? "   and " + (members.Count - shown.Count) + " more" : "", Dim).ToString());
        AddLog(rows, height - rows.Count - 3);
        rows.Add(new Row(width).Put(" " + notice, noticeStyle).ToString());
        string line = Columns.CutLeft(Columns.Clean(input), Math.Max(width - 4, 0));
        rows.Add(new Row(width).Put(" › ", Bold).Put(line).Put(input.Length == 0 ? "say something" : "", Dim).ToString());
        rows.Add(KeysRow());
        // A window that is too low shows the input, and the top of the rest.
        if (rows.Count > height)
        {
            int below = Math.Min(2, height - 1);
            rows.RemoveRange(height - below, rows.Count - height);
        }
        int inputRow = Math.Max(rows.Count - 2, 0);
        terminal.Draw(rows, width, inputRow, Math.Min(3 + Columns.Of(line), width - 1));
    }

    private string TitleRow(SharedState state)
    {
        string leader = room.Leader;
        Row row = new Row(width, Title).Put(" " + Columns.Clean(session) + " ", Head);
        row.Put("  " + members.Count + (members.Count == 1 ? " member" : " members"));
        row.Put("   counter " + state.Counter.ToString(CultureInfo.InvariantCulture));
        row.Put(leader == null ? "   no leader" : "   term " + room.LeaderTerm.ToString(CultureInfo.InvariantCulture), leader == null ? "38;5;215" : "");
        string where = "listening on " + address + " ";
        return (Columns.Of(where) + 2 < row.Left ? row.PutRight(where, width, "38;5;252") : row).ToString();
    }

    // As many members as there is space for, including the chosen one.
    private List<Member> Shown(int most)
    {
        List<Member> all = new List<Member>(members.Values);
        int at = all.FindIndex(member => member.Id == chosen);
        int first = Math.Max(0, Math.Min(at - most / 2, all.Count - most));
        return all.GetRange(first, Math.Min(most, all.Count - first));
    }

    private void AddLog(List<string> rows, int space)
    {
        if (space <= 0)
        {
            return;
        }
        List<string> wrapped = new List<string>();
        // From the newest on, and only the visible ones.
        for (int i = log.Count - 1; i >= 0 && wrapped.Count < space + back; i--)
        {
            List<string> entry = Wrapped(log[i]);
            entry.Reverse();
            wrapped.AddRange(entry);
        }
        back = Math.Max(0, Math.Min(back, wrapped.Count - space));
        List<string> seen = wrapped.GetRange(back, Math.Min(space, wrapped.Count - back));
        seen.Reverse();
        while (seen.Count < space)
        {
            seen.Add(new Row(width).ToString());
        }
        rows.AddRange(seen);
    }

    private List<string> Wrapped(Entry entry)
    {
        const int indent = 11;
        List<string> rows = new List<string>();
        Row row = new Row(width).Put(" " + entry.Time + "  ", Dim);
        if (entry.Author != null)
        {
            row.Put(entry.Author, ColourOf(entry.Author) + ";1").Put("  ");
        }
        for (string rest = entry.Text; ;)
        {
            string part = Columns.Cut(rest, row.Left);
            if (part.Length < rest.Length && part.LastIndexOf(' ') > 0)
            {
                part = part.Substring(0, part.LastIndexOf(' ') + 1);
            }
            rows.Add(row.Put(part, entry.Style).ToString());
            rest = rest.Substring(part.Length);
            if (rest.Length == 0 || width <= indent + 1)
            {
                return rows;
            }
            row = new Row(width).To(indent);
        }
    }

    private string KeysRow()
    {
        bool leads = room.IsLeader;
        Row row = new Row(width);
        string[] keys = { "F2", "hand over", "F3", "yield", "F4", "kick", "F10", "leave", "↑↓", "choose", "PgUp", "scroll", "Enter", "chat" };
        for (int i = 0; i < keys.Length; i += 2)
        {
            if (row.Left > Columns.Of(keys[i] + keys[i + 1]) + 3)
            {
                bool works = leads || i >= 6;
                row.Put(" ").Put(keys[i], works ? "7" : Dim).Put(" " + keys[i + 1] + " ", works ? "" : Dim);
            }
        }
        return row.ToString();
    }

    // FNV-1a, so that a name has one colour on every screen.
    private static string ColourOf(string name)
    {
        uint hash = 0x811C9DC5;
        foreach (char part in name)
        {
            hash = unchecked((hash ^ part) * 0x01000193);
        }
        return Names[hash % (uint)Names.Length];
    }

    private static string Quality(double rtt)
    {
        return rtt < 0 ? Dim : rtt < GoodMs ? Green : rtt < FairMs ? Yellow : Red;
    }

    /// <summary>The members' columns, as many as the window's width allows.</summary>
    private sealed class Table
    {
        private const int Mark = 4, Role = 13, Rtt = 9, Trend = Samples + 2, Loss = 8, Queue = 7, Place = 8, LeastName = 12;

        private readonly Panel panel;
        private readonly int width, name;
        private readonly bool role, rtt, trend, loss, queue, place;

        public Table(Panel panel, int width)
        {
            this.panel = panel;
            this.width = width;
            // The most important columns come first.
            int left = width - Mark - LeastName - 1;
            rtt = Takes(ref left, Rtt);
            role = Takes(ref left, Role);
            trend = Takes(ref left, Trend);
            loss = Takes(ref left, Loss);
            queue = Takes(ref left, Queue);
            place = Takes(ref left, Place);
            name = LeastName + Math.Max(0, Math.Min(left, 12));
        }

        private static bool Takes(ref int left, int columns)
        {
            bool fits = left >= columns;
            left -= fits ? columns : 0;
            return fits;
        }

        public string Heads()
        {
            Row row = new Row(width).To(Mark).Put("member", Dim);
            int end = Mark + name;
            if (role)
            {
                row.To(end + 1).Put("role", Dim);
                end += Role;
            }
            Right(row, rtt, "rtt", Dim, Rtt, ref end);
            if (trend)
            {
                row.To(end + 2).Put("last " + Samples * SampleMs / 1000 + " s", Dim);
                end += Trend;
            }
            Right(row, loss, "loss", Dim, Loss, ref end);
            Right(row, queue, "queue", Dim, Queue, ref end);
            Right(row, place, "at", Dim, Place, ref end);
            return row.ToString();
        }

        public string Line(Member member)
        {
            bool own = member.Id == panel.id, leads = member.Id == panel.room.Leader;
            Row row = new Row(width, member.Id == panel.chosen ? Chosen : "");
            row.Put(member.Id == panel.chosen ? " ▸" : "  ").Put(leads ? "♛ " : "  ", Yellow);
            string name = Columns.Clean(member.Id);
            string you = own ? " (you)" : "";
            row.Put(Columns.Cut(name, this.name - you.Length), (member.Lost ? Dim : ColourOf(name)) + ";1").Put(you, Dim);
            int end = Mark + this.name;
            if (role)
            {
                row.To(end + 1).Put(RoleOf(member, leads), member.Lost ? Yellow : leads ? Bold : "");
                end += Role;
            }
            double last = -1;
            foreach (double sample in member.Rtt)
            {
                last = sample;
            }
            // 0 is not measured yet.
            string shown = own ? "" : last <= 0 ? "–" : last.ToString(last < 10 ? "0.0" : "0", CultureInfo.InvariantCulture) + " ms";
            Right(row, rtt, shown, Quality(last <= 0 ? -1 : last), Rtt, ref end);
            if (trend)
            {
                row.To(end + 2 + (own ? 0 : Samples - member.Rtt.Count));
                Sparkline(row, member.Rtt);
                end += Trend;
            }
            string lost = own ? "" : member.LossPercent.ToString("0.0", CultureInfo.InvariantCulture) + " %";
            Right(row, loss, lost, member.LossPercent < 0.05 ? Dim : member.LossPercent < 5 ? Yellow : Red, Loss, ref end);
            string queued = own ? "" : member.Queued.ToString(CultureInfo.InvariantCulture);
            Right(row, queue, queued, member.Queued == 0 ? Dim : Yellow, Queue, ref end);
            Right(row, place, Columns.Clean(member.Place), Dim, Place, ref end);
            return row.ToString();
        }

        private static void Right(Row row, bool has, string text, string style, int columns, ref int end)
        {
            if (has)
            {
                end += columns;
                row.PutRight(Columns.Cut(text, columns - 1), end, style);
            }
        }

        private string RoleOf(Member member, bool leads)
        {
            if (member.Lost)
            {
                return "reconnecting";
            }
            int state = panel.room.StateOf(member.Id);
            return leads ? "leader" : member.Observes ? "observer" : state >= 0 && state != MemberState.Active ? MemberState.Describe(state) : "member";
        }

        // From the least to the most: the bars show the variation. The colour and the number show the length.
        private static void Sparkline(Row row, Queue<double> samples)
        {
            double sum = 0, least = double.MaxValue, most = 0;
            int measured = 0;
            foreach (double sample in samples)
            {
                if (sample > 0)
                {
                    sum += sample;
                    measured++;
                    least = Math.Min(least, sample);
                    most = Math.Max(most, sample);
                }
            }
            double span = Math.Max(most - least, Math.Max(LeastSpanMs, LeastSpan * sum / Math.Max(measured, 1)));
            foreach (double sample in samples)
            {
                int bar = (int)((sample - least) / span * (Bars.Length - 1));
                row.Put(sample <= 0 ? "·" : Bars[bar].ToString(), Quality(sample <= 0 ? -1 : sample));
            }
        }
    }
}
