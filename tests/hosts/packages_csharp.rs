//! The C# packages, and `Room.LoadNative`: `packages_csharp.py`.

use crate::stories::{play, stories};

stories! { play, "packages_csharp.py":
    equal_input_gives_equal_packages
    missing_files_are_named
    the_nuget_package_has_its_parts
    the_project_file_agrees_with_the_package
    the_unity_package_has_its_parts
    the_bepinex_package_has_its_parts
    the_assembly_uses_only_what_every_framework_has
    a_program_with_the_nuget_package_greets_another_under_mono
    a_program_with_the_nuget_package_greets_another_under_coreclr
    a_unity_project_with_the_package_plays_its_sample
    a_plugin_with_the_bepinex_package_plays_under_mono
    a_plugin_with_the_bepinex_package_plays_under_coreclr
    a_library_is_loaded_from_a_path_under_mono
    a_library_is_loaded_from_a_path_under_coreclr
    a_library_of_another_version_is_named_under_mono
    a_library_of_another_version_is_named_under_coreclr
}
