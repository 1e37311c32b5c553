using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using MetaMystia.Network;

/// <summary>Finds the objects that differ from what the room has of them, and puts them into sets of changes within its limits.</summary>
internal sealed class RoomChanges
{
    // Limits of the library: bytes, and changes of a set beside the claim's. Overhead is that of a change beside its value.
    private const int MaxValue = 8192, MaxSet = 32768, MaxChanges = 31, Overhead = 256;
    private const int RetryMs = 5000, RetryPlayerMs = 200;

    private readonly Action<RoomObject, string> fail;
    private readonly Stopwatch clock = Stopwatch.StartNew();
    private readonly Dictionary<string, bool> removed = new Dictionary<string, bool>(); // and whether each host's scene has it
    private readonly List<RoomObject> sent = new List<RoomObject>();
    private readonly List<string> sentRemoved = new List<string>();
    private readonly BinaryWriter writer = new BinaryWriter(new MemoryStream());
    private int turn; // the object to look at next

    internal RoomChanges(Action<RoomObject, string> fail)
    {
        this.fail = fail;
    }

    /// <summary>Properties to be removed, until the room has done it.</summary>
    internal Dictionary<string, bool> Removed
    {
        get { return removed; }
    }

    // Of the object that HasChanged has looked at.
    private MemoryStream Value
    {
        get { return (MemoryStream)writer.BaseStream; }
    }

    internal void Forget(RoomObject item)
    {
        sent.Remove(item);
    }

    /// <summary>The next set of changes, maybe empty. Each object has its turn.</summary>
    internal List<StateChange> Next(List<RoomObject> kept)
    {
        List<StateChange> changes = new List<StateChange>();
        sent.Clear();
        sentRemoved.Clear();
        foreach (KeyValuePair<string, bool> gone in removed)
        {
            if (changes.Count < MaxChanges)
            {
                // The next host's scene brings its objects back: an empty value shows which are gone.
                changes.Add(gone.Value ? StateChange.Set(gone.Key, "") : StateChange.Remove(gone.Key));
                sentRemoved.Add(gone.Key);
            }
        }
        int bytes = (1 + changes.Count) * Overhead;
        bool full = false;
        for (int count = kept.Count; count > 0 && changes.Count < MaxChanges && !full; count--)
        {
            RoomObject item = kept[turn %= kept.Count];
            if (clock.ElapsedMilliseconds >= item.RetryAt && HasChanged(item))
            {
                bytes += (int)Value.Length + Overhead;
                full = item.Alone || bytes > MaxSet;
                if (full && changes.Count > 0)
                {
                    break;
                }
                changes.Add(ChangeOf(item));
                sent.Add(item);
            }
            turn++;
        }
        return changes;
    }

    internal void Confirm()
    {
        foreach (RoomObject item in sent)
        {
            item.Confirmed = item.Sent;
            item.Sent = null;
            item.Alone = item.Reported = false;
        }
        sentRemoved.ForEach(property => removed.Remove(property));
    }

    /// <summary>The room is full, or a player is not in it. It refuses a set as a whole: the next ones find out the object.</summary>
    internal void Refuse(int code)
    {
        bool isPlayerAway = code == ErrorCode.Conflict;
        foreach (RoomObject item in sent)
        {
            item.Sent = null;
            if (sent.Count + sentRemoved.Count > 1)
            {
                item.Alone |= !isPlayerAway || item.Member != null;
                continue;
            }
            item.RetryAt = clock.ElapsedMilliseconds + (isPlayerAway ? RetryPlayerMs : RetryMs);
            if (!isPlayerAway)
            {
                Report(item, "cannot be kept now: " + Room.Describe(code));
            }
        }
    }

    internal bool HasChanged(RoomObject item)
    {
        Value.SetLength(0);
        try
        {
            item.Write(writer);
        }
        catch (Exception exception)
        {
            Report(item, "cannot be saved: " + exception.Message);
            return false;
        }
        if (Value.Length > MaxValue)
        {
            Report(item, "has " + Value.Length + " bytes; the room keeps up to " + MaxValue + " of an object, and still has its state before");
            return false;
        }
        return item.Confirmed == null || !AreEqual(item.Confirmed, Value.GetBuffer(), (int)Value.Length);
    }

    internal static bool AreEqual(byte[] one, byte[] other, int length)
    {
        int same = 0;
        while (same < length && same < one.Length && one[same] == other[same])
        {
            same++;
        }
        return same == length && same == one.Length;
    }

    private StateChange ChangeOf(RoomObject item)
    {
        item.Sent = Value.ToArray();
        StateChange change = StateChange.Set(item.Property, item.Sent);
        if (item.Member != null)
        {
            change.Owner = item.Member;
            change.Flags = PropertyFlags.DiesWithOwner;
        }
        return change;
    }

    // Once, until the room has the object again.
    private void Report(RoomObject item, string text)
    {
        if (!item.Reported)
        {
            item.Reported = true;
            fail(item, text);
        }
    }
}
