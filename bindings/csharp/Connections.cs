using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace MetaMystia.Network
{
    // Dials with an awaitable result.
    public sealed partial class Room
    {
        // TaskCreationOptions.RunContinuationsAsynchronously, by its number: .NET Framework has it since 4.6. With it, code that awaits a
        // dial does not run inside a handler, where Dispose is refused.
        private const TaskCreationOptions Asynchronously = (TaskCreationOptions)64;
        private static readonly bool HasAsynchronously = Enum.IsDefined(typeof(TaskCreationOptions), Asynchronously);

        // Guarded by itself. The dials of each address, the oldest first.
        private readonly Dictionary<string, List<TaskCompletionSource<ConnectionResult>>> dials =
            new Dictionary<string, List<TaskCompletionSource<ConnectionResult>>>(StringComparer.Ordinal);
        private bool left; // guarded by dials
        private static int domainEnds; // 1 once the domain of these scripts, or the process, is ending

        /// <summary>
        /// <see cref="Connect"/> with an awaitable result; a failed dial is a result without success. In poll mode it completes inside
        /// <see cref="Poll"/>. Code that awaits it then runs in its synchronization
        /// context (in Unity: on the main thread), or else on the thread pool.
        /// </summary>
        /// <remarks>Of several dials of one address at a time, the first result completes the oldest.</remarks>
        /// <exception cref="NetworkException">At once: a refused call, as by <see cref="Connect"/>. Awaited: -1 NotInitialized, when the room
        /// was left before there was a result.</exception>
        public Task<ConnectionResult> ConnectAsync(string address)
        {
            if (address == null)
            {
                throw new ArgumentNullException("address");
            }
            TaskCompletionSource<ConnectionResult> dial = NewSource<ConnectionResult>();
            byte[] native = Utf8.ToNative(address);
            // Before the call, because its result may precede its return.
            lock (dials)
            {
                if (left)
                {
                    throw RoomLeft();
                }
                List<TaskCompletionSource<ConnectionResult>> waiting;
                if (!dials.TryGetValue(address, out waiting))
                {
                    dials.Add(address, waiting = new List<TaskCompletionSource<ConnectionResult>>());
                }
                waiting.Add(dial);
            }
            int code = NativeMethods.mmn_connect(handle, native);
            if (code < 0)
            {
                NetworkException refused = LastError(code);
                Retract(address, dial);
                throw refused;
            }
            return dial.Task;
        }

        // Runs inside the handler of a result.
        private void Settle(ConnectionResult result)
        {
            TaskCompletionSource<ConnectionResult> dial = null;
            lock (dials)
            {
                List<TaskCompletionSource<ConnectionResult>> waiting;
                if (dials.TryGetValue(result.Address, out waiting))
                {
                    dial = waiting[0];
                    waiting.RemoveAt(0);
                    if (waiting.Count == 0)
                    {
                        dials.Remove(result.Address);
                    }
                }
            }
            if (dial != null)
            {
                Complete(() => dial.TrySetResult(result));
            }
        }

        // A refused call has no result.
        private void Retract(string address, TaskCompletionSource<ConnectionResult> dial)
        {
            lock (dials)
            {
                List<TaskCompletionSource<ConnectionResult>> waiting;
                if (!dials.TryGetValue(address, out waiting))
                {
                    return;
                }
                waiting.Remove(dial);
                if (waiting.Count == 0)
                {
                    dials.Remove(address);
                }
            }
        }

        // After the room was left, no result comes any more.
        private void EndRequests()
        {
            if (state != null)
            {
                state.End();
            }
            List<TaskCompletionSource<ConnectionResult>> ended = new List<TaskCompletionSource<ConnectionResult>>();
            lock (dials)
            {
                left = true;
                foreach (List<TaskCompletionSource<ConnectionResult>> waiting in dials.Values)
                {
                    ended.AddRange(waiting);
                }
                dials.Clear();
            }
            foreach (TaskCompletionSource<ConnectionResult> dial in ended)
            {
                Complete(() => dial.TrySetException(RoomLeft()));
            }
            Action others = Ended;
            if (others != null)
            {
                others();
            }
        }

        internal static NetworkException RoomLeft()
        {
            return new NetworkException(ErrorCode.NotInitialized, "The room was left before the request had a result.");
        }

        internal static TaskCompletionSource<T> NewSource<T>()
        {
            return HasAsynchronously ? new TaskCompletionSource<T>(Asynchronously) : new TaskCompletionSource<T>();
        }

        internal static void Complete(Action complete)
        {
            // While a domain is unloaded, Mono may wait for ever for work of the thread pool. The scripts that would continue end with the
            // domain.
            if (Volatile.Read(ref domainEnds) != 0)
            {
                return;
            }
            if (HasAsynchronously)
            {
                complete();
            }
            else
            {
                ThreadPool.QueueUserWorkItem(state => complete());
            }
        }
    }
}
