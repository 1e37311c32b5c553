using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace MetaMystia.Network
{
    // Loading of the native library.
    public sealed partial class Room
    {
        /// <summary>
        /// Loads the native library from a path, for a program whose runtime does not find it by itself: a mod in a folder of its own, a
        /// library that was extracted from a resource. Call it before anything else of this assembly.
        /// </summary>
        /// <param name="path">The file, or the folder that has it. The file keeps its name: meta_mystia_network.dll on Windows,
        /// libmeta_mystia_network.so on Linux, libmeta_mystia_network.dylib on macOS.</param>
        /// <remarks>
        /// A process holds one library, and never unloads it. Once it is loaded, by this or by a first native call, a call with the
        /// path of the same file does nothing, and one with another path throws. After a path without a file that loads, another may be
        /// tried, and so after a call of this assembly that found no library. A function of <see cref="NativeMethods"/> that found none
        /// fails on Mono after this, too. Any thread may call it.
        /// </remarks>
        /// <exception cref="ArgumentException">The path is empty, or names a file with another name.</exception>
        /// <exception cref="DllNotFoundException">There is no such file, the system does not load it, or the runtime does not use it. The
        /// message names the path, the attempts and the system's error.</exception>
        /// <exception cref="InvalidOperationException">The process has loaded the library from another file, which the message names.</exception>
        public static void LoadNative(string path)
        {
            NativeFile.Load(path);
        }
    }

    internal static class NativeFile
    {
        private const string Posix = "lib" + NativeMethods.Library;
        private static readonly object Loading = new object();
        private static IntPtr module; // result of ResolveImport

        internal static void Load(string path)
        {
            if (path == null)
            {
                throw new ArgumentNullException("path");
            }
            if (path.Length == 0)
            {
                throw new ArgumentException("LoadNative: the path is empty; it names the native library or its folder", "path");
            }
            Platform platform = Platform.OfThisProcess();
            string file = FileAt(path, platform.FileName);
            lock (Loading)
            {
                string other = platform.LoadedInsteadOf(file);
                if (other != null)
                {
                    throw new InvalidOperationException("LoadNative(\"" + path + "\"): this process has already loaded " + other
                        + ". The library cannot be replaced: call LoadNative before anything else of " + typeof(Room).Assembly.GetName().Name);
                }
                string error;
                IntPtr opened = platform.Open(file, out error);
                if (opened == IntPtr.Zero)
                {
                    string foreign = Binary.Foreign(file);
                    throw new DllNotFoundException("LoadNative(\"" + path + "\"): the system does not load " + file + ": " + error
                        + (foreign == null ? "" : "; " + foreign));
                }
                module = opened;
                string tried = PointImportsAt(file, platform);
                try
                {
                    CheckVersion(AbiVersionOfLoaded);
                    Volatile.Write(ref ready, 1);
                }
                catch (EntryPointNotFoundException exception)
                {
                    throw new DllNotFoundException("LoadNative(\"" + path + "\"): " + exception.Message, exception);
                }
                catch (DllNotFoundException exception)
                {
                    throw new DllNotFoundException("LoadNative(\"" + path + "\"): the system has loaded " + file + ", but the runtime does not take it for "
                        + NativeMethods.Library + " (" + tried + "): " + exception.Message, exception);
                }
            }
        }

        private static int ready; // 1 once the library is loaded and new enough

        // Finds the library missing, foreign or too old, and reports which.
        private static void Ready()
        {
            if (Volatile.Read(ref ready) != 0)
            {
                return;
            }
            try
            {
                CheckVersion(AbiVersion);
            }
            catch (DllNotFoundException exception)
            {
                throw new DllNotFoundException(Missing(exception), exception);
            }
            catch (BadImageFormatException exception)
            {
                throw new DllNotFoundException(Missing(exception), exception);
            }
            Volatile.Write(ref ready, 1);
        }

        /// <summary>A native call that may be a program's first. A function of its own: Mono binds a method's calls before it runs the method,
        /// and remembers the imports that found no library.</summary>
        internal static T First<T>(Func<T> call)
        {
            Ready();
            return call();
        }

        // The first import binds here, not somewhere in a game.
        private static void CheckVersion(Func<uint> abiVersion)
        {
            uint version;
            string release;
            try
            {
                version = abiVersion();
                release = LibraryVersion();
            }
            catch (EntryPointNotFoundException exception)
            {
                throw new EntryPointNotFoundException(Wrong(OldVersion()), exception);
            }
            if (version < NativeMethods.AbiVersion)
            {
                throw new EntryPointNotFoundException(Wrong("ABI version " + version + " (library " + release + ")"));
            }
        }

        // Methods of their own, as in First.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static uint AbiVersion()
        {
            return NativeMethods.mmn_abi_version();
        }

        // Mono remembers an import that found no library. That of Ready may have found none before LoadNative, and every other import comes
        // after Ready.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static uint AbiVersionOfLoaded()
        {
            return mmn_abi_version();
        }

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern uint mmn_abi_version();

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static string LibraryVersion()
        {
            return Utf8.FromNative(NativeMethods.mmn_library_version());
        }

        // Of a library from before the present names.
        private static string OldVersion()
        {
            try
            {
                return "ABI version " + GetAbiVersion();
            }
            catch (EntryPointNotFoundException)
            {
                return "no ABI version";
            }
        }

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern uint GetAbiVersion();

        private static string Wrong(string has)
        {
            return "The native library " + (Platform.OfThisProcess().Loaded() ?? NativeMethods.Library) + " has " + has + ", and this assembly needs ABI version "
                + NativeMethods.AbiVersion + " or newer: use the library and the C# files of one version.";
        }

        private static string Missing(Exception exception)
        {
            StringBuilder text = new StringBuilder("The native library was not loaded. Places of its file:");
            Platform platform = Platform.OfThisProcess();
            foreach (string folder in Folders(platform))
            {
                string file = Path.Combine(folder, platform.FileName);
                string foreign = File.Exists(file) ? Binary.Foreign(file) : null;
                text.Append("\n  ").Append(file).Append(": ").Append(
                    !File.Exists(file) ? "no such file" : foreign ?? "the system does not load it");
            }
            return text.Append("\nPut it there, or call Room.LoadNative with its path. The runtime reports: ").Append(exception.Message).ToString();
        }

        private static List<string> Folders(Platform platform)
        {
            List<string> folders = new List<string>();
            string assembly = typeof(Room).Assembly.Location; // "" for one that was loaded from memory
            foreach (string folder in new[] { string.IsNullOrEmpty(assembly) ? null : Path.GetDirectoryName(assembly), AppDomain.CurrentDomain.BaseDirectory })
            {
                Add(folders, folder);
            }
            foreach (string folder in (Environment.GetEnvironmentVariable(platform.SearchVariable) ?? "").Split(Path.PathSeparator))
            {
                Add(folders, folder);
            }
            return folders;
        }

        private static void Add(List<string> folders, string folder)
        {
            string trimmed = folder == null ? "" : folder.TrimEnd('/', '\\');
            if (trimmed.Length > 0 && !folders.Contains(trimmed))
            {
                folders.Add(trimmed);
            }
        }

        private static string FileAt(string path, string name)
        {
            string full = Path.GetFullPath(path);
            if (Directory.Exists(full))
            {
                string file = Path.Combine(full, name);
                if (File.Exists(file))
                {
                    return file;
                }
                throw new DllNotFoundException("LoadNative(\"" + path + "\"): the folder " + full + " has no " + name + ", which is what this system loads");
            }
            if (!File.Exists(full))
            {
                throw new DllNotFoundException("LoadNative(\"" + path + "\"): there is no file and no folder " + full);
            }
            if (!string.Equals(Path.GetFileName(full), name, StringComparison.OrdinalIgnoreCase))
            {
                // A runtime without a setting for imports finds a loaded library by this name.
                throw new ArgumentException("LoadNative(\"" + path + "\"): the file must be named " + name, "path");
            }
            return full;
        }

        // Makes DllImport use the loaded file, in the way of the present runtime. Returns a description of that way.
        private static string PointImportsAt(string file, Platform platform)
        {
            // .NET Core 3.0 and newer; a target of this binding may lack the type.
            Type libraries = Type.GetType("System.Runtime.InteropServices.NativeLibrary, System.Private.CoreLib");
            Type resolver = Type.GetType("System.Runtime.InteropServices.DllImportResolver, System.Private.CoreLib");
            MethodInfo set = libraries == null ? null : libraries.GetMethod("SetDllImportResolver");
            if (set != null && resolver != null)
            {
                // By a delegate, not by its name, so that a linker that trims the program keeps it.
                Func<string, Assembly, DllImportSearchPath?, IntPtr> resolve = ResolveImport;
                try
                {
                    set.Invoke(null, new object[] { typeof(NativeFile).Assembly, Delegate.CreateDelegate(resolver, resolve.Method) });
                }
                catch (TargetInvocationException exception)
                {
                    // An assembly has one resolver: that of an earlier call, or the program's.
                    if (!(exception.InnerException is InvalidOperationException))
                    {
                        throw;
                    }
                    return "the assembly already had a DllImportResolver";
                }
                return "by a DllImportResolver";
            }
            if (Type.GetType("Mono.Runtime") != null && platform.MapForMono(NativeMethods.Library, file))
            {
                return "by Mono's map of libraries";
            }
            // Windows finds a loaded file by its name, other dynamic loaders by the library's own name.
            return "by the name of the loaded file";
        }

        private static IntPtr ResolveImport(string name, Assembly assembly, DllImportSearchPath? search)
        {
            // Zero: the runtime searches as usual.
            return name == NativeMethods.Library ? module : IntPtr.Zero;
        }

        // The differences between the operating systems.
        private abstract class Platform
        {
            internal abstract string FileName { get; }

            // The environment variable with folders in which the system searches.
            internal abstract string SearchVariable { get; }

            // The loaded file with the library's name; null if there is none, or the system does not name it.
            internal abstract string Loaded();

            // The loaded library with the name of this file, if it is another file; else null.
            internal abstract string LoadedInsteadOf(string file);

            internal abstract IntPtr Open(string file, out string error);

            internal virtual bool MapForMono(string name, string file)
            {
                return false;
            }

            internal static Platform OfThisProcess()
            {
                if (Path.DirectorySeparatorChar == '\\')
                {
                    return new Windows();
                }
                // OSVersion calls both "Unix".
                return Directory.Exists("/System/Library/CoreServices") ? (Platform)new MacOS() : new Linux();
            }
        }

        private sealed class Windows : Platform
        {
            private const uint WithAlteredSearchPath = 8; // imports of the library are searched beside it first
            private const int Longest = 32768;

            internal override string FileName
            {
                get { return NativeMethods.Library + ".dll"; }
            }

            internal override string SearchVariable
            {
                get { return "PATH"; }
            }

            internal override string Loaded()
            {
                IntPtr loaded = GetModuleHandleW(FileName);
                return loaded == IntPtr.Zero ? null : NameOf(loaded);
            }

            private static string NameOf(IntPtr loaded)
            {
                StringBuilder name = new StringBuilder(Longest);
                GetModuleFileNameW(loaded, name, Longest);
                return name.ToString();
            }

            internal override string LoadedInsteadOf(string file)
            {
                IntPtr loaded = GetModuleHandleW(FileName);
                if (loaded == IntPtr.Zero)
                {
                    return null;
                }
                // One file has one handle, whatever its path looks like.
                IntPtr opened = LoadLibraryExW(file, IntPtr.Zero, WithAlteredSearchPath);
                if (opened != IntPtr.Zero)
                {
                    FreeLibrary(opened);
                }
                if (opened == loaded)
                {
                    return null;
                }
                return NameOf(loaded);
            }

            internal override IntPtr Open(string file, out string error)
            {
                IntPtr opened = LoadLibraryExW(file, IntPtr.Zero, WithAlteredSearchPath);
                error = opened == IntPtr.Zero ? Describe(Marshal.GetLastWin32Error()) : null;
                return opened;
            }

            private static string Describe(int code)
            {
                switch (code)
                {
                    case 126: return "error 126, a library that it imports is missing";
                    case 193: return "error 193, it is not a library for this process, which is " + (8 * IntPtr.Size) + "-bit";
                    default: return "error " + code + " of LoadLibraryEx";
                }
            }

            [DllImport("kernel32", CharSet = CharSet.Unicode, ExactSpelling = true, SetLastError = true)]
            private static extern IntPtr LoadLibraryExW(string file, IntPtr reserved, uint flags);

            [DllImport("kernel32", CharSet = CharSet.Unicode, ExactSpelling = true)]
            private static extern IntPtr GetModuleHandleW(string name);

            [DllImport("kernel32", CharSet = CharSet.Unicode, ExactSpelling = true)]
            private static extern uint GetModuleFileNameW(IntPtr module, StringBuilder name, int size);

            [DllImport("kernel32", ExactSpelling = true)]
            private static extern int FreeLibrary(IntPtr module);
        }

        // Linux and macOS. RTLD_LOCAL: no other library of the process uses its symbols.
        private abstract class Unix : Platform
        {
            private const int Now = 2;

            internal override string Loaded()
            {
                List<string> loaded = LoadedFiles();
                return loaded.Count == 0 ? null : loaded[0];
            }

            internal override string LoadedInsteadOf(string file)
            {
                List<string> loaded = LoadedFiles();
                return loaded.Count == 0 || DlOpen(Utf8.ToNative(file), Now | NoLoad) != IntPtr.Zero ? null : loaded[0];
            }

            internal override IntPtr Open(string file, out string error)
            {
                DlError(); // Binds it: done after dlopen, that would itself clear the error.
                IntPtr opened = DlOpen(Utf8.ToNative(file), Now);
                error = opened == IntPtr.Zero ? Utf8.FromNative(DlError()) : null;
                return opened;
            }

            [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
            private delegate void DllMapInsert(IntPtr assembly, byte[] name, IntPtr function, byte[] target, IntPtr targetFunction);

            internal override bool MapForMono(string name, string file)
            {
                // By its address: IL2CPP would link an import from "__Internal" at build time, and not find it.
                byte[] symbol = Utf8.ToNative("mono_dllmap_insert");
                IntPtr insert = DlSym(Default, symbol);
                if (insert == IntPtr.Zero)
                {
                    // Unity's player loads its Mono as a library.
                    IntPtr mono = DlOpen(Utf8.ToNative(UnityMono), Now | NoLoad);
                    insert = mono == IntPtr.Zero ? IntPtr.Zero : DlSym(mono, symbol);
                }
                if (insert == IntPtr.Zero)
                {
                    return false;
                }
                DllMapInsert map = (DllMapInsert)Marshal.GetDelegateForFunctionPointer(insert, typeof(DllMapInsert));
                map(IntPtr.Zero, Utf8.ToNative(name), IntPtr.Zero, Utf8.ToNative(file), IntPtr.Zero);
                return true;
            }

            protected abstract int NoLoad { get; }
            protected abstract IntPtr Default { get; }
            protected abstract string UnityMono { get; }

            // Files with the library's name.
            protected abstract List<string> LoadedFiles();

            protected abstract IntPtr DlOpen(byte[] file, int flags);
            protected abstract IntPtr DlSym(IntPtr library, byte[] symbol);
            protected abstract IntPtr DlError();
        }

        private sealed class Linux : Unix
        {
            internal override string FileName
            {
                get { return Posix + ".so"; }
            }

            internal override string SearchVariable
            {
                get { return "LD_LIBRARY_PATH"; }
            }

            protected override int NoLoad
            {
                get { return 4; }
            }

            protected override IntPtr Default
            {
                get { return IntPtr.Zero; }
            }

            protected override string UnityMono
            {
                get { return "libmonobdwgc-2.0.so"; }
            }

            protected override List<string> LoadedFiles()
            {
                List<string> files = new List<string>();
                foreach (string line in File.ReadAllLines("/proc/self/maps"))
                {
                    int start = line.IndexOf('/');
                    string file = start < 0 ? "" : line.Substring(start);
                    if ((file.EndsWith("/" + FileName, StringComparison.Ordinal) || file.EndsWith("/" + FileName + " (deleted)", StringComparison.Ordinal))
                        && !files.Contains(file))
                    {
                        files.Add(file);
                    }
                }
                return files;
            }

            // Up to glibc 2.33 these are in libdl; musl has no libdl.
            protected override IntPtr DlOpen(byte[] file, int flags)
            {
                try
                {
                    return InLibdl.dlopen(file, flags);
                }
                catch (DllNotFoundException)
                {
                    return InLibc.dlopen(file, flags);
                }
            }

            protected override IntPtr DlSym(IntPtr library, byte[] symbol)
            {
                try
                {
                    return InLibdl.dlsym(library, symbol);
                }
                catch (DllNotFoundException)
                {
                    return InLibc.dlsym(library, symbol);
                }
            }

            protected override IntPtr DlError()
            {
                try
                {
                    return InLibdl.dlerror();
                }
                catch (DllNotFoundException)
                {
                    return InLibc.dlerror();
                }
            }

            private static class InLibdl
            {
                [DllImport("libdl.so.2", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlopen(byte[] file, int flags);

                [DllImport("libdl.so.2", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlsym(IntPtr library, byte[] symbol);

                [DllImport("libdl.so.2", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlerror();
            }

            private static class InLibc
            {
                [DllImport("libc", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlopen(byte[] file, int flags);

                [DllImport("libc", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlsym(IntPtr library, byte[] symbol);

                [DllImport("libc", CallingConvention = CallingConvention.Cdecl)]
                internal static extern IntPtr dlerror();
            }
        }

        private sealed class MacOS : Unix
        {
            internal override string FileName
            {
                get { return Posix + ".dylib"; }
            }

            internal override string SearchVariable
            {
                get { return "DYLD_LIBRARY_PATH"; }
            }

            protected override int NoLoad
            {
                get { return 0x10; }
            }

            protected override IntPtr Default
            {
                get { return (IntPtr)(-2); }
            }

            protected override string UnityMono
            {
                get { return "libmonobdwgc-2.0.dylib"; }
            }

            protected override List<string> LoadedFiles()
            {
                List<string> files = new List<string>();
                for (uint index = 0; index < _dyld_image_count(); index++)
                {
                    IntPtr image = _dyld_get_image_name(index);
                    string file = image == IntPtr.Zero ? "" : Utf8.FromNative(image);
                    if (file.EndsWith("/" + FileName, StringComparison.Ordinal))
                    {
                        files.Add(file);
                    }
                }
                return files;
            }

            protected override IntPtr DlOpen(byte[] file, int flags)
            {
                return dlopen(file, flags);
            }

            protected override IntPtr DlSym(IntPtr library, byte[] symbol)
            {
                return dlsym(library, symbol);
            }

            protected override IntPtr DlError()
            {
                return dlerror();
            }

            private const string LibSystem = "/usr/lib/libSystem.dylib";

            [DllImport(LibSystem, CallingConvention = CallingConvention.Cdecl)]
            private static extern IntPtr dlopen(byte[] file, int flags);

            [DllImport(LibSystem, CallingConvention = CallingConvention.Cdecl)]
            private static extern IntPtr dlsym(IntPtr library, byte[] symbol);

            [DllImport(LibSystem, CallingConvention = CallingConvention.Cdecl)]
            private static extern IntPtr dlerror();

            [DllImport(LibSystem, CallingConvention = CallingConvention.Cdecl)]
            private static extern uint _dyld_image_count();

            [DllImport(LibSystem, CallingConvention = CallingConvention.Cdecl)]
            private static extern IntPtr _dyld_get_image_name(uint index);
        }
    }

    // The system and the processor that a native file is for, by its first bytes.
    internal static class Binary
    {
        private const int HeaderBytes = 4096;

        // A sentence if the file is no library for this process; else null.
        internal static string Foreign(string file)
        {
            string target;
            try
            {
                target = TargetOf(file);
            }
            catch (Exception exception)
            {
                return exception.Message; // it cannot be read
            }
            if (target == null)
            {
                return "it is not a native library";
            }
            string own = OfThisProcess();
            return own == null || target == own ? null : "it is for " + target + ", and this process is " + own;
        }

        private static string OfThisProcess()
        {
            if (Path.DirectorySeparatorChar != '\\')
            {
                return File.Exists("/proc/self/exe") ? TargetOf("/proc/self/exe") : null;
            }
            switch (Environment.GetEnvironmentVariable("PROCESSOR_ARCHITECTURE"))
            {
                case "AMD64": return "Windows on x86-64";
                case "x86": return "Windows on x86 (32-bit)";
                case "ARM64": return "Windows on ARM64";
                default: return null;
            }
        }

        private static string TargetOf(string file)
        {
            byte[] header = new byte[HeaderBytes];
            int length;
            using (FileStream stream = new FileStream(file, FileMode.Open, FileAccess.Read, FileShare.ReadWrite))
            {
                length = stream.Read(header, 0, header.Length);
            }
            if (length >= 20 && header[0] == 0x7f && header[1] == 'E' && header[2] == 'L' && header[3] == 'F')
            {
                return "Linux on " + Processor(header[18] | header[19] << 8, 3, 62, 183, 40);
            }
            int pe = length < 64 ? length : BitConverter.ToInt32(header, 0x3c);
            if (header[0] == 'M' && header[1] == 'Z' && pe >= 0 && pe + 6 <= length && header[pe] == 'P' && header[pe + 1] == 'E')
            {
                return "Windows on " + Processor(header[pe + 4] | header[pe + 5] << 8, 0x14c, 0x8664, 0xaa64, 0x1c4);
            }
            if (length >= 8 && (header[0] == 0xcf || header[0] == 0xce) && header[1] == 0xfa && header[2] == 0xed && header[3] == 0xfe)
            {
                return "macOS on " + Processor(BitConverter.ToInt32(header, 4), 7, 0x1000007, 0x100000c, 12);
            }
            return null;
        }

        private static string Processor(int machine, int x86, int x64, int arm64, int arm)
        {
            return machine == x64 ? "x86-64" : machine == x86 ? "x86 (32-bit)" : machine == arm64 ? "ARM64" : machine == arm ? "ARM (32-bit)"
                : "processor " + machine;
        }
    }
}
