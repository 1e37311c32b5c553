using System;
using System.Runtime.InteropServices;
using System.Text;

namespace MetaMystia.Network
{
    /// <summary>
    /// Settings of the published library, for <see cref="Room.Join(string, string, NetworkConfig?, bool)"/>. Start from <see cref="Default"/>; a
    /// struct of zeros is invalid and refused with -3.
    /// </summary>
    public partial struct NetworkConfig
    {
        /// <summary>The defaults of <see cref="Room.Join(string, string, NetworkConfig?, bool)"/>.</summary>
        public static NetworkConfig Default()
        {
            NetworkOptions options = NetworkOptions.Default();
            NetworkConfig config = new NetworkConfig();
            config.ReconnectMaxMs = options.ReconnectMaxMs;
            config.CompressionThreshold = options.CompressionThreshold;
            config.MaxMessageSize = options.MaxMessageSize;
            config.HeartbeatIntervalMs = (ushort)options.HeartbeatIntervalMs;
            config.ElectionTimeoutMinMs = (ushort)options.ElectionTimeoutMinMs;
            config.ElectionTimeoutMaxMs = (ushort)options.ElectionTimeoutMaxMs;
            config.ReconnectInitialMs = (ushort)options.ReconnectInitialMs;
            config.HandshakeTimeoutMs = (ushort)options.HandshakeTimeoutMs;
            config.WriteTimeoutMs = (ushort)options.WriteTimeoutMs;
            config.SendQueueCapacity = (ushort)options.SendQueueCapacity;
            config.IncomingQueueCapacity = (ushort)options.IncomingQueueCapacity;
            config.MaxConnections = (ushort)options.MaxConnections;
            config.MdnsPort = (ushort)options.MdnsPort;
            config.HeartbeatTimeoutMultiplier = (byte)options.HeartbeatTimeoutMultiplier;
            config.CentralizedAutoForward = (byte)options.CentralizedAutoForward;
            config.AutoElectionEnabled = (byte)options.AutoElection;
            config.ManualOverrideRecovery = (byte)options.ManualOverrideRecovery;
            config.AutoReconnectEnabled = (byte)options.AutoReconnect;
            config.ReconnectMaxRetries = (byte)options.ReconnectMaxRetries;
            // Without effect; the published library's values.
            config.KeepaliveTimeSecs = 60;
            config.KeepaliveIntervalSecs = 10;
            config.KeepaliveRetries = 3;
            config.TcpNodelay = 1;
            return config;
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
            Room.Check(NativeFile.First(() => NativeMethods.mmn_default_options(ref options)));
            return options;
        }

        internal void Apply(NetworkConfig config)
        {
            ReconnectMaxMs = config.ReconnectMaxMs;
            CompressionThreshold = config.CompressionThreshold;
            MaxMessageSize = config.MaxMessageSize;
            HeartbeatIntervalMs = config.HeartbeatIntervalMs;
            ElectionTimeoutMinMs = config.ElectionTimeoutMinMs;
            ElectionTimeoutMaxMs = config.ElectionTimeoutMaxMs;
            ReconnectInitialMs = config.ReconnectInitialMs;
            HandshakeTimeoutMs = config.HandshakeTimeoutMs;
            WriteTimeoutMs = config.WriteTimeoutMs;
            SendQueueCapacity = config.SendQueueCapacity;
            IncomingQueueCapacity = config.IncomingQueueCapacity;
            MaxConnections = config.MaxConnections;
            MdnsPort = config.MdnsPort;
            HeartbeatTimeoutMultiplier = config.HeartbeatTimeoutMultiplier;
            CentralizedAutoForward = config.CentralizedAutoForward;
            AutoElection = config.AutoElectionEnabled;
            // Any other number is the default.
            ManualOverrideRecovery = config.ManualOverrideRecovery == (byte)ManualOverrideRecovery.AutoElect
                ? ManualOverrideRecovery.AutoElect
                : ManualOverrideRecovery.Hold;
            AutoReconnect = config.AutoReconnectEnabled;
            ReconnectMaxRetries = config.ReconnectMaxRetries;
        }
    }

    public partial struct GossipWindows
    {
        /// <summary>Windows to be filled in, with their size set.</summary>
        public static GossipWindows Empty()
        {
            GossipWindows windows = new GossipWindows();
            windows.StructSize = (uint)Marshal.SizeOf(typeof(GossipWindows));
            return windows;
        }
    }

    /// <summary>
    /// Start from <see cref="Default"/>. The addresses are in <see cref="RoomOptions.Seeds"/>, which handles the pointer.
    /// </summary>
    public partial struct SeededOptions
    {
        /// <summary>The library's defaults: the intervals of a <see cref="SeededProfile"/>.</summary>
        public static SeededOptions Default(SeededProfile profile = SeededProfile.Wan)
        {
            SeededOptions options = new SeededOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(SeededOptions));
            Room.Check(NativeFile.First(() => NativeMethods.mmn_default_seeded_options((uint)profile, ref options)));
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
            Room.Check(NativeFile.First(() => NativeMethods.mmn_default_etcd_options(ref options)));
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

