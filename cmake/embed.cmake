# cmake -D OUTPUT=out.cc -D KIND=bundled -D FILES=a.json|b.json -P embed.cmake
# Writes the tables that src/model/bundled.h declares: each file's name without .json, and its text.
string(REPLACE "|" ";" FILES "${FILES}")
set(names)
foreach(file IN LISTS FILES)
  cmake_path(GET file STEM LAST_ONLY name)
  list(APPEND names "${name}")
  set("path_${name}" "${file}")
endforeach()
list(SORT names)
list(LENGTH names count)

set(rows)
foreach(name IN LISTS names)
  file(READ "${path_${name}}" text)
  # One literal a line, which the compiler joins: no literal is long enough to meet a limit.
  string(REPLACE "\n" "\n)json\"\n     R\"json(" text "${text}")
  string(APPEND rows "    {\"${name}\",\n     R\"json(${text})json\"},\n")
endforeach()
if(count EQUAL 0)
  set(rows "    {},  // an array may not be empty\n")
endif()

file(WRITE "${OUTPUT}" "// Written by cmake/embed.cmake from the .json files of models/.
#include \"src/model/bundled.h\"

namespace posenc::detail {
const BundledFile ${KIND}_files[] = {
${rows}};
const std::size_t ${KIND}_file_count = ${count};
}  // namespace posenc::detail
")
