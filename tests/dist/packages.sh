#!/usr/bin/env bash
# Installs the packages of target/dist into empty projects, which are compiled and run (`make test-dist`).
set -euo pipefail
cd "$(dirname "$0")/../.."

export MMN_PACKAGES=$PWD/target/dist/packages MMN_LIBRARY=$PWD/target/dist/linux-x64/libmeta_mystia_network.so
for story in a_program_with_the_nuget_package_greets_another_under_{mono,coreclr} a_unity_project_with_the_package_plays_its_sample \
    a_plugin_with_the_bepinex_package_plays_under_{mono,coreclr}; do
    python3 tests/hosts/packages_csharp.py "$story"
done
python3 tests/hosts/packages_python.py a_wheel_works_in_an_empty_environment
python3 tests/hosts/packages_c.py a_release_folder_is_used_as_it_is
