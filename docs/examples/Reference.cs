// The examples of the reference in C#, by function: scripts/reference.py shows the body of the method under each "//:" line.
// tests/hosts/snippets.py compiles this file, and scripts/documents.py checks that no function is missing.
using System;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using MetaMystia.Network;

internal sealed class Reference
{
    private const ushort Position = 0x0101, Buy = 0x0102;
    private Room room = null;
    private readonly RoomOptions options = new RoomOptions();
    private readonly byte[] place = new byte[12], data = new byte[5];

    //: mmn_abi_version mmn_library_version
    private void Versions()
    {
        // Room.Join compares both by itself: an older library is an exception that names the two.
        Console.WriteLine("ABI " + NativeMethods.mmn_abi_version());
    }

    //: mmn_open mmn_default_options mmn_last_error_code mmn_last_error_message
    private void Opening()
    {
        var options = new RoomOptions();    // poll mode: handlers run inside Poll
        options.Settings.DiscoveryMode = DiscoveryMode.Connect;
        try
        {
            room = Room.Join("alice", "our secret tea party", options);
        }
        catch (NetworkException e)
        {
            Console.WriteLine(e.Code + ": " + e.Message);
        }
    }

    //: mmn_poll
    private void Update()
    {
        room.Poll(100);     // once per frame: the handlers run in here
    }

    //: mmn_leave mmn_close mmn_is_open
    private void Leaving()
    {
        room.Leave();       // begins, also inside a handler
        if (!room.IsOpen) Console.WriteLine("leaving");
        room.Dispose();     // waits for the end: outside of handlers
    }

    //: mmn_set_event_handler mmn_take_messages
    private void Handlers()
    {
        room.Happened += e => Console.WriteLine(e.Kind);                // every event, with the messages
        room.LeaderChanged += leader => Console.WriteLine("the leader is " + (leader ?? "none yet"));
        room.MessageReceived += m => Console.WriteLine(m.From);         // messages wait for the first of these, for 5 s
    }

    //: mmn_default_room mmn_is_announced
    private void DefaultRoom()
    {
        ulong classic = NativeMethods.mmn_default_room();       // 0 if no default room is open
        if (classic != 0 && !room.IsDiscovering) Console.WriteLine("others in the local network do not discover this host");
    }

    //: mmn_show_card
    private void Showing()
    {
        // at every member: the leader's is shown
        room.ShowCard(new RoomCard { Game = "tea party", Name = "Alice's room", IsOpen = true });
        room.ShowCard(null);
    }

    //: mmn_browse_open mmn_browse_poll mmn_browse_close
    private void Browsing()
    {
        var browser = new RoomBrowser("tea party");
        browser.Changed += found => Console.WriteLine(found.Change + " " + found.Name + ": " + found.Players + " players at " + found.Address);
        browser.Poll(100);                                              // once per frame
        browser.Dispose();
    }

    //: mmn_describe_error
    private void Describing(ConnectionResult result)
    {
        Console.WriteLine(result.Code + ": " + Room.Describe(result.Code));
    }

    //: mmn_connect mmn_local_address mmn_local_addresses mmn_public_address
    private async Task Dialling(string typed)
    {
        Console.WriteLine("others dial " + room.LocalAddress);
        foreach (string address in room.LocalAddresses) Console.WriteLine(address);
        Console.WriteLine(room.PublicAddress ?? "not seen on the internet");
        ConnectionResult result = await room.ConnectAsync(typed);     // or Connect, and the event ConnectionResult
        if (!result.Success) Console.WriteLine(Room.Describe(result.Code));
    }

    //: mmn_set_turn
    private void Renewing(string credentials)                         // of the game's server, before the present ones expire
    {
        room.SetTurn(new[] { "turns:turn.example.org:443 " + credentials });
        // The event TurnChanged reports the outcome.
    }

    //: mmn_disconnect
    private void Disconnecting()
    {
        room.Disconnect("bob", 7, Encoding.UTF8.GetBytes("bye"));     // bob receives 7 and "bye"
    }

    //: mmn_local_id mmn_session_id mmn_peer_count mmn_peers mmn_members
    private void Members()
    {
        Console.WriteLine(room.PeerId + " in " + room.SessionId);
        Console.WriteLine(room.Peers.Length + " peers: " + string.Join(", ", room.Peers));
        Console.WriteLine("with the reconnecting ones: " + string.Join(", ", room.Members));
    }

