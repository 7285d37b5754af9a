# What all targets of this project have in common. Nothing here changes the settings of a project that includes this one.

function(reprise_common target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Short strings are misread at -O2 (GCC bugs 105651, 105329); from a precompiled header even where they are moved inside the standard library.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  if(REPRISE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()

function(reprise_library target)
  reprise_common(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

function(reprise_program target)
  reprise_common(${target})
endfunction()

# Most of the time to compile a unit goes into headers of others. One precompiled set for each kind of library; `clang` (the preset) does
# without, so that a header which is missing somewhere is noticed.
set(REPRISE_STD_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <deque> <expected> <functional> <limits> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)

# The shared libraries that a program is linked with cost it a start of some milliseconds, each time. Where the archive of a library is
# installed it takes the shared one's place in this build; what is installed for others still names the package.
function(reprise_prefer_archive target archive)
  if(NOT REPRISE_STATIC_PARTS)
    return()
  endif()
  find_library(archive_of_${archive} NAMES ${archive})
  mark_as_advanced(archive_of_${archive})
  if(archive_of_${archive})
    set_target_properties(${target} PROPERTIES
      INTERFACE_LINK_LIBRARIES "${archive_of_${archive}};${ARGN};Threads::Threads;${CMAKE_DL_LIBS}")
  endif()
endfunction()

# fmt comes as headers and a shared library; its source is among the headers.
function(reprise_compile_in_fmt target)
  if(NOT REPRISE_STATIC_PARTS)
    return()
  endif()
  add_library(reprise_fmt STATIC ${PROJECT_SOURCE_DIR}/src/text/fmt_source.cpp)
  target_compile_features(reprise_fmt PRIVATE cxx_std_23)
  set_target_properties(reprise_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES reprise_fmt)
endfunction()
