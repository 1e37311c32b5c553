// A player whose screen has the overlay, without Unity. Prints the overlay's lines when they change, each after "panel ". Its input are
// commands, a line each, and its end ends the program: loss PERMILLE (of the packets that it sends), chatter (traffic in each
// frame), key (presses F8), card NAME, browse, leave.
//
//   mcs -langversion:7 -out:Overlay.exe examples/unity/RoomOverlay.cs examples/unity/tests/{Unity,Gui,Commands,Overlay}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono Overlay.exe ann SESSION
//   LD_LIBRARY_PATH=target/release mono Overlay.exe bob SESSION ADDRESS
//
// In place of the address: relay=ADDRESS, and for the first player the session `new`.

using System;
using System.Reflection;
using System.Threading;
using MetaMystia.Network;
using UnityEngine;

internal sealed class Overlay
{
    private const ushort Noise = Room.FirstUserType;

    private readonly RoomOverlay overlay = new RoomOverlay();
    private readonly byte[] noise = new byte[600];
    private readonly Event gui = new Event();
    private readonly Action draw;
    private Room room;
    private RoomBrowser browser;
    private string drawn = "";
    private bool chatters;

    private Overlay(Room room)
    {
        this.room = room;
        overlay.Room = room;
        draw = (Action)Delegate.CreateDelegate(typeof(Action), overlay, Method("OnGUI"));
        Method("Awake").Invoke(overlay, null);
        Must(!overlay.useGUILayout, "a layout in every frame");
    }

    // Unity calls private methods, too.
    private static MethodInfo Method(string name)
    {
        return typeof(RoomOverlay).GetMethod(name, BindingFlags.Instance | BindingFlags.NonPublic);
    }

    private void OnGui(EventType type, KeyCode key)
    {
        gui.type = type;
        gui.keyCode = key;
        Event.current = gui;
        draw();
    }

    private void Frame()
    {
        if (room != null)
        {
            room.Poll();
            if (chatters && room.Peers.Length > 0)
            {
                room.TryBroadcast(noise, Noise);
            }
        }
        if (browser != null)
        {
            browser.Poll();
        }
        GUI.Drawn = null;
        OnGui(EventType.Layout, KeyCode.None);
        long before = GC.GetAllocatedBytesForCurrentThread();
        OnGui(EventType.Repaint, KeyCode.None);
        long bytes = GC.GetAllocatedBytesForCurrentThread() - before;
        string text = GUI.Drawn ?? "hidden";
        Must(bytes == 0 || !ReferenceEquals(text, drawn), bytes + " bytes of garbage in a frame without a change");
        if (text != drawn)
        {
            foreach (string line in text.Split('\n'))
            {
                Commands.Say("panel " + line);
            }
        }
        drawn = text;
    }

    private void Obey(string command)
    {
        string[] words = command.Split(' ');
        switch (words[0])
        {
            case "loss":
                room.SimulateNetwork(0, 0, uint.Parse(words[1]));
                break;
            case "chatter":
                chatters = true;
                break;
            case "key":
                OnGui(EventType.KeyDown, KeyCode.F8);
                Must(gui.type == EventType.Used, "the key was not used");
                break;
            case "card":
                room.ShowCard(new RoomCard { Game = "overlay", Name = words[1], MaxPlayers = 4, IsOpen = true });
                break;
            case "browse":
                browser = new RoomBrowser("overlay");
                overlay.Browser = browser;
                break;
            case "leave":
                room.Dispose();
                room = null;
                break;
            default:
                Must(false, "no command: " + command);
                break;
        }
    }

    private static void Must(bool holds, string text)
    {
        if (!holds)
        {
            throw new InvalidOperationException(text);
        }
    }

    private static void Refused(int interval)
    {
        try
        {
            new RoomPanel(interval);
        }
        catch (ArgumentOutOfRangeException exception)
        {
            Must(exception.Message.Contains("is " + interval + " ms; it is 100 to 60000 ms"), exception.Message);
            return;
        }
        Must(false, "an interval of " + interval + " ms");
    }

    private static int Main(string[] arguments)
    {
        Commands commands = new Commands();
        try
        {
            Refused(99);
            Refused(60001);
            RoomOptions options = new RoomOptions();
            bool relayed = arguments.Length > 2 && arguments[2].StartsWith("relay=", StringComparison.Ordinal);
            if (relayed)
            {
                options.Relays = new[] { arguments[2].Substring("relay=".Length) };
                options.Settings.Paths = RoomPaths.Relayed;
            }
            using (Room room = Room.Join(arguments[0], arguments[1] == "new" ? Room.CreateCode() : arguments[1], options))
            {
                Commands.Say(relayed ? "code " + room.SessionId : "address " + room.LocalAddress);
                if (arguments.Length > 2 && !relayed)
                {
                    room.Connect(arguments[2]);
                }
                Overlay game = new Overlay(room);
                for (string command = ""; command != null; command = commands.Next())
                {
                    if (command.Length > 0)
                    {
                        game.Obey(command);
                    }
                    game.Frame();
                    Thread.Sleep(5);
                }
                if (game.browser != null)
                {
                    game.browser.Dispose();
                }
            }
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }
}
