//! Plans and seeds that once broke a property. Every run starts with them.
//!
//! A seed means the plan that its generator drew, and another plan since the generator changed: old seeds stay because they cost
//! nothing. A plan keeps its meaning as long as its steps do.

/// Plans, with the faults that they found.
#[rustfmt::skip]
pub const PLANS: &[(&str, &str)] = &[
    (
        "a joiner sent the room what its host had asked for before it joined (P16)",
        r#"{"seed":74,"size":5,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[35,40],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[4],"steps":[],"heal_at_ms":9186,"phase":"Join"}"#,
    ),
    (
        "a deaf leader lost its voters in two windows (P13)",
        r#"{"seed":204,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[971429,1008376,986323],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[3382,{"Start":{"slot":2,"contact":1}}],[5679,{"Transfer":{"target":0}}],[5961,{"Isolate":{"who":{"Slot":2},"deaf":false,"mute":true,"for_ms":5443}}],[5992,{"SetLeader":{"calls":[[1,1],[2,2]]}}]],"heal_at_ms":10391,"phase":"DeafLeader"}"#,
    ),
    (
        "a deaf leader lost its voters before the first tick of a window (P13)",
        r#"{"seed":5071,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}]],"heal_at_ms":9533,"phase":"DeafLeader"}"#,
    ),
    (
        "a new leader did not answer a limit that it received before it led",
        r#"{"seed":2107,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":false},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[5,4,2],"steps":[[2635,{"Start":{"slot":6,"contact":1}}],[3212,{"Start":{"slot":3,"contact":6}}],[3299,{"Strays":{"copies":30,"leftovers":100,"passed":0,"most_ms":3000}}],[3553,{"Start":{"slot":1,"contact":1}}],[9358,{"SetLeader":{"calls":[[6,1],[4,4],[2,1],[6,1]]}}],[12101,{"Limit":{"max_peers":27}}],[13840,{"Crash":{"who":{"Slot":1},"back_ms":5117}}]],"heal_at_ms":13962,"phase":"Quiet"}"#,
    ),
    (
        "a member whose new leader had kicked it before was not notified that no member leads (P8)",
        r#"{"seed":331,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":true,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[10,10],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[1285,{"Start":{"slot":3,"contact":2}}],[1519,{"Start":{"slot":2,"contact":2}}],[2246,{"Start":{"slot":1,"contact":1}}],[4443,{"Lie":{"liar":3,"victim":{"Slot":1},"words":"Leads","far":{"Above":1},"epoch":false}}],[4830,{"Pause":{"who":"Leader","for_ms":2022}}],[6046,{"Slander":{"liar":3,"victim":{"Slot":1},"about":1,"words":"RoomRules"}}]],"heal_at_ms":11337,"phase":"Quiet","liars":[true],"wall_clocks":[-852,886,1125]}"#,
    ),
    (
        "an acceptor counted the time for which its host thought about a leader as time led (P16)",
        r#"{"seed":9122745411,"size":1,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":false},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[],"heal_at_ms":19826,"phase":"Join","hosts":{"asked":true,"decide":true,"talk":false}}"#,
    ),
    (
        "a leader went on asking a voter to lead that had forgotten its votes",
        r#"{"seed":9122709751,"size":6,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":[0,2],"absent":[],"roster":[0,1,2],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[0,{"Start":{"slot":1,"contact":1}}],[0,{"Start":{"slot":2,"contact":0}}],[4461,{"OldDisk":{"who":{"Slot":0},"writes_ago":null,"back_ms":3624}}],[12174,{"SetLeader":{"calls":[[0,0]]}}]],"heal_at_ms":12294,"phase":"Quiet"}"#,
    ),
    (
        "a voter began a campaign as soon as its leader had given way to the successor that it had named (P12)",
        r#"{"seed":9122755196,"size":9,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":2612,"lateness_us":1488,"delay_ms":[24,150],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[0,0,1,-1,0,1],"apart":null,"absent":[],"roster":[0,1,2,3,4,5],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[531,{"Start":{"slot":2,"contact":0}}],[687,{"Start":{"slot":8,"contact":1}}],[741,{"Start":{"slot":1,"contact":1}}],[779,{"Cut":{"from":[1],"to":[0,2,3,4,5],"for_ms":2835}}],[1390,{"LateData":{"most_ms":300}}],[1546,{"Observe":{"slot":8,"eligible":false}}],[1750,{"Start":{"slot":3,"contact":5}}],[2611,{"Start":{"slot":5,"contact":2}}],[3462,{"Start":{"slot":4,"contact":4}}],[4050,{"Cut":{"from":[0,1,2,5],"to":[3,4],"for_ms":2446}}],[4050,{"Cut":{"from":[3,4],"to":[0,1,2,5],"for_ms":2446}}],[4432,{"SetLeader":{"calls":[[3,3],[0,0]]}}],[5873,{"Delay":{"least_ms":7,"most_ms":10}}],[5911,{"Start":{"slot":6,"contact":2}}],[6323,{"Start":{"slot":7,"contact":5}}]],"heal_at_ms":6481,"phase":"OneCall","hosts":{"asked":false,"decide":false,"talk":true}}"#,
    ),
    (
        "a member believed in an incarnation of the leader that the one it had been linked to had replaced (P8)",
        r#"{"seed":9122735315,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":1582,"delay_ms":[20,150],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[961706,978880,1014053,1006809],"priorities":[],"apart":[0,2],"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[0,{"Start":{"slot":1,"contact":3}}],[0,{"Start":{"slot":2,"contact":2}}],[0,{"Start":{"slot":3,"contact":0}}],[4360,{"Transfer":{"target":3}}],[4420,{"Strays":{"copies":10,"leftovers":100,"passed":0,"most_ms":50}}],[5268,{"Leave":{"who":{"Slot":2},"back_ms":2377}}],[10200,{"SetBack":{"slot":3,"by_ms":1000,"back_ms":4000}}],[11089,{"Strays":{"copies":10,"leftovers":0,"passed":0,"most_ms":3000}}],[14051,{"Strays":{"copies":30,"leftovers":30,"passed":0,"most_ms":3000}}],[15230,{"SetBack":{"slot":2,"by_ms":60000,"back_ms":0}}],[17118,{"Leave":{"who":{"Slot":2},"back_ms":5967}}]],"heal_at_ms":22089,"phase":"Quiet"}"#,
    ),
    (
        "a room without a leader was waited for, although its limit kept one out and only a host could give it a leader (P9)",
        r#"{"seed":9122729707,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[2,1,0],"steps":[[0,{"Start":{"slot":3,"contact":2}}],[0,{"Start":{"slot":4,"contact":6}}],[0,{"Start":{"slot":5,"contact":5}}],[0,{"Start":{"slot":6,"contact":4}}],[19318,{"Limit":{"max_peers":2}}],[20730,{"SetLeader":{"calls":[[4,4],[1,2]]}}],[22988,{"Leave":{"who":{"Slot":4},"back_ms":6662}}]],"heal_at_ms":24376,"phase":"Quiet","hosts_wait":true,"hosts":{"asked":true,"decide":false,"talk":false}}"#,
    ),
    (
        "the winner of two linked leaders gave way to what a follower reported of the other from before (P10)",
        r#"{"seed":9200020458,"size":5,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":941,"delay_ms":[116,150],"silence_is_reported":true,"keeps_keys":false},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[1219,{"Strays":{"copies":10,"leftovers":0,"passed":0,"most_ms":400}}],[1321,{"Start":{"slot":2,"contact":4}}],[1576,{"Start":{"slot":4,"contact":4}}],[1706,{"Start":{"slot":3,"contact":2}}],[2342,{"Strays":{"copies":10,"leftovers":100,"passed":0,"most_ms":50}}],[2406,{"Start":{"slot":1,"contact":4}}],[5496,{"Strays":{"copies":0,"leftovers":0,"passed":0,"most_ms":50}}],[6020,{"Pause":{"who":"Leader","for_ms":1031}}]],"heal_at_ms":8055,"phase":"Heal"}"#,
    ),
    (
        "a limit kept voters apart that had no leader to lift it (P9)",
        r#"{"seed":9400024899,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":2468,"delay_ms":[10,10],"silence_is_reported":false,"keeps_keys":true},"observers":[1],"clocks":[977845,998977,984847,1019738,1002472,969788],"priorities":[],"apart":null,"absent":[],"roster":[0,2,3,4,5],"steps":[[0,{"Start":{"slot":1,"contact":0}}],[0,{"Start":{"slot":3,"contact":5}}],[0,{"Start":{"slot":4,"contact":4}}],[0,{"Start":{"slot":5,"contact":0}}],[3110,{"Limit":{"max_peers":2}}],[7237,{"Leave":{"who":"Leader","back_ms":2715}}]],"heal_at_ms":14849,"phase":"Join","hosts":{"asked":true,"decide":true,"talk":false},"first_term":1073741824}"#,
    ),
    (
        "a voter that knew its votes again was asked to lead before it had reported so (P12)",
        r#"{"seed":5868,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":true,"member_hold_ms":3499,"lateness_us":1534,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"roster":[0,1,2],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[100,{"Start":{"slot":1,"contact":0}}],[200,{"Start":{"slot":2,"contact":0}}],[3500,{"Delay":{"least_ms":100,"most_ms":150}}],[5699,{"Crash":{"who":{"Slot":0},"back_ms":2151}}],[5804,{"OldDisk":{"who":{"Slot":2},"writes_ago":2,"back_ms":730}}]],"heal_at_ms":6869,"phase":"OneCall","hosts":{"asked":true,"decide":true,"talk":false}}"#,
    ),
    (
        "a link came about through a cut, and its ends compared what they had sent before it (P14)",
        r#"{"seed":9700193357,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":2095,"delay_ms":[128,150],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[279,{"Start":{"slot":3,"contact":1}}],[398,{"Start":{"slot":1,"contact":0}}],[2993,{"Start":{"slot":2,"contact":0}}],[8140,{"Flap":{"slot":3,"other":null,"period_ms":4000,"times":4}}]],"heal_at_ms":20550,"phase":"Quiet","hosts":{"asked":true,"decide":true,"talk":true}}"#,
    ),
    (
        "a member that may not lead was shown a leader again that was dead, by a heartbeat from before (P8)",
        r#"{"seed":383426762475,"size":1,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":429,"delay_ms":[29,150],"silence_is_reported":true,"keeps_keys":false},"observers":[],"clocks":[1038480],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[975,{"Start":{"slot":1,"contact":0}}],[3146,{"Crash":{"who":{"Slot":0},"back_ms":836}}],[5798,{"Lie":{"liar":1,"victim":{"Slot":0},"words":"Limit","far":"Leap","epoch":false}}],[6467,{"Lie":{"liar":1,"victim":{"Slot":0},"words":"Assigned","far":{"Above":18446744073709551615},"epoch":false}}],[8964,{"Start":{"slot":2,"contact":0}}],[10951,{"Slander":{"liar":1,"victim":{"Slot":0},"about":0,"words":"Peers"}}],[11765,{"Slander":{"liar":2,"victim":"Leader","about":0,"words":"Assigns"}}],[12964,{"Lie":{"liar":2,"victim":"Leader","words":"Hello","far":{"Above":1024},"epoch":false}}],[13118,{"Lie":{"liar":2,"victim":"Leader","words":"Hello","far":"Leap","epoch":true}}],[13861,{"Limit":{"max_peers":96}}],[15860,{"Slander":{"liar":1,"victim":"Leader","about":0,"words":"Answers"}}],[15970,{"Lie":{"liar":2,"victim":"Leader","words":"Hello","far":{"Above":1024},"epoch":false}}],[17420,{"Slander":{"liar":1,"victim":{"Slot":0},"about":0,"words":"Data"}}],[17425,{"Crash":{"who":{"Slot":0},"back_ms":3397}}]],"heal_at_ms":20312,"phase":"Quiet","liars":[true,false],"hosts":{"asked":false,"decide":false,"talk":true}}"#,
    ),
    (
        "a copy of a dead leader's heartbeat was taken for a sign of life (P8)",
        r#"{"seed":457685181432,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[5,10],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"roster":[0,1,2,3],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[2868,{"Start":{"slot":1,"contact":1}}],[3164,{"Start":{"slot":3,"contact":3}}],[4132,{"Start":{"slot":5,"contact":1}}],[5617,{"Start":{"slot":4,"contact":3}}],[6033,{"Strays":{"copies":10,"leftovers":0,"passed":0,"most_ms":3000}}],[7236,{"OldDisk":{"who":{"Slot":3},"writes_ago":6,"back_ms":2357}}]],"heal_at_ms":23837,"phase":"Quiet","hosts":{"asked":false,"decide":false,"talk":true}}"#,
    ),
    (
        "the second incarnation of a leader was taken for the first, which had crashed (P8, a fault of the check)",
        r#"{"seed":753290914292,"size":4,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[9,40],"silence_is_reported":false,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"roster":[0],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[15920,{"Start":{"slot":2,"contact":1}}],[16289,{"Crash":{"who":"Leader","back_ms":1462}}],[18367,{"Crash":{"who":"Leader","back_ms":3735}}]],"heal_at_ms":23258,"phase":"Quiet"}"#,
    ),
    (
        "a transfer that a host had asked for was under way when a newcomer joined (P16, a fault of the check)",
        r#"{"seed":610786897491,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[965833],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[0,{"Start":{"slot":1,"contact":0}}],[0,{"Start":{"slot":2,"contact":0}}],[0,{"SlowDisk":{"most_ms":600}}],[0,{"Strikes":{"percent":11}}],[2000,{"Crash":{"who":"Leader","back_ms":949}}],[5059,{"Crash":{"who":{"Slot":1},"back_ms":66}}],[11190,{"SetLeader":{"calls":[[0,0]]}}],[11962,{"Transfer":{"target":0}}]],"heal_at_ms":12000,"phase":"Join"}"#,
    ),
    (
        "eighty lost members lost their places in one tick (contract, a fault of the check)",
        r#"{"seed":414754298133,"size":100,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":3170,"lateness_us":1295,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"roster":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63],"steps":[],"heal_at_ms":8467,"phase":"Minority"}"#,
    ),
    (
        "a member waited for a peer that had closed their link for silence, before the peer's room was over",
        r#"{"seed":902805,"size":3,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[24,40],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[0,{"Start":{"slot":1,"contact":1}}],[0,{"Start":{"slot":2,"contact":1}}],[173,{"Pause":{"who":{"Slot":0},"for_ms":317}}],[308,{"Pause":{"who":{"Slot":2},"for_ms":3151}}],[3200,{"Kick":{"victim":0}}]],"heal_at_ms":12308,"phase":"Quiet","strategy":{"seeded":{"voters":[1,2],"seeds":[1,2],"strict_start":false,"never_alone":false,"probe_ms":65,"heartbeat_ms":130,"timeout_ms":1230,"ttl_ms":3545,"retry_ms":1089,"trial":"Quiet"}}}"#,
    ),
    (
        "the same where gossip elects: the peer's room was over while the end of their link was under way",
        r#"{"seed":917812,"size":6,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[108,150],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[5,0],"steps":[[362,{"Start":{"slot":2,"contact":2}}],[384,{"Strays":{"copies":2,"leftovers":100,"passed":0,"most_ms":400}}],[416,{"Start":{"slot":1,"contact":4}}],[1169,{"SetLeader":{"calls":[[4,2],[2,1]]}}],[1235,{"Delay":{"least_ms":23,"most_ms":40}}],[1416,{"Observe":{"slot":1,"eligible":true}}],[1897,{"Start":{"slot":3,"contact":3}}],[2728,{"Crash":{"who":{"Slot":2},"back_ms":1338}}],[3131,{"Priority":{"slot":3,"priority":0}}],[3238,{"Start":{"slot":4,"contact":5}}],[3574,{"Isolate":{"who":{"Slot":4},"deaf":false,"mute":true,"for_ms":4300}}],[4818,{"Strays":{"copies":30,"leftovers":0,"passed":0,"most_ms":400}}],[4974,{"Kick":{"victim":1}}]],"heal_at_ms":24841,"phase":"Quiet","strategy":{"gossip":{"strict_lowest":false,"grace_ms":1011,"sample_ms":120,"alive_ms":711,"election_ms":355,"trial":"Quiet"}},"liars":[false]}"#,
    ),
    (
        "a leader of a static quorum was stopped after a round trip had lengthened its timeout, and before the heartbeat that carries it",
        r#"{"seed":901846,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":true,"member_hold_ms":60000,"lateness_us":1994,"delay_ms":[52,150],"silence_is_reported":false,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"roster":[0,1,2,3],"steps":[[1184,{"Start":{"slot":3,"contact":1}}],[2097,{"Start":{"slot":2,"contact":1}}],[3407,{"Start":{"slot":1,"contact":1}}],[3923,{"SlowDisk":{"most_ms":200}}],[4437,{"SetLeader":{"calls":[[1,2]]}}],[5015,{"StreamLoss":{"loss":20}}],[6600,{"Datagrams":{"loss":27,"copies":26}}],[6900,{"SlowDisk":{"most_ms":1000}}],[7847,{"SetLeader":{"calls":[[3,0],[0,0]]}}],[7899,{"Datagrams":{"loss":25,"copies":11}}],[8800,{"Crash":{"who":{"Slot":3},"back_ms":61}}],[9323,{"Crash":{"who":{"Slot":2},"back_ms":100}}],[10670,{"SetLeader":{"calls":[[2,0],[3,3],[3,2]]}}],[11849,{"Pause":{"who":"Leader","for_ms":4300}}]],"heal_at_ms":15540,"phase":"Quiet"}"#,
    ),
    (
        "two leaders each gave way to the other: a follower of the larger side stated the weight of a moment before (P10)",
        r#"{"seed":911719,"size":5,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":2390,"lateness_us":1016,"delay_ms":[49,150],"silence_is_reported":true,"keeps_keys":false},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[822,{"Start":{"slot":4,"contact":0}}],[1509,{"Start":{"slot":5,"contact":1}}],[2355,{"Start":{"slot":2,"contact":0}}],[3032,{"Lie":{"liar":5,"victim":"Leader","words":"Assigned","far":"Leap","epoch":false}}],[3731,{"Start":{"slot":3,"contact":2}}],[4918,{"Lie":{"liar":5,"victim":{"Slot":4},"words":"Answers","far":{"Above":1024},"epoch":true}}],[5667,{"Lie":{"liar":5,"victim":"Leader","words":"Requests","far":"Bound","epoch":false}}],[6121,{"Cut":{"from":[0],"to":[4],"for_ms":2987}}],[6121,{"Cut":{"from":[4],"to":[0],"for_ms":2987}}],[6247,{"Lie":{"liar":5,"victim":"Leader","words":"Ack","far":"Leap","epoch":false}}],[7115,{"Lie":{"liar":5,"victim":{"Slot":3},"words":"Hello","far":"Leap","epoch":false}}]],"heal_at_ms":8693,"phase":"Heal","liars":[true]}"#,
    ),
    (
        "a host that saw no leader allowed elections, and its member kept waiting for a leader without a path to it (P9)",
        r#"{"seed":1301184,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[2,1,6,5],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[3658,{"Start":{"slot":4,"contact":4}}],[3837,{"Start":{"slot":3,"contact":3}}],[5696,{"Crash":{"who":{"Slot":3},"back_ms":801}}],[6849,{"SetLeader":{"calls":[[3,3],[6,1],[6,0]]}}],[7520,{"Leave":{"who":"Leader","back_ms":7653}}],[8454,{"Auto":{"slot":0,"enabled":true}}]],"heal_at_ms":9149,"phase":"Quiet","hosts_wait":true}"#,
    ),
];

