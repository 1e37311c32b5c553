using System;
using System.Runtime.InteropServices;
using System.Text;

namespace MetaMystia.Network
{
    /// <summary>
    /// Start from <see cref="Default"/>; a struct of zeros is invalid and refused with -3.
    /// </summary>
    public partial struct NetworkConfig
    {
        /// <summary>The defaults of <c>InitializeNetwork</c>.</summary>
        public static NetworkConfig Default()
        {
            return NetworkOptions.Default().Config;
        }
    }

    /// <summary>
    /// Start from <see cref="Default"/>. Most programs use <see cref="RoomOptions"/>, which handles the pointers.
    /// </summary>
    public partial struct NetworkOptions
    {
        /// <summary>The library's defaults.</summary>
        public static NetworkOptions Default()
        {
            NetworkOptions options = new NetworkOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(NetworkOptions));
            NativeMethods.GetDefaultNetworkOptions(ref options);
            return options;
        }
    }

    /// <summary>
    /// Start from <see cref="Default"/>. The addresses are in <see cref="RoomOptions.Seeds"/>, which handles the pointer.
    /// </summary>
    public partial struct SeededOptions
    {
        /// <summary>The library's defaults: the intervals of a <see cref="SeededProfile"/>.</summary>
        public static SeededOptions Default(uint profile = SeededProfile.Wan)
        {
            SeededOptions options = new SeededOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(SeededOptions));
            Room.Check(NativeMethods.GetDefaultSeededOptions(profile, ref options));
            return options;
        }
    }

    /// <summary>
    /// Start from <see cref="Default"/>. Most programs use <see cref="EtcdSettings"/>, which handles the pointers.
    /// </summary>
    public partial struct EtcdOptions
    {
        /// <summary>The library's defaults.</summary>
        public static EtcdOptions Default()
        {
            EtcdOptions options = new EtcdOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(EtcdOptions));
            Room.Check(NativeMethods.GetDefaultEtcdOptions(ref options));
            return options;
        }
    }

    public partial struct NetworkEvent
    {
        /// <summary>The struct at a pointer that an <see cref="EventCallback"/> received.</summary>
        public static NetworkEvent At(IntPtr networkEvent)
        {
            return (NetworkEvent)Marshal.PtrToStructure(networkEvent, typeof(NetworkEvent));
        }

        /// <summary>A copy of the event's bytes.</summary>
        public byte[] Bytes()
        {
            return Utf8.Bytes(Data, Length);
        }
    }

    public partial struct PeerStats
    {
        /// <summary>Statistics to be filled in, with their size set.</summary>
        public static PeerStats Empty()
        {
            PeerStats stats = new PeerStats();
            stats.StructSize = (uint)Marshal.SizeOf(typeof(PeerStats));
            return stats;
        }
    }

    /// <summary>Text between .NET and the library, always UTF-8.</summary>
    public static class Utf8
    {
        // Strict: half a surrogate pair has no UTF-8 form, and two different names must not become the same bytes.
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        /// <summary>NUL-terminated bytes for the library; null stays NULL.</summary>
        /// <exception cref="ArgumentException">The text holds a NUL, where C would silently cut it, or is not valid UTF-16.</exception>
        public static byte[] ToNative(string text)
        {
            if (text == null)
            {
                return null;
            }
            if (text.IndexOf('\0') >= 0)
            {
                throw new ArgumentException("The text contains a NUL character, at which C would cut it off.", "text");
            }
            byte[] bytes = new byte[Strict.GetByteCount(text) + 1];
            Strict.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        /// <summary>A copy of the library's string; NULL becomes null.</summary>
        public static string FromNative(IntPtr text)
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
            return Encoding.UTF8.GetString(Bytes(text, length));
        }

        internal static byte[] Bytes(IntPtr data, int length)
        {
            byte[] copy = new byte[length];
            if (length > 0)
            {
                Marshal.Copy(data, copy, 0, length);
            }
            return copy;
        }
    }

    /// <summary>
    /// Marks a static method that native code calls. Unity's IL2CPP looks for an attribute of this name, in any namespace,
    /// to know which methods need a native entry point; other runtimes ignore it.
    /// </summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type delegateType)
        {
        }
    }
}
