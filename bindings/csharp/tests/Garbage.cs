// Counts the managed memory that a message costs, in real rooms over loopback, with a second process of this program that sends
// every message back: the copies of MessageReceived and Happened, and nothing for DataReceived and the sends. Prints a line for
// each, and exits with 0 only when all are as required.
//
//   mcs -langversion:7 -unsafe -d:MMN_SPAN -out:Garbage.exe bindings/csharp/tests/Garbage.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Garbage.exe

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;
using MetaMystia.Network;

internal static class Garbage
{
    private const int WarmUp = 2000, Counted = 20000, Window = 256, PayloadBytes = 48, TimeoutMs = 50000;
    private const byte Echoed = 2; // a flag: bit 0 is the library's
    private const int NoRecipient = -1; // result of a send that returns the number of recipients
    private const long CopyCosts = 64; // at least, in bytes, for the array of a message: a smaller result means that the counter does not count

    private static readonly byte[] Data = new byte[PayloadBytes + 32];
    private static readonly AutoResetEvent Returned = new AutoResetEvent(false);

    // Counters of the handlers, on their thread. They run one at a time.
    private static int received;
    private static int receiver; // its managed thread id
    private static long atStart, atEnd;
    private static long spentOnSends; // on the same thread as the handlers, in poll mode
    private static Exception failure;

    private static int Main(string[] arguments)
    {
        if (arguments.Length == 3 && arguments[0] == "--partner")
        {
            return Echo(arguments[1], arguments[2]);
        }
        try
        {
            // Checks that the counter counts to the byte.
            long before = GC.GetAllocatedBytesForCurrentThread();
            byte[] kept = new byte[1000];
            long counted = GC.GetAllocatedBytesForCurrentThread() - before;
            GC.KeepAlive(kept);
            Must(counted >= 1000 && counted < 1100, "an array of 1000 bytes counts as " + counted);

            foreach (bool poll in new[] { true, false })
            {
                string mode = poll ? "poll" : "thread";
                Action<Room> messages = room => room.MessageReceived += message => Received();
                Action<Room> events = room => room.Happened += e => ReceivedIf(e is Message);
                Action<Room> views = room => room.DataReceived += OnView;
                Must(Receive(mode + ", MessageReceived", poll, messages) >= CopyCosts, "copies are free");
                Must(Receive(mode + ", Happened", poll, events) >= CopyCosts, "copies are free");
                Must(Receive(mode + ", DataReceived", poll, views) == 0, "DataReceived allocates");
            }
            Sends();
            Console.WriteLine("ok garbage");
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED: " + exception);
            return 1;
        }
    }

    private static readonly byte[] Copy = new byte[PayloadBytes];

    // Typical use of a view by a game.
    private static void OnView(MessageView message)
    {
        message.CopyTo(Copy);
        if (message.Length != PayloadBytes || message[7] != 7 || Copy[47] != 47 || message.Type != 0x0123 || message.Flags != Echoed
            || (message.From != "partner" && message.From != "main"))
        {
            failure = failure ?? new InvalidOperationException("a damaged message from " + message.From);
        }
#if MMN_SPAN
        ReadOnlySpan<byte> span = message.Span;
        if (span.Length != PayloadBytes || span[47] != 47)
        {
            failure = failure ?? new InvalidOperationException("another span");
        }
#endif
        Received();
    }

    private static void ReceivedIf(bool isMessage)
    {
        if (isMessage)
        {
            Received();
        }
    }

    private static void Received()
    {
        received++;
        if (received == WarmUp)
        {
            receiver = Thread.CurrentThread.ManagedThreadId;
            Volatile.Write(ref spentOnSends, 0);
            atStart = GC.GetAllocatedBytesForCurrentThread();
        }
        if (received == WarmUp + Counted)
        {
            atEnd = GC.GetAllocatedBytesForCurrentThread();
            if (receiver != Thread.CurrentThread.ManagedThreadId)
            {
                failure = failure ?? new InvalidOperationException("the handlers ran on several threads");
            }
        }
        Returned.Set();
    }

