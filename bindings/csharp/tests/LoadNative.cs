// Tests the promises of Room.LoadNative, one story per process: LoadNative.exe STORY FOLDER COPY. FOLDER contains the library, COPY
// another file of it, and no runtime searches either. Prints "ok".
//
//   mcs -langversion:7 -out:LoadNative.exe bindings/csharp/tests/LoadNative.cs bindings/csharp/*.cs
//   mono LoadNative.exe folder /somewhere /elsewhere

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Text;
using System.Threading;
using MetaMystia.Network;

internal static class LoadNativeTest
{
    private static string folder, copy, file;

    private static int Main(string[] arguments)
    {
        folder = arguments[1];
        copy = arguments[2];
        file = Path.Combine(folder, Path.GetFileName(Directory.GetFiles(copy, "*meta_mystia_network.*")[0]));
        try
        {
            switch (arguments[0])
            {
                case "folder": Folder(); break;
                case "file": FromFile(); break;
                case "loaded": AlreadyLoaded(); break;
                case "beside": NotTheOneBeside(); break;
                case "missed": AfterAMiss(); break;
                case "refused": Refused(); break;
                case "older": OfAnotherVersion(); break;
                case "oldest": OfAnotherAge(); break;
                case "threads": Threads(); break;
                default: throw new ArgumentException(arguments[0]);
            }
            Console.WriteLine("ok");
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED: " + exception);
            return 1;
        }
    }

    private static void Folder()
    {
        Room.LoadNative(folder);
        Works();
        Room.LoadNative(folder);
        Room.LoadNative(file);
        AnotherIsRefused();
        Works();
    }

    // A relative path, and a name in another script.
    private static void FromFile()
    {
        string named = Path.Combine(folder, "米斯蒂娅");
        Directory.CreateDirectory(named);
        string inside = Path.Combine(named, Path.GetFileName(file));
        File.Copy(file, inside, true);
        Directory.SetCurrentDirectory(named);
        Room.LoadNative(Path.GetFileName(file));
        Works();
        Room.LoadNative(inside);
        AnotherIsRefused();
    }

    // The runtime found the library by itself; it is the one in the folder.
    private static void AlreadyLoaded()
    {
        Works();
        Room.LoadNative(folder);
        AnotherIsRefused();
        Works();
    }

    // The runtime would load the copy beside the program.
    private static void NotTheOneBeside()
    {
        string own = AppDomain.CurrentDomain.BaseDirectory;
        File.Copy(file, Path.Combine(own, Path.GetFileName(file)), true);
        Room.LoadNative(folder);
        Works();
        List<string> loaded = new List<string>();
        foreach (string module in Modules())
        {
            if (module.EndsWith(Path.DirectorySeparatorChar + Path.GetFileName(file), StringComparison.OrdinalIgnoreCase) && !loaded.Contains(module))
            {
                loaded.Add(module);
            }
        }
        Must(loaded.Count == 1 && loaded[0] == file, "loaded: " + string.Join(", ", loaded));
    }

    // On Linux Mono lists none.
    private static IEnumerable<string> Modules()
    {
        if (Path.DirectorySeparatorChar == '/')
        {
            foreach (string line in File.ReadAllLines("/proc/self/maps"))
            {
                yield return line.Substring(Math.Max(0, line.IndexOf('/')));
            }
            yield break;
        }
        foreach (ProcessModule module in Process.GetCurrentProcess().Modules)
        {
            yield return module.FileName;
        }
    }

    // A call found no library, and names the places; then one for another processor, and names that.
    private static void AfterAMiss()
    {
        string beside = Path.Combine(AppDomain.CurrentDomain.BaseDirectory, Path.GetFileName(file));
        Throws<DllNotFoundException>(Works, beside + ": no such file", "Room.LoadNative");
        Throws<DllNotFoundException>(() => Room.EnableLogging(true), beside + ": no such file");
        string foreign = Foreign(Path.Combine(folder, "foreign"));
        Throws<DllNotFoundException>(() => Room.LoadNative(foreign), foreign, "does not load", "on x86 (32-bit), and this process is");
        Room.LoadNative(folder);
        Works();
    }

