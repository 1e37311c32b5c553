// Tests the typed messages of the binding, with real rooms of this process over loopback. Prints "ok NAME" per promise and exits
// with 0 only when all hold.
//
//   mcs -langversion:7 -out:Typed.exe bindings/csharp/tests/Typed.cs bindings/csharp/tests/Checks.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Typed.exe [NAME...]
//
// NAME: values, requests, failures, ends, strangers, refusals, allocations (default: all).

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using MetaMystia.Network;
using static Checks;

internal static class Typed
{
    private const int Long = 60000;

    [MessageType(0x0101)]
    private struct Hit
    {
        internal int Damage;
    }

    [MessageType(0x0102)]
    private sealed class Buy
    {
        internal string Item;
    }

    [MessageType(0xFFFF)]
    private struct Unhandled
    {
    }

    private struct Unnumbered
    {
    }

    // An answer needs no number.
    private sealed class Bought
    {
        internal string Item;
        internal int Coins;
    }

    // Numbers as text, so that any serializer's errors can be shown.
    private sealed class Texts : IMessageSerializer
    {
        [ThreadStatic]
        private static byte[] buffer;

        public ArraySegment<byte> Write<T>(T value)
        {
            buffer = buffer ?? new byte[1024 * 1024];
            if (typeof(T) == typeof(Hit))
            {
                int damage = Cast<T, Hit>.Of(value).Damage;
                for (int index = 0; index < 4; index++)
                {
                    buffer[index] = (byte)(damage >> 8 * index);
                }
                return new ArraySegment<byte>(buffer, 0, 4);
            }
            object any = value;
            Bought bought = any as Bought;
            string text = bought != null ? bought.Item + " " + bought.Coins : any is Buy ? ((Buy)any).Item : "";
            return new ArraySegment<byte>(buffer, 0, Encoding.UTF8.GetBytes(text, 0, text.Length, buffer, 0));
        }

        public T Read<T>(ArraySegment<byte> bytes)
        {
            if (typeof(T) == typeof(Hit))
            {
                Must(bytes.Count == 4, "a hit has 4 bytes");
                return Cast<Hit, T>.Of(new Hit { Damage = BitConverter.ToInt32(bytes.Array, bytes.Offset) });
            }
            string text = Encoding.UTF8.GetString(bytes.Array, bytes.Offset, bytes.Count);
            if (typeof(T) == typeof(Buy))
            {
                return (T)(object)new Buy { Item = text };
            }
            if (typeof(T) != typeof(Bought))
            {
                return default(T);
            }
            string[] parts = text.Split(' ');
            return (T)(object)new Bought { Item = parts[0], Coins = int.Parse(parts[1]) };
        }
    }

    // A cast of a hit to itself that allocates nothing; null for other types.
    private static class Cast<TFrom, TTo>
    {
        internal static readonly Func<TFrom, TTo> Of = (object)(Func<Hit, Hit>)(hit => hit) as Func<TFrom, TTo>;
    }

    private sealed class Player
    {
        internal readonly Room Room;
        internal TypedMessages Messages;
        internal readonly List<string> Hits = new List<string>();
        internal readonly List<Exception> Failures = new List<Exception>();

        internal Player(string name, string session)
        {
            RoomOptions options = new RoomOptions();
            options.Settings.DiscoveryMode = DiscoveryMode.Off;
            Room = Added(Room.Join(name, session, options, room =>
            {
                room.HandlerFailed += Failures.Add;
                Messages = new TypedMessages(room, new Texts());
                Messages.On<Hit>((from, hit) => Hits.Add(from + " " + hit.Damage));
                Messages.OnRequest<Buy, Bought>((from, buy) =>
                {
                    if (buy.Item == "nothing")
                    {
                        throw new InvalidOperationException("nothing is for sale");
                    }
                    return new Bought { Item = buy.Item + "/" + from, Coins = buy.Item.Length };
                });
            }));
            if (players.Count > 0)
            {
                Room.Connect(players[0].Room.LocalAddress);
            }
        }
    }

    private static readonly List<Player> players = new List<Player>();

