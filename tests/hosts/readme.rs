//! The programs in the READMEs work as pasted: `readme.py`.

use crate::stories::{play, stories};

stories! { play, "readme.py":
    the_programs_of_the_readme_greet_each_other
    the_programs_of_the_chinese_readme_greet_each_other
    the_console_program_in_csharp_greets_another_of_its_kind
    the_programs_discover_each_other_without_an_address
    the_plugin_for_bepinex_compiles
    the_unity_script_leaves_with_its_scene
    the_unity_script_leaves_before_its_scripts_are_reloaded
}
