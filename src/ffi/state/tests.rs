//! Changes of properties as hosts pass them.

use std::mem::offset_of;

use super::*;
use crate::ffi::errors::tests::last_error;

/// The changes as the library reads them.
fn read(changes: &[MmnPropertyChange]) -> Result<Vec<PropertyChange>, (i32, String)> {
    let count = i32::try_from(changes.len()).expect("few");
    // SAFETY: every string has a NUL, and every value five bytes or its length.
    let read = unsafe { read_changes(changes.as_ptr(), count) };
    read.map_err(|failure| (failure.code.value(), failure.sentence))
}

fn given() -> MmnPropertyChange {
    MmnPropertyChange {
        key: c"map".as_ptr(),
        value: c"value".as_ptr().cast(),
        length: 5,
        ..MmnPropertyChange::default()
    }
}

/// The sentence about the second of two changes, of which only that is broken.
fn broken(change: impl FnOnce(&mut MmnPropertyChange)) -> (i32, String) {
    let mut changes = [given(); 2];
    changes[0].key = c"first".as_ptr();
    change(&mut changes[1]);
    read(&changes).expect_err("refused")
}

fn without_value(change: &mut MmnPropertyChange, flags: u32) {
    (change.flags, change.value, change.length) = (flags, ptr::null(), 0);
}

#[test]
fn the_structs_have_no_hidden_padding() {
    let pointer = size_of::<usize>();
    assert_eq!(offset_of!(MmnPropertyChange, key), 8);
    assert_eq!(offset_of!(MmnPropertyChange, length), 8 + 3 * pointer);
    assert_eq!(offset_of!(MmnPropertyInfo, version), 8);
    assert_eq!(offset_of!(MmnPropertyInfo, length), 16 + pointer);
    assert_eq!(size_of::<MmnStateInfo>(), 56);
    if pointer == 8 {
        assert_eq!(size_of::<MmnPropertyChange>(), 48);
        assert_eq!(size_of::<MmnPropertyInfo>(), 32);
    }
}

