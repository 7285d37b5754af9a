# As a part of another project that asks for the engine: its libraries are found through pkg-config, and nothing of the tests is needed.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(forbidden)
foreach(package Boost CLI11 GTest benchmark rapidcheck)
  list(APPEND forbidden -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
build_and_run(add_subdirectory CONFIGURE_ONLY SCRATCH add_subdirectory_engine -DREPRISE_SOURCE_DIR=${REPRISE_SOURCE_DIR} -DREPRISE_ENGINE=ON ${forbidden})
