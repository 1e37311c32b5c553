// A counter, a chat and a map that a room's members share, and that no leader takes with it. docs/state.md explains it.
//
//   mcs -langversion:7 -out:State.exe csharp-sample/state/State.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono State.exe alice tea
//
// Lines of the standard input: a number adds to the counter, /map NAME, /claim ITEM, /quit; all others are chat.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using MetaMystia.Network;

internal static class State
{
    private const ushort Add = Room.FirstUserType, Say = Room.FirstUserType + 1;
    private static int counter;
    private static List<string> chat = new List<string>();

    private static void Main(string[] arguments)
    {
        RoomOptions options = new RoomOptions { State = new StateOptions(), Poll = false };
        options.Settings.DiscoveryMode = DiscoveryMode.Connect;
        using (Room room = Room.Join(arguments[0], arguments[1], options, Subscribe))
        {
            string line;
            while ((line = Console.ReadLine()) != null && line != "/quit")
            {
                if (line.StartsWith("/map ")) room.State["map"] = line.Substring(5);
                else if (line.StartsWith("/claim ")) Console.WriteLine(room.State.Claim(line.Substring(7)).Result ? "claim won" : "claim lost");
                else room.State.Submit(int.TryParse(line, out int number) ? Add : Say, line);
            }
        }
    }

    private static void Subscribe(Room room)
    {
        room.LeaderChanged += leader => Console.WriteLine("leader " + (leader ?? "none"));
        room.State.PropertyChanged += p => { if (p.Owner == null) Console.WriteLine(p.Key + " is " + p.Text); };
        room.State.Action += a =>
        {
            if (a.Type == Add) Console.WriteLine("counter " + (counter += int.Parse(a.Text)));
            if (a.Type != Say) return;
            chat.Add(a.Author + ": " + a.Text);
            Console.WriteLine("chat " + chat.Last());
        };
        room.State.Save = () => Encoding.UTF8.GetBytes(counter + "\n" + string.Concat(chat.Select(line => line + "\n")));
        room.State.Load = saved =>
        {
            string[] lines = Encoding.UTF8.GetString(saved).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
            counter = lines.Length == 0 ? 0 : int.Parse(lines[0]);
            chat = lines.Skip(1).ToList();
            Console.WriteLine("loaded " + counter + ", " + chat.Count + " lines");
        };
    }
}
