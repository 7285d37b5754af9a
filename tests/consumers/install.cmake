# Installs this build into a prefix of its own, as `cmake --install build --prefix ~/somewhere` does.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

file(REMOVE_RECURSE ${PREFIX})
set(ENV{DESTDIR})  # of a packager around us; this prefix is meant as it stands
set(config)
if(CONFIG)
  set(config --config ${CONFIG})
endif()
run("Installing" ${CMAKE_COMMAND} --install ${REPRISE_BINARY_DIR} --prefix ${PREFIX} ${config})
foreach(file include/reprise/retry.hpp ${LIBDIR}/cmake/Reprise/RepriseConfig.cmake ${LIBDIR}/pkgconfig/reprise.pc)
  if(NOT EXISTS ${PREFIX}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
if(EXISTS ${REPRISE_BINARY_DIR}/pages)  # the command was built, and wrote them
  foreach(file man/man1/reprise.1 man/man1/reprise-run.1 bash-completion/completions/reprise zsh/site-functions/_reprise
      fish/vendor_completions.d/reprise.fish)
    if(NOT EXISTS ${PREFIX}/share/${file})
      message(FATAL_ERROR "share/${file} was not installed")
    endif()
  endforeach()
endif()