    private static int Main(string[] arguments)
    {
        return Run(arguments,
            new Test("values", session => AmongThree(session, ValuesArrive)),
            new Test("requests", session => AmongThree(session, RequestsAreAnswered)),
            new Test("failures", session => AmongThree(session, RequestsFail)),
            new Test("ends", session => AmongThree(session, RequestsEnd)),
            new Test("strangers", session => AmongThree(session, OthersAnswerNothing)),
            new Test("refusals", session => AmongThree(session, CallsAreRefused)),
            new Test("allocations", session => AmongThree(session, ValuesMakeNoGarbage)));
    }

    private static void AmongThree(string session, Action test)
    {
        players.Clear();
        foreach (string player in new[] { "alice", "bob", "carol" })
        {
            players.Add(new Player(player, session));
        }
        Wait("three members and their leader", () => players.All(player => player.Room.Peers.Length == 2 && player.Room.Leader != null));
        Wait("one leader", () => players.Select(player => player.Room.Leader).Distinct().Count() == 1);
        test();
    }

    private static Player Named(string name)
    {
        return players.Single(player => player.Room.PeerId == name);
    }

    private static void ValuesArrive()
    {
        Player alice = Named("alice"), bob = Named("bob"), carol = Named("carol");
        Player leader = Named(alice.Room.Leader);
        int copies = 0, views = 0;
        bob.Room.MessageReceived += message => copies++;
        bob.Room.DataReceived += message => views++;
        alice.Messages.Broadcast(new Hit { Damage = 1 });
        alice.Messages.SendTo("bob", new Hit { Damage = -2 }, Delivery.ReliableUnordered());
        Wait("both hits", () => bob.Hits.Count == 2 && carol.Hits.Count == 1);
        Must(bob.Hits.OrderBy(hit => hit, StringComparer.Ordinal).SequenceEqual(new[] { "alice -2", "alice 1" }), string.Join(",", bob.Hits));
        Must(copies == 0, "MessageReceived reports no message with a handler of its own");
        Must(views == 2, "DataReceived reports every message");
        players.ForEach(player => player.Hits.Clear());
        carol.Messages.SendToLeader(new Hit { Damage = 3 });
        Wait("the hit at the leader", () => leader.Hits.Count == 1);
        leader.Messages.SendFromLeader(new Hit { Damage = 4 });
        Wait("the hit from the leader", () => players.All(player => player == leader || player.Hits.Contains(leader.Room.PeerId + " 4")));

        bob.Messages.On<Hit>(null);
        alice.Messages.SendTo("bob", new Hit { Damage = 5 });
        bob.Messages.On<Hit>((from, hit) => bob.Hits.Add("new " + hit.Damage));
        bob.Hits.Clear();
        alice.Messages.SendTo("bob", new Hit { Damage = 6 });
        Wait("the new handler", () => bob.Hits.LastOrDefault() == "new 6");

        alice.Room.SendTo("bob", new byte[] { 1, 2, 3 }, 0x0101);
        Wait("the failure", () => bob.Failures.Count == 1);
        string text = bob.Failures[0].Message;
        Must(bob.Failures[0] is FormatException && text.Contains("3 bytes of type 0x0101 from alice are no Hit"), text);
    }

