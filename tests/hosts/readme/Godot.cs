// The parts of Godot that the first page's script uses, and a game with one node: _Ready, _Process at 60 frames a second until Enter,
// then _ExitTree. The first argument is the Inspector's value for `Id`.
using System;
using System.Threading;

namespace Godot
{
    [AttributeUsage(AttributeTargets.Field)]
    public sealed class ExportAttribute : Attribute
    {
    }

    public class Node
    {
        public virtual void _Ready()
        {
        }

        public virtual void _Process(double delta)
        {
        }

        public virtual void _ExitTree()
        {
        }
    }

    public static class GD
    {
        internal static readonly int MainThread = Thread.CurrentThread.ManagedThreadId;

        public static void Print(string message)
        {
            if (Thread.CurrentThread.ManagedThreadId != MainThread)
            {
                Console.WriteLine("error: a handler ran on a thread other than the main one");
            }
            Console.WriteLine(message);
        }
    }

    internal static class Game
    {
        private static volatile bool running = true;

        private static void Main(string[] arguments)
        {
            GC.KeepAlive(GD.MainThread);
            Thread input = new Thread(() =>
            {
                Console.ReadLine();
                running = false;
            });
            input.IsBackground = true;
            input.Start();
            Type type = Array.Find(typeof(Game).Assembly.GetTypes(), one => one.IsSubclassOf(typeof(Node)));
            Node node = (Node)Activator.CreateInstance(type);
            type.GetField("Id").SetValue(node, arguments[0]);
            node._Ready();
            while (running)
            {
                node._Process(0.016);
                Thread.Sleep(16);
            }
            node._ExitTree();
        }
    }
}
