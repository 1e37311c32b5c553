// A host of the published library, as a mod has it: its own declarations of the 38 classic functions, the struct of
// 44 bytes and the five callbacks, and nothing else. Three of these processes run one script together; each checks every
// answer, prints "OK" and exits with 0 only when every step passed.
//
//   mcs -langversion:7 -warnaserror -out:Classic.exe tests/hosts/classic/Classic.cs
//   mono Classic.exe SESSION 0                the first; prints "address A"
//   mono Classic.exe SESSION 1 A              the second
//   mono Classic.exe SESSION 2 A              the third; prints "pause me", and must then be stopped for some seconds
//
// C# 7.0, for Mono's compiler and for the runtimes inside games.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

internal static class Native
{
    private const string Library = "meta_mystia_network";

    // Text is NUL-terminated UTF-8, by hand: the runtimes' own marshalling means the ANSI code page on some of them.
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int InitializeNetwork(byte[] peer, byte[] session);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int InitializeNetworkWithConfig(byte[] peer, byte[] session, ref Config config);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int ShutdownNetwork();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsNetworkInitialized();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsMdnsActive();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int GetLastErrorCode();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetLastErrorMessage();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int ConnectToPeer(byte[] address);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int DisconnectPeer(byte[] peer);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetLocalAddr();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetLocalPeerId();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetSessionId();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int GetPeerCount();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetPeerList();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int GetPeerRTT(byte[] peer);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int GetPeerStatus(byte[] peer);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SetLeader(byte[] peer);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int EnableAutoLeaderElection(byte enabled);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr GetCurrentLeader();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsLeader();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SetCentralizedMode(byte enabled);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsCentralizedMode();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SetCentralizedAutoForward(byte enabled);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsCentralizedAutoForward();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SetCompressionThreshold(uint bytes);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int BroadcastMessage(byte[] data, int length, ushort type, byte flags);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SendToPeer(byte[] peer, byte[] data, int length, ushort type, byte flags);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SendToLeader(byte[] data, int length, ushort type, byte flags);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SendFromLeader(byte[] data, int length, ushort type, byte flags);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int ForwardMessage(byte[] from, byte[] to, byte[] data, int length, ushort type, byte flags);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int RegisterReceiveCallback(ReceiveFn callback);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int RegisterLeaderChangedCallback(LeaderFn callback);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int RegisterPeerStatusCallback(StatusFn callback);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int RegisterConnectionResultCallback(ResultFn callback);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int RegisterReconnectCallback(ReconnectFn callback);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int SetAutoReconnect(byte enabled);
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern byte IsAutoReconnectEnabled();
    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int EnableLogging(byte enabled);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal delegate void ReceiveFn(IntPtr peer, IntPtr data, int length, ushort type, byte flags);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal delegate void LeaderFn(IntPtr leader);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal delegate void StatusFn(IntPtr peer, int status);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal delegate void ResultFn(IntPtr address, byte success, int code);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal delegate void ReconnectFn(IntPtr peer, byte status);

    [StructLayout(LayoutKind.Sequential)]
    internal struct Config
    {
        internal uint ReconnectMaxMs, CompressionThreshold, MaxMessageSize;
        internal ushort HeartbeatIntervalMs, ElectionTimeoutMinMs, ElectionTimeoutMaxMs, ReconnectInitialMs;
        internal ushort HandshakeTimeoutMs, WriteTimeoutMs, SendQueueCapacity, IncomingQueueCapacity;
        internal ushort MaxConnections, KeepaliveTimeSecs, KeepaliveIntervalSecs, MdnsPort;
        internal byte HeartbeatTimeoutMultiplier, KeepaliveRetries, CentralizedAutoForward, AutoElectionEnabled;
        internal byte ManualOverrideRecovery, TcpNodelay, AutoReconnectEnabled, ReconnectMaxRetries;
    }
}

internal sealed class Failed : Exception
{
    internal Failed(string what) : base(what)
    {
    }
}

internal struct Message
{
    internal string From;
    internal byte[] Data;
    internal ushort Type;
    internal byte Flags;
}

internal static class Classic
{
    // Three scripts and an emoji beyond the basic plane; as UTF-8 bytes they sort in the order 1, 0, 2.
    private static readonly string[] Ids = { "茶馆-主持人", "Гость-№2", "🎲игрок三" };
    private const int MaxMessage = 262144;
    private const int WaitSeconds = 60;

    // Message types of the script.
    private const ushort Step = 0x0200, Ordered = 0x0101, Direct = 0x0102, ToLeader = 0x0103, FromLeader = 0x0104,
        Empty = 0x0105, Large = 0x0106, Noise = 0x0107, Bits = 0x0108, Address = 0x0109, Relayed = 0x0120,
        NotRelayed = 0x0121, ForwardedToAll = 0x0122, ForwardedToOne = 0x0123, ForwardedAsSelf = 0x0124, Compressed = 0x0130,
        ToSecondLeader = 0x0140, AfterThePause = 0x0150, Refuse = 0x0160, AfterTheReturn = 0x0170;

    private static int role;
    private static string session;
    private static string contact;

