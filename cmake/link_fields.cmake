# cmake -D OUTPUT=out.cc -D FILE=web/link.json -P link_fields.cmake
# Writes what cli/playground/link_fields.h declares: the playground's panels, and the keys of its links in link.json's order.
file(READ "${FILE}" text)
string(JSON version GET "${text}" version)
string(JSON count LENGTH "${text}" panels)
set(panels)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON panel GET "${text}" panels ${i})
  string(APPEND panels "    \"${panel}\",\n")
endforeach()

# CMake gives an object's members by the alphabet; links have the order of the file.
string(JSON count LENGTH "${text}" fields)
math(EXPR last "${count} - 1")
set(order)
foreach(i RANGE ${last})
  string(JSON key MEMBER "${text}" fields ${i})
  string(FIND "${text}" "\"${key}\": {" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${FILE}: write \"${key}\": { with one space between")
  endif()
  math(EXPR at "${at} + 1000000")
  list(APPEND order "${at} ${key}")
endforeach()
list(SORT order)

# `out`: the elements of an array with commas between.
function(joined out json)
  string(JSON count LENGTH "${json}")
  set(all)
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
      string(JSON one GET "${json}" ${i})
      list(APPEND all "${one}")
    endforeach()
  endif()
  list(JOIN all "," all)
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

set(rows)
foreach(entry IN LISTS order)
  string(REGEX REPLACE "^[0-9]+ " "" key "${entry}")
  string(JSON field GET "${text}" fields "${key}")
  string(JSON type TYPE "${field}" default)
  string(JSON default GET "${field}" default)
  string(JSON choices ERROR_VARIABLE none GET "${field}" choices)
  if(none)
    set(choices)
  else()
    joined(choices "${choices}")
  endif()
  if(type STREQUAL ARRAY)
    string(JSON element TYPE "${default}" 0)
    joined(default "${default}")
    set(kind words)
    if(element STREQUAL NUMBER)
      set(kind numbers)
    endif()
  elseif(type STREQUAL BOOLEAN)
    set(kind boolean)
    string(REPLACE "ON" "1" default "${default}")
    string(REPLACE "OFF" "0" default "${default}")
  elseif(choices)
    set(kind choice)
  elseif(type STREQUAL NUMBER)
    set(kind number)
  else()
    set(kind text)
  endif()
  set(row "\"${key}\", LinkKind::${kind}, \"${default}\"")
  set(fallback_least -infinity)
  set(fallback_most infinity)
  set(fallback_step 1)
  foreach(name IN ITEMS least most step)
    string(JSON ${name} ERROR_VARIABLE none GET "${field}" ${name})
    if(none)
      set(${name} ${fallback_${name}})
    endif()
    string(APPEND row ", ${${name}}")
  endforeach()
  foreach(name IN ITEMS unit doc)
    string(JSON ${name} ERROR_VARIABLE none GET "${field}" ${name})
    if(none)
      set(${name})
    endif()
  endforeach()
  string(APPEND rows "    {${row}, \"${choices}\", \"${unit}\", \"${doc}\"},\n")
endforeach()

file(WRITE "${OUTPUT}" "// Written by cmake/link_fields.cmake from web/link.json.
#include <limits>

#include \"cli/playground/link_fields.h\"

namespace posenc::cli {
namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::string_view panels[] = {
${panels}};
constexpr LinkField fields[] = {
${rows}};
}  // namespace

const std::int64_t link_version = ${version};
std::span<const std::string_view> link_panels() { return panels; }
std::span<const LinkField> link_fields() { return fields; }
}  // namespace posenc::cli
")
