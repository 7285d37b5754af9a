# Writes files of text into a C++ source, each as a std::string_view. Run when the project is built, so that a changed file is noticed:
#
#   cmake -D OUTPUT=page_files.cpp -D HEADER=observe/page_files.hpp -D NAMESPACE=reprise::observe::page
#         -D "TEXTS=style=a.css;script=b.js,c.js" -P EmbedFiles.cmake
#
# Files separated by commas are joined. Byte by byte, because compilers limit the length of a literal, and any text may stand in a file.
set(source "// Written by cmake/EmbedFiles.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(text IN LISTS TEXTS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  set(bytes "")
  foreach(file IN LISTS files)
    file(READ "${file}" content HEX)
    string(APPEND bytes "${content}")
  endforeach()
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND source "static constexpr char ${name}_bytes[]{${bytes}};\nconst std::string_view ${name}{${name}_bytes, sizeof ${name}_bytes};\n\n")
endforeach()
string(APPEND source "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