    // Records of the callbacks. Changed guards all of it.
    private static readonly object Changed = new object();
    private static readonly List<Message> Received = new List<Message>();
    private static readonly List<string> Leaders = new List<string>();
    private static readonly List<string> Statuses = new List<string>();
    private static readonly List<string> Results = new List<string>();
    private static readonly List<string> Reconnects = new List<string>();
    private static readonly List<string> Faults = new List<string>();
    private static int shutdownInCallback;

    // These keep the delegates alive: the library holds only their addresses.
    private static readonly Native.ReceiveFn ReceiveRoot = OnReceive;
    private static readonly Native.LeaderFn LeaderRoot = OnLeader;
    private static readonly Native.StatusFn StatusRoot = OnStatus;
    private static readonly Native.ResultFn ResultRoot = OnResult;
    private static readonly Native.ReconnectFn ReconnectRoot = OnReconnect;

    private static int Main(string[] arguments)
    {
        if (arguments.Length < 2)
        {
            Console.Error.WriteLine("usage: Classic SESSION ROLE [ADDRESS]");
            return 2;
        }
        session = arguments[0] + "-会话-сессия-🍵";
        role = int.Parse(arguments[1]);
        contact = arguments.Length > 2 ? arguments[2] : null;
        try
        {
            Play();
        }
        catch (Failed failed)
        {
            Console.Error.WriteLine("FAILED in " + role + ": " + failed.Message);
            lock (Changed)
            {
                Console.Error.WriteLine("  leaders: " + string.Join(", ", Leaders.ToArray()));
                Console.Error.WriteLine("  statuses: " + string.Join(", ", Statuses.ToArray()));
                Console.Error.WriteLine("  results: " + string.Join(", ", Results.ToArray()));
                Console.Error.WriteLine("  reconnects: " + string.Join(", ", Reconnects.ToArray()));
                Console.Error.WriteLine("  messages: " + Received.Count);
            }
            Environment.Exit(1);
        }
        Console.WriteLine("OK");
        return 0;
    }

    private static void Play()
    {
        Check(Marshal.SizeOf(typeof(Native.Config)) == 44, "the struct has 44 bytes");
        BeforeTheRoom();
        OpenTheRoom();
        Meet();
        AgreeOnTheFirst();
        SendEverything();
        Compress();
        Centralize();
        Forward();
        HandOver();
        LoseAndReturn();
        DisconnectAndReturn();
        LeaveTheRoom();
        lock (Changed)
        {
            Check(Faults.Count == 0, Faults.Count == 0 ? "" : Faults[0]);
        }
    }

    // ---------------------------------------------------------------- the script

    private static void BeforeTheRoom()
    {
        Equal(0, Native.IsNetworkInitialized(), "IsNetworkInitialized before");
        Equal(0, Native.IsMdnsActive(), "IsMdnsActive before");
        Equal(0, Native.GetLastErrorCode(), "GetLastErrorCode of a thread that never failed");
        Equal("", Text(Native.GetLastErrorMessage()), "GetLastErrorMessage of a thread that never failed");
        Equal(-1, Native.GetPeerCount(), "GetPeerCount before");
        Equal(-1, Native.GetLastErrorCode(), "GetLastErrorCode after that");
        Check(Text(Native.GetLastErrorMessage()).Length > 0, "the failure has a sentence");
        Check(Native.GetLocalAddr() == IntPtr.Zero, "GetLocalAddr is NULL before");
        Check(Native.GetLocalPeerId() == IntPtr.Zero, "GetLocalPeerId is NULL before");
        Check(Native.GetSessionId() == IntPtr.Zero, "GetSessionId is NULL before");
        Check(Native.GetPeerList() == IntPtr.Zero, "GetPeerList is NULL before");
        Check(Native.GetCurrentLeader() == IntPtr.Zero, "GetCurrentLeader is NULL before");
        Equal(-1, Native.GetPeerRTT(Id(0)), "GetPeerRTT before");
        Equal(-1, Native.GetPeerStatus(Id(0)), "GetPeerStatus before");
        Equal(0, Native.IsLeader(), "IsLeader before");
        Equal(0, Native.IsCentralizedMode(), "IsCentralizedMode before");
        Equal(0, Native.IsCentralizedAutoForward(), "IsCentralizedAutoForward before");
        Equal(0, Native.IsAutoReconnectEnabled(), "IsAutoReconnectEnabled before");
        Equal(-1, Native.ShutdownNetwork(), "ShutdownNetwork before");
        Equal(-1, Native.ConnectToPeer(Utf8("127.0.0.1:9")), "ConnectToPeer before");
        Equal(-1, Native.DisconnectPeer(Id(0)), "DisconnectPeer before");
        Equal(-1, Native.SetLeader(Id(0)), "SetLeader before");
        Equal(-1, Native.EnableAutoLeaderElection(1), "EnableAutoLeaderElection before");
        Equal(-1, Native.SetCentralizedMode(1), "SetCentralizedMode before");
        Equal(-1, Native.SetCentralizedAutoForward(1), "SetCentralizedAutoForward before");
        Equal(-1, Native.SetCompressionThreshold(1), "SetCompressionThreshold before");
        Equal(-1, Native.BroadcastMessage(null, 0, Ordered, 0), "BroadcastMessage before");
        Equal(-1, Native.SendToPeer(Id(0), null, 0, Ordered, 0), "SendToPeer before");
        Equal(-1, Native.SendToLeader(null, 0, Ordered, 0), "SendToLeader before");
        Equal(-1, Native.SendFromLeader(null, 0, Ordered, 0), "SendFromLeader before");
        Equal(-1, Native.ForwardMessage(Id(0), null, null, 0, Ordered, 0), "ForwardMessage before");
        Equal(-1, Native.RegisterReceiveCallback(ReceiveRoot), "RegisterReceiveCallback before");
        Equal(-1, Native.RegisterLeaderChangedCallback(LeaderRoot), "RegisterLeaderChangedCallback before");
        Equal(-1, Native.RegisterPeerStatusCallback(StatusRoot), "RegisterPeerStatusCallback before");
        Equal(-1, Native.RegisterConnectionResultCallback(ResultRoot), "RegisterConnectionResultCallback before");
        Equal(-1, Native.RegisterReconnectCallback(ReconnectRoot), "RegisterReconnectCallback before");
        Equal(-1, Native.SetAutoReconnect(1), "SetAutoReconnect before");
        Equal(0, Native.EnableLogging(0), "EnableLogging");
        Equal(-3, Native.ConnectToPeer(null), "ConnectToPeer(NULL): pointers come first");
    }

