//! The installed files for C and C++: found, compiled against and run by `packages_c.py`. `tests/dist/windows.py` runs the
//! stories for Windows.

use crate::stories::{play, stories};

stories! { play, "packages_c.py":
    a_cmake_project_uses_the_installed_library
    compilers_use_the_flags_of_pkg_config
    a_release_folder_is_used_as_it_is
    cmake_refuses_what_does_not_fit
    make_installs_and_uninstalls
    a_bad_installation_is_refused_in_words
    the_vcpkg_port_lays_out_a_package
    the_cpp_header_takes_little_of_windows
}
