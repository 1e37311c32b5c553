//! Structs of the ABI that may grow: their first field is their size in the host's build.

use std::ptr;

use super::failure::Failure;

/// A number of bytes. Saturates where `usize` is shorter: memory could not hold more anyway.
pub(super) fn bytes(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Limit of `struct_size`: a larger number means that the caller did not set it.
pub(super) const MAX_STRUCT_BYTES: usize = 64 * 1024;

/// A `#[repr(C)]` struct that begins with its `struct_size`, in which every pattern of bytes is
/// valid.
pub(super) trait Growing: Default {
    /// Its name in the header.
    const NAME: &'static str;
    /// Bytes of its earlier versions, the newest first. They never change.
    const EARLIER: &'static [usize];

    /// Bytes of its first version.
    fn first() -> usize {
        Self::EARLIER.last().copied().unwrap_or(size_of::<Self>())
    }

    /// Number of bytes of a struct of `size` bytes that this version of the library knows: all of
    /// them, or those of an earlier version. A size between two versions counts as the earlier one,
    /// so that no field is read in part.
    fn known(size: u32) -> usize {
        let versions = [size_of::<Self>()]
            .into_iter()
            .chain(Self::EARLIER.iter().copied());
        let mut known = versions.filter(|known| *known <= bytes(size));
        known.next().unwrap_or_else(Self::first)
    }
}

/// The checked size of the struct at `pointer`, which is the argument or field `argument`.
///
/// # Safety
/// `pointer` is NULL or points to four bytes that can be read.
pub(super) unsafe fn struct_size<T: Growing>(
    argument: &str,
    pointer: *const T,
) -> Result<u32, Failure> {
    let (name, first) = (T::NAME, T::first());
    if pointer.is_null() {
        return Err(Failure::invalid(format!(
            "{argument} is NULL; give a {name} with its struct_size set"
        )));
    }
    // SAFETY: not NULL, so the caller guarantees the first four bytes.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() };
    if !(first..=MAX_STRUCT_BYTES).contains(&bytes(size)) {
        let owner = match argument {
            "options" => String::new(),
            other => format!("{other}."),
        };
        return Err(Failure::invalid(format!(
            "{owner}struct_size is {size}; set it to sizeof({name}), which is {first} or more"
        )));
    }
    Ok(size)
}

/// The struct at `pointer`. Fields that an older program does not know get their default.
///
/// # Safety
/// `pointer` is NULL, or points to struct_size bytes that can be read, the first four being
/// struct_size.
pub(super) unsafe fn read<T: Growing>(argument: &str, pointer: *const T) -> Result<T, Failure> {
    // SAFETY: the caller's promise, passed on.
    let size = unsafe { struct_size(argument, pointer) }?;
    // SAFETY: as above.
    Ok(unsafe { read_sized(pointer, size, 0) })
}

/// The struct at `place` of an array, whose structs are `size` bytes apart. Fields that an older program does not know
/// get their default.
///
/// # Safety
/// `place` + 1 times `size` bytes from `first` on can be read.
pub(super) unsafe fn read_sized<T: Growing>(first: *const T, size: u32, place: usize) -> T {
    let mut read = T::default();
    // SAFETY: at most `size` bytes, which the caller guarantees, and at most the bytes of a T; every pattern of
    // bytes is a valid T. Hosts that build it by hand may not align it.
    unsafe {
        let pointer = first.cast::<u8>().add(place * bytes(size));
        ptr::copy_nonoverlapping(pointer, (&raw mut read).cast::<u8>(), T::known(size));
    }
    read
}

/// Fills the struct at `pointer` with the defaults from `of`, up to its size.
///
/// # Safety
/// `pointer` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
pub(super) unsafe fn fill<T: Growing>(
    argument: &str,
    pointer: *mut T,
    of: impl FnOnce(u32) -> T,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise, passed on.
    let size = unsafe { struct_size(argument, pointer) }?;
    let defaults = of(size);
    // SAFETY: as in `read`, and the bytes can be written.
    unsafe {
        ptr::copy_nonoverlapping(
            (&raw const defaults).cast::<u8>(),
            pointer.cast::<u8>(),
            T::known(size),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// A struct that has grown twice.
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Grown {
        struct_size: u32,
        first: u32,
        second: u64,
        third: u64,
    }

    impl Default for Grown {
        fn default() -> Self {
            Self {
                struct_size: size_of::<Self>() as u32,
                first: 1,
                second: 2,
                third: 3,
            }
        }
    }

    impl Growing for Grown {
        const NAME: &'static str = "Grown";
        const EARLIER: &'static [usize] = &[offset_of!(Self, third), offset_of!(Self, second)];
    }

    #[test]
    fn a_program_of_an_older_version_gets_its_own_fields_and_the_defaults_of_the_rest() {
        for (size, second, third) in [
            (8, 2, 3),
            (15, 2, 3),
            (16, 20, 3),
            (23, 20, 3),
            (24, 20, 30),
        ] {
            let given = Grown {
                struct_size: size,
                first: 10,
                second: 20,
                third: 30,
            };
            let expected = Grown {
                second,
                third,
                ..given
            };
            // SAFETY: the struct is at least as long as its struct_size.
            let found = unsafe { read("options", &given) }.map_err(|failure| failure.sentence);
            assert_eq!(found, Ok(expected), "{size}");
            let mut filled = given;
            // SAFETY: as above.
            unsafe {
                fill("options", &mut filled, |size| Grown {
                    struct_size: size,
                    ..Grown::default()
                })
            }
            .map_err(|failure| failure.sentence)
            .expect("a size");
            assert_eq!(filled.second == 2, size >= 16, "{size}");
            assert_eq!(filled.third == 3, size >= 24, "{size}");
        }
    }

    #[test]
    fn a_size_below_the_first_version_or_beyond_all_reason_is_refused() {
        for size in [0, 7, MAX_STRUCT_BYTES as u32 + 1, u32::MAX] {
            let given = Grown {
                struct_size: size,
                ..Grown::default()
            };
            // SAFETY: only its first four bytes are read.
            let failure = unsafe { read("options", &given) }.expect_err("no size");
            let expected =
                format!("struct_size is {size}; set it to sizeof(Grown), which is 8 or more");
            assert_eq!(failure.sentence, expected);
        }
    }
}