#[test]
fn each_refused_field_of_a_change_names_itself_its_value_and_the_allowed_ones() {
    let long_key = format!("{}\0", "k".repeat(65));
    let long_owner = format!("{}\0", "o".repeat(65));
    let long_value = vec![7_u8; MAX_VALUE_BYTES + 1];
    for ((code, sentence), (expected_code, expected)) in [
        (
            broken(|change| change.flags = 32),
            (
                -3,
                "changes[1].flags is 32; give a sum of 1 (remove), 2 (keep value), 4 (owner only), 8 (dies with owner) and 16 (falls to leader), or 0",
            ),
        ),
        (
            broken(|change| without_value(change, 3)),
            (
                -3,
                "changes[1].flags is 3, which has 1 (remove) and 2 (keep value); give one of them",
            ),
        ),
        (
            broken(|change| change.flags = 24),
            (
                -3,
                "changes[1].flags is 24, which has 8 (dies with owner) and 16 (falls to leader); give one of them",
            ),
        ),
        (
            broken(|change| change.flags = MMN_PROPERTY_REMOVE),
            (
                -3,
                "changes[1].length is 5, but its flags is 1: with 1 (remove) and 2 (keep value) give no value, and length 0",
            ),
        ),
        (
            broken(|change| change.flags = MMN_PROPERTY_KEEP_VALUE),
            (-3, "changes[1].length is 5, but its flags is 2: with"),
        ),
        (
            broken(|change| change.reserved = 1),
            (-3, "changes[1].reserved is 1; give 0"),
        ),
        (
            broken(|change| change.key = ptr::null()),
            (-3, "changes[1].key is NULL"),
        ),
        (
            broken(|change| change.key = c"\xff".as_ptr()),
            (-3, "changes[1].key is not UTF-8"),
        ),
        (
            broken(|change| change.key = c"".as_ptr()),
            (
                -3,
                "changes[1].key \"\" is not allowed: the key has 0 bytes; 1 to 64 are allowed",
            ),
        ),
        (
            broken(|change| change.key = long_key.as_ptr().cast()),
            (-3, "the key has 65 bytes; 1 to 64 are allowed"),
        ),
        (
            broken(|change| change.key = c"a\nb".as_ptr()),
            (-3, "the key contains the control character U+000A"),
        ),
        (
            broken(|change| change.value = ptr::null()),
            (-3, "changes[1].value is NULL while changes[1].length is 5"),
        ),
        (
            broken(|change| change.length = -1),
            (-3, "changes[1].length -1 is negative"),
        ),
        (
            broken(|change| {
                change.value = long_value.as_ptr();
                change.length = 8193;
            }),
            (
                -8,
                "changes[1].length is 8193; at most 8192 bytes are allowed",
            ),
        ),
        (
            broken(|change| change.owner = long_owner.as_ptr().cast()),
            (-3, "it has 65 bytes; at most 64 are allowed"),
        ),
        (
            broken(|change| change.owner = c" ".as_ptr()),
            (-3, "changes[1].owner \" \" is not allowed"),
        ),
    ] {
        assert_eq!(code, expected_code, "{sentence}");
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn the_number_of_changes_is_checked_before_any_is_read() {
    let refused = |changes: *const MmnPropertyChange, count| {
        // SAFETY: NULL, or a struct whose size is refused before the second one is read.
        let failure = unsafe { read_changes(changes, count) }.expect_err("refused");
        (failure.code.value(), failure.sentence)
    };
    let null = ptr::null();
    assert_eq!(
        refused(null, 0),
        (-3, "count is 0; give 1 to 32 changes".into())
    );
    assert_eq!(
        refused(null, -1),
        (-3, "count is -1; give 1 to 32 changes".into())
    );
    assert_eq!(
        refused(null, 33),
        (-8, "count is 33; at most 32 changes are allowed".into())
    );
    assert_eq!(
        refused(null, 2),
        (
            -3,
            "changes is NULL; give a MmnPropertyChange with its struct_size set".into()
        )
    );
    let least = size_of::<MmnPropertyChange>();
    let small = MmnPropertyChange {
        struct_size: 47.min(least as u32 - 1),
        ..given()
    };
    let (code, sentence) = refused(&raw const small, 2);
    assert_eq!(code, -3);
    assert!(
        sentence.ends_with(&format!(
            "sizeof(MmnPropertyChange), which is {least} or more"
        )),
        "{sentence}"
    );
}

#[test]
fn every_field_of_a_change_arrives() {
    let mut changes = [given(); 5];
    changes[0].flags = MMN_PROPERTY_OWNER_ONLY | MMN_PROPERTY_DIES_WITH_OWNER;
    changes[0].owner = c"alice".as_ptr();
    changes[0].expected_version = 0;
    without_value(
        &mut changes[1],
        MMN_PROPERTY_KEEP_VALUE | MMN_PROPERTY_FALLS_TO_LEADER,
    );
    changes[1].owner = c"".as_ptr();
    changes[1].expected_version = 12;
    without_value(&mut changes[2], MMN_PROPERTY_REMOVE);
    without_value(&mut changes[3], 0);
    // The library reads the first one's alone.
    changes[4].struct_size = 0;
    let change = |value, owner, owner_only, fate, expected| PropertyChange {
        key: Key::new("map").expect("a key"),
        value,
        owner,
        traits: Traits { owner_only, fate },
        expected,
    };
    let set = |value: &'static [u8]| ValueChange::Set(Bytes::from_static(value));
    let alice = OwnerChange::To(checked_peer_id("", "alice").expect("an id"));
    let keep = OwnerChange::Keep;
    let any = Expected::Any;
    assert_eq!(
        read(&changes),
        Ok(vec![
            change(set(b"value"), alice, true, Fate::Dies, Expected::Version(0)),
            change(
                ValueChange::Keep,
                OwnerChange::Nobody,
                false,
                Fate::FallsToLeader,
                Expected::Version(12)
            ),
            change(
                ValueChange::Remove,
                keep.clone(),
                false,
                Fate::LosesOwner,
                any
            ),
            change(set(b""), keep.clone(), false, Fate::LosesOwner, any),
            change(set(b"value"), keep, false, Fate::LosesOwner, any),
        ])
    );
}

/// A newer host's struct is longer. Its own size separates the changes, whatever this version's is.
#[test]
fn the_first_size_is_the_distance_between_the_changes() {
    #[repr(C)]
    struct Newer {
        known: MmnPropertyChange,
        appended: [u64; 3],
    }
    let newer = |key: &'static std::ffi::CStr| Newer {
        known: MmnPropertyChange {
            struct_size: size_of::<Newer>() as u32,
            key: key.as_ptr(),
            ..given()
        },
        appended: [u64::MAX; 3],
    };
    let changes = [newer(c"a"), newer(c"b"), newer(c"c")];
    // SAFETY: three structs of the first one's size, with strings that have a NUL.
    let read = unsafe { read_changes(changes.as_ptr().cast(), 3) };
    let read = read.map_err(|failure| failure.sentence).expect("read");
    let keys: Vec<_> = read.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[test]
fn an_invalid_argument_is_named_before_the_room_is_looked_up() {
    let mut number = 7;
    let mut info = MmnPropertyInfo {
        struct_size: 3,
        ..MmnPropertyInfo::default()
    };
    let mut state = MmnStateInfo {
        struct_size: 55,
        ..MmnStateInfo::default()
    };
    let data = [1_u8].as_ptr();
    let invalid = |code: i32, expected: &str| {
        let (last, sentence) = last_error();
        assert_eq!((code, last), (-3, -3), "{expected}");
        assert!(sentence.contains(expected), "{sentence}");
    };
    // SAFETY: every string is NULL or has a NUL, and every struct is as long as its struct_size or longer.
    unsafe {
        let request = &raw mut number;
        invalid(
            mmn_submit(0, data, -5, 0x100, request),
            "length -5 is negative",
        );
        invalid(
            mmn_submit(0, ptr::null(), 5, 0x100, request),
            "data is NULL",
        );
        invalid(
            mmn_set_properties(0, ptr::null(), 1, request),
            "changes is NULL",
        );
        invalid(
            mmn_provide_snapshot(0, 1, ptr::null(), 5),
            "data is NULL while length is 5",
        );
        invalid(mmn_state_info(0, ptr::null_mut()), "info is NULL");
        invalid(
            mmn_state_info(0, &raw mut state),
            "info.struct_size is 55; set it to sizeof(MmnStateInfo), which is 56 or more",
        );
        let key = c"map".as_ptr();
        let no_info = ptr::null_mut();
        assert!(mmn_property(0, ptr::null(), no_info).is_null());
        invalid(last_error().0, "key is NULL");
        assert!(mmn_property(0, c"".as_ptr(), no_info).is_null());
        invalid(
            last_error().0,
            "key \"\" is not allowed: the key has 0 bytes",
        );
        assert!(mmn_property(0, key, &raw mut info).is_null());
        invalid(last_error().0, "info.struct_size is 3; set it to");
        assert!(mmn_property_keys(0, c"".as_ptr()).is_null());
        invalid(last_error().0, "owner \"\" is not allowed");
        assert_eq!(mmn_submit(0, data, 1, 0x100, request), -1);
        assert!(mmn_property(0, key, no_info).is_null());
        assert_eq!(last_error().0, -1);
    }
    assert_eq!((number, info.version, state.bytes), (7, 0, 0));
}
