//! Seeds and plans of rooms with walls that once broke a property. Every run starts with them.

/// Plans, with the faults that they found.
pub const PLANS: &[(&str, &str)] = &[(
    "the check of links that stay asked for one whose only carrier had led before, and carries for nobody else",
    r#"{"seed":6520,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":false,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[242,{"Start":{"slot":0,"contact":2}}],[11069,{"Wall":{"one":2,"other":0,"opens":true,"ends":true}}]],"heal_at_ms":12000,"phase":"Quiet","strategy":{"gossip":{"strict_lowest":false,"grace_ms":3301,"sample_ms":355,"alive_ms":1780,"election_ms":1780,"trial":"Quiet"}},"refuses":true,"paths":{"walls":[[1,3,false],[2,3,false]],"unwilling":[0,2]}}"#,
)];

/// Seeds.
pub const SEEDS: &[u64] = &[
    // A member that had left stayed the carrier of the links that it had carried.
    6,
    // A link that came up over its only carrier lost it at once, and fell silent again and again.
    80, 105,
    // A restarted member was not dialled directly: its addresses had gone with the session of its earlier incarnation.
    214, // A lost member was not dialled directly: what it had stated counted as hearsay.
    799,
    // An open dial over a carrier that does not reach the peer kept the other end's out, again and again.
    2_416,
    // The check of Hold took the Hello of a link that a member carries for news to the election (P7).
    7_101_537,
    // Of two leaders, a member let its own one carry to a member of the version before that follows the other one.
    7_102_073,
    // A host that saw its leader over a carried link, and allowed elections, had allowed one after its loss (P7).
    9_011_568, 9_017_388,
    // A restarted member was not dialled directly: where others see it had gone with the session of its earlier incarnation.
    9_002_322,
    // A partition had used up the dials of an address that never answered, and no member carried.
    9_004_179,
    // A fault of a check: a member parted from another one, whose leader was banned here and had left a moment before (liars).
    13_003_858,
];

