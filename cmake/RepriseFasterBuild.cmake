# What makes a build of this project quicker where it is at hand: a compiler cache and a quick linker. Neither changes what is built.
find_program(REPRISE_CCACHE ccache)
if(REPRISE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are cached too; ccache wants to be told that their time stamps do not matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${REPRISE_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()

find_program(REPRISE_MOLD mold)
find_program(REPRISE_GOLD ld.gold)
if(REPRISE_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(REPRISE_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=gold)
endif()
