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
];

/// Seeds of rooms with relays.
pub const RELAY_SEEDS: &[u64] = &[
    // The check asked for a carried link of a member of the version before, which two leaders in turn could not carry.
    14_830,
    // A host named the leader that its member doubted, and the member campaigned beside it (P7).
    7_001_415,
];
