# Installs the files of a release, from the folder that `make dist` fills: vcpkg has no Rust toolchain to build them with. An
# overlay port of this source tree finds that folder itself; META_MYSTIA_NETWORK_DIST names another one, as a variable of the
# triplet or of the environment (with VCPKG_KEEP_ENV_VARS).

vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)

get_filename_component(source "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)
if(NOT META_MYSTIA_NETWORK_DIST)
  set(META_MYSTIA_NETWORK_DIST "$ENV{META_MYSTIA_NETWORK_DIST}")
endif()
if(NOT META_MYSTIA_NETWORK_DIST)
  set(META_MYSTIA_NETWORK_DIST "${source}/target/dist")
endif()

if(VCPKG_TARGET_IS_WINDOWS)
  set(rid "win-${VCPKG_TARGET_ARCHITECTURE}")
else()
  set(rid "linux-${VCPKG_TARGET_ARCHITECTURE}")
endif()
set(release "${META_MYSTIA_NETWORK_DIST}/${rid}")
if(NOT IS_DIRECTORY "${release}")
  message(FATAL_ERROR "${release} is missing: run `make dist` in the source tree, or set META_MYSTIA_NETWORK_DIST to the folder that has ${rid}")
endif()

file(INSTALL "${release}/include/" DESTINATION "${CURRENT_PACKAGES_DIR}/include")

# There is one build: programs use it in their debug configuration, too.
foreach(configuration IN ITEMS "" "/debug")
  if(configuration STREQUAL "/debug" AND VCPKG_BUILD_TYPE STREQUAL "release")
    continue()
  endif()
  if(VCPKG_TARGET_IS_WINDOWS)
    if(VCPKG_TARGET_IS_MINGW)
      set(import_library "libmeta_mystia_network.dll.a")
    else()
      set(import_library "meta_mystia_network.lib")
    endif()
    file(INSTALL "${release}/meta_mystia_network.dll" DESTINATION "${CURRENT_PACKAGES_DIR}${configuration}/bin")
    file(INSTALL "${release}/${import_library}" DESTINATION "${CURRENT_PACKAGES_DIR}${configuration}/lib")
  else()
    file(INSTALL "${release}/libmeta_mystia_network.so" DESTINATION "${CURRENT_PACKAGES_DIR}${configuration}/lib")
  endif()
endforeach()

# With the values of scripts/install.py.
set(LIBRARY_FOLDER "lib")
set(CMAKE_TO_PREFIX "../..")
string(REGEX MATCH "^[0-9]+" VERSION_MAJOR "${VERSION}")
if(VCPKG_TARGET_IS_WINDOWS)
  set(SYSTEM "Windows")
  set(RUNTIME_FILE "bin/meta_mystia_network.dll")
  set(SONAME "")
else()
  set(SYSTEM "Linux")
  set(RUNTIME_FILE "lib/libmeta_mystia_network.so")
  set(SONAME "libmeta_mystia_network.so")
endif()
foreach(file IN ITEMS "meta_mystia_network-config.cmake" "meta_mystia_network-config-version.cmake")
  configure_file("${source}/packaging/cmake/${file}.in" "${CURRENT_PACKAGES_DIR}/share/meta_mystia_network/${file}" @ONLY)
endforeach()

file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
file(GLOB licences "${release}/LICENSE-*" "${release}/THIRD-PARTY-LICENSES*")
vcpkg_install_copyright(FILE_LIST ${licences})