    private static void OpenTheRoom()
    {
        Native.Config config = DefaultConfig();
        config.HeartbeatIntervalMs = 0;
        Equal(-3, Native.InitializeNetworkWithConfig(Id(role), Utf8(session), ref config), "a heartbeat of 0 ms");
        Contains("heartbeat_interval_ms", Text(Native.GetLastErrorMessage()), "the sentence names the field");
        config = DefaultConfig();
        Equal(-3, Native.InitializeNetworkWithConfig(Utf8(new string('x', 65)), Utf8(session), ref config), "an id of 65 bytes");
        Ok(Native.InitializeNetworkWithConfig(Id(role), Utf8(session), ref config), "InitializeNetworkWithConfig");
        Equal(-2, Native.InitializeNetwork(Id(role), Utf8(session)), "InitializeNetwork when open");
        Equal(-2, Native.GetLastErrorCode(), "GetLastErrorCode after that");
        Register(true);
        Equal(1, Native.IsNetworkInitialized(), "IsNetworkInitialized");
        Equal(0, Native.IsMdnsActive(), "IsMdnsActive with mdns_port 0");
        Equal(Ids[role], Text(Native.GetLocalPeerId()), "GetLocalPeerId");
        Equal(session, Text(Native.GetSessionId()), "GetSessionId");
        Equal(0, Native.GetPeerCount(), "GetPeerCount alone");
        Equal("", Text(Native.GetPeerList()), "GetPeerList alone");
        Equal(1, Native.IsAutoReconnectEnabled(), "IsAutoReconnectEnabled as configured");
        Ok(Native.SetAutoReconnect(0), "SetAutoReconnect(0)");
        Equal(0, Native.IsAutoReconnectEnabled(), "IsAutoReconnectEnabled after 0");
        Ok(Native.SetAutoReconnect(7), "SetAutoReconnect(7)");
        Equal(1, Native.IsAutoReconnectEnabled(), "IsAutoReconnectEnabled after 7: all but 0 is true");
        string own = Text(Native.GetLocalAddr());
        Equal(-3, Native.ConnectToPeer(Utf8(own)), "ConnectToPeer(own address)");
        Equal(-3, Native.ConnectToPeer(Utf8("адрес")), "ConnectToPeer without a port");
        Contains("адрес", Text(Native.GetLastErrorMessage()), "the sentence quotes the value undamaged");
        if (role == 0)
        {
            Console.WriteLine("address " + own);
            Console.Out.Flush();
        }
    }

    private static void Meet()
    {
        if (contact != null)
        {
            Ok(Native.ConnectToPeer(Utf8(contact)), "ConnectToPeer");
            Await("the result of ConnectToPeer", () => Results.Contains(contact + " 1 0"));
        }
        foreach (int other in Others())
        {
            string id = Ids[other];
            Await("PeerStatus 0 of " + id, () => Statuses.Contains(id + " 0"));
        }
        AwaitQuery("both peers", () => Native.GetPeerCount() == 2);
        List<string> sorted = new List<string>();
        foreach (int other in new[] { 1, 0, 2 })
        {
            if (other != role)
            {
                sorted.Add(Ids[other]);
            }
        }
        Equal(string.Join("\n", sorted.ToArray()), Text(Native.GetPeerList()), "GetPeerList, sorted as bytes");
        foreach (int other in Others())
        {
            byte[] id = Id(other);
            Equal(0, Native.GetPeerStatus(id), "GetPeerStatus of " + Ids[other]);
            AwaitQuery("a round-trip time of " + Ids[other], () => Native.GetPeerRTT(id) >= 0);
            Check(Native.GetPeerRTT(id) < 10000, "the round-trip time is one of this machine");
        }
        Equal(-1, Native.GetPeerStatus(Utf8("никто")), "GetPeerStatus of a stranger");
        Equal(-1, Native.GetPeerRTT(Utf8("никто")), "GetPeerRTT of a stranger");
        Equal(0, Native.DisconnectPeer(Utf8("никто")), "DisconnectPeer of a stranger");
        Equal(-3, Native.DisconnectPeer(Id(role)), "DisconnectPeer of oneself");
        AllAt(1);
    }

