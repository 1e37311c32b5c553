using System.Collections.Generic;
using MetaMystia.Network;
using UnityEngine;

/// <summary>
/// Writes to the room's state as its only writer. A claim replaces a property, and each write expects the version of it that the
/// write before has made: after another member's claim, the room refuses all writes of this one, whenever they arrive.
/// </summary>
internal sealed class RoomClaim
{
    internal enum Outcome
    {
        None,
        Claimed,
        Written,
        Refused,
    }

    private readonly string key;
    private StateRequest request; // one at a time
    private bool claiming;
    private ulong version, history;

    internal RoomClaim(string key)
    {
        this.key = key;
    }

    /// <summary>Whether no other member has written since, as far as this one knows.</summary>
    internal bool Held { get; private set; }

    /// <summary>Whether it is the first claim in the room.</summary>
    internal bool IsFirst { get; private set; }

    /// <summary>Whether a claim or a write waits for its result.</summary>
    internal bool IsBusy
    {
        get { return request != null; }
    }

    internal void Release()
    {
        Held = false;
        request = null;
    }

    /// <summary>Whether it is held in what the room has now: a merge may have replaced it.</summary>
    internal bool IsCurrent(RoomState state)
    {
        RoomProperty found = state.Find(key);
        return Held && found != null && found.Version == version && state.Info.History == history;
    }

    internal void Take(RoomState state, string value)
    {
        RoomProperty found = state.Find(key);
        IsFirst = found == null;
        Held = false;
        claiming = true;
        StateChange change = StateChange.Set(key, value);
        change.ExpectedVersion = IsFirst ? 0 : found.Version;
        Submit(state, change);
    }

    /// <summary>Writes changes, up to 31: all, or none if the claim is lost.</summary>
    internal void Write(RoomState state, List<StateChange> changes)
    {
        claiming = false;
        changes.Add(new StateChange(key) { Flags = PropertyFlags.KeepValue, ExpectedVersion = version });
        Submit(state, changes.ToArray());
    }

    private void Submit(RoomState state, params StateChange[] changes)
    {
        try
        {
            request = state.SetProperties(changes);
        }
        catch (NetworkException exception)
        {
            Debug.LogWarning("RoomClaim: " + exception.Message); // The game has too many open requests. The caller tries again.
        }
    }

    /// <summary>The outcome of a claim or of a write, once. A write that is refused while the claim holds has a code.</summary>
    internal Outcome Settle(RoomState state, out int code)
    {
        code = ErrorCode.Ok;
        if (request == null || !request.Result.IsCompleted)
        {
            return Outcome.None;
        }
        ActionResult result = request.Result.Exception == null ? request.Result.Result : null; // null: the room was left
        request = null;
        code = result == null ? ErrorCode.OutcomeUnknown : result.Code;
        if (code == ErrorCode.Ok)
        {
            version = result.Index;
            history = claiming ? state.Info.History : history;
            Held = Held || claiming;
        }
        Held = code != ErrorCode.OutcomeUnknown && IsCurrent(state);
        if (!Held)
        {
            return Outcome.None; // Another member has written.
        }
        return code != ErrorCode.Ok ? Outcome.Refused : claiming ? Outcome.Claimed : Outcome.Written;
    }
}
