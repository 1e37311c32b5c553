//! The Python wheels install and work, and type checkers find their types: `packages_python.py`.

use crate::stories::{play, stories};

stories! { play, "packages_python.py":
    a_wheel_works_in_an_empty_environment
    wheels_are_for_their_platforms
    a_build_without_natives_is_refused_in_words
    a_missing_library_is_named_with_the_folders
    a_library_that_does_not_fit_is_named_with_the_reason
    type_checkers_know_the_package
    rooms_for_asyncio_keep_their_promises
}
