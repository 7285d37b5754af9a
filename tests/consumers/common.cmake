# What the consumer scripts share. The settings come from CMakeLists.txt beside this file.

# Runs a command and stops the test with all that it said if it fails.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${what} failed (${status}): ${command}\n${said}")
  endif()
endfunction()

# Configures a consumer project from scratch, builds it in Release and runs what it registers with CTest. Objects of an earlier run
# are used again; settings are not. CONFIGURE_ONLY spares compiling all sources once more. SCRATCH names the build folder when it is
# not that of the project. The rest goes to CMake.
function(build_and_run name)
  cmake_parse_arguments(PARSE_ARGV 1 own CONFIGURE_ONLY SCRATCH "")
  if(NOT own_SCRATCH)
    set(own_SCRATCH ${name})
  endif()
  set(build ${SCRATCH_DIR}/${own_SCRATCH})
  run("Configuring ${name}" ${CMAKE_COMMAND} --fresh -S ${CMAKE_CURRENT_LIST_DIR}/${name} -B ${build} -G ${GENERATOR}
    -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${FLAGS}"
    "-DCMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS}" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF ${own_UNPARSED_ARGUMENTS})
  if(own_CONFIGURE_ONLY)
    return()
  endif()
  run("Building ${name}" ${CMAKE_COMMAND} --build ${build} --config Release)
  run("Running ${name}" ${CMAKE_CTEST_COMMAND} --test-dir ${build} -C Release --output-on-failure --no-tests=error)
endfunction()
