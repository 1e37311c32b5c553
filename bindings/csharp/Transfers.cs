using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    // Transfers: bytes of up to 64 MiB to one member, below all messages.
    public sealed partial class Room
    {
        // Guarded by itself. The arrays into which the library writes, by peer and number.
        private readonly Dictionary<KeyValuePair<string, ulong>, GCHandle> buffers = new Dictionary<KeyValuePair<string, ulong>, GCHandle>();

        /// <summary>
        /// Offers a copy of an array to a member, whose host receives <see cref="TransferOffered"/>. One <see cref="TransferResult"/> follows
        /// at either end, in <see cref="Happened"/>.
        /// </summary>
        /// <param name="peerId">A connected or reconnecting member.</param>
        /// <param name="data">At most 64 MiB.</param>
        /// <param name="tag">Bytes for the member's host, at most 1024; null is none.</param>
        /// <returns>The number of the transfer.</returns>
        /// <exception cref="NetworkException">-5 for a member that is not in the room, -7 with too many transfers, -8 beyond a length,
        /// -16 if the member's library has no transfers.</exception>
        public ulong SendTransfer(string peerId, byte[] data, byte[] tag = null)
        {
            if (data == null)
            {
                throw new ArgumentNullException("data");
            }
            ulong transfer = 0;
            int tagLength = tag == null ? 0 : tag.Length;
            Check(NativeMethods.mmn_send_transfer(handle, Utf8.ToNative(peerId), data, data.Length, tag, tagLength, ref transfer));
            return transfer;
        }

        /// <summary>
        /// Takes an offered transfer into an array, which the library fills: as long as the transfer, or longer. The garbage collector does
        /// not move it until <see cref="TransferResult"/>; leave it alone until then.
        /// </summary>
        /// <exception cref="NetworkException">-3 if the array is too short, -5 if no such offer waits.</exception>
        public void AcceptTransfer(string peerId, ulong transfer, byte[] buffer)
        {
            if (buffer == null)
            {
                throw new ArgumentNullException("buffer");
            }
            byte[] peer = Utf8.ToNative(peerId);
            KeyValuePair<string, ulong> key = new KeyValuePair<string, ulong>(peerId, transfer);
            // Held during the call: the result may come before it returns.
            lock (buffers)
            {
                GCHandle pinned = GCHandle.Alloc(buffer, GCHandleType.Pinned);
                int code = NativeMethods.mmn_accept_transfer(handle, peer, transfer, pinned.AddrOfPinnedObject(), buffer.Length);
                if (code < 0)
                {
                    NetworkException refused = LastError(code);
                    pinned.Free();
                    throw refused;
                }
                buffers[key] = pinned;
            }
        }

        /// <summary>
        /// Takes an offered transfer in parts: a <see cref="TransferPart"/> for each, in order. The sender waits while the host takes none.
        /// </summary>
        /// <exception cref="NetworkException">-5 if no such offer waits.</exception>
        public void AcceptTransferInParts(string peerId, ulong transfer)
        {
            Check(NativeMethods.mmn_accept_transfer_in_parts(handle, Utf8.ToNative(peerId), transfer));
        }

        /// <summary>Refuses an offered transfer, or cancels one at either end.</summary>
        /// <exception cref="NetworkException">-5 if the transfer has ended, or never began.</exception>
        public void CancelTransfer(string peerId, ulong transfer)
        {
            Check(NativeMethods.mmn_cancel_transfer(handle, Utf8.ToNative(peerId), transfer));
        }

        // Before the host's handlers: the array is theirs again.
        private void FreeBuffer(TransferResult result)
        {
            KeyValuePair<string, ulong> key = new KeyValuePair<string, ulong>(result.Peer, result.Transfer);
            lock (buffers)
            {
                GCHandle pinned;
                if (buffers.TryGetValue(key, out pinned))
                {
                    buffers.Remove(key);
                    pinned.Free();
                }
            }
        }

        // The room is closed: the library writes no more.
        private void FreeBuffers()
        {
            lock (buffers)
            {
                foreach (GCHandle pinned in buffers.Values)
                {
                    pinned.Free();
                }
                buffers.Clear();
            }
        }
    }
}
