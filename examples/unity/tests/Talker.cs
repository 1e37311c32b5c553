using System;

// The traffic of a test's server and clients: the server sends every message back, and a client checks what comes back and counts the
// managed memory that it took. A message has its kind in the first byte, and its number from the fifth.
internal sealed class Talker
{
    internal const byte Reliable = 0, Unreliable = 1, Sequenced = 2;

    // A round of a client: the uncounted warm-up, the counted messages, and the limit of messages under way.
    private const int WarmUp = 500, Counted = 6000, Window = 32;
    private const int Size = 64;

    private readonly byte[] data = new byte[Size];
    private readonly byte kinds;
    private readonly Action<ArraySegment<byte>, byte> send;
    private readonly int[] received = new int[3];
    private int sent, newest;
    private long start;

    // As server.
    private int served;
    private long servedStart;

    internal Talker(byte kinds, Action<ArraySegment<byte>, byte> send)
    {
        this.kinds = kinds;
        this.send = send;
    }

    internal bool Talks { get; set; }

    internal void Begin()
    {
        sent = 0;
        newest = -1;
        Array.Clear(received, 0, received.Length);
        Talks = true;
    }

    internal void Frame()
    {
        while (Talks && sent < WarmUp + Counted && sent - received[Reliable] < Window)
        {
            // Little-endian, without an array of its own.
            for (int index = 0; index < 4; index++)
            {
                data[4 + index] = (byte)(sent >> (8 * index));
            }
            sent++;
            for (byte kind = 0; kind < kinds && Talks; kind++)
            {
                data[0] = kind;
                send(new ArraySegment<byte>(data), kind);
            }
        }
    }

    // At the client.
    internal void OnEcho(ArraySegment<byte> segment)
    {
        byte kind = Check(segment);
        int number = BitConverter.ToInt32(segment.Array, segment.Offset + 4);
        if (kind == Reliable && number != received[Reliable])
        {
            throw new InvalidOperationException("message " + number + " came after " + received[Reliable] + " others");
        }
        if (kind == Sequenced && number <= newest)
        {
            throw new InvalidOperationException("message " + number + " came after " + newest);
        }
        newest = kind == Sequenced ? number : newest;
        received[kind]++;
        if (kind != Reliable)
        {
            return;
        }
        if (received[Reliable] == WarmUp)
        {
            start = GC.GetAllocatedBytesForCurrentThread();
        }
        if (received[Reliable] == WarmUp + Counted)
        {
            long bytes = GC.GetAllocatedBytesForCurrentThread() - start;
            Talks = false;
            for (byte other = 1; other < kinds; other++)
            {
                // On loopback almost none is lost; the last ones may still be under way.
                if (received[other] < WarmUp + Counted / 2)
                {
                    throw new InvalidOperationException("only " + received[other] + " messages of kind " + other + " came back");
                }
            }
            Commands.Say("echoed " + Counted + " messages of " + kinds + " kinds with " + bytes + " bytes");
        }
    }

    // At the server, which sends it back.
    internal byte OnMessage(ArraySegment<byte> segment)
    {
        if (served == WarmUp)
        {
            servedStart = GC.GetAllocatedBytesForCurrentThread();
        }
        served++;
        if (served == WarmUp + Counted)
        {
            long bytes = GC.GetAllocatedBytesForCurrentThread() - servedStart;
            Commands.Say("served " + Counted + " messages with " + bytes + " bytes");
        }
        return Check(segment);
    }

    private static byte Check(ArraySegment<byte> segment)
    {
        byte kind = segment.Count == Size ? segment.Array[segment.Offset] : byte.MaxValue;
        if (kind > Sequenced)
        {
            throw new InvalidOperationException("a damaged message of " + segment.Count + " bytes");
        }
        return kind;
    }
}