    // A copy of the library whose header names a 32-bit processor.
    private static string Foreign(string place)
    {
        Directory.CreateDirectory(place);
        byte[] bytes = File.ReadAllBytes(file);
        bool windows = Path.DirectorySeparatorChar == '\\';
        int at = windows ? BitConverter.ToInt32(bytes, 0x3c) + 4 : 18;
        bytes[at] = windows ? (byte)0x4c : (byte)3;
        bytes[at + 1] = windows ? (byte)1 : (byte)0;
        string foreign = Path.Combine(place, Path.GetFileName(file));
        File.WriteAllBytes(foreign, bytes);
        return foreign;
    }

    // FOLDER has a library with an older ABI.
    private static void OfAnotherVersion()
    {
        string needed = "needs ABI version " + NativeMethods.AbiVersion + " or newer";
        Throws<DllNotFoundException>(() => Room.LoadNative(folder), folder, "has ABI version 7 (library 0.0.7)", needed);
        Throws<EntryPointNotFoundException>(Works, folder, "has ABI version 7 (library 0.0.7)", needed);
    }

    // ... or one from before its functions had their names.
    private static void OfAnotherAge()
    {
        string needed = "needs ABI version " + NativeMethods.AbiVersion + " or newer";
        Throws<DllNotFoundException>(() => Room.LoadNative(folder), folder, "has ABI version 5,", needed);
    }

    private static void Refused()
    {
        Throws<ArgumentNullException>(() => Room.LoadNative(null));
        Throws<ArgumentException>(() => Room.LoadNative(""), "the path is empty");
        string missing = Path.Combine(folder, "missing");
        Throws<DllNotFoundException>(() => Room.LoadNative(missing), "LoadNative(\"" + missing + "\")", "no file and no folder");
        string empty = Path.Combine(folder, "empty");
        Directory.CreateDirectory(empty);
        Throws<DllNotFoundException>(() => Room.LoadNative(empty), empty, "has no " + Path.GetFileName(file));
        string renamed = Path.Combine(empty, "renamed.bin");
        File.WriteAllText(renamed, "no library");
        Throws<ArgumentException>(() => Room.LoadNative(renamed), renamed, "must be named " + Path.GetFileName(file));
        string text = Path.Combine(folder, "text");
        Directory.CreateDirectory(text);
        string broken = Path.Combine(text, Path.GetFileName(file));
        File.WriteAllText(broken, "no library");
        // The sentence of the dynamic loader.
        Throws<DllNotFoundException>(() => Room.LoadNative(text), broken, "does not load", Path.DirectorySeparatorChar == '\\' ? "error 193" : "file too short");
        // After these failures the right path still works.
        Room.LoadNative(folder);
        Works();
    }

    private static void Threads()
    {
        int done = 0;
        Thread[] threads = new Thread[8];
        for (int index = 0; index < threads.Length; index++)
        {
            threads[index] = new Thread(() =>
            {
                Room.LoadNative(folder);
                Interlocked.Increment(ref done);
            });
            threads[index].Start();
        }
        foreach (Thread thread in threads)
        {
            thread.Join();
        }
        Must(done == threads.Length, "only " + done + " threads loaded it");
        Works();
    }

    private static void AnotherIsRefused()
    {
        Throws<InvalidOperationException>(() => Room.LoadNative(copy), "LoadNative(\"" + copy + "\")", "already loaded " + folder);
    }

    // Imports of both classes that have imports.
    private static void Works()
    {
        RoomOptions options = new RoomOptions();
        options.Settings.DiscoveryMode = 0;
        using (Room room = Room.Join("alice", "load-native-" + Guid.NewGuid(), options))
        {
            Must(room.LocalAddress.Length > 0, "no address");
            room.Broadcast(Encoding.UTF8.GetBytes("no peer receives it"));
        }
    }

    private static void Throws<T>(Action action, params string[] parts) where T : Exception
    {
        try
        {
            action();
        }
        catch (Exception exception)
        {
            Must(exception.GetType() == typeof(T), "not a " + typeof(T) + ": " + exception);
            foreach (string part in parts)
            {
                Must(exception.Message.Contains(part), "no \"" + part + "\" in: " + exception.Message);
            }
            if (parts.Length > 0)
            {
                Console.WriteLine(exception.Message);
            }
            return;
        }
        throw new InvalidOperationException("no " + typeof(T) + " " + string.Join(" ", parts));
    }

    private static void Must(bool holds, string what)
    {
        if (!holds)
        {
            throw new InvalidOperationException(what);
        }
    }
}
