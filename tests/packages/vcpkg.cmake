# Runs the port's steps without vcpkg: cmake -DPACKAGE=... -DPORT_DIRECTORY=... -DTRIPLET=... -P vcpkg.cmake. Here is all that the
# port takes from vcpkg; each stands for the documented behaviour.
cmake_minimum_required(VERSION 3.16)

set(CURRENT_PORT_DIR "${PORT_DIRECTORY}")
set(CURRENT_PACKAGES_DIR "${PACKAGE}")
file(READ "${PORT_DIRECTORY}/vcpkg.json" manifest)
string(JSON PORT GET "${manifest}" name)
string(JSON VERSION GET "${manifest}" version)

string(REGEX MATCH "^[^-]+" VCPKG_TARGET_ARCHITECTURE "${TRIPLET}")
if(TRIPLET MATCHES "-(windows|mingw)")
  set(VCPKG_TARGET_IS_WINDOWS TRUE)
  if(TRIPLET MATCHES "-mingw")
    set(VCPKG_TARGET_IS_MINGW TRUE)
  endif()
else()
  set(VCPKG_TARGET_IS_LINUX TRUE)
endif()

function(vcpkg_check_linkage)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  if(NOT arg_FILE_LIST)
    message(FATAL_ERROR "vcpkg_install_copyright needs FILE_LIST")
  endif()
  foreach(file IN LISTS arg_FILE_LIST)
    file(READ "${file}" text)
    file(APPEND "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" "${text}")
  endforeach()
endfunction()

include("${PORT_DIRECTORY}/portfile.cmake")
