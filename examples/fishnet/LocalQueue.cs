using System;
using System.Collections.Generic;

/// <summary>Messages on their way between a host's server and its own client, in memory that it uses again.</summary>
internal sealed class LocalQueue
{
    /// <summary>The most that waits, in bytes: many frames of any game.</summary>
    internal const int MaxBytes = 16 * 1024 * 1024;

    private const int MaxSpare = 256, SmallestBuffer = 2048;

    private struct Entry
    {
        internal byte[] Buffer;
        internal int Length;
        internal byte Channel;
    }

    private readonly Queue<Entry> entries = new Queue<Entry>();
    private readonly Stack<byte[]> spare = new Stack<byte[]>();
    private byte[] taken; // is read until the next one is taken
    private int bytes;

    internal int Count
    {
        get { return entries.Count; }
    }

    /// <summary>Copies it. False when too much waits.</summary>
    internal bool Add(ArraySegment<byte> data, byte channel)
    {
        if (data.Count > MaxBytes - bytes)
        {
            return false;
        }
        byte[] buffer = data.Count <= SmallestBuffer && spare.Count > 0 ? spare.Pop() : new byte[Math.Max(data.Count, SmallestBuffer)];
        Buffer.BlockCopy(data.Array, data.Offset, buffer, 0, data.Count);
        entries.Enqueue(new Entry { Buffer = buffer, Length = data.Count, Channel = channel });
        bytes += data.Count;
        return true;
    }

    /// <summary>The oldest. Its data is valid until the next call.</summary>
    internal bool Take(out ArraySegment<byte> data, out byte channel)
    {
        data = default(ArraySegment<byte>);
        channel = 0;
        if (taken != null && taken.Length == SmallestBuffer && spare.Count < MaxSpare)
        {
            spare.Push(taken);
        }
        taken = null;
        if (entries.Count == 0)
        {
            return false;
        }
        Entry entry = entries.Dequeue();
        taken = entry.Buffer;
        bytes -= entry.Length;
        data = new ArraySegment<byte>(entry.Buffer, 0, entry.Length);
        channel = entry.Channel;
        return true;
    }

    internal void Clear()
    {
        entries.Clear();
        bytes = 0;
    }
}
