// delivery.c in C#, for Mono and CoreCLR.
//
//   mcs -langversion:7 -out:Delivery.exe tests/hosts/delivery/Delivery.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Delivery.exe ID SESSION [ADDRESS OF THE FIRST]

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using MetaMystia.Network;

internal sealed class Failed : Exception
{
    internal Failed(string what) : base(what)
    {
    }
}

internal sealed class Peer
{
    internal const int Keys = 2, Reliable = 100, Loose = 20;

    internal readonly HashSet<int>[] Seen = { new HashSet<int>(), new HashSet<int>(), new HashSet<int>(), new HashSet<int>() };
    internal readonly int[] Newest = Enumerable.Repeat(-1, Keys).ToArray(); // of the sequenced messages
    internal bool Answered;  // knows that this member has received enough
    internal bool Satisfied; // has received enough from this member

    internal bool Enough
    {
        get { return Seen[0].Count == Reliable && Seen[1].Count == Reliable && Seen[2].Count >= Loose && Seen[3].Count >= Loose; }
    }
}

internal sealed class Member
{
    private const ushort Numbered = Room.FirstUserType, Enough = Room.FirstUserType + 1, TooLong = Room.FirstUserType + 2;
    private const int AllPeers = 3, LeastDatagram = 1100, LooseEveryMs = 20, TimeoutMs = 60000;
    private const uint LagMs = 10, JitterMs = 100, LossPermille = 20;
    private static readonly byte[] Channels = { 1, 128, 200, 255 };

    private readonly Room room;
    private readonly Dictionary<string, Peer> peers = new Dictionary<string, Peer>();
    private Exception failure; // of a handler
    internal bool Done;

    internal Member(Room room)
    {
        this.room = room;
        room.HandlerFailed += exception => failure = failure ?? exception;
        room.Happened += OnEvent;
    }

    // Runs until the input ends.
    internal void Run(WaitHandle inputEnded)
    {
        Stopwatch clock = Stopwatch.StartNew();
        long? next = null;
        for (int number = 0; !inputEnded.WaitOne(5);)
        {
            room.Poll();
            if (failure != null)
            {
                throw failure;
            }
            if (next == null && peers.Count == AllPeers)
            {
                // From here on packets are lost and reordered.
                room.SimulateNetwork(LagMs, JitterMs, LossPermille);
                SendReliable();
                Refusals();
                next = clock.ElapsedMilliseconds;
            }
            if (next <= clock.ElapsedMilliseconds && !peers.Values.All(peer => peer.Satisfied))
            {
                Send(DeliveryMode.Unreliable, number);
                Send(DeliveryMode.Sequenced, number);
                number++;
                next = clock.ElapsedMilliseconds + LooseEveryMs;
            }
            foreach (KeyValuePair<string, Peer> entry in peers)
            {
                if (!entry.Value.Answered && entry.Value.Enough)
                {
                    room.SendTo(entry.Key, new byte[0], Enough);
                    entry.Value.Answered = true;
                }
            }
            string lack = Lack();
            if (lack == null && !Done)
            {
                Done = true;
                Console.WriteLine("OK");
            }
            Must(lack == null || clock.ElapsedMilliseconds < TimeoutMs, "not within " + TimeoutMs / 1000 + " s: " + lack);
        }
    }

    private void OnEvent(RoomEvent e)
    {
        if (e is PeerJoined joined)
        {
            peers.Add(joined.Peer, new Peer());
            Must(peers.Count <= AllPeers, joined.Peer + " is one member too many");
        }
        else if (e is PeerLeft left)
        {
            Must(Done, left.Peer + " left too early");
        }
        else if (e is Message message)
        {
            OnMessage(message);
        }
    }

    private void OnMessage(Message message)
    {
        Must(message.Type == Numbered || message.Type == Enough, "a message of type " + message.Type + " from " + message.From);
        if (message.Type == Numbered)
        {
            OnNumbered(peers[message.From], message);
            return;
        }
        Must(message.Delivery == DeliveryMode.ReliableOrdered && message.Channel == 0,
            "a classic send of " + message.From + " has delivery " + message.Delivery + " and channel " + message.Channel);
        peers[message.From].Satisfied = true;
    }

    private static void OnNumbered(Peer peer, Message message)
    {
        string text = Encoding.UTF8.GetString(message.Data);
        string what = text + " from " + message.From;
        string[] words = text.Split(' ');
        int delivery = int.Parse(words[0], CultureInfo.InvariantCulture), number = int.Parse(words[1], CultureInfo.InvariantCulture);
        Must((int)message.Delivery == delivery, what + " has delivery " + message.Delivery);
        Must(message.Channel == Channels[delivery], what + " came on channel " + message.Channel);
        int before = peer.Seen[delivery].Count;
        Must(peer.Seen[delivery].Add(number), what + " came twice");
        if (message.Delivery == DeliveryMode.ReliableOrdered)
        {
            Must(number == before, what + " came after " + before + " others");
        }
        if (message.Delivery == DeliveryMode.Sequenced)
        {
            int key = number % Peer.Keys;
            Must(number > peer.Newest[key], what + " came after " + peer.Newest[key]);
            peer.Newest[key] = number;
        }
    }