    private static void AgreeOnTheFirst()
    {
        AwaitQuery("a leader", () => Text(Native.GetCurrentLeader()).Length > 0);
        Equal(-5, Native.SetLeader(Utf8("никто")), "SetLeader of a stranger");
        // No process sends the step before all have a leader: an election in between would undo the next steps.
        AllAt(2);
        if (role == 0)
        {
            Ok(Native.SetLeader(Id(0)), "SetLeader");
            Equal(1, Native.IsLeader(), "IsLeader when SetLeader returns");
            Equal(Ids[0], Text(Native.GetCurrentLeader()), "GetCurrentLeader when SetLeader returns");
        }
        AwaitLeader(0);
        Ok(Native.EnableAutoLeaderElection(0), "EnableAutoLeaderElection(0)");
        Ok(Native.EnableAutoLeaderElection(1), "EnableAutoLeaderElection(1)");
        AllAt(3);
    }

    private static void SendEverything()
    {
        byte[] data = Payload(role, 0, 10);
        Equal(-3, Native.BroadcastMessage(data, data.Length, 0x00ff, 0), "a type below 0x0100");
        Equal(-3, Native.BroadcastMessage(data, -1, Ordered, 0), "a negative length");
        Equal(-3, Native.BroadcastMessage(null, 1, Ordered, 0), "NULL data with a length");
        Equal(-8, Native.BroadcastMessage(new byte[MaxMessage + 1], MaxMessage + 1, Ordered, 0), "a message over the limit");
        Equal(-5, Native.SendToPeer(Utf8("никто"), data, data.Length, Direct, 0), "SendToPeer to a stranger");
        Equal(-3, Native.SendToPeer(null, data, data.Length, Direct, 0), "SendToPeer to NULL");

        for (int number = 0; number < 300; number++)
        {
            byte[] numbered = Payload(role, number, 40);
            Send("BroadcastMessage", () => Native.BroadcastMessage(numbered, numbered.Length, Ordered, 0));
        }
        foreach (int to in new[] { 0, 1, 2 })
        {
            byte[] direct = Payload(role, to, 100);
            byte[] id = Id(to);
            Send("SendToPeer", () => Native.SendToPeer(id, direct, direct.Length, Direct, 0));
        }
        Send("SendToLeader", () => Native.SendToLeader(data, data.Length, ToLeader, 0));
        if (role == 0)
        {
            Send("SendFromLeader", () => Native.SendFromLeader(data, data.Length, FromLeader, 0));
        }
        else
        {
            Equal(-6, Native.SendFromLeader(data, data.Length, FromLeader, 0), "SendFromLeader of a member");
        }
        Send("an empty message", () => Native.BroadcastMessage(null, 0, Empty, 0));
        byte[] large = Payload(role, 1, MaxMessage), noise = NoiseOf(role, 100000);
        Send("the largest message", () => Native.BroadcastMessage(large, large.Length, Large, 0));
        Send("a message of noise", () => Native.BroadcastMessage(noise, noise.Length, Noise, 0));
        Send("all flags", () => Native.BroadcastMessage(data, data.Length, Bits, 0xff));

        foreach (int from in Others())
        {
            AwaitMessages(from, Ordered, 300);
            int number = 0;
            foreach (Message message in MessagesOf(from, Ordered))
            {
                Same(Payload(from, number, 40), message.Data, "broadcast " + number + " of " + Ids[from] + ", in order");
                number++;
            }
            Same(Payload(from, role, 100), One(from, Direct).Data, "the direct message");
            Same(new byte[0], One(from, Empty).Data, "the empty message");
            Same(Payload(from, 1, MaxMessage), One(from, Large).Data, "the largest message");
            Same(NoiseOf(from, 100000), One(from, Noise).Data, "the noise");
            Message bits = One(from, Bits);
            Equal(0xfe, bits.Flags, "the flags, without the library's own bit");
            Equal(Bits, bits.Type, "the type");
        }
        Same(Payload(role, role, 100), One(role, Direct).Data, "the message to oneself");
        if (role == 0)
        {
            foreach (int from in new[] { 0, 1, 2 })
            {
                Same(Payload(from, 0, 10), One(from, ToLeader).Data, "the message to the leader");
            }
        }
        else
        {
            Same(Payload(0, 0, 10), One(0, FromLeader).Data, "the message from the leader");
        }
        AllAt(4);
        foreach (int from in new[] { 0, 1, 2 })
        {
            Equal(role == 0 ? 1 : 0, Count(from, ToLeader), "copies of the message to the leader");
        }
    }

