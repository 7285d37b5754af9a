# Writes files of text into a C++ source, each as a std::string_view. Run when the project is built, so that a changed file is noticed:
#
#   cmake -D OUTPUT=page_files.cpp -D HEADER=observe/page_files.hpp -D NAMESPACE=reprise::observe::page
#         -D "TEXTS=style=a.css;script=b.js,c.js" -P EmbedFiles.cmake
#
# Files separated by commas are joined. No single text may be longer than what every compiler takes in one literal, so each file is one.
set(source "// Written by cmake/EmbedFiles.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(text IN LISTS TEXTS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  string(APPEND source "const std::string_view ${name}{\n")
  foreach(file IN LISTS files)
    file(READ "${file}" content)
    string(FIND "${content}" ")embedded\"" end_of_literal)
    string(LENGTH "${content}" length)
    if(NOT end_of_literal EQUAL -1 OR length GREATER 60000)
      message(FATAL_ERROR "${file} cannot be embedded: it holds )embedded\" or is longer than 60000 bytes")
    endif()
    string(APPEND source "    R\"embedded(${content})embedded\"\n")
  endforeach()
  string(APPEND source "};\n\n")
endforeach()
string(APPEND source "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