    private static Delivery DeliveryOf(DeliveryMode delivery, int number)
    {
        byte channel = Channels[(int)delivery];
        switch (delivery)
        {
            case DeliveryMode.ReliableOrdered:
                return Delivery.ReliableOrdered(channel);
            case DeliveryMode.ReliableUnordered:
                return Delivery.ReliableUnordered(channel);
            case DeliveryMode.Unreliable:
                return Delivery.Unreliable(channel);
            default:
                return Delivery.Sequenced((ulong)(number % Peer.Keys), channel);
        }
    }

    private static byte[] DataOf(DeliveryMode delivery, int number)
    {
        return Encoding.UTF8.GetBytes((int)delivery + " " + number);
    }

    private void Send(DeliveryMode delivery, int number)
    {
        if (number % 2 == 0)
        {
            room.Broadcast(DataOf(delivery, number), DeliveryOf(delivery, number), Numbered);
            return;
        }
        foreach (string peer in peers.Keys)
        {
            room.SendTo(peer, DataOf(delivery, number), DeliveryOf(delivery, number), Numbered);
        }
    }

    private void SendReliable()
    {
        DeliveryMode[] both = { DeliveryMode.ReliableOrdered, DeliveryMode.ReliableUnordered };
        for (int number = 0; number < Peer.Reliable - 1; number++)
        {
            foreach (DeliveryMode delivery in both)
            {
                Send(delivery, number);
            }
        }
        foreach (DeliveryMode delivery in both)
        {
            int took = room.BroadcastPartial(DataOf(delivery, Peer.Reliable - 1), DeliveryOf(delivery, 0), Numbered);
            Must(took == AllPeers, "a broadcast in part went to " + took + " members");
        }
    }

    private void Refusals()
    {
        Delivery unreliable = DeliveryOf(DeliveryMode.Unreliable, 0);
        TooLongIsRefused(null, data => room.Broadcast(data, unreliable, TooLong));
        foreach (string peer in peers.Keys)
        {
            TooLongIsRefused(peer, data => room.SendTo(peer, data, unreliable, TooLong));
        }
        // The struct Delivery has no invalid value, but the library's functions accept any number.
        SendOptions unknown = new SendOptions();
        unknown.StructSize = (uint)Marshal.SizeOf(typeof(SendOptions));
        unknown.Delivery = (DeliveryMode)7;
        int code = NativeMethods.mmn_broadcast(room.Handle, new byte[1], 1, TooLong, ref unknown);
        Must(code == ErrorCode.InvalidArgument, "delivery 7 was answered " + code);
    }

    private void TooLongIsRefused(string peer, Action<byte[]> send)
    {
        while (true)
        {
            int size = room.MaxDatagramSize(peer);
            Must(size >= LeastDatagram, "the longest datagram has " + size + " bytes");
            try
            {
                send(new byte[size + 1]);
            }
            catch (NetworkException refused) when (refused.Code == ErrorCode.MessageTooLarge)
            {
                return;
            }
            // Path MTU discovery may have raised the link's limit meanwhile.
            Must(room.MaxDatagramSize(peer) > size, "a datagram that is too long was not refused");
        }
    }

    // The first thing that is missing; null when everything has arrived.
    private string Lack()
    {
        if (peers.Count < AllPeers)
        {
            return "members are missing";
        }
        foreach (KeyValuePair<string, Peer> entry in peers)
        {
            HashSet<int>[] seen = entry.Value.Seen;
            if (!entry.Value.Enough || !entry.Value.Satisfied)
            {
                return "from " + entry.Key + " came " + seen[0].Count + " ordered, " + seen[1].Count + " unordered, " + seen[2].Count
                    + " unreliable, " + seen[3].Count + " sequenced; it has " + (entry.Value.Satisfied ? "enough" : "not enough");
            }
        }
        return null;
    }

    private static void Must(bool holds, string what)
    {
        if (!holds)
        {
            throw new Failed(what);
        }
    }
}

internal static class Program
{
    private static int Main(string[] arguments)
    {
        if (arguments.Length < 2)
        {
            Console.Error.WriteLine("usage: Delivery ID SESSION [ADDRESS]");
            return 2;
        }
        ManualResetEvent inputEnded = new ManualResetEvent(false);
        Thread reader = new Thread(() =>
        {
            while (Console.In.Read() >= 0)
            {
            }
            inputEnded.Set();
        });
        reader.IsBackground = true;
        reader.Start();
        try
        {
            RoomOptions options = new RoomOptions();
            options.Settings.DiscoveryMode = DiscoveryMode.Off;
            // A busy machine must not look like a lost link.
            options.Settings.HeartbeatTimeoutMultiplier = 20;
            using (Room room = Room.Join(arguments[0], arguments[1], options))
            {
                Member member = new Member(room);
                Console.WriteLine("address " + room.LocalAddress);
                if (arguments.Length > 2)
                {
                    room.Connect(arguments[2]);
                }
                member.Run(inputEnded);
                return member.Done ? 0 : 1;
            }
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }
}