    private static void Compress()
    {
        uint[] thresholds = { 0, 64, uint.MaxValue };
        for (int index = 0; index < thresholds.Length; index++)
        {
            Ok(Native.SetCompressionThreshold(thresholds[index]), "SetCompressionThreshold");
            byte[] flat = Payload(role, index, 50000), noise = NoiseOf(role + index, 50000);
            Send("compressible", () => Native.BroadcastMessage(flat, flat.Length, Compressed, 2));
            Send("incompressible", () => Native.BroadcastMessage(noise, noise.Length, Compressed, 4));
        }
        foreach (int from in Others())
        {
            AwaitMessages(from, Compressed, 2 * thresholds.Length);
            List<Message> messages = MessagesOf(from, Compressed);
            for (int index = 0; index < thresholds.Length; index++)
            {
                Same(Payload(from, index, 50000), messages[2 * index].Data, "compressible data");
                Equal(2, messages[2 * index].Flags, "its flags");
                Same(NoiseOf(from + index, 50000), messages[2 * index + 1].Data, "incompressible data");
                Equal(4, messages[2 * index + 1].Flags, "its flags");
            }
        }
        Ok(Native.SetCompressionThreshold(512), "SetCompressionThreshold");
        AllAt(5);
    }

    private static void Centralize()
    {
        Equal(0, Native.IsCentralizedMode(), "IsCentralizedMode at first");
        Equal(1, Native.IsCentralizedAutoForward(), "IsCentralizedAutoForward as configured");
        Ok(Native.SetCentralizedMode(1), "SetCentralizedMode(1)");
        Equal(1, Native.IsCentralizedMode(), "IsCentralizedMode");
        AllAt(6);
        if (role == 1)
        {
            byte[] data = Payload(1, 6, 30);
            Send("a relayed broadcast", () => Native.BroadcastMessage(data, data.Length, Relayed, 0));
        }
        else
        {
            Same(Payload(1, 6, 30), One(1, Relayed).Data, "the relayed broadcast, with its origin as sender");
        }
        AllAt(7);
        if (role == 0)
        {
            Ok(Native.SetCentralizedAutoForward(0), "SetCentralizedAutoForward(0)");
            Equal(0, Native.IsCentralizedAutoForward(), "IsCentralizedAutoForward after 0");
        }
        AllAt(8);
        if (role == 1)
        {
            byte[] data = Payload(1, 8, 30);
            Send("a broadcast that stays", () => Native.BroadcastMessage(data, data.Length, NotRelayed, 0));
        }
        else if (role == 0)
        {
            Same(Payload(1, 8, 30), One(1, NotRelayed).Data, "the broadcast to the leader alone");
        }
        AllAt(9);
    }

    private static void Forward()
    {
        byte[] data = Payload(0, 9, 30);
        if (role == 0)
        {
            Equal(-5, Native.ForwardMessage(Utf8("никто"), null, data, data.Length, ForwardedToAll, 0), "ForwardMessage from a stranger");
            Equal(-3, Native.ForwardMessage(Id(1), Utf8(""), data, data.Length, ForwardedToAll, 0), "ForwardMessage to \"\"");
            Equal(-3, Native.ForwardMessage(null, null, data, data.Length, ForwardedToAll, 0), "ForwardMessage from NULL");
            Send("ForwardMessage to all", () => Native.ForwardMessage(Id(1), null, data, data.Length, ForwardedToAll, 0));
            Send("ForwardMessage to one", () => Native.ForwardMessage(Id(2), Id(1), data, data.Length, ForwardedToOne, 0));
            Send("ForwardMessage as oneself", () => Native.ForwardMessage(Id(0), null, data, data.Length, ForwardedAsSelf, 0));
        }
        else
        {
            Equal(-6, Native.ForwardMessage(Id(role), null, data, data.Length, ForwardedToAll, 0), "ForwardMessage of a member");
            Same(data, One(0, ForwardedAsSelf).Data, "what the leader forwards as itself");
        }
        if (role == 1)
        {
            Same(data, One(2, ForwardedToOne).Data, "what is forwarded to one, with its origin as sender");
        }
        if (role == 2)
        {
            Same(data, One(1, ForwardedToAll).Data, "what is forwarded to all but its origin");
        }
        AllAt(10);
        Ok(Native.SetCentralizedMode(0), "SetCentralizedMode(0)");
        Equal(0, Native.IsCentralizedMode(), "IsCentralizedMode after 0");
        Ok(Native.SetCentralizedAutoForward(1), "SetCentralizedAutoForward(1)");
        AllAt(11);
        // A step comes after everything sent before it, so a message that is missing now never comes.
        Equal(role == 2 ? 1 : 0, Count(1, ForwardedToAll), "copies of what was forwarded to all");
        Equal(role == 1 ? 1 : 0, Count(2, ForwardedToOne), "copies of what was forwarded to one");
        Equal(role == 0 ? 1 : 0, Count(1, NotRelayed), "copies of the broadcast that stays with the leader");
        Equal(role == 1 ? 0 : 1, Count(1, Relayed), "copies of the relayed broadcast");
    }