/// Plans of rooms with relays.
pub const RELAY_PLANS: &[(&str, &str)] = &[
    (
        "the check of a room with one wall overlooked a member that none reached, and asked for one leader",
        r#"{"seed":12882,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":false,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[],"heal_at_ms":20001,"phase":"Quiet","paths":{"walls":[[0,1,false]],"relayed_only":[2]}}"#,
    ),
    (
        "the check of a quiet room counted a declaration on a new link, which a direct one was after half a minute",
        r#"{"seed":13384,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[30,40],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[961201,1039580,982273,1029090],"priorities":[],"apart":null,"absent":[2],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[0,{"Start":{"slot":1,"contact":2}}],[0,{"Start":{"slot":3,"contact":3}}],[885,{"Isolate":{"who":{"Slot":3},"deaf":false,"mute":true,"for_ms":5066}}],[11902,{"Pause":{"who":"Leader","for_ms":4155}}]],"heal_at_ms":14439,"phase":"Quiet","strategy":{"gossip":{"strict_lowest":true,"grace_ms":2586,"sample_ms":320,"alive_ms":1677,"election_ms":1677,"trial":"Quiet"}},"paths":{"walls":[],"relays":[[0,0],[1,0],[0,1],[1,1],[0,3],[1,3]],"walls_end":true}}"#,
    ),
    (
        "the check of Hold took the Hello of a direct link for news, but elections notice no link that takes over",
        r#"{"seed":5727,"size":7,"rules":{"fast":true,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[1041920,1019305,1020808,1016610,968445,1026333,980269],"priorities":[],"apart":null,"absent":[2,6],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[1549,{"Start":{"slot":5,"contact":3}}],[2529,{"Start":{"slot":7,"contact":5}}],[2549,{"Start":{"slot":4,"contact":5}}],[2748,{"Start":{"slot":1,"contact":0}}],[3536,{"Start":{"slot":3,"contact":2}}],[4470,{"NameAddresses":{"liar":7,"victim":5,"about":3,"lie":"Observed","unused":1}}],[5650,{"SetLeader":{"calls":[[1,5],[5,6],[4,1]]}}],[6026,{"Crash":{"who":"Leader","back_ms":3125}}],[7229,{"Rebind":{"slot":4,"lost":[0,1,2,3,4,5,6]}}],[7641,{"SetLeader":{"calls":[[5,0],[3,3]]}}]],"heal_at_ms":19078,"phase":"Quiet","liars":[false],"paths":{"walls":[[0,1,false],[3,5,false]],"relays":[[0,4],[0,5]],"walls_end":true}}"#,
    ),
    (
        "the check asked for a carried link of a member of the version before, which two leaders in turn could not carry",
        r#"{"seed":14830,"size":7,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":false,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":962,"delay_ms":[1,2],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[737,{"Start":{"slot":4,"contact":2}}],[924,{"Start":{"slot":2,"contact":2}}],[1046,{"Start":{"slot":1,"contact":4}}],[1978,{"Start":{"slot":6,"contact":5}}],[2105,{"SetLeader":{"calls":[[6,4],[1,1],[3,2],[2,0]]}}],[2516,{"RelayFalls":{"relay":1,"for_ms":6706}}],[2537,{"Start":{"slot":7,"contact":2}}],[2593,{"RelayDrops":{"relay":1,"from":2,"to":6,"for_ms":1777}}],[2646,{"NameAddresses":{"liar":7,"victim":1,"about":0,"lie":"MadeUp","unused":1}}],[2690,{"Start":{"slot":5,"contact":2}}],[2877,{"Start":{"slot":3,"contact":4}}],[2984,{"SetLeader":{"calls":[[2,4],[3,3],[1,5],[5,4]]}}],[3368,{"NameAddresses":{"liar":7,"victim":6,"about":6,"lie":"Observed","unused":2}}],[4510,{"RelayHides":{"relay":0,"slot":5,"for_ms":13227}}],[4696,{"NameAddresses":{"liar":7,"victim":1,"about":4,"lie":"Observed","unused":3}}],[4905,{"Rebind":{"slot":5,"lost":[1]}}],[5093,{"RelayLies":{"relay":0,"victim":0,"about":6,"lie":"MadeUp","unused":2}}],[5258,{"NameAddresses":{"liar":7,"victim":1,"about":2,"lie":"MadeUp","unused":1}}],[5578,{"NoWall":{"one":2,"other":0}}],[6196,{"NameAddresses":{"liar":7,"victim":3,"about":0,"lie":"Punch","unused":1}}],[6288,{"NameAddresses":{"liar":7,"victim":0,"about":6,"lie":"Beside","unused":3}}],[6704,{"RelayHides":{"relay":1,"slot":2,"for_ms":17817}}],[6713,{"NameAddresses":{"liar":7,"victim":2,"about":0,"lie":"Observed","unused":1}}],[6746,{"NameAddresses":{"liar":7,"victim":6,"about":6,"lie":"Stated","unused":1}}],[6759,{"NoWall":{"one":4,"other":1}}],[6793,{"Limit":{"max_peers":89}}],[6902,{"NameAddresses":{"liar":7,"victim":5,"about":2,"lie":"Beside","unused":2}}],[6985,{"NameAddresses":{"liar":7,"victim":4,"about":0,"lie":"Stated","unused":1}}],[6987,{"NameAddresses":{"liar":7,"victim":6,"about":2,"lie":"Stated","unused":1}}],[7259,{"NameAddresses":{"liar":7,"victim":4,"about":6,"lie":"Own","unused":1}}],[7394,{"NameAddresses":{"liar":7,"victim":3,"about":1,"lie":"Own","unused":3}}],[7903,{"NameAddresses":{"liar":7,"victim":6,"about":1,"lie":"MadeUp","unused":1}}],[7983,{"NameAddresses":{"liar":7,"victim":4,"about":4,"lie":"Own","unused":2}}],[8105,{"NameAddresses":{"liar":7,"victim":5,"about":4,"lie":"Stated","unused":1}}],[8153,{"NameAddresses":{"liar":7,"victim":1,"about":2,"lie":"CannotCarry","unused":1}}],[8372,{"NameAddresses":{"liar":7,"victim":3,"about":6,"lie":"Stated","unused":2}}],[8417,{"NameAddresses":{"liar":7,"victim":2,"about":5,"lie":"Beside","unused":1}}],[8579,{"DropOneWay":{"carrier":"Leader","from":0,"to":6,"for_ms":4241}}],[8642,{"NameAddresses":{"liar":7,"victim":3,"about":0,"lie":"Punch","unused":2}}],[9107,{"NameAddresses":{"liar":7,"victim":2,"about":6,"lie":"CannotCarry","unused":3}}],[9194,{"NameAddresses":{"liar":7,"victim":3,"about":4,"lie":"Punch","unused":1}}],[9558,{"NameAddresses":{"liar":7,"victim":1,"about":2,"lie":"Beside","unused":1}}],[9671,{"NameAddresses":{"liar":7,"victim":0,"about":4,"lie":"Beside","unused":1}}],[10309,{"NameAddresses":{"liar":7,"victim":5,"about":6,"lie":"About","unused":1}}],[10684,{"NameAddresses":{"liar":7,"victim":4,"about":4,"lie":"Observed","unused":1}}],[10835,{"NameAddresses":{"liar":7,"victim":6,"about":4,"lie":"About","unused":3}}],[10865,{"NameAddresses":{"liar":7,"victim":0,"about":5,"lie":"Punch","unused":2}}],[11267,{"Transfer":{"target":3}}],[11373,{"NameAddresses":{"liar":7,"victim":5,"about":2,"lie":"Observed","unused":2}}],[11403,{"NameAddresses":{"liar":7,"victim":4,"about":3,"lie":"Beside","unused":2}}],[11567,{"NameAddresses":{"liar":7,"victim":1,"about":2,"lie":"Punch","unused":1}}],[11762,{"NoWall":{"one":4,"other":4}}],[11862,{"NameAddresses":{"liar":7,"victim":5,"about":0,"lie":"CannotCarry","unused":2}}],[11918,{"NameAddresses":{"liar":7,"victim":6,"about":3,"lie":"About","unused":1}}]],"heal_at_ms":12000,"phase":"TwoCalls","strategy":{"gossip":{"strict_lowest":false,"grace_ms":3000,"sample_ms":156,"alive_ms":2500,"election_ms":1305,"trial":"Parts"}},"liars":[false],"paths":{"walls":[[0,4,false],[1,4,false],[3,4,false],[3,5,false],[5,6,false],[0,7,true],[1,7,true],[2,7,true],[3,7,true],[6,7,true]],"old":[0,2,4,5],"relays":[[0,1],[0,3],[0,6]]}}"#,
    ),
    (
        "a host named the leader that its member doubted, and the member campaigned beside it (P7)",
        r#"{"seed":7001415,"size":4,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":1811,"delay_ms":[134,150],"silence_is_reported":false,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[0,-1,0,1],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[410,{"Kick":{"victim":0}}],[688,{"SetLeader":{"calls":[[1,3],[1,3]]}}],[844,{"Start":{"slot":2,"contact":0}}],[1390,{"Isolate":{"who":"Leader","deaf":true,"mute":false,"for_ms":2759}}],[1641,{"Start":{"slot":3,"contact":1}}],[1883,{"Start":{"slot":1,"contact":3}}],[2208,{"DropOneWay":{"carrier":"Leader","from":2,"to":3,"for_ms":10077}}],[2277,{"Rebind":{"slot":2,"lost":[]}}],[2373,{"Start":{"slot":1,"contact":1}}],[3189,{"Limit":{"max_peers":35}}],[3536,{"RelayLies":{"relay":0,"victim":1,"about":0,"lie":"Gone","unused":1}}],[3756,{"Limit":{"max_peers":26}}],[3863,{"DropOneWay":{"carrier":"Leader","from":1,"to":2,"for_ms":1096}}],[3897,{"DropOneWay":{"carrier":"Leader","from":2,"to":null,"for_ms":9814}}],[4102,{"RelayLies":{"relay":1,"victim":2,"about":2,"lie":"Present","unused":1}}],[4634,{"Isolate":{"who":{"Slot":3},"deaf":false,"mute":true,"for_ms":2178}}],[5515,{"Cut":{"from":[3],"to":[0,1,2],"for_ms":2962}}],[5515,{"Cut":{"from":[0,1,2],"to":[3],"for_ms":2962}}],[5827,{"RelayDrops":{"relay":1,"from":1,"to":null,"for_ms":4081}}],[6396,{"RelayHides":{"relay":1,"slot":0,"for_ms":16429}}],[6475,{"Kick":{"victim":1}}],[6659,{"RelayLies":{"relay":1,"victim":0,"about":2,"lie":"Observed","unused":1}}],[6922,{"Limit":{"max_peers":93}}],[7440,{"Rebind":{"slot":0,"lost":[0,1,2,3]}}],[7776,{"SetLeader":{"calls":[[1,3],[2,3],[0,1],[1,1]]}}],[8702,{"SlowLink":{"from":0,"to":0,"more_ms":5}}],[9314,{"RelayFalls":{"relay":0,"for_ms":5842}}],[9635,{"Start":{"slot":2,"contact":0}}],[9783,{"Wall":{"one":2,"other":1,"opens":true,"ends":true}}],[10010,{"Crash":{"who":{"Slot":3},"back_ms":6705}}],[10087,{"LateData":{"most_ms":3000}}],[10360,{"SetLeader":{"calls":[[0,1],[1,3],[1,3]]}}],[10419,{"Connect":{"from":2,"to":2}}],[10598,{"Cut":{"from":[0,2,3],"to":[1],"for_ms":4799}}],[11210,{"Isolate":{"who":"Leader","deaf":true,"mute":false,"for_ms":4354}}],[11434,{"Rebind":{"slot":1,"lost":[]}}],[12058,{"SetLeader":{"calls":[[0,2],[2,3],[3,2],[3,0]]}}],[12469,{"Connect":{"from":1,"to":3}}],[12640,{"Cut":{"from":[2,3],"to":[0,1],"for_ms":4244}}],[12640,{"Cut":{"from":[0,1],"to":[2,3],"for_ms":4244}}],[12996,"Yield"],[13015,{"SlowLink":{"from":0,"to":2,"more_ms":0}}],[13133,{"Isolate":{"who":"Leader","deaf":true,"mute":false,"for_ms":7630}}],[13192,{"Wall":{"one":3,"other":0,"opens":true,"ends":true}}]],"heal_at_ms":13607,"phase":"TwoCalls","other_recovery":[0,2,3],"hosts_wait":true,"hosts":{"asked":false,"decide":false,"talk":true},"refuses":true,"paths":{"walls":[[0,1,false],[1,2,false],[1,3,false],[2,3,false]],"relays":[[0,0],[1,0],[0,1],[1,1],[0,2],[1,2],[0,3],[1,3]]}}"#,
    ),
];

/// Seeds of rooms with relays.
pub const RELAY_SEEDS: &[u64] = &[
    // A dial over relays of a member's earlier incarnation was waited for without a pause.
    9_008_969,
    // Both ends dialled, and each closed the link that the other one kept. The next dials ended before the other end could answer
    // (P16). The library keeps one of the two links at both ends, and its brief dials wait for the first answer alone.
    7_000_416,
    // A relay's report that an absent member is present outlived the end of its lies.
    9_009_491,
    // A member was asked to campaign while it doubted the former leader, and asked fewer members than it was linked with (P5).
    9_014_523,
    // A fault of a check: a voter had lost its file and could not recover, because walls kept voters apart (P9).
    13_004_328,
    // Rounds of dials that had waited for the end of a pause began anew right after it (rates).
    15_018_849,
];