    //: mmn_peer_status mmn_peer_address mmn_peer_path mmn_peer_carrier mmn_peer_rtt_ms
    private void AboutAPeer()
    {
        if (room.StatusOf("bob") != PeerStatus.Connected) return;
        Console.WriteLine(room.AddressOf("bob") ?? "bob hides the address");
        Console.WriteLine("round trip " + room.RoundTripMs("bob") + " ms");
        if (room.PathOf("bob") == LinkPath.ThroughMember) Console.WriteLine("through " + room.CarrierOf("bob"));
    }

    //: mmn_peer_index mmn_peer_id
    private void Indices()
    {
        uint index = room.IndexOf("bob");       // the number of bob in this room, here; 0 is none
        if (index != 0) Console.WriteLine(index + " is " + room.PeerAt(index));
    }

    //: mmn_generate_identity_key mmn_local_fingerprint mmn_peer_fingerprint
    private void Identity()
    {
        File.WriteAllBytes("identity.key", Room.GenerateIdentityKey());
        options.IdentityKey = File.ReadAllBytes("identity.key");      // the same at every start
        Console.WriteLine("this member: " + room.IdentityFingerprint);
        Console.WriteLine("bob: " + room.FingerprintOf("bob"));
    }

    //: mmn_generate_room_code mmn_normalize_room_code
    private void RoomCodes(string typed)
    {
        Console.WriteLine("read it out: " + Room.CreateCode());
        try
        {
            Console.WriteLine(Room.NormalizeCode(typed));
        }
        catch (NetworkException e)
        {
            Console.WriteLine(e.Message);       // the wrong character, or a typo
        }
    }

    //: mmn_set_auto_reconnect mmn_auto_reconnect
    private void Reconnecting()
    {
        room.AutoReconnect = false;     // a lost peer has left at once
        Console.WriteLine(room.AutoReconnect);
    }

    //: mmn_kick mmn_unban
    private void Moderation()
    {
        room.Kick("mallory", data: Encoding.UTF8.GetBytes("griefing"), ban: true);
        room.Unban("mallory");          // lets the id and the key in again
    }

    //: mmn_set_max_peers
    private void Limit()
    {
        room.SetMaxPeers(4);            // the leader alone; no member is removed
    }

    //: mmn_set_join_payload
    private void JoinPayload()
    {
        room.SetJoinPayload(Encoding.UTF8.GetBytes("ticket 4711"));   // before Connect
    }

    //: mmn_set_join_requests mmn_accept_join mmn_reject_join
    private void JoinRequests()
    {
        room.EnableJoinRequests(true);  // at every member that may come to lead
        room.Happened += e =>
        {
            if (!(e is JoinRequest asked)) return;
            if (Encoding.UTF8.GetString(asked.Payload) == "ticket 4711") room.AcceptJoin(asked.Request);
            else room.RejectJoin(asked.Request, 1, Encoding.UTF8.GetBytes("no ticket"));
        };
    }

    //: mmn_leader mmn_is_leader mmn_leader_term mmn_leader_epoch mmn_strategy
    private void Leader()
    {
        Console.WriteLine("leader: " + (room.Leader ?? "none yet"));
        if (room.IsLeader) Console.WriteLine("this member leads");
        Console.WriteLine("term " + room.LeaderTerm + ", epoch " + room.LeaderEpoch);
        if (room.ElectionStrategy == ElectionStrategy.Raft) Console.WriteLine("by votes");
    }

    //: mmn_set_leader mmn_set_auto_election
    private void Choosing()
    {
        room.SetLeader("bob");          // SetLeaderResult reports the outcome
        room.SetAutoElection(true);     // the members elect another one when bob is lost
    }

    //: mmn_set_eligible mmn_set_priority
    private void Electable()
    {
        room.SetLeaderEligible(false);  // a spectator: neither leads nor votes
        room.SetElectionPriority(10);   // preferred when the leader is lost; displaces no living one
    }

    //: mmn_transfer_leadership mmn_yield_leadership
    private void Transfer()
    {
        if (room.StatusOf("bob") == PeerStatus.Connected) room.TransferLeadership("bob");
        else room.YieldLeadership();    // to any member that can
    }