    private static void HandOver()
    {
        if (role == 0)
        {
            Ok(Native.SetLeader(Id(1)), "SetLeader of another");
            Equal(Ids[1], Text(Native.GetCurrentLeader()), "GetCurrentLeader when SetLeader returns");
            Equal(0, Native.IsLeader(), "IsLeader when SetLeader returns");
        }
        AwaitLeader(1);
        AllAt(12);
        byte[] data = Payload(role, 12, 20);
        Send("SendToLeader to the new one", () => Native.SendToLeader(data, data.Length, ToSecondLeader, 0));
        if (role == 1)
        {
            foreach (int from in new[] { 0, 1, 2 })
            {
                Same(Payload(from, 12, 20), One(from, ToSecondLeader).Data, "the message to the new leader");
            }
            Send("SendFromLeader of the new one", () => Native.SendFromLeader(data, data.Length, ToSecondLeader, 0));
        }
        else
        {
            Same(Payload(1, 12, 20), One(1, ToSecondLeader).Data, "the message of the new leader");
        }
        AllAt(13);
    }

    // The third process is stopped for some seconds, like a player's machine that sleeps. It returns by itself.
    private static void LoseAndReturn()
    {
        if (role == 2)
        {
            Console.WriteLine("pause me");
            Console.Out.Flush();
        }
        else
        {
            string third = Ids[2];
            Await("the loss of " + third, () => Statuses.Contains(third + " 1"));
            Await("Reconnect 0 of " + third, () => Reconnects.Contains(third + " 0"));
            Await("Reconnect 1 of " + third, () => Reconnects.Contains(third + " 1"));
            Await("the return of " + third, () => Statuses.FindAll(status => status == third + " 0").Count == 2);
            lock (Changed)
            {
                List<string> own = Statuses.FindAll(status => status.StartsWith(third, StringComparison.Ordinal));
                Equal(third + " 0," + third + " 1," + third + " 0", string.Join(",", own.ToArray()), "each change is reported once");
                Check(!Reconnects.Contains(third + " 2"), "no reconnection was given up");
            }
            Equal(0, Native.GetPeerStatus(Id(2)), "GetPeerStatus after the return");
        }
        byte[] data = Payload(role, 14, 20);
        // The third process does not know when it was stopped; the others speak first.
        if (role != 2)
        {
            Send("after the pause", () => Native.SendToPeer(Id(2), data, data.Length, AfterThePause, 0));
        }
        else
        {
            One(0, AfterThePause);
            One(1, AfterThePause);
        }
        AwaitQuery("both peers", () => Native.GetPeerCount() == 2);
        AwaitQuery("a leader", () => Text(Native.GetCurrentLeader()).Length > 0);
        AllAt(14);
    }

    // A closed link stays closed until one of the two peers dials by hand.
    private static void DisconnectAndReturn()
    {
        byte[] address = Encoding.UTF8.GetBytes(Text(Native.GetLocalAddr()));
        if (role == 0)
        {
            Send("the own address", () => Native.SendToPeer(Id(2), address, address.Length, Address, 0));
        }
        int before;
        string other = Ids[role == 0 ? 2 : 0];
        lock (Changed)
        {
            before = Statuses.FindAll(status => status == other + " 1").Count;
        }
        AllAt(15);
        if (role == 2)
        {
            string first = Encoding.UTF8.GetString(One(0, Address).Data);
            int reconnects;
            lock (Changed)
            {
                reconnects = Reconnects.Count;
            }
            Ok(Native.DisconnectPeer(Id(0)), "DisconnectPeer");
            Await("the end of the link", () => Statuses.FindAll(status => status == other + " 1").Count == before + 1);
            AwaitQuery("-1 for who has left", () => Native.GetPeerStatus(Id(0)) == -1);
            lock (Changed)
            {
                Equal(reconnects, Reconnects.Count, "Reconnect callbacks after a polite end");
                Results.Clear();
            }
            Ok(Native.ConnectToPeer(Utf8(first)), "ConnectToPeer by hand");
            Await("its result", () => Results.Contains(first + " 1 0"));
        }
        else if (role == 0)
        {
            Await("the end of the link", () => Statuses.FindAll(status => status == other + " 1").Count == before + 1);
        }
        AwaitQuery("both peers again", () => Native.GetPeerCount() == 2);
        byte[] data = Payload(role, 16, 20);
        foreach (int to in Others())
        {
            byte[] id = Id(to);
            Send("after the return", () => Native.SendToPeer(id, data, data.Length, AfterTheReturn, 0));
        }
        foreach (int from in Others())
        {
            Same(Payload(from, 16, 20), One(from, AfterTheReturn).Data, "the message after the return");
        }
        AllAt(16);
    }

