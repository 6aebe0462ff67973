# A target a file of tests/fuzz/, but for what they share. POSENC_FUZZ builds them for libFuzzer as
# fuzz_NAME; the tests replay seeds and their mutations as replay_NAME, for which any compiler does.
set(fuzz_root ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz)
set(fuzz_data ${CMAKE_CURRENT_SOURCE_DIR}/tests/data)

# Inputs to begin with, beside tests/fuzz/seeds/NAME, and the longest input worth trying.
set(fuzz_json_seeds ${fuzz_data}/zoo)
set(fuzz_config_seeds ${fuzz_data}/zoo)
set(fuzz_engines_seeds ${fuzz_data}/zoo)
set(fuzz_log_seeds ${fuzz_data}/logs)
set(fuzz_command_seeds ${fuzz_data}/commands)
set(fuzz_npy_seeds ${fuzz_data}/files)
set(fuzz_safetensors_seeds ${fuzz_data}/files)
set(fuzz_gguf_seeds ${fuzz_data}/files)
set(fuzz_model_seeds ${fuzz_data}/files)
set(fuzz_json_longest 4096)
set(fuzz_config_longest 4096)
set(fuzz_engines_longest 4096)
set(fuzz_params_longest 1024)
set(fuzz_positions_longest 512)
set(fuzz_eval_callback_longest 8192)
set(fuzz_cli_longest 256)
set(fuzz_position_longest 4096)

# What a target has of the command's own code.
set(fuzz_cli_code cli/arguments/parse.cc cli/arguments/npy.cc cli/arguments/atomic_file_posix.cc
    cli/system/system_posix.cc)
set(fuzz_request_code cli/playground/answer.cc)

# The words of the readers, for fuzzers that make JSON: always those that the code knows.
set(fuzz_words ${CMAKE_CURRENT_BINARY_DIR}/words.dict)
file(GLOB_RECURSE fuzz_word_sources CONFIGURE_DEPENDS src/model/*.cc include/posenc/*.h)
list(FILTER fuzz_word_sources EXCLUDE REGEX "_test\\.cc$")

file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*.cc)
list(FILTER fuzz_sources EXCLUDE REGEX "/fuzz/(check|check_model|replay)\\.cc$")

add_library(posenc_fuzz_check STATIC ${fuzz_root}/check.cc ${fuzz_root}/check_model.cc)
target_link_libraries(posenc_fuzz_check PUBLIC posenc posenc_json)
target_include_directories(posenc_fuzz_check PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(posenc_fuzz_check PUBLIC -fno-exceptions -fno-rtti)

# The main() of those that replay.
if(POSENC_TESTS AND NOT POSENC_FUZZ)
  add_library(posenc_fuzz_replay STATIC ${fuzz_root}/replay.cc)
  target_link_libraries(posenc_fuzz_replay PUBLIC posenc_fuzz_check)
endif()

set(fuzz_list "")
set(fuzz_programs "")
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  set(seeds "")
  foreach(folder IN ITEMS ${fuzz_root}/seeds/${name} ${fuzz_${name}_seeds})
    if(IS_DIRECTORY ${folder})
      list(APPEND seeds ${folder})
    endif()
  endforeach()
  set(longest 2048)
  if(DEFINED fuzz_${name}_longest)
    set(longest ${fuzz_${name}_longest})
  endif()
  list(JOIN seeds " " words)
  string(APPEND fuzz_list "${name} ${longest} ${words}\n")

  if(POSENC_FUZZ)
    add_executable(fuzz_${name} ${source} ${fuzz_${name}_code})
    target_link_libraries(fuzz_${name} PRIVATE posenc_fuzz_check)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    list(APPEND fuzz_programs fuzz_${name})
  endif()
  if(POSENC_TESTS AND NOT POSENC_FUZZ)
    add_executable(replay_${name} ${source} ${fuzz_${name}_code})
    target_link_libraries(replay_${name} PRIVATE posenc_fuzz_replay)
    add_test(NAME fuzz_${name} COMMAND replay_${name} ${seeds})
  endif()
endforeach()

# tests/fuzz/run.sh reads a target's longest input and seeds here.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/targets CONTENT "${fuzz_list}" @ONLY)
if(POSENC_FUZZ)
  add_custom_command(OUTPUT ${fuzz_words}
    COMMAND ${fuzz_root}/words.sh ${fuzz_words} ${fuzz_word_sources}
    DEPENDS ${fuzz_word_sources} ${fuzz_root}/words.sh VERBATIM)
  # What `make fuzz` builds: neither claims nor benchmarks.
  add_custom_target(fuzz DEPENDS ${fuzz_words} ${fuzz_programs})
endif()
