using System;
using System.Collections.Generic;
using System.Threading;

// The lines of a test program's standard input, read while it runs its frames, and its output.
internal sealed class Commands
{
    private readonly Queue<string> lines = new Queue<string>();

    internal Commands()
    {
        Thread reader = new Thread(Read);
        reader.IsBackground = true;
        reader.Start();
    }

    // The next one; "" for none yet, null at the end.
    internal string Next()
    {
        lock (lines)
        {
            return lines.Count > 0 ? lines.Dequeue() : "";
        }
    }

    internal static void Say(string text)
    {
        Console.WriteLine(text);
        Console.Out.Flush();
    }

    private void Read()
    {
        string line;
        do
        {
            line = Console.In.ReadLine();
            lock (lines)
            {
                lines.Enqueue(line);
            }
        }
        while (line != null);
    }
}