    private static void LeaveTheRoom()
    {
        // A callback may not close the library.
        byte[] data = Payload(role, 17, 20);
        Send("a message to oneself", () => Native.SendToPeer(Id(role), data, data.Length, Refuse, 0));
        Await("-15 inside a callback", () => shutdownInCallback == -15);
        Equal(1, Native.IsNetworkInitialized(), "IsNetworkInitialized after that");
        AllAt(17);
        // One after the other; each sees the earlier ones leave.
        for (int leaver = 2; leaver > role; leaver--)
        {
            byte[] id = Id(leaver);
            AwaitQuery(Ids[leaver] + " has left", () => Native.GetPeerStatus(id) == -1);
            string gone = Ids[leaver] + " 1";
            int losses = leaver == 2 && role == 0 ? 3 : leaver == 2 ? 2 : 1;
            Await("PeerStatus 1 of " + Ids[leaver], () => Statuses.FindAll(status => status == gone).Count == losses);
        }
        Register(false);
        Ok(Native.ShutdownNetwork(), "ShutdownNetwork");
        Equal(-1, Native.ShutdownNetwork(), "ShutdownNetwork again");
        Equal(0, Native.IsNetworkInitialized(), "IsNetworkInitialized after it");
        Check(Native.GetLocalPeerId() == IntPtr.Zero, "GetLocalPeerId after it");
        Equal(-1, Native.GetPeerCount(), "GetPeerCount after it");

        // A new room starts fresh.
        Ok(Native.InitializeNetwork(Utf8("снова-" + role), Utf8(session + "-alone-" + role)), "InitializeNetwork");
        Equal(0, Native.GetPeerCount(), "GetPeerCount in a new room");
        Equal("", Text(Native.GetCurrentLeader()), "GetCurrentLeader in a new room");
        Equal(0, Native.IsCentralizedMode(), "IsCentralizedMode in a new room");
        Ok(Native.ShutdownNetwork(), "ShutdownNetwork of the new room");
    }

    // ---------------------------------------------------------------- callbacks

    private static void OnReceive(IntPtr peer, IntPtr data, int length, ushort type, byte flags)
    {
        Guarded(() =>
        {
            Message message = new Message { From = Text(peer), Data = new byte[length], Type = type, Flags = flags };
            if (length > 0)
            {
                Marshal.Copy(data, message.Data, 0, length);
            }
            if (type == Refuse)
            {
                shutdownInCallback = Native.ShutdownNetwork();
            }
            Received.Add(message);
        });
    }

    private static void OnLeader(IntPtr leader)
    {
        Guarded(() => Leaders.Add(Text(leader)));
    }

    private static void OnStatus(IntPtr peer, int status)
    {
        Guarded(() => Statuses.Add(Text(peer) + " " + status));
    }

    private static void OnResult(IntPtr address, byte success, int code)
    {
        Guarded(() => Results.Add(Text(address) + " " + success + " " + code));
    }

    private static void OnReconnect(IntPtr peer, byte status)
    {
        Guarded(() => Reconnects.Add(Text(peer) + " " + status));
    }

    // No exception may leave a callback.
    private static void Guarded(Action action)
    {
        lock (Changed)
        {
            try
            {
                action();
            }
            catch (Exception exception)
            {
                Faults.Add(exception.ToString());
            }
            Monitor.PulseAll(Changed);
        }
    }

    private static void Register(bool on)
    {
        Ok(Native.RegisterReceiveCallback(on ? ReceiveRoot : null), "RegisterReceiveCallback");
        Ok(Native.RegisterLeaderChangedCallback(on ? LeaderRoot : null), "RegisterLeaderChangedCallback");
        Ok(Native.RegisterPeerStatusCallback(on ? StatusRoot : null), "RegisterPeerStatusCallback");
        Ok(Native.RegisterConnectionResultCallback(on ? ResultRoot : null), "RegisterConnectionResultCallback");
        Ok(Native.RegisterReconnectCallback(on ? ReconnectRoot : null), "RegisterReconnectCallback");
    }

    // ---------------------------------------------------------------- waiting

    // Waits until all three are at this step of the script. Each sends the step to each other one directly: broadcasts may be
    // centralized.
    private static void AllAt(int step)
    {
        byte[] data = BitConverter.GetBytes(step);
        foreach (int to in Others())
        {
            byte[] id = Id(to);
            Send("step " + step, () => Native.SendToPeer(id, data, data.Length, Step, 0));
        }
        foreach (int from in Others())
        {
            string id = Ids[from];
            Await("step " + step + " of " + id, () => Received.Exists(message => message.From == id && message.Type == Step
                && BitConverter.ToInt32(message.Data, 0) == step));
        }
    }

    // Waits until the records of the callbacks fulfil the condition.
    private static void Await(string what, Func<bool> condition)
    {
        Stopwatch watch = Stopwatch.StartNew();
        lock (Changed)
        {
            while (!condition())
            {
                Check(watch.Elapsed.TotalSeconds < WaitSeconds, "within " + WaitSeconds + " s: " + what);
                Monitor.Wait(Changed, 1000);
            }
        }
    }

    // For states that have no event of their own.
    private static void AwaitQuery(string what, Func<bool> condition)
    {
        Stopwatch watch = Stopwatch.StartNew();
        while (!condition())
        {
            Check(watch.Elapsed.TotalSeconds < WaitSeconds, "within " + WaitSeconds + " s: " + what);
            Thread.Sleep(10);
        }
    }