    //: mmn_set_gossip_windows mmn_gossip_windows
    private void Gossip()
    {
        GossipWindows windows = room.GossipWindows;
        windows.AliveThresholdMs = 4000;
        windows.ElectionDurationMs = 4000;
        room.GossipWindows = windows;
    }

    //: mmn_default_seeded_options mmn_member_state mmn_cluster_version
    private void Seeded()
    {
        options.Settings.Strategy = ElectionStrategy.Seeded;
        options.Settings.QuorumPolicy = QuorumPolicy.Static;
        options.QuorumRoster = new[] { "s1", "s2", "s3" };
        options.Seeded = SeededOptions.Default(SeededProfile.Lan);
        options.Seeds = new[] { "10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000" };
        // later:
        if (room.StateOf("s2") == MemberState.Unreachable) Console.WriteLine("s2 is away since version " + room.ClusterVersion);
    }

    //: mmn_default_etcd_options mmn_fencing_token mmn_proclaim
    private void Etcd()
    {
        options.Settings.Strategy = ElectionStrategy.Etcd;      // in the library of `make server`
        options.Etcd = new EtcdSettings { Endpoints = new[] { "http://10.0.0.1:2379", "http://10.0.0.2:2379" } };
        // later, on the leader:
        Console.WriteLine("write with token " + room.FencingToken);
        room.Proclaim("10.0.0.7:7777");
    }

    //: mmn_acquire_lock mmn_try_lock mmn_release_lock
    private void Locks()
    {
        ulong waiting = room.AcquireLock("shard 3", 5000);      // waits up to 5 s for the lock
        ulong asked = room.TryLock("shard 4");                  // does not wait
        room.Happened += e =>
        {
            if (!(e is LockResult result) || !result.Success) return;
            if (result.Request == waiting || result.Request == asked) room.ReleaseLock(result.Lock);
        };
    }

    //: mmn_send mmn_broadcast mmn_max_datagram_size
    private void Sending()
    {
        room.SendTo("bob", Encoding.UTF8.GetBytes("hello"));    // reliable and ordered
        if (place.Length <= room.MaxDatagramSize())
            room.Broadcast(place, Delivery.Sequenced(17), Position);    // may be lost; none after a newer one
    }

    //: mmn_send_to_leader mmn_broadcast_as_leader
    private void ThroughTheLeader()
    {
        if (room.IsLeader) room.SendFromLeader(Encoding.UTF8.GetBytes("round 2"));
        else room.SendToLeader(Encoding.UTF8.GetBytes("ready"));
    }

    //: mmn_set_centralized mmn_centralized mmn_set_auto_forward mmn_auto_forward mmn_forward
    private void Centralized()
    {
        room.Centralized = true;                // at every member: broadcasts go through the leader
        room.CentralizedAutoForward = false;    // and wait there for the leader's host
        room.MessageReceived += m =>
        {
            if (room.IsLeader && m.From != room.PeerId) room.Forward(m.From, null, m.Data, m.Type);
        };
    }

    //: mmn_set_compression_threshold
    private void Compression()
    {
        room.SetCompressionThreshold(4096);     // leaves shorter payloads as they are
    }

    //: mmn_default_state_options
    private void WithAState()
    {
        options.State = StateOptions.Default();     // before Join; the same at all members
    }

    //: mmn_submit
    private async Task Actions()
    {
        room.State.Action += a =>               // at every host, in one order
        {
            if (a.Type == Buy) Console.WriteLine(a.Author + " buys " + a.Text);
        };
        await room.State.Submit(Buy, "sword");
    }

    //: mmn_set_properties mmn_property mmn_property_keys
    private async Task Properties()
    {
        RoomProperty map = room.State.Find("map");
        StateChange change = StateChange.Set("map", "forest");
        change.ExpectedVersion = map == null ? 0 : map.Version;     // only if no other member was faster
        await room.State.SetProperties(change);
        Console.WriteLine(room.State["map"] + "; all keys: " + string.Join(", ", room.State.Keys));
    }

    //: mmn_provide_snapshot
    private void Snapshots()
    {
        room.State.Save = () => data;           // the state that the actions have made
        room.State.Load = saved => Console.WriteLine(saved.Length == 0 ? "the initial state" : "another member's Save");
    }