    // The messages alternate between two members, so that the sender's name is looked up. Returns the bytes per message,
    // rounded up.
    private static long Receive(string what, bool poll, Action<Room> subscribe)
    {
        received = 0;
        spentOnSends = 0;
        failure = null;
        for (int index = 0; index < Data.Length; index++)
        {
            Data[index] = (byte)(index - 16);
        }
        string session = "garbage-" + Process.GetCurrentProcess().Id + "-" + what.Replace(' ', '-');
        using (Partner partner = new Partner(session))
        using (Room room = Join("main", session, poll))
        {
            room.HandlerFailed += exception => failure = exception;
            subscribe(room);
            room.Connect(partner.Address);
            WaitForPartner(room);
            ArraySegment<byte> part = new ArraySegment<byte>(Data, 16, PayloadBytes);
            Stopwatch clock = Stopwatch.StartNew();
            int sent = 0;
            while (received < WarmUp + Counted)
            {
                long before = GC.GetAllocatedBytesForCurrentThread();
                while (sent < WarmUp + Counted && sent - Volatile.Read(ref received) < Window)
                {
                    int code = room.TrySendTo(sent % 2 == 0 ? "partner" : "main", part, 0x0123, Echoed);
                    if (code != ErrorCode.Ok)
                    {
                        throw new InvalidOperationException("a send in the window was answered " + code);
                    }
                    sent++;
                }
                if (poll)
                {
                    spentOnSends += GC.GetAllocatedBytesForCurrentThread() - before;
                    if (room.Poll() == 0)
                    {
                        Thread.Yield();
                    }
                }
                else
                {
                    Returned.WaitOne(100);
                }
                // The text is made only on failure, because its memory would count.
                if (clock.ElapsedMilliseconds > TimeoutMs)
                {
                    throw new TimeoutException("only " + received + " of " + sent + " messages came in time");
                }
                if (failure != null)
                {
                    throw failure;
                }
            }
        }
        long spent = atEnd - atStart - (poll ? spentOnSends : 0);
        Console.WriteLine("receive, {0}: {1:0.00} bytes a message", what, (double)spent / Counted);
        Must(spent >= 0, "less than nothing was counted");
        return (spent + Counted - 1) / Counted;
    }

