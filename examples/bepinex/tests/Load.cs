// Two processes of this program with the plugin, without a game. Each sees the other move; then one plugin unloads, and the
// other notices. Prints "ok".

using System;
using System.Diagnostics;
using System.Reflection;
using System.Threading;
using BepInEx.Configuration;
using BepInEx.Logging;
using UnityEngine;

internal static class Load
{
    private const int TimeoutMs = 30000;

    private static int Main(string[] arguments)
    {
        bool isGuest = arguments.Length == 2;
        string session = isGuest ? arguments[0] : "bepinex-" + Process.GetCurrentProcess().Id;
        ConfigFile.Written["Room.Name"] = session;
        ConfigFile.Written["Room.Player"] = isGuest ? "guest" : "host";
        ConfigFile.Written["Room.Address"] = isGuest ? arguments[1] : "";
        bool seen = false;
        CoopPlugin.OwnPosition = () => new Vector3(1.5f, -2.25f, isGuest ? 1e9f : 0);
        CoopPlugin.Moved += (player, position) => seen |= player == (isGuest ? "host" : "guest") && position.x == 1.5f && position.y == -2.25f
            && position.z == (isGuest ? 0 : 1e9f);
        CoopPlugin plugin = new CoopPlugin();
        plugin.Load();
        try
        {
            Must(MonoBehaviour.Alive.Count == 1, "no component");
            if (isGuest)
            {
                Frames(() => seen, "no move of the host");
                Console.WriteLine("seen");
                // The other process has yet to see this one.
                bool inputEnded = false;
                Thread input = new Thread(() => Volatile.Write(ref inputEnded, Console.In.Read() < 0));
                input.IsBackground = true;
                input.Start();
                Frames(() => Volatile.Read(ref inputEnded), "no end of the input");
                Must(plugin.Unload() && MonoBehaviour.Alive.Count == 0, "not unloaded");
                return 0;
            }
            string line = ManualLogSource.Lines[0];
            string start = "info: others can join me at ";
            Must(line.StartsWith(start, StringComparison.Ordinal), line);
            ProcessStartInfo info = new ProcessStartInfo();
            info.FileName = Process.GetCurrentProcess().MainModule.FileName;
            info.Arguments = "\"" + Assembly.GetEntryAssembly().Location + "\" " + session + " " + line.Substring(start.Length);
            info.UseShellExecute = false;
            info.RedirectStandardInput = true;
            info.RedirectStandardOutput = true;
            using (Process guest = Process.Start(info))
            {
                try
                {
                    string printed = null;
                    Thread reader = new Thread(() => printed = guest.StandardOutput.ReadLine() ?? "");
                    reader.Start();
                    Frames(() => seen && Volatile.Read(ref printed) != null, "no move of the guest");
                    Must(printed == "seen", "the guest printed: " + printed);
                    guest.StandardInput.Close();
                    Frames(() => ManualLogSource.Lines.Contains("info: guest left: left"), "the guest has not left");
                    guest.WaitForExit();
                    Must(guest.ExitCode == 0, "the guest failed");
                }
                finally
                {
                    if (!guest.HasExited)
                    {
                        guest.Kill();
                    }
                }
            }
            Must(ManualLogSource.Lines.Contains("info: guest joined"), "no member joined");
            Must(plugin.Unload() && MonoBehaviour.Alive.Count == 0, "not unloaded");
            Console.WriteLine("ok");
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED: " + exception + "\n" + string.Join("\n", ManualLogSource.Lines));
            return 1;
        }
    }

    private static void Frames(Func<bool> until, string what)
    {
        for (Stopwatch clock = Stopwatch.StartNew(); !until();)
        {
            Must(clock.ElapsedMilliseconds < TimeoutMs, what);
            foreach (MonoBehaviour behaviour in MonoBehaviour.Alive.ToArray())
            {
                ((CoopUpdates)behaviour).Update();
            }
            Thread.Sleep(5);
        }
    }

    private static void Must(bool holds, string what)
    {
        if (!holds)
        {
            throw new InvalidOperationException(what);
        }
    }
}
