# cmake -D PROGRAM=FILE -P carry.cmake: copies the shared libraries that a program needs beyond glibc beside it, where it looks for
# them ($ORIGIN), so that both go to a machine that has none.
get_filename_component(folder ${PROGRAM} DIRECTORY)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAM} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX there  # beside the program already
  POST_EXCLUDE_REGEXES "/lib(c|m|dl|rt|pthread)\\.so" "/ld-linux")
foreach(library IN LISTS found)
  file(COPY ${library} DESTINATION ${folder} FOLLOW_SYMLINK_CHAIN)
endforeach()
