using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>
    /// A message in the library's memory, for <see cref="Room.DataReceived"/>: valid until the handler returns. Keep what
    /// <see cref="CopyTo"/> or <see cref="ToArray"/> copy, not the view.
    /// </summary>
    public struct MessageView
    {
        /// <summary>The id of the sender: the same string each time, for as long as it is a member.</summary>
        public string From;
        /// <summary><see cref="Length"/> bytes. Never zero.</summary>
        public IntPtr Data;
        public int Length;
        /// <summary>The sender's message type, 0x0100 or higher.</summary>
        public ushort Type;
        public byte Flags;
        /// <summary>The channel that the sender named.</summary>
        public byte Channel;
        public DeliveryMode Delivery;

        /// <summary>The message as a payload, to send it on.</summary>
        public Payload Payload
        {
            get { return new Payload(Data, Length); }
        }

        public byte this[int index]
        {
            get
            {
                if (index < 0 || index >= Length)
                {
                    throw new ArgumentOutOfRangeException("index", index, "The message has " + Length + " bytes.");
                }
                return Marshal.ReadByte(Data, index);
            }
        }

        /// <summary>Copies the message to <paramref name="offset"/> of an array that has room for it.</summary>
        public void CopyTo(byte[] destination, int offset = 0)
        {
            Marshal.Copy(Data, destination, offset, Length);
        }

        public byte[] ToArray()
        {
            return Utf8.Bytes(Data, Length);
        }

#if MMN_SPAN
        /// <summary>The message without a copy. For targets that have spans; compile with -unsafe.</summary>
        public unsafe ReadOnlySpan<byte> Span
        {
            get { return new ReadOnlySpan<byte>((void*)Data, Length); }
        }
#endif
    }

    /// <summary>Receives a message. <paramref name="message"/> is valid during the call only.</summary>
    public delegate void DataHandler(MessageView message);

    /// <summary>The bytes to send: an array, a part of one, or native memory. Nothing is copied before the library copies it.</summary>
    public struct Payload
    {
        private static readonly byte[] Nothing = new byte[1];

        private readonly byte[] array; // null: native
        private readonly int offset;
        internal readonly IntPtr Pointer;
        public readonly int Length;

        /// <exception cref="ArgumentNullException">There is no array. The default payload is a message of 0 bytes.</exception>
        public Payload(byte[] data)
        {
            if (data == null)
            {
                throw new ArgumentNullException("data");
            }
            array = data;
            offset = 0;
            Pointer = IntPtr.Zero;
            Length = data.Length;
        }

        /// <exception cref="ArgumentNullException">There is no array.</exception>
        /// <exception cref="ArgumentOutOfRangeException">The part is not inside the array.</exception>
        public Payload(byte[] array, int offset, int count)
        {
            if (array == null)
            {
                throw new ArgumentNullException("array");
            }
            int length = array.Length;
            if (offset < 0 || offset > length)
            {
                throw new ArgumentOutOfRangeException("offset", offset, "The array has " + length + " bytes.");
            }
            if (count < 0 || count > length - offset)
            {
                throw new ArgumentOutOfRangeException("count", count, "The array has " + (length - offset) + " bytes from " + offset + " on.");
            }
            this.array = array;
            this.offset = offset;
            Pointer = IntPtr.Zero;
            Length = count;
        }

        /// <summary><paramref name="length"/> bytes that stay where they are until the send returns.</summary>
        public Payload(IntPtr data, int length)
        {
            array = null;
            offset = 0;
            Pointer = data;
            Length = length;
        }

        public static implicit operator Payload(byte[] data)
        {
            return new Payload(data);
        }

        public static implicit operator Payload(ArraySegment<byte> data)
        {
            return data.Array == null ? default(Payload) : new Payload(data.Array, data.Offset, data.Count);
        }

        // Whether the bytes are at Pointer; else they are at Array[Offset].
        internal bool IsNative
        {
            get { return array == null && Length != 0; }
        }

        // An element exists even for an empty payload: the library gets its address.
        internal byte[] Array
        {
            get { return Length == 0 ? Nothing : array; }
        }

        internal int Offset
        {
            get { return Length == 0 ? 0 : offset; }
        }
    }

    // Messages: sends and receptions without an allocation of managed memory.
    public sealed partial class Room
    {
        private readonly PeerNames names = new PeerNames(); // used by the event handler, which runs once at a time
        private DataHandler dataReceived;

        // Each send has two forms, so that the options stand before the type of a message and both may be omitted.

        /// <summary>Sends to all connected members, or, if one queue is full (-7), to none.</summary>
        public void Broadcast(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            Broadcast(data, default(Delivery), type, flags);
        }

        /// <summary>Sends to all connected members with options, or, if one queue is full (-7), to none.</summary>
        public void Broadcast(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            Check(NativeBroadcast(data, type, delivery.Options(flags)));
        }

        /// <summary>
        /// <see cref="Broadcast(Payload, ushort, byte)"/> that returns the outcomes that a correct program meets at run time:
        /// <see cref="ErrorCode.Ok"/>, SendQueueFull, NotLeader (there is none, in centralized mode).
        /// </summary>
        /// <exception cref="NetworkException">Every other code.</exception>
        public int TryBroadcast(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            return TryBroadcast(data, default(Delivery), type, flags);
        }

        /// <summary><see cref="TryBroadcast(Payload, ushort, byte)"/> with options.</summary>
        public int TryBroadcast(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            return Outcome(NativeBroadcast(data, type, delivery.Options(flags)));
        }

        /// <summary>Sends to the connected members whose queue has room; returns their number. A SlowPeer event names each of the others.</summary>
        public int BroadcastPartial(Payload data, Delivery delivery = default(Delivery), ushort type = FirstUserType, byte flags = 0)
        {
            int took = NativeBroadcast(data, type, delivery.Options(flags, NativeMethods.SendPartial));
            Check(took);
            return took;
        }

        /// <summary>
        /// Sends to all connected members but one, if their queue has room; returns their number. Each is a separate send, so the call is
        /// not all or nothing as <see cref="Broadcast(Payload, ushort, byte)"/> is: <paramref name="full"/> receives the ids of the members
        /// whose queue is full, and a member that leaves meanwhile gets nothing. In centralized mode, too, the message goes directly.
        /// </summary>
        /// <exception cref="NetworkException">Any other error, such as an unreliable message that is too long for a link. Members
        /// before that one, in the order of <see cref="Peers"/>, got the message.</exception>
        public int BroadcastExcept(string peerId, Payload data, Delivery delivery = default(Delivery), ushort type = FirstUserType,
            byte flags = 0, ICollection<string> full = null)
        {
            SendOptions options = delivery.Options(flags);
            byte[] except = Utf8.ToNative(peerId, ref idBuffer);
            byte[] list = PeerList();
            byte[] peer = secondIdBuffer ?? (secondIdBuffer = new byte[Utf8.BufferSize]);
            int took = 0;
            for (int start = 0; list[start] != 0;)
            {
                int length = 0;
                while (list[start + length] != '\n' && list[start + length] != 0)
                {
                    peer[length] = list[start + length];
                    length++;
                }
                peer[length] = 0;
                start += list[start + length] == 0 ? length : length + 1;
                if (except != null && Utf8.AreEqual(except, peer))
                {
                    continue;
                }
                int code = NativeSend(peer, data, type, ref options);
                if (code == ErrorCode.SendQueueFull)
                {
                    if (full != null)
                    {
                        full.Add(Utf8.FromNative(peer));
                    }
                }
                else if (code != ErrorCode.PeerNotFound)
                {
                    Check(code);
                    took++;
                }
            }
            return took;
        }

        /// <summary>Sends to one member, also while it is reconnecting. -5 for one that is not in the room.</summary>
        public void SendTo(string peerId, Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            SendTo(peerId, data, default(Delivery), type, flags);
        }

        /// <summary><see cref="SendTo(string, Payload, ushort, byte)"/> with options.</summary>
        public void SendTo(string peerId, Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            SendOptions options = delivery.Options(flags);
            Check(NativeSend(Utf8.ToNative(peerId, ref idBuffer), data, type, ref options));
        }

        /// <summary>
        /// <see cref="SendTo(string, Payload, ushort, byte)"/> that returns <see cref="ErrorCode.Ok"/>, SendQueueFull, or PeerNotFound for a member
        /// that has left.
        /// </summary>
        /// <exception cref="NetworkException">Every other code.</exception>
        public int TrySendTo(string peerId, Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            return TrySendTo(peerId, data, default(Delivery), type, flags);
        }

        /// <summary><see cref="TrySendTo(string, Payload, ushort, byte)"/> with options.</summary>
        public int TrySendTo(string peerId, Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            SendOptions options = delivery.Options(flags);
            return Outcome(NativeSend(Utf8.ToNative(peerId, ref idBuffer), data, type, ref options));
        }

        /// <summary>Sends to the leader; a leader that calls it receives the message itself. -6 when there is none.</summary>
        public void SendToLeader(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            SendToLeader(data, default(Delivery), type, flags);
        }

        /// <summary><see cref="SendToLeader(Payload, ushort, byte)"/> with options.</summary>
        public void SendToLeader(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            Check(NativeSendToLeader(data, type, delivery.Options(flags)));
        }

        /// <summary>
        /// <see cref="SendToLeader(Payload, ushort, byte)"/> that returns <see cref="ErrorCode.Ok"/>, SendQueueFull, NotLeader (there is none) or
        /// PeerNotFound (it is not connected).
        /// </summary>
        /// <exception cref="NetworkException">Every other code.</exception>
        public int TrySendToLeader(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            return TrySendToLeader(data, default(Delivery), type, flags);
        }

        /// <summary><see cref="TrySendToLeader(Payload, ushort, byte)"/> with options.</summary>
        public int TrySendToLeader(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            return Outcome(NativeSendToLeader(data, type, delivery.Options(flags)));
        }

        /// <summary>Sends to all members, as their leader, or, if one queue is full (-7), to none; -6 when this member is not the leader.</summary>
        public void SendFromLeader(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            SendFromLeader(data, default(Delivery), type, flags);
        }

        /// <summary><see cref="SendFromLeader(Payload, ushort, byte)"/> with options.</summary>
        public void SendFromLeader(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            Check(NativeSendFromLeader(data, type, delivery.Options(flags)));
        }

        /// <summary>
        /// <see cref="SendFromLeader(Payload, ushort, byte)"/> that returns <see cref="ErrorCode.Ok"/>, SendQueueFull, or NotLeader when this
        /// member does not lead.
        /// </summary>
        /// <exception cref="NetworkException">Every other code.</exception>
        public int TrySendFromLeader(Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            return TrySendFromLeader(data, default(Delivery), type, flags);
        }

        /// <summary><see cref="TrySendFromLeader(Payload, ushort, byte)"/> with options.</summary>
        public int TrySendFromLeader(Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            return Outcome(NativeSendFromLeader(data, type, delivery.Options(flags)));
        }

        /// <summary>Forwards on behalf of <paramref name="from"/> to <paramref name="to"/>, or to all others if that is null. Leader only (-6).</summary>
        public void Forward(string from, string to, Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            Forward(from, to, data, default(Delivery), type, flags);
        }

        /// <summary><see cref="Forward(string, string, Payload, ushort, byte)"/> with options.</summary>
        public void Forward(string from, string to, Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            Check(NativeForward(from, to, data, type, delivery.Options(flags)));
        }

        /// <summary>
        /// <see cref="Forward(string, string, Payload, ushort, byte)"/> that returns <see cref="ErrorCode.Ok"/>, SendQueueFull, NotLeader, or
        /// PeerNotFound for a member that has left.
        /// </summary>
        /// <exception cref="NetworkException">Every other code.</exception>
        public int TryForward(string from, string to, Payload data, ushort type = FirstUserType, byte flags = 0)
        {
            return TryForward(from, to, data, default(Delivery), type, flags);
        }

        /// <summary><see cref="TryForward(string, string, Payload, ushort, byte)"/> with options.</summary>
        public int TryForward(string from, string to, Payload data, Delivery delivery, ushort type = FirstUserType, byte flags = 0)
        {
            return Outcome(NativeForward(from, to, data, type, delivery.Options(flags)));
        }

        // Returns the outcomes that change while a program runs. Throws for an error of the program, or a call after it has left.
        private static int Outcome(int code)
        {
            if (code < 0 && code != ErrorCode.SendQueueFull && code != ErrorCode.PeerNotFound && code != ErrorCode.NotLeader)
            {
                throw LastError(code);
            }
            return code;
        }

        // A buffer for each thread: no send runs a handler, so the buffer is free when a send begins.
        [ThreadStatic] private static byte[] idBuffer;
        [ThreadStatic] private static byte[] secondIdBuffer;
        [ThreadStatic] private static byte[] listBuffer;

        // The ids of the connected members, NUL-terminated. Copied: the library's text is valid until the next call.
        private byte[] PeerList()
        {
            IntPtr text = NativeMethods.mmn_peers(handle);
            if (text == IntPtr.Zero)
            {
                throw LastError(NativeMethods.mmn_last_error_code());
            }
            int size = Utf8.Length(text) + 1;
            if (listBuffer == null || listBuffer.Length < size)
            {
                listBuffer = new byte[Math.Max(2 * size, 1024)];
            }
            Marshal.Copy(text, listBuffer, 0, size);
            return listBuffer;
        }

        private int NativeBroadcast(Payload data, ushort type, SendOptions options)
        {
            return data.IsNative
                ? NativeSends.mmn_broadcast(handle, data.Pointer, data.Length, type, ref options)
                : NativeSends.mmn_broadcast(handle, ref data.Array[data.Offset], data.Length, type, ref options);
        }

        private int NativeSend(byte[] peer, Payload data, ushort type, ref SendOptions options)
        {
            return data.IsNative
                ? NativeSends.mmn_send(handle, peer, data.Pointer, data.Length, type, ref options)
                : NativeSends.mmn_send(handle, peer, ref data.Array[data.Offset], data.Length, type, ref options);
        }

        private int NativeSendToLeader(Payload data, ushort type, SendOptions options)
        {
            return data.IsNative
                ? NativeSends.mmn_send_to_leader(handle, data.Pointer, data.Length, type, ref options)
                : NativeSends.mmn_send_to_leader(handle, ref data.Array[data.Offset], data.Length, type, ref options);
        }

        private int NativeSendFromLeader(Payload data, ushort type, SendOptions options)
        {
            return data.IsNative
                ? NativeSends.mmn_broadcast_as_leader(handle, data.Pointer, data.Length, type, ref options)
                : NativeSends.mmn_broadcast_as_leader(handle, ref data.Array[data.Offset], data.Length, type, ref options);
        }

        private int NativeForward(string from, string to, Payload data, ushort type, SendOptions options)
        {
            byte[] origin = Utf8.ToNative(from, ref idBuffer);
            byte[] target = Utf8.ToNative(to, ref secondIdBuffer);
            return data.IsNative
                ? NativeSends.mmn_forward(handle, origin, target, data.Pointer, data.Length, type, ref options)
                : NativeSends.mmn_forward(handle, origin, target, ref data.Array[data.Offset], data.Length, type, ref options);
        }
    }

    // The sends of NativeMethods for a part of an array and for native memory. For a byte passed by reference, the runtime passes its
    // address and keeps its array in place: without unsafe code, and without a handle.
    internal static class NativeSends
    {
        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_broadcast(ulong room, ref byte data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_broadcast(ulong room, IntPtr data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_send(ulong room, byte[] peerId, ref byte data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_send(ulong room, byte[] peerId, IntPtr data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_send_to_leader(ulong room, ref byte data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_send_to_leader(ulong room, IntPtr data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_broadcast_as_leader(ulong room, ref byte data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_broadcast_as_leader(ulong room, IntPtr data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_forward(ulong room, byte[] from, byte[] to, ref byte data, int length, ushort messageType, [In] ref SendOptions options);

        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int mmn_forward(ulong room, byte[] from, byte[] to, IntPtr data, int length, ushort messageType, [In] ref SendOptions options);
    }

    // The ids of senders as strings, found by their bytes, because the library's pointer may differ from call to call.
    internal sealed class PeerNames
    {
        // More than the members of a room. It also bounds the ids of members that never leave.
        private const int Capacity = 1024;

        private readonly Dictionary<uint, Entry> entries = new Dictionary<uint, Entry>();
        private int count;
        private Entry last; // one member often sends several messages in a row

        private sealed class Entry
        {
            internal byte[] Bytes; // with the NUL
            internal string Name;
            internal Entry Next; // with the same hash
        }

        internal string Of(IntPtr peer)
        {
            if (last != null && Utf8.AreEqual(last.Bytes, peer))
            {
                return last.Name;
            }
            uint hash = HashOf(peer);
            Entry first;
            entries.TryGetValue(hash, out first);
            for (Entry entry = first; entry != null; entry = entry.Next)
            {
                if (Utf8.AreEqual(entry.Bytes, peer))
                {
                    last = entry;
                    return entry.Name;
                }
            }
            if (count == Capacity)
            {
                entries.Clear();
                count = 0;
                first = null;
            }
            Entry added = new Entry();
            added.Bytes = Utf8.Bytes(peer, Utf8.Length(peer) + 1);
            added.Name = Utf8.FromNative(peer);
            added.Next = first;
            entries[hash] = added;
            count++;
            last = added;
            return added.Name;
        }

        internal void Forget(string id)
        {
            byte[] peer = Utf8.ToNative(id);
            last = null;
            uint hash = HashOf(peer);
            Entry first, kept = null;
            if (!entries.TryGetValue(hash, out first))
            {
                return;
            }
            entries.Remove(hash);
            for (Entry entry = first, next; entry != null; entry = next)
            {
                next = entry.Next;
                if (Utf8.AreEqual(entry.Bytes, peer))
                {
                    count--;
                    continue;
                }
                entry.Next = kept;
                kept = entry;
            }
            if (kept != null)
            {
                entries.Add(hash, kept);
            }
        }

        private static uint HashOf(byte[] peer)
        {
            uint hash = Basis;
            for (int index = 0; peer[index] != 0; index++)
            {
                hash = Hashed(hash, peer[index]);
            }
            return hash;
        }

        // FNV-1a. Members choose their ids, but a room has too few of them for collisions to matter.
        private static uint HashOf(IntPtr peer)
        {
            uint hash = Basis;
            byte next;
            for (int index = 0; (next = Marshal.ReadByte(peer, index)) != 0; index++)
            {
                hash = Hashed(hash, next);
            }
            return hash;
        }

        private const uint Basis = 2166136261;

        private static uint Hashed(uint hash, byte next)
        {
            return unchecked((hash ^ next) * 16777619);
        }
    }
}
