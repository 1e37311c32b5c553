using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using MetaMystia.Network;

// Shared by tests of the binding: promises, and waits that poll the rooms of the test.
internal static class Checks
{
    internal const int WaitMs = 30000;

    internal static readonly List<Room> Polled = new List<Room>();

    internal static void Must(bool holds, string promise)
    {
        if (!holds)
        {
            throw new InvalidOperationException(promise);
        }
    }

    internal static void Wait(string text, Func<bool> holds)
    {
        Stopwatch clock = Stopwatch.StartNew();
        while (!holds())
        {
            Must(clock.ElapsedMilliseconds < WaitMs, "not in time: " + text);
            Polled.ForEach(room => { if (room.IsOpen) room.Poll(); });
            Thread.Sleep(2);
        }
    }

    // The code of a refused call; 0 if it was taken.
    internal static int Refused(Action call)
    {
        try
        {
            call();
            return 0;
        }
        catch (NetworkException refused)
        {
            return refused.Code;
        }
    }

    internal static bool Throws<T>(Action call) where T : Exception
    {
        try
        {
            call();
            return false;
        }
        catch (T)
        {
            return true;
        }
    }
}
