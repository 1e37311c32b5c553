// The parts of Unity that the Unity package's sample uses, and a player that runs it: Start, then Update and OnGUI at 60 frames a
// second, and OnDisable at the end of the input. Its arguments are the Inspector's values for the script's fields, NAME=VALUE. It
// prints each label when it appears. Its input: `press BUTTON`, `type TEXT` (into the first text field of the window).
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

    public struct Rect
    {
        public Rect(float x, float y, float width, float height)
        {
        }
    }

    public static class Debug
    {
        public static void LogException(Exception exception)
        {
            Console.WriteLine("error: " + exception);
        }
    }

    public static class GUILayout
    {
        internal static string Pressed, Typed;
        internal static readonly HashSet<string> Labels = new HashSet<string>();

        public static void BeginArea(Rect area)
        {
        }

        public static void EndArea()
        {
        }

        public static void Label(string text)
        {
            Labels.Add(text);
        }

        public static string TextField(string text)
        {
            string typed = Typed;
            Typed = null;
            return typed ?? text;
        }

        public static bool Button(string text)
        {
            bool pressed = text == Pressed;
            if (pressed)
            {
                Pressed = null;
            }
            return pressed;
        }
    }

    internal static class Player
    {
        private static int Main(string[] arguments)
        {
            Type type = typeof(Lobby);
            object script = Activator.CreateInstance(type);
            foreach (string argument in arguments)
            {
                int equals = argument.IndexOf('=');
                type.GetField(argument.Substring(0, equals)).SetValue(script, argument.Substring(equals + 1));
            }
            Queue<string> input = new Queue<string>();
            Thread reader = new Thread(() =>
            {
                string line;
                do
                {
                    line = Console.ReadLine();
                    lock (input)
                    {
                        input.Enqueue(line);
                    }
                }
                while (line != null);
            });
            reader.IsBackground = true;
            reader.Start();

            Call(script, "Start");
            HashSet<string> shown = new HashSet<string>();
            for (Stopwatch frame = Stopwatch.StartNew(); Take(input); frame.Restart())
            {
                Call(script, "Update");
                Call(script, "OnGUI");
                foreach (string label in GUILayout.Labels)
                {
                    if (!shown.Contains(label))
                    {
                        Console.WriteLine(label);
                    }
                }
                shown = new HashSet<string>(GUILayout.Labels);
                GUILayout.Labels.Clear();
                Thread.Sleep(Math.Max(0, 16 - (int)frame.ElapsedMilliseconds));
            }
            Call(script, "OnDisable");
            return OpenRooms() == 0 ? 0 : 1;
        }

        // One command a frame, once the previous one has found its field or button. False at the end.
        private static bool Take(Queue<string> input)
        {
            string line;
            lock (input)
            {
                if (input.Count == 0 || GUILayout.Pressed != null || GUILayout.Typed != null)
                {
                    return true;
                }
                line = input.Dequeue();
            }
            if (line == null)
            {
                return false;
            }
            string[] words = line.Split(new[] { ' ' }, 2);
            if (words[0] == "press")
            {
                GUILayout.Pressed = words[1];
            }
            else
            {
                GUILayout.Typed = words[1];
            }
            return true;
        }

        // The rooms that the script has not disposed of; only the binding knows them.
        private static int OpenRooms()
        {
            FieldInfo rooms = typeof(MetaMystia.Network.Room).GetField("rooms", BindingFlags.NonPublic | BindingFlags.Static);
            return ((System.Collections.ICollection)rooms.GetValue(null)).Count;
        }

        private static void Call(object script, string message)
        {
            script.GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic).Invoke(script, null);
        }
    }
}
