using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;
using MetaMystia.Network;

/// <summary>Display of a lobby, and source of the player's lines. All calls come from one thread.</summary>
internal interface IView : IDisposable
{
    /// <summary>Every event of the room.</summary>
    void OnEvent(RoomEvent e);
    /// <summary>A notice about the room.</summary>
    void Say(string text);
    /// <summary>A line of the chat that all members share.</summary>
    void Chat(string author, string text);
    /// <summary>A greeting of another lobby; each sends one a second.</summary>
    void Heard(string peer, string text);
    /// <summary>A command of this player that can no longer be lost.</summary>
    void Confirmed(Command command);
    /// <summary>The member reported whether it may lead.</summary>
    void Eligible(string peer, bool eligible);
    /// <summary>The member's player moved.</summary>
    void Moved(string peer, string place);
    void Fail(string text);
    /// <summary>Once a second.</summary>
    void Beat(SharedState state);
    /// <summary>Once per frame.</summary>
    void Frame(SharedState state);
    /// <summary>The next line that the player entered; false when there is none. A null line is the end of the input.</summary>
    bool NextLine(out string line);
}

/// <summary>A lobby as lines: for pipes, for programs that read them, and for terminals without a screen.</summary>
internal sealed class Lines : IView
{
    private readonly Room room;
    private readonly string id;
    private readonly Dictionary<string, string> positions = new Dictionary<string, string>();
    private readonly Queue<string> input = new Queue<string>(); // guards itself and inputEnded
    private bool inputEnded;

    public Lines(Room room, string id, bool interactive)
    {
        this.room = room;
        this.id = id;
        if (interactive)
        {
            Thread reader = new Thread(ReadInput);
            reader.IsBackground = true;
            reader.Start();
        }
    }

    public void OnEvent(RoomEvent e)
    {
    }

    public void Say(string text)
    {
        Write(id, text);
    }

    public static void Write(string id, string text)
    {
        Console.WriteLine("[" + id + "] " + Columns.Clean(text));
    }

    public void Chat(string author, string text)
    {
        Say("chat " + author + ": " + text);
    }

    public void Heard(string peer, string text)
    {
        Say("from " + peer + ": " + text);
    }

    public void Confirmed(Command command)
    {
        Say("confirmed " + command.Verb + " " + command.Text);
    }

    public void Eligible(string peer, bool eligible)
    {
        Say("member " + peer + (eligible ? " may lead" : " is an observer"));
    }

    public void Moved(string peer, string place)
    {
        positions[peer] = place;
    }

    public void Fail(string text)
    {
        WriteError(id, text);
    }

    public static void WriteError(string id, string text)
    {
        Console.Error.WriteLine("[" + id + "] error: " + Columns.Clean(text));
    }

    public void Beat(SharedState state)
    {
        Say(Members());
        Say(state.ToString());
    }

    public void Frame(SharedState state)
    {
    }

    public bool NextLine(out string line)
    {
        lock (input)
        {
            line = input.Count > 0 ? input.Dequeue() : null;
            return line != null || inputEnded;
        }
    }

    public void Dispose()
    {
    }

    private string Members()
    {
        List<string> names = new List<string>(room.Peers);
        names.Add(id);
        names.Sort(StringComparer.Ordinal);
        StringBuilder text = new StringBuilder("members:");
        foreach (string name in names)
        {
            int rtt = name == id ? 0 : room.RoundTripMs(name);
            text.Append(' ').Append(name).Append('(').Append(rtt < 0 ? "-" : rtt.ToString(CultureInfo.InvariantCulture)).Append(" ms)");
            string position;
            if (positions.TryGetValue(name, out position))
            {
                text.Append(" at ").Append(position);
            }
        }
        string leader = room.Leader;
        return text.Append(leader == null ? "; no leader" : "; leader: " + leader).ToString();
    }

    private void ReadInput()
    {
        TextReader reader = Console.In;
        string line;
        while ((line = reader.ReadLine()) != null)
        {
            lock (input)
            {
                input.Enqueue(line);
            }
        }
        lock (input)
        {
            inputEnded = true;
        }
    }
}