    //: mmn_state_info
    private void Figures()
    {
        StateInfo info = room.State.Info;
        Console.WriteLine(info.Members + " members, " + info.Pending + " open requests");
    }

    //: mmn_send_transfer mmn_accept_transfer mmn_accept_transfer_in_parts mmn_cancel_transfer
    private void Transfers()
    {
        ulong sent = room.SendTransfer("bob", data, Encoding.UTF8.GetBytes("map"));
        byte[] map = null;                      // leave it alone until the result
        room.Happened += e =>
        {
            if (e is TransferOffered offered)
            {
                if (offered.Size <= 1 << 20 && map == null)
                    room.AcceptTransfer(offered.From, offered.Transfer, map = new byte[offered.Size]);
                else if (offered.Size <= 16 << 20) room.AcceptTransferInParts(offered.From, offered.Transfer);
                else room.CancelTransfer(offered.From, offered.Transfer);
            }
            else if (e is TransferPart part) Console.WriteLine(part.Data.Length + " bytes at " + part.Offset);
            else if (e is TransferResult over)
                Console.WriteLine(over.Peer == "bob" && over.Transfer == sent ? "sent" : over.Reason.Describe());
        };
    }

    //: mmn_room_time_ms
    private void Countdown(long startsAt)       // from a message of the leader: its room time + 3000
    {
        long left = startsAt - room.TimeMs;
        if (left > 0) Console.WriteLine("the round begins in " + left + " ms");      // the same everywhere
    }

    //: mmn_peer_stats mmn_room_stats
    private void Statistics()
    {
        PeerStats bob = room.StatsOf("bob");
        Console.WriteLine(bob.RttUs / 1000.0 + " ms, " + bob.LossPpm / 10000.0 + " % lost");
        Console.WriteLine(room.Stats.MissedBroadcasts + " broadcasts missed");
    }

    //: mmn_simulate_network mmn_simulate_preset
    private void BadNetwork()
    {
        room.SimulateNetwork(100, 30, 20);      // 100 ms, up to 30 ms more, 2 % lost; for tests
        room.SimulateNetwork("mobile");
    }

    //: mmn_set_log_stderr mmn_set_log
    private void Logging()
    {
        Room.EnableLogging(true, LogLevel.Info);                                        // to standard error
        Room.SetLog(LogLevel.Warn, (level, line) => File.AppendAllText("room.log", line + "\n"));     // on any thread
    }

    // The library keeps the callbacks: a static field keeps them alive.
    private static readonly ReceiveCallback Received =
        (peer, bytes, length, type, flags) => Console.WriteLine(Utf8.FromNative(peer) + ": " + length + " bytes");
    private static readonly LeaderChangedCallback Led = id => Console.WriteLine("leader: " + Utf8.FromNative(id));
    private static readonly PeerStatusCallback Status = (peer, status) => Console.WriteLine(Utf8.FromNative(peer) + " " + status);
    private static readonly ConnectionResultCallback Dialled = (address, success, code) => Console.WriteLine(Room.Describe(code));
    private static readonly ReconnectCallback Lost = (peer, status) => Console.WriteLine(Utf8.FromNative(peer) + " " + status);

    //: InitializeNetwork InitializeNetworkWithConfig IsNetworkInitialized ShutdownNetwork RegisterReceiveCallback RegisterLeaderChangedCallback RegisterPeerStatusCallback RegisterConnectionResultCallback RegisterReconnectCallback
    private void Classic()
    {
        byte[] id = Utf8.ToNative("alice"), session = Utf8.ToNative("tea");
        NetworkConfig config = NetworkConfig.Default();
        if (NativeMethods.InitializeNetwork(id, session) != ErrorCode.Ok)       // or with all settings:
            NativeMethods.InitializeNetworkWithConfig(id, session, ref config);
        NativeMethods.RegisterReceiveCallback(Received);                        // static fields: see NativeMethods.cs
        NativeMethods.RegisterLeaderChangedCallback(Led);
        NativeMethods.RegisterPeerStatusCallback(Status);
        NativeMethods.RegisterConnectionResultCallback(Dialled);
        NativeMethods.RegisterReconnectCallback(Lost);
        if (NativeMethods.IsNetworkInitialized() != 0) NativeMethods.ShutdownNetwork();
    }

