# find_package(Reprise) finds what was just installed, and programs link with it.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

build_and_run(find_package -DCMAKE_PREFIX_PATH=${PREFIX} -DWITH_TEXT=${WITH_TEXT} -DWITH_ENGINE=${WITH_ENGINE})

file(STRINGS ${SCRATCH_DIR}/find_package/CMakeCache.txt found REGEX "^Reprise_DIR:")
if(NOT found STREQUAL "Reprise_DIR:PATH=${PREFIX}/${LIBDIR}/cmake/Reprise")
  message(FATAL_ERROR "another Reprise was found: ${found}")
endif()
