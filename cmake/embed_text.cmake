# cmake -D OUTPUT=out.cc -D HEADER=cli/pages/code_pages.h -D "FILES=name=a.md|other=b.md" -P embed_text.cmake
# Writes a std::string_view of each name, with the text of its file, into the namespace posenc::cli.
string(REPLACE "|" ";" FILES "${FILES}")
set(rows)
foreach(pair IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" unused "${pair}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  # One literal a line, which the compiler joins: no literal is long enough to meet a limit.
  string(REPLACE "\n" "\n)text\"\n    R\"text(" text "${text}")
  string(APPEND rows "const std::string_view ${name} =\n    R\"text(${text})text\";\n")
endforeach()

file(WRITE "${OUTPUT}" "// Written by cmake/embed_text.cmake.
#include \"${HEADER}\"

namespace posenc::cli {
${rows}}  // namespace posenc::cli
")
