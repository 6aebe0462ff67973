# A target a file of fuzz/, but for what they share. POSENC_FUZZ builds them for libFuzzer as
# fuzz_NAME; the tests replay seeds and their mutations as replay_NAME, for which any compiler does.
set(fuzz_shared bytes check replay)

file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cc)
add_library(posenc_fuzz_check STATIC EXCLUDE_FROM_ALL fuzz/check.cc)
target_link_libraries(posenc_fuzz_check PUBLIC posenc posenc_json)
target_include_directories(posenc_fuzz_check PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(posenc_fuzz_check PUBLIC -fno-exceptions -fno-rtti)

foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  if(name IN_LIST fuzz_shared)
    continue()
  endif()
  if(POSENC_FUZZ)
    add_executable(fuzz_${name} ${source})
    target_link_libraries(fuzz_${name} PRIVATE posenc_fuzz_check)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endif()
endforeach()