    private static void RequestsAreAnswered()
    {
        Player alice = Named("alice"), bob = Named("bob");
        List<Task<Bought>> tasks = new List<Task<Bought>>();
        for (int index = 0; index < 100; index++)
        {
            tasks.Add((index % 2 == 0 ? alice : bob).Messages.RequestAsync<Buy, Bought>("carol", new Buy { Item = "tea" + index }, Long));
        }
        // A member may ask itself; and the largest value passes, which no kept buffer holds.
        Task<Bought> own = alice.Messages.RequestAsync<Buy, Bought>("alice", new Buy { Item = "cake" }, Long);
        Task<Bought> large = alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy { Item = new string('x', 200000) }, Long);
        Wait("all answers", () => tasks.All(task => task.IsCompleted) && own.IsCompleted && large.IsCompleted);
        for (int index = 0; index < 100; index++)
        {
            Bought bought = tasks[index].Result;
            string text = "tea" + index + (index % 2 == 0 ? "/alice" : "/bob");
            Must(bought.Item == text && bought.Coins == 3 + index.ToString().Length, bought.Item + " " + bought.Coins);
        }
        Must(own.Result.Item == "cake/alice", own.Result.Item);
        Must(large.Result.Coins == 200000 && large.Result.Item.Length == 200000 + "/alice".Length, "a large answer is whole");
    }

    private static void RequestsFail()
    {
        Player alice = Named("alice"), bob = Named("bob");
        Task<Bought> threw = alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy { Item = "nothing" }, Long);
        Wait("the failure", () => threw.IsCompleted);
        Must(ErrorOf(threw) is RequestException && ErrorOf(threw).Message.Contains("handler of bob"), ErrorOf(threw).ToString());
        Must(!ErrorOf(threw).ToString().Contains("for sale"), "the handler's exception stays there");
        Must(bob.Failures.Count == 1 && bob.Failures[0].Message.Contains("for sale"), "HandlerFailed receives it there");

        Task<Bought> unread = alice.Messages.RequestAsync<Hit, Bought>("bob", new Hit(), Long);
        Wait("a type with a handler of values alone", () => unread.IsCompleted);
        Must(ErrorOf(unread) is RequestException && ErrorOf(unread).Message.Contains("no handler"), ErrorOf(unread).ToString());

        Task<Bought> unheard = alice.Messages.RequestAsync<Unhandled, Bought>("bob", new Unhandled(), 50);
        Wait("a type without a handler", () => unheard.IsCompleted);
        Must(ErrorOf(unheard) is TimeoutException && ErrorOf(unheard).Message.Contains("50 ms"), ErrorOf(unheard).ToString());
    }

    private static void RequestsEnd()
    {
        Player alice = Named("alice"), bob = Named("bob"), carol = Named("carol");
        // Bob polls no more, so that it answers nothing.
        Polled.Remove(bob.Room);
        Task<Bought> left = alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy { Item = "tea" }, Long);
        bob.Room.Dispose();
        Wait("the end with its member", () => left.IsCompleted);
        Must(CodeOf(left) == ErrorCode.PeerNotFound, ErrorOf(left).ToString());

        Polled.Remove(carol.Room);
        Task<Bought> own = alice.Messages.RequestAsync<Buy, Bought>("carol", new Buy { Item = "tea" }, Long);
        alice.Room.Dispose();
        Wait("the end with the room", () => own.IsCompleted);
        Must(CodeOf(own) == ErrorCode.NotInitialized, ErrorOf(own).ToString());
        int code = Refused(() => alice.Messages.RequestAsync<Buy, Bought>("carol", new Buy { Item = "tea" }, Long));
        Must(code == ErrorCode.NotInitialized, "a request of a room that was left: " + code);
    }

    private static void OthersAnswerNothing()
    {
        Player alice = Named("alice"), bob = Named("bob"), carol = Named("carol");
        Polled.Remove(bob.Room);
        Task<Bought> asked = alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy { Item = "tea" }, Long);
        // Carol guesses the number of the request, and fails and answers it; then a message that is too short, and numbers of no request.
        foreach (byte flags in new byte[] { 4, 8, 16 })
        {
            carol.Room.SendTo("alice", new byte[] { 1, 0, 0, 0, (byte)'x', (byte)' ', (byte)'1' }, 0x0102, flags);
            carol.Room.SendTo("alice", new byte[] { 9, 9, 9, 9 }, 0x0102, flags);
        }
        carol.Room.SendTo("alice", new byte[] { 1, 0, 0 }, 0x0102, 4);
        carol.Room.SendTo("alice", new byte[] { 1, 0, 0, 0 }, 0x0102, 64);
        Wait("the failure of the short one", () => alice.Failures.Count == 1);
        Must(alice.Failures[0] is FormatException && alice.Failures[0].Message.Contains("from carol has 3 bytes"), alice.Failures[0].Message);
        Must(!asked.IsCompleted, "only the member that was asked answers");
        Polled.Add(bob.Room);
        Wait("the answer", () => asked.IsCompleted);
        Must(asked.Result.Coins == 3, "of the member that was asked");
    }

    private static void CallsAreRefused()
    {
        Player alice = Named("alice"), bob = Named("bob");
        Must(Throws<InvalidOperationException>(() => alice.Messages.Broadcast(new Unnumbered())), "a type without a number");
        Must(Throws<InvalidOperationException>(() => alice.Messages.On<Unnumbered>((from, value) => { })), "a handler of a type without a number");
        Must(Throws<ArgumentOutOfRangeException>(() => new MessageTypeAttribute(0xFF)), "a number of the library");
        Must(Throws<ArgumentOutOfRangeException>(() => new MessageTypeAttribute(0x10000)), "a number above all");
        Must(Throws<ArgumentNullException>(() => new TypedMessages(null, new Texts())), "no room");
        Must(Throws<ArgumentNullException>(() => new TypedMessages(alice.Room, null)), "no serializer");
        Must(Throws<ArgumentOutOfRangeException>(() => alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy(), 0)), "no time");
        Must(Throws<ArgumentOutOfRangeException>(() => alice.Messages.RequestAsync<Buy, Bought>("bob", new Buy(), 600001)), "too long a time");
        Must(Throws<ArgumentNullException>(() => alice.Messages.RequestAsync<Buy, Bought>(null, new Buy(), Long)), "no member");
        int code = Refused(() => alice.Messages.RequestAsync<Buy, Bought>("zoe", new Buy { Item = "tea" }, Long));
        Must(code == ErrorCode.PeerNotFound, "a member that is not there: " + code);

        // The refused ones above wait no more, and leave their places to these.
        Polled.Remove(bob.Room);
        List<Task> waiting = new List<Task>();
        while (waiting.Count < TypedMessages.MaxRequests)
        {
            waiting.Add(alice.Messages.RequestAsync<Hit, Hit>("bob", new Hit(), Long));
        }
        code = Refused(() => alice.Messages.RequestAsync<Hit, Hit>("carol", new Hit(), Long));
        Must(code == ErrorCode.SendQueueFull, "one request too many: " + code);
        Polled.Add(bob.Room);
        Wait("the ends of all", () => waiting.All(task => task.IsCompleted));
        Task<Bought> next = alice.Messages.RequestAsync<Buy, Bought>("carol", new Buy { Item = "tea" }, Long);
        Wait("the next request", () => next.IsCompleted);
        Must(next.Result.Coins == 3, "is answered");
    }

    private static void ValuesMakeNoGarbage()
    {
        Player alice = Named("alice"), bob = Named("bob");
        int received = 0, sum = 0;
        bob.Messages.On<Hit>((from, hit) =>
        {
            received++;
            sum += hit.Damage;
        });
        const int warmUp = 1000, counted = 5000;
        long before = 0;
        Stopwatch clock = Stopwatch.StartNew();
        for (int sent = 0; received < warmUp + counted;)
        {
            if (sent == warmUp && received == warmUp && before == 0)
            {
                before = GC.GetAllocatedBytesForCurrentThread();
            }
            if (sent < (received < warmUp || before == 0 ? warmUp : warmUp + counted) && sent - received < 100)
            {
                alice.Messages.SendTo("bob", new Hit { Damage = 1 });
                sent++;
            }
            bob.Room.Poll();
            if (clock.ElapsedMilliseconds > Long)
            {
                Must(false, received + " of " + sent + " came in time");
            }
        }
        long spent = GC.GetAllocatedBytesForCurrentThread() - before;
        Must(sum == received && before != 0, "each value is whole");
        // Events that are not messages, such as statistics of the room, may come meanwhile.
        Must(spent < counted, spent + " bytes for " + counted + " values");
    }

    private static Exception ErrorOf(Task task)
    {
        return task.Exception == null ? new InvalidOperationException("succeeded") : task.Exception.InnerException;
    }

    private static int CodeOf(Task task)
    {
        NetworkException refused = ErrorOf(task) as NetworkException;
        return refused == null ? 0 : refused.Code;
    }
}
