// Tests that a process survives the unloading of its scripts, as Unity's editor does at every reload. For every registration of
// Room: register in an application domain of its own, drop, collect, unload, and let the library call. Prints "ok NAME" for
// each and exits with 0 only when all hold.
//
//   mcs -langversion:7 -out:Reload.exe bindings/csharp/tests/Reload.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Reload.exe [NAME...]
//
// On Mono the scripts run in an AppDomain. CoreCLR has only one: there they run in an AssemblyLoadContext that can be
// collected, and must be.

using System;
using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;
using MetaMystia.Network;

// The game's scripts, on the other side of the domain's border.
public sealed class Scripts : MarshalByRefObject
{
    // Static as in a script: gone with the domain.
    private static int ran;

    public override object InitializeLifetimeService()
    {
        return null;
    }

    // Registers, and keeps no reference. Returns the numbers of the rooms.
    public ulong[] Register(string what, string how, string session)
    {
        bool all = what == "everything";
        if (all || what == "SetLog")
        {
            Room.SetLog(LogLevel.Trace, (level, text) => Interlocked.Increment(ref ran));
        }
        ulong[] handles = new ulong[how == "without a room" ? 0 : how == "two rooms" ? 2 : 1];
        for (int index = 0; index < handles.Length; index++)
        {
            handles[index] = Join(what, how == "poll" || index == 1, session, index == 0 ? "scripts" : "scripts-2");
        }
        Collect();
        return handles;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static ulong Join(string what, bool poll, string session, string id)
    {
        bool all = what == "everything";
        RoomOptions options = new RoomOptions();
        options.Poll = poll;
        options.BindAddress = "127.0.0.1";
        options.Settings.DiscoveryMode = 0;
        Room room = Room.Join(id, session, options);
        if (all || what == "Happened")
        {
            room.Happened += e => Interlocked.Increment(ref ran);
        }
        if (all || what == "DataReceived")
        {
            room.DataReceived += message => Interlocked.Increment(ref ran);
        }
        if (all || what == "Changed")
        {
            room.Changed += e => Interlocked.Increment(ref ran);
        }
        if (all || what == "ConnectAsync")
        {
            room.ConnectAsync("127.0.0.1:9").ContinueWith(dial => Interlocked.Increment(ref ran));
        }
        if (all || what == "MessageReceived")
        {
            room.MessageReceived += message => Interlocked.Increment(ref ran);
        }
        if (all || what == "LeaderChanged")
        {
            room.LeaderChanged += leader => Interlocked.Increment(ref ran);
        }
        if (all || what == "LeadershipChanged")
        {
            room.LeadershipChanged += leads => Interlocked.Increment(ref ran);
        }
        if (all || what == "PeerStatusChanged")
        {
            room.PeerStatusChanged += (peer, status) => Interlocked.Increment(ref ran);
        }
        if (all || what == "ConnectionResult")
        {
            room.ConnectionResult += result => Interlocked.Increment(ref ran);
        }
        room.HandlerFailed += exception => Console.Error.WriteLine("a handler failed: " + exception);
        return room.Handle;
    }

    public int Ran()
    {
        return Volatile.Read(ref ran);
    }

    public static void Collect()
    {
        for (int i = 0; i < 2; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }
}

internal static class Reload
{
    private const int EventMs = 20000; // limit for an event that must come
    private const int TestMs = 55000;  // limit of one test

    private static string running = "start";
    private static int came;

    // Raw and static: calls after the scripts are gone arrive on this side.
    private static readonly EventCallback Event = (userData, networkEvent) => Interlocked.Increment(ref came);
    private static readonly LogCallback Log = (userData, room, level, message) => Interlocked.Increment(ref came);

    private static bool OnMono
    {
        get { return Type.GetType("Mono.Runtime") != null; }
    }

    private static int Main(string[] names)
    {
        Thread watch = new Thread(Watch);
        watch.IsBackground = true;
        watch.Start();
        try
        {
            string[] registrations =
            {
                "SetLog", "Happened", "MessageReceived", "LeaderChanged", "LeadershipChanged", "PeerStatusChanged", "ConnectionResult",
                "DataReceived", "Changed", "ConnectAsync", "everything",
            };
            foreach (string what in registrations)
            {
                foreach (string how in new[] { "thread", "poll", "two rooms", "without a room" })
                {
                    if (how != "without a room" || what == "SetLog")
                    {
                        Run(names, what + ", " + how, () => Unload(what, how));
                    }
                }
            }
            if (OnMono)
            {
                Run(names, "SetLog, two", TwoDomains);
            }
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + running + ": " + exception);
            return 1;
        }
    }

    private static void Run(string[] names, string name, Action test)
    {
        if (names.Length > 0 && Array.IndexOf(names, name) < 0)
        {
            return;
        }
        Volatile.Write(ref running, name);
        test();
        Console.WriteLine("ok " + name);
    }

    // The only way to end a thread that is stuck inside the library.
    private static void Watch()
    {
        string seen = null;
        Stopwatch clock = Stopwatch.StartNew();
        while (true)
        {
            Thread.Sleep(200);
            if (seen != Volatile.Read(ref running))
            {
                seen = Volatile.Read(ref running);
                clock.Restart();
            }
            if (clock.ElapsedMilliseconds > TestMs)
            {
                Console.Error.WriteLine("FAILED: a test took too long: " + seen);
                Process.GetCurrentProcess().Kill();
            }
        }
    }

    private static void Must(bool holds, string text)
    {
        if (!holds)
        {
            throw new InvalidOperationException(text + "; last error: " + Utf8.FromNative(NativeMethods.mmn_last_error_message()));
        }
    }

    private static void Until(Func<bool> holds, string text)
    {
        Stopwatch clock = Stopwatch.StartNew();
        while (!holds())
        {
            Must(clock.ElapsedMilliseconds < EventMs, text + ": not in time");
            Thread.Sleep(1);
        }
    }

    private static string Session()
    {
        return "reload-" + Process.GetCurrentProcess().Id;
    }

    // Twice: the second time the scripts are loaded again, as after a reload.
    private static void Unload(string what, string how)
    {
        for (int round = 0; round < 2; round++)
        {
            ulong[] rooms;
            WeakReference unloaded = RegisterAndUnload(what, how, out rooms);
            Scripts.Collect();
            Must(Array.TrueForAll(rooms, room => NativeMethods.mmn_is_open(room) == 0), "a room of the scripts is still open");
            Fire();
            for (int i = 0; unloaded != null && unloaded.IsAlive; i++)
            {
                Must(i < 100, "the scripts are not collected: something native still refers to them");
                Scripts.Collect();
                Thread.Sleep(10);
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference RegisterAndUnload(string what, string how, out ulong[] rooms)
    {
        using (Host host = new Host())
        {
            rooms = host.Register(what, how, Session());
            Must(Array.TrueForAll(rooms, room => NativeMethods.mmn_is_open(room) == 1), "a room of the scripts is not open");
            if (rooms.Length > 0)
            {
                // Events continue while the scripts are unloaded: messages, a leader, log lines. They come from this side, as
                // the library does.
                Send(rooms, 100);
                if (how != "poll" && what != "PeerStatusChanged" && what != "ConnectionResult")
                {
                    Until(() => host.Ran() > 0, "nothing reaches " + what);
                }
                Send(rooms, 100);
            }
            return host.Unload();
        }
    }

    private static void Send(ulong[] rooms, int count)
    {
        SendOptions options = new SendOptions();
        options.StructSize = (uint)System.Runtime.InteropServices.Marshal.SizeOf(typeof(SendOptions));
        foreach (ulong room in rooms)
        {
            byte[] self = Utf8.ToNative(Utf8.FromNative(NativeMethods.mmn_local_id(room)));
            NativeMethods.mmn_set_leader(room, self);
            for (int i = 0; i < count; i++)
            {
                NativeMethods.mmn_send(room, self, new byte[8], 8, Room.FirstUserType, ref options);
            }
            NativeMethods.mmn_connect(room, Utf8.ToNative("127.0.0.1:9"));
        }
    }

    // A room on this side: a callback of the scripts that the library still had would be called now.
    private static void Fire()
    {
        came = 0;
        ulong room = OpenHere(Event);
        Send(new[] { room }, 10);
        Until(() => Volatile.Read(ref came) > 3, "no events on this side");
        Must(NativeMethods.mmn_close(room) == 0, "mmn_close");
    }

    private static ulong OpenHere(EventCallback handler)
    {
        NetworkOptions options = NetworkOptions.Default();
        options.DiscoveryMode = 0;
        options.OnEvent = handler;
        ulong room = 0;
        Must(NativeMethods.mmn_open(Utf8.ToNative("scripts"), Utf8.ToNative(Session()), ref options, ref room) == 0, "mmn_open");
        return room;
    }

    // Of two domains that listen to the log, the one that is unloaded leaves the other's callback in place.
    private static void TwoDomains()
    {
        using (Host first = new Host())
        {
            first.Register("SetLog", "without a room", Session());
            came = 0;
            Must(NativeMethods.mmn_set_log(LogLevel.Trace, Log, IntPtr.Zero, null) == 0, "mmn_set_log");
            first.Unload();
        }
        ulong room = OpenHere(null);
        came = 0;
        Send(new[] { room }, 1);
        Until(() => Volatile.Read(ref came) > 0, "this side's log is gone with the scripts");
        Must(NativeMethods.mmn_close(room) == 0, "mmn_close");
        Must(NativeMethods.mmn_set_log(LogLevel.Off, null, IntPtr.Zero, null) == 0, "mmn_set_log");
    }

    // Container of the scripts: an AppDomain on Mono, an AssemblyLoadContext on CoreCLR. Mono's class library has no type for
    // the latter.
    private sealed class Host : IDisposable
    {
        private AppDomain domain;
        private Scripts scripts;
        private object context;
        private object contextScripts;

        public Host()
        {
            string path = Assembly.GetExecutingAssembly().Location;
            if (OnMono)
            {
                domain = AppDomain.CreateDomain("scripts");
                scripts = (Scripts)domain.CreateInstanceFromAndUnwrap(path, typeof(Scripts).FullName);
                return;
            }
            Type type = Type.GetType("System.Runtime.Loader.AssemblyLoadContext, System.Private.CoreLib");
            context = Activator.CreateInstance(type, "scripts", true);
            Assembly assembly = (Assembly)type.GetMethod("LoadFromAssemblyPath").Invoke(context, new object[] { path });
            contextScripts = Activator.CreateInstance(assembly.GetType(typeof(Scripts).FullName));
        }

        public ulong[] Register(string what, string how, string session)
        {
            return scripts != null ? scripts.Register(what, how, session) : (ulong[])Call("Register", what, how, session);
        }

        public int Ran()
        {
            return scripts != null ? scripts.Ran() : (int)Call("Ran");
        }

        private object Call(string method, params object[] arguments)
        {
            return contextScripts.GetType().GetMethod(method).Invoke(contextScripts, arguments);
        }

        public WeakReference Unload()
        {
            if (domain != null)
            {
                scripts = null;
                AppDomain.Unload(domain);
                domain = null;
                return null;
            }
            WeakReference alive = new WeakReference(context, true);
            contextScripts = null;
            context.GetType().GetMethod("Unload").Invoke(context, null);
            context = null;
            return alive;
        }

        public void Dispose()
        {
        }
    }
}
