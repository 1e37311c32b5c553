using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace MetaMystia.Network
{
    /// <summary>
    /// A room in a few lines of text, for an overlay or a terminal: the leader, and of each member the path, the round trip, the loss
    /// and the bytes a second of the link to it. Below them the rooms that a browser lists.
    /// </summary>
    /// <remarks>
    /// <para>Use a panel on one thread. It asks the library once in each interval; between two intervals it costs nothing and makes no
    /// garbage.</para>
    /// <para>It shows neither the session id nor the secret: with them, a stranger who watches a player's screen could enter. Characters of
    /// other members' names that control a terminal or turn the direction of text are U+FFFD.</para>
    /// </remarks>
    public sealed class RoomPanel
    {
        /// <summary>The most members, and the most rooms of the browser, that have a line; one more line counts the others.</summary>
        public const int MaxListed = 64;
        /// <summary>Limits of the interval, in milliseconds.</summary>
        public const int MinIntervalMs = 100, MaxIntervalMs = 60000;
        private const uint SilentMs = 5000; // as MMN_EVENT_HOST_SILENT

        private struct Traffic
        {
            internal ulong Sent, Received;
            internal int At;
        }

        private readonly int intervalMs;
        private readonly StringBuilder builder = new StringBuilder();
        // The traffic of each link at the last refresh, and of this one.
        private Dictionary<string, Traffic> before = new Dictionary<string, Traffic>(), now = new Dictionary<string, Traffic>();
        private Room room;
        private RoomBrowser browser;
        private string text = "";
        private bool fresh;
        private int refreshed; // of Environment.TickCount, which wraps around

        /// <summary>A panel without a room yet.</summary>
        /// <param name="intervalMs">The time between two looks at the room, in milliseconds; the rates are means over it.</param>
        /// <exception cref="ArgumentOutOfRangeException">The interval is not within its limits.</exception>
        public RoomPanel(int intervalMs = 1000)
        {
            if (intervalMs < MinIntervalMs || intervalMs > MaxIntervalMs)
            {
                throw new ArgumentOutOfRangeException("intervalMs", "The interval is " + intervalMs + " ms; it is " + MinIntervalMs + " to " + MaxIntervalMs + " ms.");
            }
            this.intervalMs = intervalMs;
        }

        /// <summary>The room to show; null is none. The panel neither polls nor leaves it.</summary>
        public Room Room
        {
            get { return room; }
            set
            {
                if (room != value)
                {
                    room = value;
                    before.Clear();
                    fresh = false;
                }
            }
        }

        /// <summary>The browser whose rooms to list; null is none. The panel neither polls nor closes it.</summary>
        public RoomBrowser Browser
        {
            get { return browser; }
            set
            {
                fresh = fresh && browser == value;
                browser = value;
            }
        }

        /// <summary>The lines, joined by line feeds; empty without a room and a browser. At most an interval old.</summary>
        public string Text
        {
            get
            {
                Refresh();
                return text;
            }
        }

        /// <summary>Writes the lines anew, if an interval has passed or there is another room. Returns whether it did.</summary>
        public bool Refresh()
        {
            int time = Environment.TickCount;
            if (fresh && unchecked((uint)(time - refreshed)) < intervalMs)
            {
                return false;
            }
            fresh = true;
            refreshed = time;
            builder.Length = 0;
            if (room != null)
            {
                WriteRoom(time);
            }
            if (browser != null)
            {
                WriteRooms(browser.Rooms);
            }
            text = builder.ToString();
            return true;
        }

        private void WriteRoom(int time)
        {
            try
            {
                WriteMembers(time);
            }
            catch (NetworkException exception)
            {
                if (exception.Code != ErrorCode.NotInitialized)
                {
                    throw;
                }
                builder.Length = 0;
                StartLine().Append("the room is closed");
            }
        }

        private void WriteMembers(int time)
        {
            string own = room.PeerId, leader = room.Leader;
            string[] members = room.Members;
            uint unlinked = room.Stats.UnlinkedPeers;
            StartLine().Append(Count(members.Length + 1 + (int)unlinked, "member")).Append(", ");
            Name(leader == null ? "no leader" : "leader: ", leader);
            if (unlinked > 0)
            {
                builder.Append(", ").Append(unlinked).Append(" without a link to this one");
            }
            StartLine();
            Name("", own);
            builder.Append(": this member");
            now.Clear();
            for (int index = 0; index < members.Length && index < MaxListed; index++)
            {
                StartLine();
                Name("", members[index]);
                WriteLink(members[index], leader, time);
            }
            WriteRest(members.Length);
            Dictionary<string, Traffic> old = before;
            before = now;
            now = old;
        }

        private void WriteLink(string member, string leader, int time)
        {
            PeerStats stats;
            try
            {
                stats = room.StatsOf(member);
            }
            catch (NetworkException exception)
            {
                if (exception.Code != ErrorCode.PeerNotFound)
                {
                    throw;
                }
                builder.Append(": left");
                return;
            }
            if (room.StatusOf(member) != PeerStatus.Connected)
            {
                builder.Append(": lost, dialled again");
                return;
            }
            if (stats.RttUs == 0)
            {
                builder.Append(": - ms");
            }
            else
            {
                Number(": ", stats.RttUs / 1000.0, " ms");
            }
            Number(", loss ", stats.LossPpm / 10000.0, " %, ");
            WritePath(member, stats.Path, leader);
            WriteRates(member, stats, time);
            if (stats.HostSilentMs >= SilentMs)
            {
                builder.Append(", takes no events for ").Append(stats.HostSilentMs / 1000).Append(" s");
            }
        }

        private void WritePath(string member, LinkPath path, string leader)
        {
            string server = path == LinkPath.ThroughRelay ? "over a relay" : path == LinkPath.ThroughTurn ? "through a TURN server" : null;
            string carrier = server == null ? room.CarrierOf(member) : null;
            Name(server ?? (carrier == null ? "direct" : "carried by "), carrier);
            if (carrier != null && carrier == leader)
            {
                builder.Append(" (leader)");
            }
        }

        private void WriteRates(string member, PeerStats stats, int time)
        {
            Traffic last, traffic = new Traffic { Sent = stats.BytesSent, Received = stats.BytesReceived, At = time };
            bool known = before.TryGetValue(member, out last);
            now[member] = traffic;
            double seconds = unchecked((uint)(time - last.At)) / 1000.0;
            Rate(", in ", known, last.Received, traffic.Received, seconds);
            Rate(", out ", known, last.Sent, traffic.Sent, seconds);
        }

        // Without a value before, there is no rate yet.
        private void Rate(string label, bool known, ulong last, ulong total, double seconds)
        {
            double rate = known && total >= last && seconds > 0 ? (total - last) / seconds : -1;
            if (rate < 0)
            {
                builder.Append(label).Append("- B/s");
            }
            else if (rate < 1000)
            {
                builder.Append(label).Append((int)rate).Append(" B/s");
            }
            else
            {
                bool kilo = rate < 1000000;
                Number(label, rate / (kilo ? 1000 : 1000000), kilo ? " KB/s" : " MB/s");
            }
        }

        private void WriteRooms(RoomListing[] rooms)
        {
            StartLine().Append(rooms.Length == 0 ? "no room" : Count(rooms.Length, "room")).Append(" in the local network");
            for (int index = 0; index < rooms.Length && index < MaxListed; index++)
            {
                RoomListing listed = rooms[index];
                StartLine();
                Name("", listed.Name);
                builder.Append(": ").Append(listed.Players);
                if (listed.MaxPlayers > 0)
                {
                    builder.Append(" of ").Append(listed.MaxPlayers);
                }
                Name(listed.Players == 1 && listed.MaxPlayers == 0 ? " player, at " : " players, at ", listed.Address);
                builder.Append(listed.SessionId == null ? ", needs its session id" : "").Append(listed.NeedsSecret ? ", needs its secret" : "");
            }
            WriteRest(rooms.Length);
        }

        private void WriteRest(int count)
        {
            if (count > MaxListed)
            {
                StartLine().Append("and ").Append(count - MaxListed).Append(" more");
            }
        }

        private StringBuilder StartLine()
        {
            return builder.Length == 0 ? builder : builder.Append('\n');
        }

        private void Number(string label, double value, string unit)
        {
            builder.Append(label).Append(value.ToString("0.0", CultureInfo.InvariantCulture)).Append(unit);
        }

        private static string Count(int count, string noun)
        {
            return count.ToString(CultureInfo.InvariantCulture) + " " + noun + (count == 1 ? "" : "s");
        }

        // A name is another member's, or a stranger's.
        private void Name(string label, string name)
        {
            builder.Append(label);
            foreach (char letter in name ?? "")
            {
                UnicodeCategory category = CharUnicodeInfo.GetUnicodeCategory(letter);
                bool controls = category == UnicodeCategory.Control || category == UnicodeCategory.Format
                    || category == UnicodeCategory.LineSeparator || category == UnicodeCategory.ParagraphSeparator;
                builder.Append(controls ? '\ufffd' : letter);
            }
        }
    }
}
