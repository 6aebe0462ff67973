# The playground within the command: the keys of its links always; the site itself (posenc serve) where
# web/dist/site has been built, as `make serve` does.
set(link_json ${CMAKE_CURRENT_BINARY_DIR}/link_json.cc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS web/link.json)
file(READ web/link.json link_text)
file(CONFIGURE OUTPUT ${link_json} @ONLY CONTENT [[// web/link.json, for cli/playground/link_rules.cc.
namespace posenc::cli {
extern const char* const link_json;
const char* const link_json = R"json(@link_text@)json";
}  // namespace posenc::cli
]])

set(POSENC_PLAYGROUND AUTO CACHE STRING
    "The playground in posenc serve: ON, OFF, or AUTO (where it has been built)")
set_property(CACHE POSENC_PLAYGROUND PROPERTY STRINGS AUTO ON OFF)

set(playground FALSE)
if(WIN32)
  set(playground_note "its server is for POSIX alone")
elseif(POSENC_PLAYGROUND)
  set(site ${CMAKE_CURRENT_SOURCE_DIR}/web/dist/site)
  file(GLOB_RECURSE site_files CONFIGURE_DEPENDS ${site}/*)
  if(NOT ${site}/index.html IN_LIST site_files)
    set(playground_note "web/dist/site is not built; make serve builds it")
  else()
    set(playground TRUE)
    list(LENGTH site_files count)
    set(playground_note "${count} files of web/dist/site within posenc")
  endif()
  if(NOT playground AND NOT POSENC_PLAYGROUND STREQUAL AUTO)
    message(FATAL_ERROR "POSENC_PLAYGROUND: ${playground_note}")
  endif()
else()
  set(playground_note "POSENC_PLAYGROUND is OFF")
endif()
message(STATUS "posenc serve: ${playground_note}")

# Every file as it is and compressed, and the table that cli/playground/site.h declares.
function(embed_site target)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/site)
  string(REPLACE ";" "|" files "${site_files}")
  add_custom_command(OUTPUT ${made}/site.cc
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${made} -D SITE=${site} -D "FILES=${files}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_site.cmake
    DEPENDS ${site_files} cmake/embed_site.cmake VERBATIM)
  target_sources(${target} PRIVATE ${made}/site.cc)
endfunction()
