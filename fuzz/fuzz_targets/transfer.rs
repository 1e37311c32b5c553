#![no_main]

use meta_mystia_network::fuzzing;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::transfer(input));
