# The page of `reprise show --html`: its files become a part of the binary. A script file stands after those it needs.
function(reprise_embed_page target)
  set(folder ${PROJECT_SOURCE_DIR}/src/observe/page)
  set(scripts words model dom timeline items graph stories tables page)
  list(TRANSFORM scripts PREPEND ${folder}/)
  list(TRANSFORM scripts APPEND .js)
  set(made ${PROJECT_BINARY_DIR}/page_files.cpp)
  list(JOIN scripts "," joined)
  add_custom_command(OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${made} -D HEADER=observe/page/page_files.hpp -D NAMESPACE=reprise::observe::page
      -D "TEXTS=skeleton=${folder}/page.html;style=${folder}/page.css;script=${joined}" -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${folder}/page.html ${folder}/page.css ${scripts} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${made})
endfunction()