/// Seeds.
#[rustfmt::skip]
pub const SEEDS: &[u64] = &[
    // Repeated calls that allow elections put the election off for ever.
    2, 5, 7,
    // A leader's heartbeat undid a SetLeader on its way; links that came back counted as gone.
    53, 111, 116, 121, 128, 163,
    // A node that may not campaign never learned of a leader out of its reach.
    44, 186, 1216, 1376, 1510, 1543, 2197, 6128,
    // Two leaders that shared one follower deposed each other for ever.
    4475, 4811, 6463, 8102, 8399,
    // A leader gave up while its new voters were still in their grace period, or raised terms while it waited.
    210_874, 220_094, 237_958,
    // From here on with the present generator: a voter led as soon as only an observer was left; a leader compared itself with
    // its follower's earlier report; an assigned leader counted only members linked after it.
    1_002_722, 1_003_873, 1_004_902,
    // With a fixed number of voters, the only voter waited for observers.
    1_000_210, 1_001_204, 1_001_302,
    // The only voter repeated its question to observers before their answers could be back.
    1_017_403,
    // A leader that waited for the answers to its leave was considered a rival.
    1_005_763,
    // Found by longer runs of the same time.
    73_802, 94_477, 96_329,
    // A part of a side elected together with a member that received from the leader of the rest: two votes of three arrived
    // before its objection (P10, P14).
    68_514, 1_022_360, 1_057_387,
    // An assignment was repeated for a target that could no longer lead (P6).
    1_023_868,
    // A candidate gave up terms while the votes were on their way (P15).
    1_042_903, 1_054_327,
    // Two candidates that asked at the same time split the votes, term after term (P10).
    1_057_846,
    // Two slots for a hundred voters: half of them asked before the first one was elected, and asked again (P18).
    3_039_907, 3_123_923,
    // A kicked member that waited for answers to its leave counted among the members that must agree (P11).
    5_063_597,
    // A `SetLeader` named a kicked member that waited for answers to its leave (P12).
    6_017_966,
    // A side that had just elected reported its weight without the vote that elected it (P10).
    6_054_023,
    // The successor of a leader of few was elected by voters with a link to the leader of many (P14).
    6_097_488, 6_175_838,
    // Terms from before a restart of all members counted (P15).
    6_124_899,
    // A leader that yielded named a member that had just left (P8).
    6_166_067,
    // A leader measured its slowest answer in the moment in which it went deaf (P13).
    2_017_703,
    // A member with an old limit refused the link of the leader that had lifted it (P9).
    7_314_006_028,
    // A SetLeader that named a dead leader made all wait for a host (P9).
    7_314_007_150,
    // Two leaders were linked while both campaigned in place in one term, and neither yielded (P2).
    9_122_002_803,
    // A voter received the target's new term before the leader's message, and refused its vote (P12).
    9_122_012_924,
    // An assignment went to a peer that the same tick had replaced.
    9_122_016_262,
    // A leader transferred its leadership while too few voters knew their votes (P11).
    9_122_017_828,
    // A voter with an old file took back a vote, and ended before the write; another one gave up a candidacy (P4).
    9_122_505_508, 9_122_536_567,
    // A kicked leader learned of the kick late, and stopped leading (P14).
    9_122_510_917,
    // A connection that was closed during a cut delivered its first Hello when the cut ended (P14).
    9_122_532_971,
    // A record whose leader no member had followed bound all to wait for a host (P9).
    9_122_536_376,
    // An acceptor counted the time of its host's decision about a leader as time led (P16).
    9_122_745_405,
    // A leader kept asking a voter to lead that had forgotten its votes (quiet).
    9_122_709_744,
    // A voter began a campaign as soon as its leader had yielded to the successor that it had named (P12).
    9_122_755_196,
    // A member believed in an incarnation of the leader after it had been linked to its replacement (P8).
    9_122_735_315,
    // A full room without a leader refused its own member after a restart (P9).
    9_122_729_707,
    // The winner of two linked leaders yielded to a follower's outdated report of the other (P10).
    9_200_020_458,
    // A leader's window was as long as round trips had been at the window's start (P13).
    9_200_002_396,
    // Two sides of a room could elect no leader: a voter had lost its file, and others were absent (P10).
    9_300_013_897, 9_300_029_174,
    // A request for votes waited for the disk, and a voter sent it after it had noticed that it forgot votes (P4).
    9_300_035_988,
    // A candidate counted a vote of another term that had the number of its round (P5).
    9_300_078_576,
    // A disk was slow, and answers to many rounds of votes waited for it (contract).
    9_300_057_729, 9_300_067_017,
    // A bad disk delayed a transfer that its host had given up long before (P14).
    9_300_056_875,
    // A limit kept the voters of a static quorum apart while there was no leader to lift it (P9).
    9_300_059_032, 9_400_024_899,
    // A leader repeatedly asked a target that could not win, as its host wanted, while the room counted as quiet.
    9_800_020_827,
    // A leader that others had named was shown again after its end, because of an earlier heartbeat (P8).
    383_426_762_474,
    // A copy of a dead leader's heartbeat counted as a sign of life (P8).
    457_685_181_430,
    // Two members that received nothing from the leader elected another one, whose claim deposed it (P14).
    13_010_010,
    // The host accepted an earlier process of a member that had entered meanwhile, and its session ended (liars).
    14_013_105,
    // A leader of another key than the linked peer's was doubted, and requests for votes were due to lost members (contract).
    14_017_776,
    // Faults of the checks: the second incarnation of a leader was taken for the first (P8), a transfer was under way when a
    // newcomer joined (P16), and eighty members lost their places in one tick (contract).
    753_290_914_288, 610_786_897_491, 414_754_298_133,
    // Another one: a node that had led alone for a moment had to lead on (P14).
    16_019_893,
];