    private static void AwaitLeader(int leader)
    {
        string id = Ids[leader];
        Await("LeaderChanged to " + id, () => Leaders.Count > 0 && Leaders[Leaders.Count - 1] == id);
        Equal(id, Text(Native.GetCurrentLeader()), "GetCurrentLeader");
        Equal(role == leader ? 1 : 0, Native.IsLeader(), "IsLeader");
    }

    private static void AwaitMessages(int from, ushort type, int count)
    {
        Await(count + " messages of type " + type.ToString("x") + " of " + Ids[from], () => Count(from, type) >= count);
        Equal(count, Count(from, type), "messages of type " + type.ToString("x"));
    }

    private static Message One(int from, ushort type)
    {
        AwaitMessages(from, type, 1);
        return MessagesOf(from, type)[0];
    }

    private static List<Message> MessagesOf(int from, ushort type)
    {
        lock (Changed)
        {
            return Received.FindAll(message => message.From == Ids[from] && message.Type == type);
        }
    }

    private static int Count(int from, ushort type)
    {
        return MessagesOf(from, type).Count;
    }

    // Tries again while the queue is full; fails on every other code.
    private static void Send(string what, Func<int> send)
    {
        int code = -7;
        AwaitQuery("a place in the queue for " + what, () => (code = send()) != -7);
        Ok(code, what);
    }

    // ---------------------------------------------------------------- checks and text

    private static void Check(bool holds, string what)
    {
        if (!holds)
        {
            throw new Failed(what);
        }
    }

    private static void Ok(int code, string what)
    {
        Check(code == 0, what + " answered " + code + ": " + (code == 0 ? "" : Text(Native.GetLastErrorMessage())));
    }

    private static void Equal(object expected, object found, string what)
    {
        Check(expected.ToString() == found.ToString(), what + ": \"" + found + "\" instead of \"" + expected + "\"");
    }

    private static void Contains(string part, string text, string what)
    {
        Check(text.IndexOf(part, StringComparison.Ordinal) >= 0, what + ": no \"" + part + "\" in \"" + text + "\"");
    }

    private static void Same(byte[] expected, byte[] found, string what)
    {
        bool same = expected.Length == found.Length;
        for (int index = 0; same && index < expected.Length; index++)
        {
            same = expected[index] == found[index];
        }
        Check(same, what + " is damaged (" + found.Length + " bytes, " + expected.Length + " were sent)");
    }

    private static IEnumerable<int> Others()
    {
        for (int other = 0; other < Ids.Length; other++)
        {
            if (other != role)
            {
                yield return other;
            }
        }
    }

    // A payload from `from`: its id, a number, and a pattern of that length.
    private static byte[] Payload(int from, int number, int length)
    {
        byte[] data = new byte[length];
        byte[] head = Encoding.UTF8.GetBytes(Ids[from] + number);
        for (int index = 0; index < length; index++)
        {
            data[index] = index < head.Length ? head[index] : (byte)(index / 1000 + number);
        }
        return data;
    }

    private static byte[] NoiseOf(int seed, int length)
    {
        byte[] data = new byte[length];
        uint state = (uint)seed * 2654435761u + 12345u;
        for (int index = 0; index < length; index++)
        {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            data[index] = (byte)state;
        }
        return data;
    }

    private static byte[] Id(int member)
    {
        return Utf8(Ids[member]);
    }

    private static byte[] Utf8(string text)
    {
        return Encoding.UTF8.GetBytes(text + "\0");
    }

    private static string Text(IntPtr text)
    {
        if (text == IntPtr.Zero)
        {
            return null;
        }
        int length = 0;
        while (Marshal.ReadByte(text, length) != 0)
        {
            length++;
        }
        byte[] bytes = new byte[length];
        Marshal.Copy(text, bytes, 0, length);
        return Encoding.UTF8.GetString(bytes);
    }

    private static Native.Config DefaultConfig()
    {
        return new Native.Config
        {
            ReconnectMaxMs = 30000,
            CompressionThreshold = 512,
            MaxMessageSize = MaxMessage,
            HeartbeatIntervalMs = 500,
            ElectionTimeoutMinMs = 1500,
            ElectionTimeoutMaxMs = 3000,
            ReconnectInitialMs = 1000,
            HandshakeTimeoutMs = 5000,
            WriteTimeoutMs = 5000,
            SendQueueCapacity = 128,
            IncomingQueueCapacity = 256,
            MaxConnections = 64,
            KeepaliveTimeSecs = 60,
            KeepaliveIntervalSecs = 10,
            // Only this test's processes join this room.
            MdnsPort = 0,
            HeartbeatTimeoutMultiplier = 3,
            KeepaliveRetries = 3,
            CentralizedAutoForward = 1,
            AutoElectionEnabled = 1,
            ManualOverrideRecovery = 1,
            TcpNodelay = 1,
            AutoReconnectEnabled = 1,
            ReconnectMaxRetries = 0
        };
    }
}
