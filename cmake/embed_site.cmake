# cmake -D OUTPUT=folder -D SITE=web/dist/site -D FILES=a|b -P embed_site.cmake
# Writes folder/site.cc, the table that cli/playground/site.h declares; the assembler reads the files where they lie.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "|" ";" FILES "${FILES}")
file(REMOVE_RECURSE "${OUTPUT}")
file(MAKE_DIRECTORY "${OUTPUT}")

set(blobs)
set(symbols)
set(rows)
set(n 0)
foreach(file IN LISTS FILES)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${SITE}" OUTPUT_VARIABLE path)
  file(SHA256 "${file}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  set(row "\"/${path}\", \"${hash}\"")
  set(kinds plain)
  # What every visit begins with. Compressed copies of the rest would be a tenth of a wheel.
  if(file MATCHES "\\.(html|js|css|svg)$")
    file(ARCHIVE_CREATE OUTPUT "${OUTPUT}/${n}.gz" PATHS "${file}" FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    list(APPEND kinds gzip)
  endif()
  foreach(kind IN LISTS kinds)
    set(blob "posenc_site_${kind}_${n}")
    set(from "${file}")
    if(kind STREQUAL gzip)
      set(from "${OUTPUT}/${n}.gz")
    endif()
    string(APPEND blobs "  BLOB(\"${blob}\", \"${from}\")\n")
    string(APPEND symbols "extern const char ${blob}[], ${blob}_end[];\n")
    string(APPEND row ", {${blob}, ${blob}_end}")
  endforeach()
  if(NOT gzip IN_LIST kinds)
    string(APPEND row ", {posenc_site_plain_${n}, posenc_site_plain_${n}}")
  endif()
  string(APPEND rows "    {${row}},\n")
  math(EXPR n "${n} + 1")
endforeach()

file(WRITE "${OUTPUT}/site.cc" "// Written by cmake/embed_site.cmake from what web/ builds.
#include \"cli/playground/site.h\"

#ifdef __APPLE__
#define SECTION \".section __TEXT,__const\\n\"
#define SECTION_END \".text\\n\"
// An end by a name of its own could be moved apart from what it ends.
#define BLOB(name, file) \\
  \"_\" name \": .incbin \\\"\" file \"\\\"\\n.alt_entry _\" name \"_end\\n_\" name \"_end: .byte 0\\n\"
#else
#define SECTION \".pushsection .rodata\\n\"
#define SECTION_END \".popsection\\n\"
#define BLOB(name, file) name \": .incbin \\\"\" file \"\\\"\\n\" name \"_end: .byte 0\\n\"
#endif

__asm__(
  SECTION
${blobs}  SECTION_END);

extern \"C\" {
${symbols}}

namespace posenc::cli {
std::span<const SiteFile> site() {
  static const SiteFile files[] = {
${rows}  };
  return files;
}
}  // namespace posenc::cli
")
