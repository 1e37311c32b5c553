// Tests that a C# host survives the usual actions of hosts. Shows each promise with real rooms over loopback and a second process
// of this program as the partner. Prints "ok NAME" per promise and exits with 0 only when all hold.
//
//   mcs -langversion:7 -out:Survive.exe bindings/csharp/tests/Survive.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Survive.exe [--rounds N] [NAME...]
//
// NAME: unregister, shutdown, restart, reentry, exceptions, queue, messages, dials, rooms, paths, seeded, etcd (default: all); poll, which
// starts the command MMN_GUEST; and layout, which compares the structs with the lines "struct.field offset" of the file MMN_LAYOUT.
// --rounds: number of shutdowns in `shutdown` (20).

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using MetaMystia.Network;

internal static class Survive
{
    private const int EventMs = 10000; // limit for an event that must come
    private const int TestMs = 55000;  // limit of one test
    private const int UnregisterRounds = 200;
    private const int RestartRounds = 50;
    private const int WarmUpRounds = 10; // until the runtime has compiled and allocated what it keeps
    private const long AllowedGrowthKib = 8192; // over 50 rooms; the collected heap varies by some MiB

    private static string running = "start";
    private static string violation; // found by a callback, which cannot throw through the library

    private static int Main(string[] arguments)
    {
        if (arguments.Length == 3 && arguments[0] == "--partner")
        {
            return Partner.Run(arguments[1], arguments[2] == "flood");
        }
        int rounds = 20;
        List<string> names = new List<string>();
        for (int i = 0; i < arguments.Length; i++)
        {
            if (arguments[i] == "--rounds" && i + 1 < arguments.Length)
            {
                rounds = int.Parse(arguments[++i]);
            }
            else
            {
                names.Add(arguments[i]);
            }
        }
        Watch();
        try
        {
            Run(names, "unregister", Unregister);
            Run(names, "shutdown", () => Shutdown(rounds));
            Run(names, "restart", Restart);
            Run(names, "reentry", Reentry);
            Run(names, "exceptions", Exceptions);
            Run(names, "queue", Queued);
            Run(names, "messages", Messages);
            Run(names, "dials", Dials);
            Run(names, "rooms", Rooms);
            Run(names, "paths", Paths);
            Run(names, "codes", Codes);
            Run(names, "browse", Browse);
            Run(names, "seeded", Seeded);
            Run(names, "etcd", ByEtcd);
            if (names.Contains("poll"))
            {
                Run(names, "poll", Polled);
            }
            if (names.Contains("layout"))
            {
                Run(names, "layout", Layout);
            }
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + running + ": " + exception);
            return 1;
        }
    }

    private static void Run(List<string> names, string name, Action test)
    {
        if (names.Count > 0 && !names.Contains(name))
        {
            return;
        }
        lock (typeof(Survive))
        {
            running = name;
        }
        test();
        NoViolation();
        Console.WriteLine("ok " + name);
    }

    // The only way to end a thread that is stuck inside the library.
    private static void Watch()
    {
        Thread watch = new Thread(() =>
        {
            string seen = null;
            Stopwatch clock = Stopwatch.StartNew();
            while (true)
            {
                Thread.Sleep(200);
                lock (typeof(Survive))
                {
                    if (seen != running)
                    {
                        seen = running;
                        clock.Restart();
                    }
                }
                if (clock.ElapsedMilliseconds > TestMs)
                {
                    Console.Error.WriteLine("FAILED: a test took too long: " + seen);
                    Process.GetCurrentProcess().Kill();
                }
            }
        });
        watch.IsBackground = true;
        watch.Start();
    }

    // ---------------------------------------------------------------- unregister, with the raw function

    private static int turn; // 0 or 1: which of the two functions of a kind may run; -1: none
    private static readonly AutoResetEvent Arrived = new AutoResetEvent(false);

    private static void Ran(int which)
    {
        if (Volatile.Read(ref turn) != which)
        {
            violation = "a function ran after it was unregistered";
        }
        Arrived.Set();
    }

    // Two functions take turns, so that an event that reaches the inactive one is noticed at once and also much later. Static, because
    // the library holds them and the garbage collector does not see that.
    private static readonly EventCallback[] Handlers = { (userData, e) => Ran(0), (userData, e) => Ran(1) };
    private static int handed, dropped;
    private static readonly DropCallback Drop = userData => Interlocked.Increment(ref dropped);

    private static void Unregister()
    {
        using (Partner partner = new Partner(true))
        using (Room room = Room.Join("main", partner.Session))
        {
            room.Connect(partner.Address);
            WaitForCompany(room);
            Must(NativeMethods.mmn_take_messages(room.Handle) == 0, "mmn_take_messages");
            for (int round = 0; round < UnregisterRounds; round++)
            {
                Arrived.Reset();
                Volatile.Write(ref turn, round % 2);
                Must(NativeMethods.mmn_set_event_handler(room.Handle, Handlers[round % 2], IntPtr.Zero, Drop) == 0, "register");
                handed++;
                // Every fourth round at once, else as soon as events arrive: messages by themselves, and the present state.
                if (round % 4 != 3)
                {
                    Must(Arrived.WaitOne(EventMs), "no event in time");
                }
                Must(NativeMethods.mmn_set_event_handler(room.Handle, null, IntPtr.Zero, null) == 0, "unregister");
                Volatile.Write(ref turn, -1);
                Must(Volatile.Read(ref dropped) == handed, dropped + " of " + handed + " are dropped");
                NoViolation();
            }
        }
    }

    // ---------------------------------------------------------------- shutdown, with a raw handler: Room would hide a late call

    private static int open;
    private static int received;
    private static readonly ManualResetEvent Flowing = new ManualResetEvent(false);

    private static void MustBeOpen()
    {
        if (Volatile.Read(ref open) == 0)
        {
            violation = "a callback ran after Dispose returned";
        }
    }

    private static readonly EventCallback OpenEvent = (userData, e) =>
    {
        MustBeOpen();
        if (NetworkEvent.At(e).Kind == EventKind.Message && ++received == 20)
        {
            Flowing.Set();
        }
    };

    private static void Shutdown(int rounds)
    {
        using (Partner partner = new Partner(true))
        {
            for (int round = 0; round < rounds; round++)
            {
                received = 0;
                Flowing.Reset();
                Volatile.Write(ref open, 1);
                Room room = Room.Join("main-" + round, partner.Session);
                Must(NativeMethods.mmn_set_event_handler(room.Handle, OpenEvent, IntPtr.Zero, null) == 0, "mmn_set_event_handler");
                Must(NativeMethods.mmn_take_messages(room.Handle) == 0, "mmn_take_messages");
                room.Connect(partner.Address);
                Must(Flowing.WaitOne(EventMs), "no messages in time");
                for (int i = 0; i < 8; i++)
                {
                    room.Broadcast(new byte[64]);
                }
                room.Connect(partner.Address);
                room.Dispose();
                Volatile.Write(ref open, 0);
                // Time for a late callback to show itself.
                Thread.Sleep(2);
                NoViolation();
                Must(!room.IsOpen, "still open after Dispose");
            }
        }
    }

    // ---------------------------------------------------------------- the others, with Room

    private static void Restart()
    {
        long[] before = null;
        for (int round = 0; round < WarmUpRounds + RestartRounds; round++)
        {
            if (round == WarmUpRounds)
            {
                before = Usage();
            }
            using (Room room = Room.Join("main", "survive-alone"))
            {
                room.MessageReceived += message => { };
                room.LeaderChanged += leader => { };
                Must(room.LocalAddress.Length > 0, "no address");
            }
        }
        long[] after = Usage();
        // The library's thread has ended, but Mono may take a moment to release its data about it.
        for (Stopwatch clock = Stopwatch.StartNew(); after[1] > before[1] && clock.ElapsedMilliseconds < 5000; after = Usage())
        {
            Thread.Sleep(20);
        }
        Console.WriteLine("   memory {0} KiB (allowed {1}), threads {2}, descriptors {3}", after[0] - before[0], AllowedGrowthKib,
            after[1] - before[1], after[2] - before[2]);
        Must(after[0] - before[0] <= AllowedGrowthKib, "memory grew");
        Must(after[1] <= before[1], "threads grew");
        Must(after[2] <= before[2], "descriptors grew");
    }

    // KiB resident, threads, descriptors.
    private static long[] Usage()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
        long[] usage = { 0, 0, Directory.GetFiles("/proc/self/fd").Length };
        foreach (string line in File.ReadAllLines("/proc/self/status"))
        {
            string[] words = line.Split(new[] { ' ', '\t' }, StringSplitOptions.RemoveEmptyEntries);
            if (words.Length > 1 && words[0] == "VmRSS:")
            {
                usage[0] = long.Parse(words[1]);
            }
            if (words.Length > 1 && words[0] == "Threads:")
            {
                usage[1] = long.Parse(words[1]);
            }
        }
        return usage;
    }

    private static void Reentry()
    {
        using (Partner partner = new Partner(true))
        using (Room room = Room.Join("main", partner.Session))
        {
            ManualResetEvent[] done = new ManualResetEvent[4];
            int[] begun = new int[4];
            for (int kind = 0; kind < 4; kind++)
            {
                done[kind] = new ManualResetEvent(false);
            }
            // Every function, once in a handler of every kind.
            Action<int> everything = kind =>
            {
                if (Interlocked.Exchange(ref begun[kind], 1) != 0)
                {
                    return;
                }
                try
                {
                    CallEverything(room, partner);
                }
                finally
                {
                    done[kind].Set();
                }
            };
            room.HandlerFailed += exception => violation = exception.ToString();
            room.Connect(partner.Address);
            room.LeaderChanged += leader => everything(1);
            room.PeerStatusChanged += (peer, status) => everything(2);
            room.ConnectionResult += result => everything(3);
            room.MessageReceived += message => everything(0);
            for (int kind = 0; kind < 4; kind++)
            {
                Must(done[kind].WaitOne(EventMs), "no event of kind " + kind + " in time");
            }
            Must(Inner.Count == 4, Inner.Count + " rooms were opened in handlers");
            Inner.ForEach(inner => inner.Dispose());
            Inner.Clear();
        }
    }

    private static readonly EventCallback Ignore = (userData, e) => { };
    private static readonly List<Room> Inner = new List<Room>(); // opened in handlers

    private static void CallEverything(Room room, Partner partner)
    {
        Must(CodeOf(room.Dispose) == ErrorCode.WouldDeadlock, "Dispose in a handler is not -15");
        Must(NativeMethods.mmn_last_error_code() == ErrorCode.WouldDeadlock, "the last error is not -15");
        Must(room.IsOpen, "not open any more");
        // Another room may be opened here, and begin to leave.
        Room inner = Room.Join("again", "survive-inner-" + Inner.Count);
        Inner.Add(inner);
        Must(inner.IsOpen && inner.Handle != room.Handle && inner.PeerId == "again", "the other room");
        Must(CodeOf(inner.Dispose) == ErrorCode.WouldDeadlock, "Dispose of another room in a handler is not -15");
        inner.Leave();
        Must(!inner.IsOpen && CodeOf(inner.Leave) == ErrorCode.NotInitialized, "a room that leaves is open");
        room.Connect(partner.Address);
        room.Disconnect("unknown");
        Must(room.LocalAddress.Length > 0, "no address");
        Must(room.PeerId == "main", "another peer id");
        Must(room.SessionId == partner.Session, "another session id");
        Must(NativeMethods.mmn_peer_count(room.Handle) >= 0, "mmn_peer_count");
        Must(room.Peers != null, "Peers");
        room.RoundTripMs("partner");
        Must(room.StatusOf("unknown") == PeerStatus.Unknown, "a status of an unknown peer");
        room.SetLeader("main");
        room.SetAutoElection(true);
        Must(room.Leader != "", "Leader");
        GC.KeepAlive(room.IsLeader);
        room.Broadcast(new byte[8]);
        // The partner fills this host's queue while the handler runs.
        int code = CodeOf(() => room.SendTo("main", new byte[8]));
        Must(code == 0 || code == ErrorCode.SendQueueFull, "SendTo: " + code);
        code = CodeOf(() => room.SendToLeader(new byte[8]));
        Must(code == 0 || code == ErrorCode.PeerNotFound || code == ErrorCode.NotLeader || code == ErrorCode.SendQueueFull, "SendToLeader: " + code);
        code = CodeOf(() => room.SendFromLeader(new byte[8]));
        Must(code == 0 || code == ErrorCode.NotLeader, "SendFromLeader: " + code);
        Room.EnableLogging(false);
        Must(NativeMethods.mmn_abi_version() >= NativeMethods.AbiVersion, "mmn_abi_version");
        Must(Utf8.FromNative(NativeMethods.mmn_library_version()).Length > 0, "mmn_library_version");
        Must(Room.Describe(ErrorCode.WouldDeadlock).Length > 0, "DescribeError");
        // Room never unregisters, so this is done beneath it. Then Room's own function, which is not public, is registered again, because
        // the handlers of the other kinds have yet to run.
        Must(NativeMethods.mmn_set_event_handler(room.Handle, null, IntPtr.Zero, null) == 0, "unregister");
        Must(NativeMethods.mmn_set_event_handler(room.Handle, Ignore, IntPtr.Zero, null) == 0, "register");
        IntPtr self = GCHandle.ToIntPtr(GCHandle.Alloc(room));
        Must(NativeMethods.mmn_set_event_handler(room.Handle, Thunk<EventCallback>("EventThunk"), self, Thunk<DropCallback>("DropThunk")) == 0,
            "register Room's own");
    }

    private static T Thunk<T>(string field)
    {
        return (T)typeof(Room).GetField(field, BindingFlags.Static | BindingFlags.NonPublic).GetValue(null);
    }

    private static void Exceptions()
    {
        Must(Marshal.SizeOf(typeof(NetworkConfig)) == 44, "NetworkConfig is not 44 bytes");
        using (Room room = Room.Join("mäin", "survive-alone", NetworkConfig.Default()))
        using (CountdownEvent twice = new CountdownEvent(2))
        {
            Exception surfaced = null;
            List<Message> came = new List<Message>();
            room.HandlerFailed += exception =>
            {
                surfaced = exception;
                twice.Signal();
            };
            room.MessageReceived += message =>
            {
                came.Add(message);
                throw new InvalidOperationException("from a handler");
            };
            room.SendTo("mäin", Encoding.UTF8.GetBytes("grüße 🍵"), 0x0123);
            room.SendTo("mäin", new byte[0]);
            Must(twice.Wait(EventMs), "the exceptions did not come out");
            Must(surfaced.Message == "from a handler", "another exception: " + surfaced);
            Must(came[0].From == "mäin" && came[0].Type == 0x0123, "damaged sender or type");
            Must(Encoding.UTF8.GetString(came[0].Data) == "grüße 🍵", "damaged text");
            Must(came[1].Data.Length == 0, "the empty message is not empty");
            Must(CodeOf(() => room.SendTo("unknown", new byte[1])) == ErrorCode.PeerNotFound, "a message to an unknown peer");
            Must(CodeOf(() => room.Connect(null)) == ErrorCode.InvalidArgument, "NULL as address");
            Must(ThrowsNull(() => room.SendTo("mäin", null)) && ThrowsNull(() => room.Broadcast(null)), "no data");
            Must(ThrowsNull(() => Room.Join("mäin", "survive-alone", (RoomOptions)null)), "no options");
            try
            {
                room.Connect("a\0b:1");
                Must(false, "a NUL in an address was taken");
            }
            catch (ArgumentException)
            {
            }
        }
    }

    private static bool ThrowsNull(Action call)
    {
        try
        {
            call();
            return false;
        }
        catch (ArgumentNullException)
        {
            return true;
        }
    }

    private static void Queued()
    {
        using (Partner partner = new Partner(true))
        using (Room room = Room.Join("main", partner.Session, null, true))
        {
            int received = 0, mine = Thread.CurrentThread.ManagedThreadId;
            bool elsewhere = false;
            room.MessageReceived += message =>
            {
                elsewhere |= Thread.CurrentThread.ManagedThreadId != mine;
                received++;
            };
            room.PeerStatusChanged += (peer, status) => elsewhere |= Thread.CurrentThread.ManagedThreadId != mine;
            room.Connect(partner.Address);
            Stopwatch clock = Stopwatch.StartNew();
            while (received < 100)
            {
                Must(clock.ElapsedMilliseconds < EventMs, "no messages in time");
                // The frame of a game.
                Thread.Sleep(5);
                room.Poll();
            }
            Must(!elsewhere, "a handler ran on another thread than Poll's");
            // More messages arrive than the queue holds, without a poll: leaving the room must not wait for the poll.
            Thread.Sleep(500);
            int last = received;
            room.Dispose();
            Must(CodeOf(() => room.Poll()) == ErrorCode.NotInitialized && received == last, "a handler ran after Dispose returned");
        }
    }

    // Polls until an event of this kind has come.
    private static T Until<T>(Room room, List<RoomEvent> came) where T : RoomEvent
    {
        for (Stopwatch clock = Stopwatch.StartNew(); ; Thread.Sleep(2))
        {
            RoomEvent found = came.Find(e => e is T);
            if (found != null)
            {
                return (T)found;
            }
            Must(clock.ElapsedMilliseconds < 3 * EventMs, "no " + typeof(T).Name + " in time");
            room.Poll(1);
        }
    }

    // Poll mode and every safe method, with guest.py: rejected, admitted, removed.
    private static void Polled()
    {
        string session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-poll";
        int logged = 0;
        Room.SetLog(LogLevel.Debug, (level, text) => Interlocked.Increment(ref logged));
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Secret = Encoding.UTF8.GetBytes("tea");
        options.Settings.MemberHoldMs = 5000;
        using (Room room = Room.Join("main", session, options))
        {
            List<RoomEvent> came = new List<RoomEvent>();
            int mine = Thread.CurrentThread.ManagedThreadId;
            room.HandlerFailed += exception => violation = exception.ToString();
            room.Happened += e =>
            {
                Must(Thread.CurrentThread.ManagedThreadId == mine, "a handler ran on another thread");
                came.Add(e);
                if (e is JoinRequest asked && Encoding.UTF8.GetString(asked.Payload) == "let me in")
                {
                    Must(asked.Peer == "guest" && asked.Address != null, "another newcomer");
                    room.RejectJoin(asked.Request, 7, Encoding.UTF8.GetBytes("später"));
                }
                else if (e is JoinRequest again)
                {
                    room.AcceptJoin(again.Request);
                }
                else if (e is Message)
                {
                    Must(CodeOf(() => room.Poll()) == ErrorCode.WouldDeadlock, "Poll in a handler is not -15");
                }
            };
            Must(Until<LeadershipGained>(room, came).Leader == "main", "another leader");
            room.EnableJoinRequests(true);
            room.SetMaxPeers(3);
            room.SetJoinPayload(null);
            room.AutoReconnect = true;
            room.Centralized = room.CentralizedAutoForward = true;
            Must(room.AutoReconnect && room.Centralized && room.CentralizedAutoForward && !room.IsDiscovering, "switches");
            room.SetCompressionThreshold(64);
            room.SetLeaderEligible(true);
            room.SetElectionPriority(7);
            GossipWindows windows = room.GossipWindows;
            Must(windows.StartupGraceMs == 15000 && windows.SampleIntervalMs == 1000 && windows.AliveThresholdMs == 10000
                && windows.ElectionDurationMs == 5000, "the windows of gossip");
            windows.StartupGraceMs = 501;
            windows.SampleIntervalMs = 502;
            windows.AliveThresholdMs = 503;
            windows.ElectionDurationMs = 504;
            room.GossipWindows = windows;
            windows = room.GossipWindows;
            Must(windows.StartupGraceMs == 501 && windows.SampleIntervalMs == 502 && windows.AliveThresholdMs == 503
                && windows.ElectionDurationMs == 504, "other windows");
            windows.AliveThresholdMs = 0;
            Must(CodeOf(() => room.GossipWindows = windows) == ErrorCode.InvalidArgument, "a window of 0 ms");
            Must(room.ElectionStrategy == ElectionStrategy.Raft && room.LeaderTerm >= 1 && room.LeaderEpoch == 0, "term " + room.LeaderTerm + ", epoch " + room.LeaderEpoch);
            Must(CodeOf(() => room.YieldLeadership()) == ErrorCode.PeerNotFound, "YieldLeadership without a successor");
            Must(CodeOf(() => room.TransferLeadership("unknown")) == ErrorCode.PeerNotFound, "TransferLeadership to an unknown peer");
            Must(CodeOf(() => room.AcceptJoin(12345)) == ErrorCode.PeerNotFound, "AcceptJoin of no request");
            Must(CodeOf(() => room.StatsOf("guest")) == ErrorCode.PeerNotFound, "the figures of an unknown peer");

            ProcessStartInfo start = new ProcessStartInfo("python3");
            start.Arguments = "\"" + Environment.GetEnvironmentVariable("MMN_GUEST") + "\" " + session + " " + room.LocalAddress;
            start.UseShellExecute = false;
            start.RedirectStandardOutput = true;
            start.StandardOutputEncoding = new UTF8Encoding(false);
            start.EnvironmentVariables["PYTHONIOENCODING"] = "utf-8";
            using (Process guest = Process.Start(start))
            {
                Must(Until<PeerJoined>(room, came).Peer == "guest", "another guest");
                Message message = Until<Message>(room, came);
                Must(message.From == "guest" && Encoding.UTF8.GetString(message.Data) == "hello" && message.Type == 0x0123
                    && message.Flags == 2, "a damaged message");
                Must(room.StatsOf("guest").MessagesReceived == 1, "StatsOf");
                Must(room.IndexOf("guest") == 1 && room.PeerAt(1) == "guest" && message.PeerIndex == 1, "the guest's number");
                Must(room.Members.Length == 1 && room.Members[0] == "guest", "Members");
                Must(!string.IsNullOrEmpty(room.AddressOf("guest")) && room.FingerprintOf("guest").Length == 64, "the guest's address and key");
                Must(room.IdentityFingerprint.Length == 64 && room.IdentityFingerprint != room.FingerprintOf("guest"), "this host's key");
                Must(room.IndexOf("unknown") == 0 && room.PeerAt(0) == null && room.AddressOf("unknown") == null
                    && room.FingerprintOf("unknown") == null, "an unknown peer's number, address and key");
                byte[] key = Room.GenerateIdentityKey();
                Must(key.Length == NativeMethods.IdentityKeyBytes && key[0] == 0x30
                    && Convert.ToBase64String(key) != Convert.ToBase64String(Room.GenerateIdentityKey()), "a new key");
                room.Forward("main", "guest", new byte[1000]);
                room.SetLeader("main");
                SetLeaderResult result = Until<SetLeaderResult>(room, came);
                Must(result.Success && result.Code == 0, "SetLeader: " + result.Code);
                room.Kick("guest", 9, Encoding.UTF8.GetBytes("tschüss"), true);
                PeerLeft left = Until<PeerLeft>(room, came);
                Must(left.Peer == "guest" && left.Reason == LeftReason.Kicked && left.Code == 9
                    && Encoding.UTF8.GetString(left.Data) == "tschüss", "left: " + left.Reason + " " + left.Code);
                Must(left.Reason.Describe() == "kicked" && ((LeftReason)99).Describe() == "unknown", "reasons in words");
                room.Unban("guest");
                Must(CodeOf(() => room.Unban("guest")) == ErrorCode.PeerNotFound, "Unban of an unknown peer");
                Must(CodeOf(() => room.Kick("guest")) == ErrorCode.PeerNotFound, "Kick of an unknown peer");
                room.Disconnect("guest", 3, Encoding.UTF8.GetBytes("tschüss")); // an unknown member is no error
                string printed = guest.StandardOutput.ReadToEnd();
                Must(printed == "rejected 7 später\njoined\nended " + (int)EndReason.Kicked + " 9 tschüss\n", "the guest printed: " + printed);
                guest.WaitForExit();
            }
        }
        Must(logged > 0, "no log");
        Room.SetLog(LogLevel.Off, null);
    }

    // ---------------------------------------------------------------- messages without copies

    private static void Messages()
    {
        Names();
        ViewsAndPayloads();
        ViewsInAQueue();
        CodesAndExceptions();
    }

    // One string per id, wherever the library has its bytes, until that member leaves; and never more than the bound.
    private static void Names()
    {
        PeerNames names = new PeerNames();
        List<IntPtr> texts = new List<IntPtr>();
        Func<string, string> of = id => names.Of(NativeText(texts, id));
        // Each of these two pairs has one hash.
        string[] ids = { "costarring", "liquid", "declinate", "macallums", "米斯蒂娅", "a", "ab" };
        string[] seen = new string[ids.Length];
        for (int round = 0; round < 3; round++)
        {
            for (int index = 0; index < ids.Length; index++)
            {
                string name = of(ids[index]);
                Must(name == ids[index] && (round == 0 || ReferenceEquals(name, seen[index])), "another string for " + ids[index]);
                seen[index] = name;
            }
        }
        names.Forget("costarring");
        names.Forget("unknown");
        Must(ReferenceEquals(of("liquid"), seen[1]), "the one of the same hash is forgotten, too");
        Must(of("costarring") == "costarring" && !ReferenceEquals(of("costarring"), seen[0]), "a member that left is remembered");
        for (int number = 0; number < 5000; number++)
        {
            Must(of("member " + number) == "member " + number, "a wrong name");
        }
        FieldInfo count = typeof(PeerNames).GetField("count", BindingFlags.Instance | BindingFlags.NonPublic);
        Must((int)count.GetValue(names) <= 1024, "the names grow");
        texts.ForEach(Marshal.FreeHGlobal);
    }

    private static IntPtr NativeText(List<IntPtr> texts, string text)
    {
        byte[] bytes = Utf8.ToNative(text);
        IntPtr native = Marshal.AllocHGlobal(bytes.Length);
        Marshal.Copy(bytes, 0, native, bytes.Length);
        texts.Add(native);
        return native;
    }

    // This member alone: messages that it sends to itself in every form, as the handlers of each kind receive them.
    private static void ViewsAndPayloads()
    {
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        using (Room room = Room.Join("米斯蒂娅", "survive-views", options))
        {
            List<string> views = new List<string>(), copies = new List<string>(), events = new List<string>();
            List<string> senders = new List<string>(), changes = new List<string>();
            int failures = 0;
            room.HandlerFailed += exception => failures++;
            DataHandler fails = message => { throw new InvalidOperationException("on purpose"); };
            room.DataReceived += fails;
            room.DataReceived -= fails;
            room.DataReceived += message =>
            {
                byte[] copy = new byte[message.Length + 3];
                message.CopyTo(copy, 3);
                string text = Encoding.UTF8.GetString(copy, 3, message.Length);
                Must(text == Encoding.UTF8.GetString(message.ToArray()), "two copies");
                Must(message.Length == 0 || message[message.Length - 1] == copy[copy.Length - 1], "the last byte");
                int refused = 0;
                foreach (int index in new[] { -1, message.Length })
                {
                    try
                    {
                        GC.KeepAlive(message[index]);
                    }
                    catch (ArgumentOutOfRangeException)
                    {
                        refused++;
                    }
                }
                Must(refused == 2, "a byte beside the message");
                views.Add(text + " " + message.Type + " " + message.Flags + " " + message.Channel + " " + (int)message.Delivery);
                senders.Add(message.From);
                if (message.Type == 0x0123)
                {
                    room.SendTo(message.From, message.Payload, 0x0130);
                }
                if (text == "fail")
                {
                    throw new InvalidOperationException("on purpose");
                }
            };
            room.SendTo("米斯蒂娅", Encoding.UTF8.GetBytes("again"), 0x0123, 2);
            room.SendTo("米斯蒂娅", new ArraySegment<byte>(Encoding.UTF8.GetBytes("[part]"), 1, 4));
            Must(room.TrySendTo("米斯蒂娅", new Payload(Encoding.UTF8.GetBytes("[end]"), 1, 3), Delivery.ReliableUnordered(9)) == 0, "TrySendTo");
            Must(room.TrySendTo("米斯蒂娅", new byte[0], Delivery.ReliableOrdered(4)) == 0, "nothing");
            room.SendTo("米斯蒂娅", default(ArraySegment<byte>));
            Must(room.TrySendTo("米斯蒂娅", default(Payload)) == 0, "the default");
            room.SendTo("米斯蒂娅", Encoding.UTF8.GetBytes("fail"));
            Stopwatch clock = Stopwatch.StartNew();
            while (views.Count < 8)
            {
                Must(clock.ElapsedMilliseconds < EventMs, "views came: " + string.Join(", ", views));
                room.Poll();
            }
            views.Sort(StringComparer.Ordinal);
            // Another channel may overtake.
            string expected = " 256 0 0 0|" + " 256 0 0 0|" + " 256 0 4 0|again 291 2 0 0|again 304 0 0 0|end 256 0 9 1|fail 256 0 0 0|part 256 0 0 0";
            Must(string.Join("|", views) == expected, "views: " + string.Join("|", views));
            Must(failures == 1, failures + " failures");
            foreach (string sender in senders)
            {
                Must(ReferenceEquals(sender, senders[0]) && sender == "米斯蒂娅", "another string for the same sender");
            }

            // Handlers that subscribe later each get a copy, and Happened the present state first.
            room.SetLeader("米斯蒂娅");
            for (clock.Restart(); !room.IsLeader;)
            {
                Must(clock.ElapsedMilliseconds < EventMs, "no leader");
                room.Poll();
            }
            while (room.Poll() > 0)
            {
            }
            room.Changed += e => changes.Add(TextOf(e));
            room.Happened += e => events.Add(TextOf(e));
            room.MessageReceived += message => copies.Add(Encoding.UTF8.GetString(message.Data));
            views.Clear();
            room.SendTo("米斯蒂娅", Encoding.UTF8.GetBytes("all"));
            for (clock.Restart(); views.Count == 0;)
            {
                Must(clock.ElapsedMilliseconds < EventMs, "no message for all");
                room.Poll();
            }
            Must(string.Join("|", copies) == "all" && views.Count == 1, "copies: " + string.Join("|", copies));
            string seen = string.Join("|", events);
            Must(seen == "LeaderChanged 米斯蒂娅|LeadershipGained 米斯蒂娅|all", "events: " + seen);
            Must(string.Join("|", changes) + "|all" == seen, "changes: " + string.Join("|", changes));
        }
        OutOfRange(() => new Payload(new byte[4], 5, 0));
        OutOfRange(() => new Payload(new byte[4], 2, 3));
        OutOfRange(() => new Payload(new byte[4], -1, 1));
        OutOfRange(() => new Payload(new byte[4], 0, -1));
        Must(ThrowsNull(() => new Payload(null, 0, 1)) && ThrowsNull(() => new Payload(null)), "a payload without an array");
    }

    private static string TextOf(RoomEvent e)
    {
        if (e is Message message)
        {
            return Encoding.UTF8.GetString(message.Data);
        }
        LeaderChanged change = e as LeaderChanged;
        LeadershipGained gained = e as LeadershipGained;
        return e.Kind + " " + (change != null ? change.Leader : gained != null ? gained.Leader : "");
    }

    private static void OutOfRange(Func<Payload> make)
    {
        try
        {
            make();
        }
        catch (ArgumentOutOfRangeException)
        {
            return;
        }
        Must(false, "a part that is outside its array");
    }

    // A full queue: a later subscription waits for nothing, and receives the present state and the queued messages.
    private static void ViewsInAQueue()
    {
        using (Partner partner = new Partner(true))
        using (Room room = Room.Join("main", partner.Session, null, true))
        {
            int views = 0, joined = 0;
            room.DataReceived += message =>
            {
                Must(message.From == "partner" && message.ToArray().Length == 64, "a damaged view");
                views++;
            };
            room.Connect(partner.Address);
            // Until the queue is full; then the partner's queue is full, too.
            Stopwatch clock = Stopwatch.StartNew();
            for (ulong before = 0, now; ; before = now)
            {
                Thread.Sleep(100);
                now = room.Peers.Length == 0 ? 0 : room.StatsOf("partner").MessagesReceived;
                if (now >= 4096 && now == before)
                {
                    break;
                }
                Must(clock.ElapsedMilliseconds < TestMs, "the queue does not fill: " + now);
            }
            room.Happened += e => joined += e is PeerJoined ? 1 : 0;
            for (clock.Restart(); views <= 4096 || joined == 0; room.Poll())
            {
                Must(clock.ElapsedMilliseconds < TestMs, views + " views, " + joined + " members");
            }
            Must(joined == 1, "joined " + joined + " times");
        }
    }

    // Results and exceptions of Try sends, and a broadcast to all but one.
    private static void CodesAndExceptions()
    {
        using (Partner partner = new Partner(false))
        {
            RoomOptions options = new RoomOptions();
            options.Settings.SendQueueCapacity = 4;
            options.Settings.AutoElection = 0;
            using (Room room = Room.Join("main", partner.Session, options))
            {
                byte[] data = new byte[1000];
                Must(room.TrySendFromLeader(data) == ErrorCode.NotLeader, "TrySendFromLeader");
                Must(room.TryForward("main", null, data) == ErrorCode.NotLeader, "TryForward");
                Must(room.TrySendTo("unknown", data) == ErrorCode.PeerNotFound, "TrySendTo an unknown peer");
                Must(room.BroadcastExcept("main", data) == 0, "a broadcast without recipients");
                Must(CodeOf(() => room.TrySendTo("main", data, 5)) == ErrorCode.InvalidArgument, "a type of the library");
                Must(CodeOf(() => room.TrySendTo(null, data)) == ErrorCode.InvalidArgument, "no id");
                Must(CodeOf(() => room.TrySendTo(new string('é', 60), data)) == ErrorCode.InvalidArgument, "an id of 120 bytes");
                Must(CodeOf(() => room.TrySendTo(new string('x', 1000), data)) == ErrorCode.InvalidArgument, "an id of 1000 bytes");
                Must(CodeOf(() => room.TryBroadcast(new Payload(IntPtr.Zero, 7))) == ErrorCode.InvalidArgument, "NULL");
                Must(CodeOf(() => room.TryBroadcast(new byte[1 << 20])) == ErrorCode.MessageTooLarge, "too long");
                foreach (sbyte priority in new sbyte[] { NativeMethods.PriorityLow, NativeMethods.PriorityHighest, -2, 3 })
                {
                    Delivery delivery = new Delivery { Priority = priority };
                    int expected = priority == -2 || priority == 3 ? ErrorCode.InvalidArgument : ErrorCode.Ok;
                    Must(CodeOf(() => room.SendTo("main", data, delivery)) == expected, "priority " + priority);
                    Must(CodeOf(() => room.SendToLeader(data, delivery)) == (expected == 0 ? ErrorCode.NotLeader : expected), "to the leader");
                }
                try
                {
                    room.SetLeader("unknown");
                    Must(false, "an unknown leader");
                }
                catch (NetworkException exception)
                {
                    Must(exception.Message.EndsWith("\"unknown\" is neither this node nor connected; give the id of a connected peer"), exception.Message);
                }
                bool threw = false;
                try
                {
                    room.TrySendTo("a\0b", data);
                }
                catch (ArgumentException)
                {
                    threw = true;
                }
                Must(threw, "a NUL in an id");

                room.Connect(partner.Address);
                Stopwatch clock = Stopwatch.StartNew();
                while (room.Peers.Length == 0)
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "no partner");
                    room.Poll();
                    Thread.Sleep(1);
                }
                while (room.BroadcastExcept("unknown", data) == 0)
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "no room in an empty queue");
                }
                Must(room.BroadcastExcept("partner", data) == 0, "the one that is left out got it");
                int code;
                while ((code = room.TryBroadcast(data)) == ErrorCode.Ok)
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "a queue that never fills");
                }
                Must(code == ErrorCode.SendQueueFull, "a full queue is " + code);
                // It may have drained a little since then.
                List<string> full = new List<string>();
                while (full.Count == 0)
                {
                    Must(room.BroadcastExcept(null, data, default(Delivery), 0x0123, 0, full) + full.Count == 1, "neither took it nor is full");
                    Must(clock.ElapsedMilliseconds < EventMs, "a queue that never fills");
                }
                Must(full[0] == "partner", "full is " + full[0]);
                while ((code = CodeOf(() => room.Broadcast(data))) == ErrorCode.Ok)
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "a queue that never fills");
                }
                Must(code == ErrorCode.SendQueueFull, "a full queue is " + code);
            }
        }
    }

    // ---------------------------------------------------------------- dials with awaitable results

    private static void Dials()
    {
        foreach (bool poll in new[] { true, false })
        {
            using (Partner partner = new Partner(false))
            {
                RoomOptions options = new RoomOptions();
                options.Poll = poll;
                Room room = Room.Join("main", partner.Session, options);
                Task<ConnectionResult> ended;
                using (room)
                {
                    Must(CodeOf(() => room.ConnectAsync("nonsense")) == ErrorCode.InvalidArgument, "a dial of nonsense");
                    Task<ConnectionResult> first = room.ConnectAsync(partner.Address), again = room.ConnectAsync(partner.Address);
                    Task<ConnectionResult> closed = room.ConnectAsync("127.0.0.1:9");
                    List<string> dialled = new List<string>();
                    room.ConnectionResult += result => dialled.Add(result.Address);
                    // The awaiting code does not delay the handlers, and may dispose of the room.
                    ManualResetEvent go = new ManualResetEvent(false);
                    Task blocked = first.ContinueWith(task => go.WaitOne(EventMs), TaskContinuationOptions.ExecuteSynchronously);
                    if (poll)
                    {
                        Must(!first.Wait(300), "a dial completed without Poll");
                    }
                    Stopwatch clock = Stopwatch.StartNew();
                    while (!first.IsCompleted || !again.IsCompleted || !closed.IsCompleted)
                    {
                        Must(clock.ElapsedMilliseconds < EventMs, "a dial has no result");
                        if (poll)
                        {
                            room.Poll();
                        }
                        Thread.Sleep(1);
                    }
                    Must(!blocked.IsCompleted, "what awaits the dial ran inside the handler");
                    go.Set();
                    blocked.Wait();
                    Must(first.Result.Success && first.Result.Address == partner.Address, "the dial failed: " + first.Result.Code);
                    Must(first.Result.Peer == "partner" && first.Result.Data.Length == 0, "the member that answered: " + first.Result.Peer);
                    Must(closed.Result.Peer == null && closed.Result.Reason == 0 && closed.Result.Data != null, "no member answered");
                    Must(again.Result.Success, "the second dial failed: " + again.Result.Code);
                    Must(!closed.Result.Success && closed.Result.Code < 0, "a dial of a closed port succeeded");
                    // No process answers there, so the dial is still waiting when the room is left.
                    ended = room.ConnectAsync("192.0.2.1:9");
                    Must(!ended.IsCompleted || !poll, "a dial completed without Poll");
                }
                Must(WaitedFor(ended), "a dial hangs when the room is left");
                // With loopback only, the system refuses such an address at once: a thread of the library may have reported that.
                NetworkException exception = ended.IsFaulted ? ended.Exception.InnerException as NetworkException : null;
                Must(ended.IsFaulted ? exception.Code == ErrorCode.NotInitialized : !poll && !ended.Result.Success, "how a dial ends with the room");
                Must(CodeOf(() => room.ConnectAsync(partner.Address)) == ErrorCode.NotInitialized, "a dial after the room");
            }
        }
    }

    private static bool WaitedFor(Task task)
    {
        return ((IAsyncResult)task).AsyncWaitHandle.WaitOne(EventMs);
    }

    // ---------------------------------------------------------------- several rooms in one process

    // Two players of one room and one player of another: each object has its own events.
    private static void Rooms()
    {
        string session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-rooms";
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        List<string> came = new List<string>();
        Action<Room, string> listen = (room, name) =>
        {
            room.HandlerFailed += exception => violation = exception.ToString();
            room.Happened += e =>
            {
                Must(ReferenceEquals(e.Room, room), "an event of another room");
                if (e is Message message)
                {
                    came.Add(name + " has " + Encoding.UTF8.GetString(message.Data) + " of " + message.From);
                }
            };
        };
        using (Room ann = Room.Join("ann", session, options, room => listen(room, "ann")))
        using (Room bob = Room.Join("bob", session, options, room => listen(room, "bob")))
        using (Room other = Room.Join("ann", session + "-other", options, room => listen(room, "other")))
        {
            Must(ann.Handle != bob.Handle && bob.Handle != other.Handle && ann.Handle != 0, "the numbers of rooms");
            Must(ann.PeerId == "ann" && bob.PeerId == "bob" && other.SessionId == session + "-other", "the answers of rooms");
            ann.Connect(bob.LocalAddress);
            Action<Func<bool>, string> until = (holds, what) =>
            {
                for (Stopwatch clock = Stopwatch.StartNew(); !holds(); Thread.Sleep(1))
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "not in time: " + what + "; " + string.Join(", ", came));
                    ann.Poll();
                    bob.Poll();
                    other.Poll();
                }
            };
            until(() => ann.Leader != null && ann.Leader == bob.Leader && other.IsLeader, "leaders");
            Must(ann.IsLeader != bob.IsLeader && other.Peers.Length == 0 && bob.Peers.Length == 1, "members");
            until(() => ann.Stats.RoomTimeErrorUs < 1000000 && bob.Stats.RoomTimeErrorUs < 1000000, "a measured time");
            long before = ann.TimeMs, between = bob.TimeMs, after = ann.TimeMs;
            long error = (ann.Stats.RoomTimeErrorUs + bob.Stats.RoomTimeErrorUs) / 1000 + 1;
            Must(before - error <= between && between <= after + error && before >= 0, before + " ms and " + between + " ms, error " + error);
            ann.SendTo("bob", Encoding.UTF8.GetBytes("one"));
            other.SendTo("ann", Encoding.UTF8.GetBytes("two"));
            until(() => came.Count == 2, "messages");
            came.Sort(StringComparer.Ordinal);
            Must(string.Join(", ", came) == "bob has one of ann, other has two of ann", string.Join(", ", came));
            // A player who was removed without a ban comes back.
            Room leader = ann.IsLeader ? ann : bob, follower = ann.IsLeader ? bob : ann;
            leader.Kick(follower.PeerId, 5);
            until(() => leader.Peers.Length == 0, "the kick");
            Must(CodeOf(() => leader.Unban(follower.PeerId)) == ErrorCode.PeerNotFound, "a kick is a ban");
            other.Dispose();
            GoneIsRefused(other, leader);
        }
        Held(session);
        HeldInAQueue(session);
        Collected(session);
    }

    // The guests of a star reach each other through its host.
    private static void Paths()
    {
        string session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-paths";
        Func<string, HostMode, Room> join = (name, hostMode) =>
        {
            RoomOptions options = new RoomOptions();
            options.BindAddress = "127.0.0.1";
            options.Settings.Topology = Topology.Star;
            options.Settings.HostMode = hostMode;
            return Room.Join(name, session, options);
        };
        using (Room host = join("host", HostMode.Host))
        using (Room ann = join("ann", HostMode.Guest))
        using (Room bob = join("bob", HostMode.Guest))
        {
            List<PathChanged> changes = new List<PathChanged>();
            ann.PathChanged += changes.Add;
            ann.Connect(host.LocalAddress);
            bob.Connect(host.LocalAddress);
            for (Stopwatch clock = Stopwatch.StartNew(); ann.Peers.Length + bob.Peers.Length + host.Peers.Length < 6; Thread.Sleep(1))
            {
                Must(clock.ElapsedMilliseconds < EventMs, "not in time: three members");
                ann.Poll();
            }
            Must(ann.PathOf("bob") == LinkPath.ThroughLeader && bob.PathOf("ann") == LinkPath.ThroughLeader, "the path between guests");
            Must(ann.CarrierOf("bob") == "host" && bob.CarrierOf("ann") == "host", "the carrier between guests");
            Must(ann.StatsOf("bob").Path == LinkPath.ThroughLeader, "another path in the statistics");
            Must(ann.PathOf("host") == LinkPath.Direct && ann.CarrierOf("host") == null, "the path to the host");
            Must(ann.PathOf("nobody") == null && ann.PathOf("ann") == null && ann.CarrierOf("nobody") == null, "paths without a link");
            Must(CodeOf(() => ann.PathOf("")) == ErrorCode.InvalidArgument, "a path to no id");
            Must(ann.PublicAddress == null, "loopback is not the internet");
            ann.Poll();
            Must(changes.Count == 0, "a path has not changed");
        }
    }

    // Codes, and a room that is to meet others at a relay.
    private static void Browse()
    {
        string game = "survive-csharp-" + Process.GetCurrentProcess().Id;
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Settings.Entry = RoomEntry.Create;
        List<RoomListing> seen = new List<RoomListing>();
        List<Exception> failed = new List<Exception>();
        int refused = 0;
        Must(CodeOf(() => new RoomBrowser("")) == ErrorCode.InvalidArgument, "a game without a name");
        Must(CodeOf(() => new RoomBrowser(null)) == ErrorCode.InvalidArgument, "no game");
        RoomBrowser browser = new RoomBrowser(game);
        browser.HandlerFailed += failed.Add;
        browser.Changed += listing => refused = CodeOf(browser.Dispose);
        browser.Changed += listing => { throw new InvalidOperationException("intended by the test"); };
        browser.Changed += seen.Add;
        Action<string, Func<bool>> until = (what, holds) =>
        {
            for (Stopwatch clock = Stopwatch.StartNew(); !holds(); Thread.Sleep(1))
            {
                Must(clock.ElapsedMilliseconds < EventMs, "not in time: " + what);
                browser.Poll();
            }
        };
        using (Room room = Room.Join("ann", game, options))
        {
            RoomCard card = new RoomCard { Game = game, Name = "Ann's room", Data = new byte[] { 0, 7 }, IsOpen = true, MaxPlayers = 4 };
            Must(CodeOf(() => room.ShowCard(new RoomCard { Game = game, Name = "bell\a" })) == ErrorCode.InvalidArgument, "a control character");
            Must(CodeOf(() => room.ShowCard(new RoomCard { Game = game, Name = "room", Data = new byte[401] })) == ErrorCode.InvalidArgument, "401 bytes");
            room.ShowCard(card);
            until("the room is listed", () => seen.Count > 0);
            RoomListing found = browser.Rooms[0];
            Must(found.Change == ListChange.Found && found.Name == "Ann's room" && found.SessionId == game && found.Players == 1, "the room: " + found.Name);
            Must(found.Data.Length == 2 && found.Data[1] == 7 && found.MaxPlayers == 4 && !found.NeedsSecret, "its card");
            Must(found.Fingerprint == room.IdentityFingerprint, "its key: " + found.Fingerprint);
            Must(refused == ErrorCode.WouldDeadlock && failed.Count == 1, "closed inside its handler: " + refused);
            room.ShowCard(null);
            until("the room is gone", () => seen[seen.Count - 1].Change == ListChange.Gone);
            Must(browser.Rooms.Length == 0, "a room that is gone is listed");
        }
        browser.Dispose();
        browser.Dispose();
        Must(CodeOf(() => browser.Poll()) == ErrorCode.NotInitialized, "a closed browser");
    }

    private static void Codes()
    {
        string code = Room.CreateCode();
        Must(code.Length == NativeMethods.RoomCodeBytes - 1 && code[4] == '-' && code[9] == '-' && code != Room.CreateCode(), "a code: " + code);
        string typed = " " + code.ToLowerInvariant().Replace("-", "  ") + "\n";
        Must(Room.NormalizeCode(typed) == code, "another code than " + code);
        Must(Room.NormalizeCode("Ｋ７ＱＭ—3xp9 trwf") == "K7QM-3XP9-TRWF", "a code in full width");
        Must(CodeOf(() => Room.NormalizeCode("K7QM-3XP9-TRWG")) == ErrorCode.InvalidArgument, "a typo");
        Must(CodeOf(() => Room.NormalizeCode(null)) == ErrorCode.InvalidArgument, "no code");
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Relays = new[] { "127.0.0.1:9", "[::1]:9 token=000g40r40m30e209185gr38e1w" };
        options.Settings.Paths = RoomPaths.Relayed;
        Must(CodeOf(() => Room.Join("ann", "tea", options)) == ErrorCode.InvalidArgument, "a session id that is no code");
        using (Room room = Room.Join("ann", typed, options))
        {
            room.RelayChanged += relay => { };
            room.PortMappingChanged += mapping => { };
            room.TurnChanged += turn => { };
            Must(room.SessionId == code, "another session: " + room.SessionId);
            Must(CodeOf(() => room.Connect("127.0.0.1:9")) == ErrorCode.NotSupported, "a dial that shows the address");
        }
        options.Settings.PortMapping = PortMapping.On;
        Must(CodeOf(() => Room.Join("ann", code, options)) == ErrorCode.InvalidArgument, "relayed paths with a port of the router");
        options.Relays = null;
        options.Settings.PortMapping = PortMapping.Off;
        options.Turn = new[] { "turn:127.0.0.1:9 username=u" };
        Must(CodeOf(() => Room.Join("ann", code, options)) == ErrorCode.InvalidArgument, "a TURN server without a password");
        options.Turn = null;
        Must(CodeOf(() => Room.Join("ann", code, options)) == ErrorCode.InvalidArgument, "relayed paths without a relay");
    }

    // Every kind of call on a room that is disposed of, while another one is open.
    private static void GoneIsRefused(Room gone, Room open)
    {
        gone.Dispose();
        Must(!gone.IsOpen && open.IsOpen, "the wrong room was left");
        Action[] calls =
        {
            () => gone.Poll(), () => gone.Broadcast(new byte[1]), () => gone.SendTo("ann", new byte[1]), () => gone.SendToLeader(new byte[1]),
            () => gone.SendFromLeader(new byte[1]), () => gone.BroadcastExcept("ann", new byte[1]), () => gone.Connect("127.0.0.1:9"),
            () => gone.ConnectAsync("127.0.0.1:9"), () => gone.Kick("ann"), () => gone.SetLeader("ann"), () => gone.StatsOf("ann"),
            () => gone.Leave(), () => gone.GossipWindows.ToString(), () => gone.LocalAddress.ToString(), () => gone.PeerId.ToString(),
            () => gone.Peers.ToString(), () => gone.PathOf("ann"), () => gone.LeaderChanged += leader => { }, () => gone.DataReceived += message => { },
        };
        for (int index = 0; index < calls.Length; index++)
        {
            int code = CodeOf(calls[index]);
            Must(code == ErrorCode.NotInitialized, "call " + index + " on a room that is gone: " + code);
        }
        Must(!gone.IsLeader && gone.RoundTripMs("ann") == -1 && gone.StatusOf("ann") == PeerStatus.Unknown && gone.AddressOf("ann") == null
            && gone.IndexOf("ann") == 0, "answers of a room that is gone");
    }

    // On the library's thread: messages wait for the first handler of messages, whatever else is subscribed before.
    private static void Held(string session)
    {
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Poll = false;
        ManualResetEvent leads = new ManualResetEvent(false), again = new ManualResetEvent(false);
        List<string> views = new List<string>(), copies = new List<string>();
        using (Room room = Room.Join("ann", session, options))
        using (CountdownEvent all = new CountdownEvent(4))
        {
            room.LeaderChanged += leader => leads.Set();
            room.SendTo("ann", Encoding.UTF8.GetBytes("one"));
            room.SendTo("ann", new byte[0]);
            room.SetLeader("ann");
            Must(leads.WaitOne(EventMs), "no leader");
            room.LeadershipChanged += leading => again.Set();
            Must(again.WaitOne(EventMs), "the later handler has not received the present state");
            // One of them is there first, and takes the messages; the other gets those of later.
            room.DataReceived += message =>
            {
                views.Add(Encoding.UTF8.GetString(message.ToArray()));
                all.Signal();
            };
            for (Stopwatch clock = Stopwatch.StartNew(); all.CurrentCount > 2; Thread.Sleep(1))
            {
                Must(clock.ElapsedMilliseconds < EventMs, "the messages did not wait");
            }
            room.MessageReceived += message =>
            {
                copies.Add(Encoding.UTF8.GetString(message.Data));
                all.Signal();
            };
            room.SendTo("ann", Encoding.UTF8.GetBytes("two"));
            Must(all.Wait(EventMs), "a message for both");
        }
        Must(string.Join("|", views) == "one||two" && string.Join("|", copies) == "two", string.Join("|", views) + "; " + string.Join("|", copies));
    }

    // In poll mode: more messages than a queue holds wait for their first handler, and none runs after the room.
    private static void HeldInAQueue(string session)
    {
        const int Count = 5000;
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Settings.SendQueueCapacity = 2 * Count;
        int next = 0;
        using (Room ann = Room.Join("ann", session + "-held", options))
        using (Room bob = Room.Join("bob", session + "-held", options))
        {
            ann.HandlerFailed += exception => violation = exception.ToString();
            ann.Changed += e => { };
            ann.Connect(bob.LocalAddress);
            Action<Func<bool>, string> until = (holds, what) =>
            {
                for (Stopwatch clock = Stopwatch.StartNew(); !holds(); Thread.Sleep(1))
                {
                    Must(clock.ElapsedMilliseconds < EventMs, "not in time: " + what + "; " + next + " messages");
                    ann.Poll();
                    bob.Poll();
                }
            };
            until(() => bob.Peers.Length == 1, "ann");
            for (int sent = 0; sent < Count; sent++)
            {
                bob.SendTo("ann", BitConverter.GetBytes(sent));
            }
            // Time for those to arrive for which there is room.
            for (Stopwatch clock = Stopwatch.StartNew(); clock.ElapsedMilliseconds < 300; Thread.Sleep(10))
            {
                ann.Poll();
            }
            ann.MessageReceived += message =>
            {
                Must(BitConverter.ToInt32(message.Data, 0) == next, "a message is lost or came twice: " + next);
                next++;
            };
            until(() => next == Count, "every message");
            bob.SendTo("ann", BitConverter.GetBytes(Count));
            until(() => ann.StatsOf("bob").MessagesReceived > Count || next > Count, "the last message");
            int before = next;
            ann.Dispose();
            Must(CodeOf(() => ann.Poll()) == ErrorCode.NotInitialized && next == before, "a message after Dispose");
        }
    }

    // The library's references to rooms end with the rooms.
    private static void Collected(string session)
    {
        List<WeakReference> rooms = new List<WeakReference>();
        for (int index = 0; index < 10; index++)
        {
            OpenAndClose(rooms, session);
        }
        int alive = rooms.Count;
        for (int round = 0; round < 20 && alive > 2; round++)
        {
            Usage();
            alive = rooms.FindAll(room => room.IsAlive).Count;
        }
        // The stack may still show the garbage collector some of them.
        Must(alive <= 2, alive + " rooms are never collected");
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private static void OpenAndClose(List<WeakReference> rooms, string session)
    {
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        using (Room room = Room.Join("ann", session, options))
        {
            room.Happened += e => { };
            room.SendTo("ann", new byte[1]);
            room.Poll();
            room.LeaderChanged += leader => { };
            rooms.Add(new WeakReference(room));
        }
        Must(CodeOf(() => Room.Join("", session, options)) == ErrorCode.InvalidArgument, "an empty id");
    }

    // A seed alone: its options, queries about its cluster, and a handler for one type of messages.
    private static void Seeded()
    {
        string session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-seeded";
        string directory = Path.Combine(Path.GetTempPath(), session);
        Directory.CreateDirectory(directory);
        try
        {
            RoomOptions options = new RoomOptions();
            options.BindAddress = "127.0.0.1";
            options.StateDirectory = directory;
            options.QuorumRoster = new[] { "main" };
            options.Settings.Strategy = ElectionStrategy.Seeded;
            Must(CodeOf(() => SeededOptions.Default((SeededProfile)2)) == ErrorCode.InvalidArgument, "a profile that is none");
            SeededOptions seeded = SeededOptions.Default(SeededProfile.Lan);
            Must(seeded.HeartbeatTimeoutMs == 600 && seeded.TtlTimeoutMs == 1500, "the intervals of the profile");
            seeded.IsSeed = 1;
            options.Seeded = seeded;
            options.Seeds = new[] { "localhost:9", "[::1]:9" };
            Must(CodeOf(() => Room.Join("other", session, options)) == ErrorCode.InvalidArgument, "a seed without a vote");
            using (Room room = Room.Join("main", session, options))
            {
                string states = "";
                List<string> messages = new List<string>(), typed = new List<string>();
                room.Happened += e =>
                {
                    if (e is MemberStateChanged change)
                    {
                        states += change.Peer + " " + change.State.Describe() + " " + change.Version + "\n";
                    }
                };
                Action<Message> general = message => messages.Add(Encoding.UTF8.GetString(message.Data));
                room.OnType(0x0123, message => typed.Add(Encoding.UTF8.GetString(message.Data)));
                room.MessageReceived += general;
                Stopwatch clock = Stopwatch.StartNew();
                Action<Func<bool>, string> until = (holds, what) =>
                {
                    while (!holds())
                    {
                        Must(clock.ElapsedMilliseconds < EventMs, "not in time: " + what + "; states: " + states);
                        room.Poll();
                        Thread.Sleep(2);
                    }
                };
                until(() => room.IsLeader, "a seed that is alone leads");
                until(() => states == "main joining 1\nmain active 1\n", "its states");
                Must(room.ElectionStrategy == ElectionStrategy.Seeded, "another strategy");
                Must(room.StateOf("main") == MemberState.Active && room.StateOf("unknown") == MemberState.Init, "StateOf");
                Must(room.ClusterVersion == 1, "ClusterVersion");
                Must(CodeOf(() => room.SetLeader("main")) == ErrorCode.NotSupported, "SetLeader");
                room.SendTo("main", Encoding.UTF8.GetBytes("one"), 0x0123);
                room.SendTo("main", Encoding.UTF8.GetBytes("two"), 0x0124);
                until(() => messages.Count == 1, "a message of another type");
                Must(string.Join(" ", typed) == "one" && messages[0] == "two", "the types are mixed up");
                room.MessageReceived -= general;
                room.SendTo("main", Encoding.UTF8.GetBytes("three"), 0x0123);
                until(() => typed.Count == 2, "a message of the type without another handler");
                room.MessageReceived += general;
                room.OnType(0x0123, null);
                room.SendTo("main", Encoding.UTF8.GetBytes("four"), 0x0123);
                until(() => messages.Count == 2, "a message of the type without its handler");
                Must(string.Join(" ", typed) == "one three" && messages[1] == "four", "the types are mixed up");
            }
        }
        finally
        {
            Directory.Delete(directory, true);
        }
    }

    // The options of the etcd strategy, with endpoints without a server, in builds that have it; and its calls in a room without
    // it.
    private static void ByEtcd()
    {
        string session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-etcd";
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        using (Room room = Room.Join("main", session, options))
        {
            Must(room.FencingToken == -1, "a token without etcd");
            Must(CodeOf(() => room.Proclaim("here")) == ErrorCode.NotSupported, "Proclaim");
            Must(CodeOf(() => room.AcquireLock("door", 100)) == ErrorCode.NotSupported, "AcquireLock");
            Must(CodeOf(() => room.TryLock("")) == ErrorCode.InvalidArgument, "TryLock");
            Must(CodeOf(() => room.ReleaseLock("door")) == ErrorCode.NotSupported, "ReleaseLock");
        }
        options.Settings.Strategy = ElectionStrategy.Etcd;
        EtcdSettings etcd = new EtcdSettings();
        Must(etcd.Settings.TtlSeconds == 10, "the default time to live");
        etcd.Endpoints = new[] { "http://127.0.0.1:9", "http://[::1]:9" };
        etcd.Prefix = "rooms/lobby";
        etcd.Address = "play.example.org:4433";
        options.Etcd = etcd;
        try
        {
            using (Room room = Room.Join("main", session, options))
            {
                Must(room.ElectionStrategy == ElectionStrategy.Etcd, "another strategy");
                Must(room.FencingToken == 0 && !room.IsLeader, "a leader without etcd");
                ulong first = room.TryLock("door");
                Must(first > 0 && room.AcquireLock("window", 100) > first, "the numbers of lock calls");
                room.ReleaseLock("window");
            }
        }
        catch (NetworkException exception)
        {
            Must(exception.Code == ErrorCode.NotSupported, exception.Message);
            return;
        }
        etcd.Prefix = "rooms/";
        Must(CodeOf(() => Room.Join("main", session, options)) == ErrorCode.InvalidArgument, "a prefix with a slash at its end");
    }

    private static void Layout()
    {
        SortedSet<string> own = new SortedSet<string>(StringComparer.Ordinal);
        foreach (Type type in new[] { typeof(NetworkConfig), typeof(NetworkOptions), typeof(NetworkEvent), typeof(PeerStats), typeof(RoomStats), typeof(SendOptions),
            typeof(GossipWindows), typeof(SeededOptions), typeof(EtcdOptions), typeof(Card), typeof(BrowseOptions), typeof(ListedRoom),
            typeof(StateOptions), typeof(PropertyChange), typeof(MetaMystia.Network.PropertyInfo), typeof(StateInfo) })
        {
            string name = type == typeof(NetworkConfig) ? "NetworkConfigFFI"
                : type == typeof(NetworkOptions) ? "MmnOptions"
                : type == typeof(NetworkEvent) ? "MmnEvent"
                : "Mmn" + type.Name;
            own.Add(name + " " + Marshal.SizeOf(type));
            foreach (FieldInfo field in type.GetFields(BindingFlags.Instance | BindingFlags.Public))
            {
                StringBuilder snake = new StringBuilder();
                foreach (char letter in field.Name == "MessageType" ? "MsgType" : field.Name == "DropFunction" ? "DropFn" : field.Name)
                {
                    snake.Append(char.IsUpper(letter) && snake.Length > 0 ? "_" : "").Append(char.ToLowerInvariant(letter));
                }
                own.Add(name + "." + snake + " " + Marshal.OffsetOf(type, field.Name));
            }
        }
        string[] header = File.ReadAllLines(Environment.GetEnvironmentVariable("MMN_LAYOUT"));
        Must(own.SetEquals(header), "the structs are not those of the header: " + string.Join(", ", own));
    }

    // ---------------------------------------------------------------- helpers

    private static void Must(bool holds, string text)
    {
        if (!holds)
        {
            throw new InvalidOperationException(text + "; last error: " + Utf8.FromNative(NativeMethods.mmn_last_error_message()));
        }
    }

    private static void NoViolation()
    {
        if (violation != null)
        {
            throw new InvalidOperationException(violation);
        }
    }

    private static int CodeOf(Action call)
    {
        try
        {
            call();
            return 0;
        }
        catch (NetworkException exception)
        {
            // A sentence, without names of C.
            Must(exception.Message.Length > 0, "an error without a sentence");
            Must(!exception.Message.Contains("mmn_") && !exception.Message.Contains("MMN_"), exception.Message);
            return exception.Code;
        }
    }

    private static void WaitForCompany(Room room)
    {
        Stopwatch clock = Stopwatch.StartNew();
        while (room.Peers.Length == 0 || room.Leader == null)
        {
            Must(clock.ElapsedMilliseconds < EventMs, "no partner or no leader in time");
            Thread.Sleep(1);
        }
    }

    // This program in a second process; ends with this object, and with its parent at the latest.
    private sealed class Partner : IDisposable
    {
        private static int number;
        private readonly Process process;

        public readonly string Session;
        public readonly string Address;

        public Partner(bool floods)
        {
            Session = "survive-csharp-" + Process.GetCurrentProcess().Id + "-" + ++number;
            ProcessStartInfo start = new ProcessStartInfo();
            // The runtime of this program: mono, or dotnet.
            start.FileName = Process.GetCurrentProcess().MainModule.FileName;
            start.Arguments = "\"" + Assembly.GetExecutingAssembly().Location + "\" --partner " + Session + (floods ? " flood" : " quiet");
            start.UseShellExecute = false;
            start.RedirectStandardInput = true;
            start.RedirectStandardOutput = true;
            process = Process.Start(start);
            Address = process.StandardOutput.ReadLine();
            Must(!string.IsNullOrEmpty(Address), "the partner did not start");
        }

        public void Dispose()
        {
            process.StandardInput.Close();
            process.WaitForExit();
            process.Dispose();
        }

        public static int Run(string session, bool floods)
        {
            Room room = Room.Join("partner", session);
            room.MessageReceived += message => { };
            Thread talk = new Thread(() =>
            {
                for (int count = 1; floods; count++)
                {
                    // The queues must stay full; pauses leave the machine usable for the tested side.
                    byte[] data = new byte[64];
                    if (room.Peers.Length == 0 || room.TryBroadcast(data) != ErrorCode.Ok || count % 32 == 0)
                    {
                        Thread.Sleep(1);
                    }
                }
            });
            talk.IsBackground = true;
            talk.Start();
            Console.WriteLine(room.LocalAddress);
            while (Console.In.Read() >= 0)
            {
            }
            // As sudden as a crash: this does not test a regular leave.
            Process.GetCurrentProcess().Kill();
            return 0;
        }
    }
}
