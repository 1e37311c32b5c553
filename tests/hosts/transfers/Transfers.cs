// One end of a transfer, as transfers.c in the same folder: `Transfers.exe send|buffer|parts NAME SESSION SIZE [ADDRESS]`.
using System;
using System.Text;
using MetaMystia.Network;

internal sealed class Transfers
{
    private readonly string role;
    private readonly int size;
    private readonly byte[] bytes;
    private ulong arrived;
    private bool moves;

    private Transfers(string role, int size)
    {
        this.role = role;
        this.size = size;
        bytes = new byte[size];
        if (role == "send")
        {
            for (int at = 0; at < size; at++)
            {
                bytes[at] = ByteAt((ulong)at);
            }
        }
    }

    private static int Main(string[] arguments)
    {
        Transfers end = new Transfers(arguments[0], int.Parse(arguments[3]));
        RoomOptions options = new RoomOptions { Poll = false };
        using (Room room = Room.Join(arguments[1], arguments[2], options, joining => joining.Happened += e => end.Take(e)))
        {
            room.HandlerFailed += error => Print("FAILED " + error);
            Print("address " + room.LocalAddress);
            if (arguments.Length > 4)
            {
                room.Connect(arguments[4]);
            }
            Console.In.ReadToEnd();
        }
        return 0;
    }

    private static void Print(string line)
    {
        Console.Out.WriteLine(line);
        Console.Out.Flush();
    }

    // As transfers.py makes it.
    private static byte ByteAt(ulong place)
    {
        return (byte)(place * 167 + (place >> 12) * 13);
    }

    private static void Check(byte[] data, ulong from)
    {
        for (int at = 0; at < data.Length; at++)
        {
            if (data[at] != ByteAt(from + (ulong)at))
            {
                throw new InvalidOperationException("a byte differs at " + (from + (ulong)at));
            }
        }
    }

    private void Take(RoomEvent e)
    {
        if (e is PeerJoined joined && role == "send")
        {
            e.Room.SendTransfer(joined.Peer, bytes, Encoding.UTF8.GetBytes("map"));
            Print("begun");
        }
        else if (e is TransferOffered offered)
        {
            if (offered.Size != (ulong)size || Encoding.UTF8.GetString(offered.Tag) != "map")
            {
                throw new InvalidOperationException("the offer");
            }
            if (role == "buffer")
            {
                e.Room.AcceptTransfer(offered.From, offered.Transfer, bytes);
            }
            else
            {
                e.Room.AcceptTransferInParts(offered.From, offered.Transfer);
            }
            Print("begun");
        }
        else if (e is TransferProgress)
        {
            if (!moves)
            {
                Print("moving");
            }
            moves = true;
        }
        else if (e is TransferPart part)
        {
            if (part.Offset != arrived)
            {
                throw new InvalidOperationException("a gap between parts");
            }
            Check(part.Data, arrived);
            arrived += (ulong)part.Data.Length;
        }
        else if (e is TransferResult result)
        {
            if (result.Success && role == "buffer")
            {
                Check(bytes, 0);
            }
            if (result.Success && role == "parts" && arrived != result.Size)
            {
                throw new InvalidOperationException("parts are missing");
            }
            Print("result " + (int)result.Reason + " " + result.Done);
        }
    }
}
