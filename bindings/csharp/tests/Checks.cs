using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using MetaMystia.Network;

// Shared by tests of the binding: a program of tests, promises, and waits that poll the rooms of a test.
internal static class Checks
{
    internal const int WaitMs = 30000;

    // The rooms of the running test, and the ones among them that waits poll.
    private static readonly List<Room> rooms = new List<Room>();
    internal static readonly List<Room> Polled = new List<Room>();

    internal struct Test
    {
        internal readonly string Name;
        internal readonly Action<string> Body; // receives a session id of its own

        internal Test(string name, Action<string> body)
        {
            Name = name;
            Body = body;
        }
    }

    // Runs the tests with these names, or all, and disposes of the rooms of each. Returns the program's exit code.
    internal static int Run(string[] names, params Test[] tests)
    {
        try
        {
            foreach (Test test in tests)
            {
                if (names.Length == 0 || Array.IndexOf(names, test.Name) >= 0)
                {
                    RunOne(test);
                }
            }
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED: " + exception);
            return 1;
        }
    }

    private static void RunOne(Test test)
    {
        try
        {
            test.Body(test.Name + "-" + Process.GetCurrentProcess().Id);
        }
        finally
        {
            rooms.ForEach(room => room.Dispose());
            rooms.Clear();
            Polled.Clear();
        }
        Console.WriteLine("ok " + test.Name);
    }

    // Adds a room to the running test.
    internal static Room Added(Room room)
    {
        rooms.Add(room);
        Polled.Add(room);
        return room;
    }

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