        // One field each of the struct at a pointer: At allocates the struct.
        private static readonly int KindAt = OffsetOf("Kind");
        private static readonly int PeerAt = OffsetOf("Peer");
        private static readonly int DataAt = OffsetOf("Data");
        private static readonly int LengthAt = OffsetOf("Length");
        private static readonly int TypeAt = OffsetOf("MessageType");
        private static readonly int FlagsAt = OffsetOf("Flags");
        private static readonly int ChannelAt = OffsetOf("Channel");
        private static readonly int DeliveryAt = OffsetOf("Delivery");
        private static readonly int PeerIndexAt = OffsetOf("PeerIndex");

        private static int OffsetOf(string field)
        {
            return Marshal.OffsetOf(typeof(NetworkEvent), field).ToInt32();
        }

        internal static EventKind KindOf(IntPtr networkEvent)
        {
            return (EventKind)Marshal.ReadInt32(networkEvent, KindAt);
        }

        internal static IntPtr PeerOf(IntPtr networkEvent)
        {
            return Marshal.ReadIntPtr(networkEvent, PeerAt);
        }

        internal static IntPtr DataOf(IntPtr networkEvent)
        {
            return Marshal.ReadIntPtr(networkEvent, DataAt);
        }

        internal static int LengthOf(IntPtr networkEvent)
        {
            return Marshal.ReadInt32(networkEvent, LengthAt);
        }

        internal static ushort TypeOf(IntPtr networkEvent)
        {
            return (ushort)Marshal.ReadInt16(networkEvent, TypeAt);
        }

        internal static byte FlagsOf(IntPtr networkEvent)
        {
            return Marshal.ReadByte(networkEvent, FlagsAt);
        }

        internal static byte ChannelOf(IntPtr networkEvent)
        {
            return Marshal.ReadByte(networkEvent, ChannelAt);
        }

        internal static DeliveryMode DeliveryOf(IntPtr networkEvent)
        {
            return (DeliveryMode)Marshal.ReadByte(networkEvent, DeliveryAt);
        }

        internal static uint PeerIndexOf(IntPtr networkEvent)
        {
            return (uint)Marshal.ReadInt32(networkEvent, PeerIndexAt);
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

    public partial struct RoomStats
    {
        /// <summary>Statistics to be filled in, with their size set.</summary>
        public static RoomStats Empty()
        {
            RoomStats stats = new RoomStats();
            stats.StructSize = (uint)Marshal.SizeOf(typeof(RoomStats));
            return stats;
        }
    }

    /// <summary>Text between .NET and the library, always UTF-8.</summary>
    public static class Utf8
    {
        // Strict: half a surrogate pair has no UTF-8 form, and two different names must not become equal bytes.
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        /// <summary>NUL-terminated bytes for the library; null stays NULL.</summary>
        /// <exception cref="ArgumentException">The text contains a NUL, where C would silently cut it, or is not valid UTF-16.</exception>
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

        // Without a NUL at the end, and with one inside.
        internal static byte[] ToBytes(string text, string parameter)
        {
            if (text == null)
            {
                throw new ArgumentNullException(parameter);
            }
            return Strict.GetBytes(text);
        }

        // Room for every peer id.
        internal const int BufferSize = 256;

        // Writes into a buffer of BufferSize bytes that is allocated once; a text that might not fit gets an array of its own.
        internal static byte[] ToNative(string text, ref byte[] buffer)
        {
            const int longestOfUnit = 3; // bytes for a unit of UTF-16
            if (text == null || text.Length * longestOfUnit >= BufferSize || text.IndexOf('\0') >= 0)
            {
                return ToNative(text);
            }
            if (buffer == null)
            {
                buffer = new byte[BufferSize];
            }
            buffer[Strict.GetBytes(text, 0, text.Length, buffer, 0)] = 0;
            return buffer;
        }

        /// <summary>A copy of the library's string; NULL becomes null.</summary>
        public static string FromNative(IntPtr text)
        {
            return text == IntPtr.Zero ? null : Encoding.UTF8.GetString(Bytes(text, Length(text)));
        }

        internal static string FromNative(byte[] text)
        {
            return Encoding.UTF8.GetString(text, 0, Array.IndexOf(text, (byte)0));
        }

        // Length in bytes, without the NUL.
        internal static int Length(IntPtr text)
        {
            int length = 0;
            while (Marshal.ReadByte(text, length) != 0)
            {
                length++;
            }
            return length;
        }

        // Compares two texts with a NUL at their end.
        internal static bool AreEqual(byte[] one, byte[] other)
        {
            int index = 0;
            while (one[index] == other[index] && one[index] != 0)
            {
                index++;
            }
            return one[index] == other[index];
        }

        internal static bool AreEqual(byte[] one, IntPtr other)
        {
            int index = 0;
            byte next;
            while (one[index] == (next = Marshal.ReadByte(other, index)) && next != 0)
            {
                index++;
            }
            return one[index] == next;
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
