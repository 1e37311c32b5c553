using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

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
        /// tried. A native call that found no library fails on Mono after this, too. Any thread may call it.
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
                    throw new DllNotFoundException("LoadNative(\"" + path + "\"): the system does not load " + file + ": " + error);
                }
                module = opened;
                string tried = PointImportsAt(file, platform);
                try
                {
                    CallOnce();
                }
                catch (TypeLoadException exception) // DllNotFoundException, EntryPointNotFoundException
                {
                    throw new DllNotFoundException("LoadNative(\"" + path + "\"): the system has loaded " + file + ", but the runtime does not take it for "
                        + NativeMethods.Library + " (" + tried + "): " + exception.Message, exception);
                }
            }
        }

        // The first import binds here, not somewhere in a game. A method of its own: Mono binds a method's calls before it runs the method.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void CallOnce()
        {
            NativeMethods.GetAbiVersion();
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
                StringBuilder name = new StringBuilder(Longest);
                GetModuleFileNameW(loaded, name, Longest);
                return name.ToString();
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
}
