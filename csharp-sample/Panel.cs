using System;
using MetaMystia.Network;

// The links of the room and the rooms in the local network, printed when the player asks.
internal sealed class Panel : IDisposable
{
    internal const string Game = "meta_mystia_network lobby"; // as in the Python lobby: each lists the other's rooms

    private readonly RoomPanel links = new RoomPanel();
    private readonly Action<string> say;
    private RoomBrowser browser;

    internal Panel(Room room, Action<string> say)
    {
        links.Room = room;
        this.say = say;
    }

    // Once per frame: the rates are those of the last second, also when a player asks for the first time.
    internal void Frame()
    {
        links.Refresh();
        if (browser != null)
        {
            browser.Poll();
        }
    }

    internal void ShowLinks()
    {
        Show(links);
    }

    // The first call starts to look for rooms, and each that is found or changes is printed.
    internal void ShowRooms()
    {
        if (browser == null)
        {
            browser = new RoomBrowser(Game, true, 0, room => say(room.Change.ToString().ToLowerInvariant() + " room: " + room.Name + ", " + room.Players + " here"));
            say("looking for rooms in the local network");
            return;
        }
        Show(new RoomPanel { Browser = browser });
    }

    public void Dispose()
    {
        if (browser != null)
        {
            browser.Dispose();
        }
    }

    private void Show(RoomPanel panel)
    {
        foreach (string line in panel.Text.Split('\n'))
        {
            say("panel: " + line);
        }
    }
}