    private static void Sends()
    {
        string session = "garbage-" + Process.GetCurrentProcess().Id + "-sends";
        using (Partner partner = new Partner(session))
        using (Room room = Join("main", session, true))
        {
            room.DataReceived += message => { };
            room.Connect(partner.Address);
            WaitForPartner(room);
            for (Stopwatch clock = Stopwatch.StartNew(); !room.IsLeader && room.Leader == null; room.Poll())
            {
                Must(clock.ElapsedMilliseconds < TimeoutMs, "no leader");
                Thread.Sleep(1);
            }
            ArraySegment<byte> part = new ArraySegment<byte>(Data, 16, PayloadBytes);
            GCHandle pinned = GCHandle.Alloc(Data, GCHandleType.Pinned);
            IntPtr native = pinned.AddrOfPinnedObject();
            SendOptions options = new SendOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(SendOptions));
            long control = Send(room, "mmn_send(Utf8.ToNative(id))",
                () => NativeMethods.mmn_send(room.Handle, Utf8.ToNative("partner"), Data, PayloadBytes, 0x0123, ref options));
            Must(control > 0, "the text of an id is free");
            KeyValuePair<string, Func<int>>[] sends =
            {
                Named("SendTo(byte[])", () => { room.SendTo("partner", Data); return 0; }),
                Named("TrySendTo(ArraySegment)", () => room.TrySendTo("partner", part)),
                Named("TrySendTo(IntPtr, sequenced)", () => room.TrySendTo("partner", new Payload(native, PayloadBytes), Delivery.Sequenced(7))),
                Named("Broadcast(byte[])", () => { room.Broadcast(Data); return 0; }),
                Named("TryBroadcast(part)", () => room.TryBroadcast(new Payload(Data, 16, PayloadBytes))),
                Named("TryBroadcast(unreliable)", () => room.TryBroadcast(part, Delivery.Unreliable(3))),
                Named("BroadcastPartial", () => room.BroadcastPartial(part, Delivery.ReliableOrdered(5)) + NoRecipient),
                Named("BroadcastExcept(self)", () => room.BroadcastExcept("main", part) + NoRecipient),
                Named("BroadcastExcept(partner)", () => room.BroadcastExcept("partner", part)),
                Named("TrySendToLeader", () => room.TrySendToLeader(part)),
                Named("MaxDatagramSize", () => room.MaxDatagramSize("partner") > 0 ? 0 : ErrorCode.PeerNotFound),
            };
            foreach (KeyValuePair<string, Func<int>> send in sends)
            {
                Must(Send(room, send.Key, send.Value) == 0, send.Key + " allocates");
            }
            // Sends that only a leader may make.
            room.SetLeader("main");
            for (Stopwatch clock = Stopwatch.StartNew(); !room.IsLeader; room.Poll())
            {
                Must(clock.ElapsedMilliseconds < TimeoutMs, "not the leader");
                Thread.Sleep(1);
            }
            Must(Send(room, "TrySendFromLeader", () => room.TrySendFromLeader(part)) == 0, "TrySendFromLeader allocates");
            Must(Send(room, "TryForward", () => room.TryForward("main", "partner", part)) == 0, "TryForward allocates");
            pinned.Free();
        }
    }

    private static KeyValuePair<string, Func<int>> Named(string name, Func<int> send)
    {
        return new KeyValuePair<string, Func<int>>(name, send);
    }

    private static long Send(Room room, string what, Func<int> send)
    {
        const int warmUp = 500, counted = 10000;
        long spent = 0, calls = 0;
        Stopwatch clock = Stopwatch.StartNew();
        for (int number = 0; number < warmUp + counted;)
        {
            try
            {
                long before = GC.GetAllocatedBytesForCurrentThread();
                int code = send();
                // A full queue costs nothing either, as long as no exception is thrown.
                if (number >= warmUp)
                {
                    spent += GC.GetAllocatedBytesForCurrentThread() - before;
                    calls++;
                }
                Must(code == ErrorCode.Ok || code == ErrorCode.SendQueueFull || code == NoRecipient, what + " was answered " + code);
                number += code == ErrorCode.Ok ? 1 : 0;
            }
            catch (NetworkException exception)
            {
                Must(exception.Code == ErrorCode.SendQueueFull, exception.Message);
                Thread.Yield();
            }
            room.Poll();
            Must(clock.ElapsedMilliseconds < TimeoutMs, what + " takes too long");
        }
        Console.WriteLine("send, {0}: {1:0.00} bytes", what, (double)spent / calls);
        return (spent + calls - 1) / calls;
    }

    private static Room Join(string id, string session, bool poll)
    {
        RoomOptions options = new RoomOptions();
        options.BindAddress = "127.0.0.1";
        options.Poll = poll;
        // A busy machine must not look like a lost link.
        options.Settings.HeartbeatTimeoutMultiplier = 20;
        return Room.Join(id, session, options);
    }

    private static void WaitForPartner(Room room)
    {
        for (Stopwatch clock = Stopwatch.StartNew(); room.Peers.Length == 0; Thread.Sleep(1))
        {
            Must(clock.ElapsedMilliseconds < TimeoutMs, "no partner");
        }
    }

    private static void Must(bool holds, string what)
    {
        if (!holds)
        {
            throw new InvalidOperationException(what);
        }
    }

    // Sends everything back until its parent ends.
    private static int Echo(string id, string session)
    {
        using (Room room = Join(id, session, false))
        {
            room.DataReceived += message =>
            {
                // The sender leaves without a word, and messages for the count of its sends need no echo.
                if (message.Type == 0x0123 && message.Flags == Echoed)
                {
                    room.TrySendTo(message.From, message.Payload, message.Type, message.Flags);
                }
            };
            Console.WriteLine(room.LocalAddress);
            while (Console.In.Read() >= 0)
            {
            }
        }
        return 0;
    }

    private sealed class Partner : IDisposable
    {
        private readonly Process process;

        internal readonly string Address;

        internal Partner(string session)
        {
            ProcessStartInfo start = new ProcessStartInfo();
            // The runtime of this program: mono, or dotnet.
            start.FileName = Process.GetCurrentProcess().MainModule.FileName;
            start.Arguments = "\"" + Assembly.GetExecutingAssembly().Location + "\" --partner partner " + session;
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
    }
}
