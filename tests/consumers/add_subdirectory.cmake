# As a part of another project the library needs nothing but a compiler: pkg-config knows no package here, and find_package(…) of
# whatever the other parts of Reprise need is an error.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(empty ${SCRATCH_DIR}/no_packages)
file(MAKE_DIRECTORY ${empty})
set(ENV{PKG_CONFIG_LIBDIR} ${empty})
set(ENV{PKG_CONFIG_PATH})
set(forbidden)
foreach(package Boost CLI11 GTest PkgConfig benchmark fmt rapidcheck re2)
  list(APPEND forbidden -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
build_and_run(add_subdirectory -DREPRISE_SOURCE_DIR=${REPRISE_SOURCE_DIR} ${forbidden})
