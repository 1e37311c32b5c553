//! The first pages work as pasted: `first_pages.py`.

use crate::stories::{play, stories};

stories! { play, "first_pages.py":
    c_as_pasted
    cpp_as_pasted
    python_as_pasted
    csharp_as_pasted
    chinese_pages_as_pasted
    server_as_pasted
    godot_script_greets_another
    the_c_program_prints_into_a_pipe
}
