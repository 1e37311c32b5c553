// The parts of Unity that the READMEs' scripts use, and a player that runs one script: OnEnable, Update at 60 frames a second until
// Enter, and the messages of the end that the first argument names: `quit` (the application ends), `destroy` (the scene ends) or
// `reload` (the editor reloads scripts).
// The second argument, if any, is the Inspector's value for the script's field `dial`.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection;
using System.Threading;

namespace UnityEngine
{
    public class MonoBehaviour
    {
    }

    public static class Debug
    {
        internal static readonly int MainThread = Thread.CurrentThread.ManagedThreadId;

        public static void Log(object message)
        {
            if (Thread.CurrentThread.ManagedThreadId != MainThread)
            {
                Console.WriteLine("error: a handler ran on a thread other than the main one");
            }
            Console.WriteLine(message);
        }
    }

    // Only compiled.
    public static class JsonUtility
    {
        public static string ToJson(object value)
        {
            throw new NotSupportedException();
        }

        public static T FromJson<T>(string json)
        {
            throw new NotSupportedException();
        }
    }

    internal static class Player
    {
        private static int Main(string[] arguments)
        {
            GC.KeepAlive(Debug.MainThread);
            Type type = Array.Find(typeof(Player).Assembly.GetTypes(), one => one.IsSubclassOf(typeof(MonoBehaviour)));
            object script = Activator.CreateInstance(type);
            if (arguments.Length > 1)
            {
                type.GetField("dial").SetValue(script, arguments[1]);
            }
            bool entered = false;
            Thread input = new Thread(() =>
            {
                Console.ReadLine();
                Volatile.Write(ref entered, true);
            });
            input.IsBackground = true;
            input.Start();

            Call(script, "OnEnable");
            Call(script, "Start");
            for (Stopwatch frame = Stopwatch.StartNew(); !Volatile.Read(ref entered); frame.Restart())
            {
                Call(script, "Update");
                Thread.Sleep(Math.Max(0, 16 - (int)frame.ElapsedMilliseconds));
            }
            if (arguments[0] == "quit")
            {
                Call(script, "OnApplicationQuit");
            }
            Call(script, "OnDisable");
            // Unity destroys all objects when it quits, and none before a reload.
            if (arguments[0] != "reload")
            {
                Call(script, "OnDestroy");
            }
            return OpenRooms() == 0 ? 0 : 1;
        }

        // The rooms that the script has not disposed of; only the binding knows them.
        private static int OpenRooms()
        {
            FieldInfo rooms = typeof(MetaMystia.Network.Room).GetField("rooms", BindingFlags.NonPublic | BindingFlags.Static);
            return ((System.Collections.ICollection)rooms.GetValue(null)).Count;
        }

        private static void Call(object script, string message)
        {
            MethodInfo method = script.GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public);
            if (method != null)
            {
                method.Invoke(script, null);
            }
        }
    }
}
