# pkg-config knows what was just installed, by nothing but its search path, and one compiler call makes a program.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${LINKER_FLAGS}")
set(build ${SCRATCH_DIR}/pkg_config)
file(REMOVE_RECURSE ${build})
file(MAKE_DIRECTORY ${build})

function(compile_and_run program package)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package}
    RESULT_VARIABLE status OUTPUT_VARIABLE options ERROR_VARIABLE problem OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "pkg-config does not know ${package}: ${problem}")
  endif()
  separate_arguments(options UNIX_COMMAND "${options}")
  set(folders)
  foreach(option IN LISTS options)
    if(option MATCHES "^-[IL](.+)")
      cmake_path(SET folder NORMALIZE "${CMAKE_MATCH_1}")  # a .pc file may speak of its prefix as ../..
      list(APPEND folders ${folder})
    endif()
  endforeach()
  if(NOT "${PREFIX}/include" IN_LIST folders OR NOT "${PREFIX}/${LIBDIR}" IN_LIST folders)
    message(FATAL_ERROR "${package}.pc does not speak of the prefix it was installed to, ${PREFIX}: ${options}")
  endif()
  run("Compiling ${program}" ${COMPILER} -O2 ${flags} -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
    ${CMAKE_CURRENT_LIST_DIR}/programs/${program}.cpp -o ${build}/${program} ${options})
  run("Running ${program}" ${build}/${program})
endfunction()

compile_and_run(retry reprise)
if(WITH_TEXT)
  compile_and_run(azolla reprise-text)
endif()
if(WITH_ENGINE)
  compile_and_run(engine reprise-engine)
endif()