    //: ConnectToPeer DisconnectPeer GetLocalAddr GetLocalPeerId GetSessionId GetPeerCount GetPeerList GetPeerStatus GetPeerRTT SetAutoReconnect IsAutoReconnectEnabled IsMdnsActive
    private void ClassicPeers()
    {
        byte[] bob = Utf8.ToNative("bob");
        Console.WriteLine(Utf8.FromNative(NativeMethods.GetLocalPeerId()) + " in " + Utf8.FromNative(NativeMethods.GetSessionId()));
        Console.WriteLine("others dial " + Utf8.FromNative(NativeMethods.GetLocalAddr()));
        if (NativeMethods.IsMdnsActive() == 0) NativeMethods.ConnectToPeer(Utf8.ToNative("192.168.1.20:40123"));
        Console.WriteLine(NativeMethods.GetPeerCount() + " peers: " + Utf8.FromNative(NativeMethods.GetPeerList()));
        if (NativeMethods.GetPeerStatus(bob) == (int)PeerStatus.Connected) Console.WriteLine(NativeMethods.GetPeerRTT(bob) + " ms");
        if (NativeMethods.IsAutoReconnectEnabled() != 0) NativeMethods.SetAutoReconnect(0);
        NativeMethods.DisconnectPeer(bob);
    }

    //: SendToPeer BroadcastMessage SendToLeader SendFromLeader ForwardMessage SetCentralizedMode IsCentralizedMode SetCentralizedAutoForward IsCentralizedAutoForward SetCompressionThreshold
    private void ClassicSends()
    {
        byte[] bob = Utf8.ToNative("bob");
        NativeMethods.SendToPeer(bob, data, data.Length, 0x0100, 0);
        NativeMethods.BroadcastMessage(data, data.Length, 0x0100, 0);
        NativeMethods.SendToLeader(data, data.Length, 0x0100, 0);
        NativeMethods.SendFromLeader(data, data.Length, 0x0100, 0);
        if (NativeMethods.IsCentralizedMode() == 0) NativeMethods.SetCentralizedMode(1);
        if (NativeMethods.IsCentralizedAutoForward() != 0) NativeMethods.SetCentralizedAutoForward(0);
        NativeMethods.ForwardMessage(bob, null, data, data.Length, 0x0100, 0);
        NativeMethods.SetCompressionThreshold(4096);
    }

    //: SetLeader GetCurrentLeader IsLeader EnableAutoLeaderElection EnableLogging GetLastErrorCode GetLastErrorMessage
    private void ClassicLeader()
    {
        NativeMethods.EnableLogging(1);
        NativeMethods.EnableAutoLeaderElection(1);
        if (NativeMethods.SetLeader(Utf8.ToNative("bob")) != ErrorCode.Ok)
            Console.WriteLine(NativeMethods.GetLastErrorCode() + ": " + Utf8.FromNative(NativeMethods.GetLastErrorMessage()));
        Console.WriteLine("leader: " + Utf8.FromNative(NativeMethods.GetCurrentLeader()));
        if (NativeMethods.IsLeader() != 0) Console.WriteLine("this member leads");
    }

    //: SetStartupGracePeriod GetStartupGracePeriod SetMembershipSampleInterval GetMembershipSampleInterval SetLeaderAliveThreshold GetLeaderAliveThreshold SetLeaderElectionDuration GetLeaderElectionDuration GetMsgExpirationTimeout GetLeadershipDeclarationInterval
    private void ClassicGossip()
    {
        NativeMethods.SetStartupGracePeriod(NativeMethods.GetStartupGracePeriod() / 2);
        NativeMethods.SetMembershipSampleInterval(NativeMethods.GetMembershipSampleInterval() / 2);
        NativeMethods.SetLeaderAliveThreshold(NativeMethods.GetLeaderAliveThreshold() / 2);
        NativeMethods.SetLeaderElectionDuration(NativeMethods.GetLeaderElectionDuration() / 2);
        Console.WriteLine(NativeMethods.GetMsgExpirationTimeout() + " and " + NativeMethods.GetLeadershipDeclarationInterval() + " ms follow");
    }
}
