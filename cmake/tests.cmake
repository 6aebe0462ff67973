# posenc_tests (every *_test.cc), the checks of the house, and the examples as programs that must run.
include(CheckCXXSourceCompiles)
include(GoogleTest)
need_googletest()

set(root ${CMAKE_CURRENT_SOURCE_DIR})
set(repo ${root}/tests/repo)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS src/*_test.cc cli/*_test.cc evidence/claims/*_test.cc evidence/bench/*_test.cc
  evidence/lab/*_test.cc tests/*.cc)
list(FILTER test_sources EXCLUDE REGEX "/tests/(soak|decode_step|refusals|fuzz)/")
if(NOT TARGET posenc_commands)
  list(FILTER test_sources EXCLUDE REGEX "/cli/")
endif()
if(test_sources)
  need_fmt()
  # Of what only WebAssembly needs the mathematics runs anywhere.
  add_executable(posenc_tests ${test_sources} src/wasm/small_math.cc src/wasm/decimal.cc)
  target_include_directories(posenc_tests PRIVATE ${root})
  target_compile_options(posenc_tests PRIVATE ${quickest_to_build})
  compile_rooms(posenc_tests 8 ${test_sources})
  read_headers_once(posenc_tests <gtest/gtest.h> <nlohmann/json.hpp> <posenc/posenc.h>)
  if(TARGET OpenMP::OpenMP_CXX)
    target_link_libraries(posenc_tests PRIVATE OpenMP::OpenMP_CXX)
  endif()
  # Rows of cos and sin are compared with quadruple precision where the compiler has it.
  set(CMAKE_REQUIRED_LIBRARIES quadmath)
  check_cxx_source_compiles("
    #include <quadmath.h>
    int main(int n, char**) { return sinq(n) > 2; }" POSENC_QUADMATH)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(POSENC_QUADMATH)
    target_link_libraries(posenc_tests PRIVATE quadmath)
    set_source_files_properties(${root}/src/kernels/cos_sin_rows_test.cc PROPERTIES COMPILE_DEFINITIONS
      POSENC_QUADMATH=1)
  endif()
  target_link_libraries(posenc_tests PRIVATE posenc_claims posenc_harness posenc_json fmt::fmt GTest::gtest)
  if(TARGET posenc_command)
    add_dependencies(posenc_tests posenc_command)
    target_link_libraries(posenc_tests PRIVATE posenc_commands)
  endif()
  set_source_files_properties(${root}/tests/paths.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS
    "POSENC_TEST_DATA=\"${root}/tests/data\";POSENC_COMMAND=\"$<TARGET_FILE:posenc_command>\"")
  include(cmake/unit_tests.cmake)
endif()

# Every room refuses what it does not know: a feature that this program alone compiles into plans.
if(TARGET posenc_cuda_emulated)
  add_executable(posenc_refusal_tests tests/refusals/refusals_test.cc src/core/features.cc)
  target_include_directories(posenc_refusal_tests PRIVATE ${root})
  target_compile_definitions(posenc_refusal_tests PRIVATE POSENC_TEST_FEATURE)
  target_compile_options(posenc_refusal_tests PRIVATE ${quickest_to_build})
  target_link_libraries(posenc_refusal_tests PRIVATE posenc_cuda_emulated GTest::gtest_main)
  add_test(NAME refusals COMMAND posenc_refusal_tests --gtest_brief=1)
  set_tests_properties(refusals PROPERTIES LABELS quick)
endif()

# Decoding for hours (make soak), and here for seconds.
if(TARGET posenc_commands)
  add_executable(posenc_soak tests/soak/decode.cc)
  target_link_libraries(posenc_soak PRIVATE posenc_commands)
  target_compile_options(posenc_soak PRIVATE ${quickest_to_build})
  set(most_memory 256)
  if(POSENC_SANITIZE)
    set(most_memory 4096)
  endif()
  add_test(NAME soak COMMAND posenc_soak --seconds 2 --memory ${most_memory})
  # One key's position told wrongly is noticed.
  add_test(NAME soak_notices COMMAND posenc_soak --seconds 0 --misplace --memory ${most_memory})
  set_tests_properties(soak_notices PROPERTIES PASS_REGULAR_EXPRESSION "MISMATCH RoPE, float32")
endif()

# posenc itself before `posenc conform`: its answers to vectors that a second implementation made.
if(TARGET posenc_command)
  add_executable(posenc_adapter vectors/adapters/posenc_adapter.cc)
  target_link_libraries(posenc_adapter PRIVATE posenc posenc_json)
  target_compile_definitions(posenc_adapter PRIVATE POSENC_VERSION="${PROJECT_VERSION}")
  target_compile_options(posenc_adapter PRIVATE ${quickest_to_build})
  add_test(NAME conform COMMAND posenc_command conform -- $<TARGET_FILE:posenc_adapter>)
endif()

file(GLOB example_sources CONFIGURE_DEPENDS examples/*.cc examples/*.c)
# Of 164 packages in Debian, and therefore built only where it is there already.
find_package(Torch QUIET)
# Clang refuses the headers of older releases, such as Debian's, from C++20 on.
if(TARGET torch AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(examples/libtorch_attend.cc PROPERTIES COMPILE_OPTIONS "-w")
else()
  list(FILTER example_sources EXCLUDE REGEX "/libtorch_")
endif()
if(NOT TARGET posenc_mpi)
  list(FILTER example_sources EXCLUDE REGEX "/distributed\\.cc$")
endif()
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM LAST_ONLY name)
  if(source MATCHES "\\.c$")
    string(APPEND name _c)
  endif()
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE posenc)
  if(name MATCHES "^libtorch_")
    target_link_libraries(example_${name} PRIVATE torch)
  endif()
  if(name STREQUAL "distributed")
    target_link_libraries(example_${name} PRIVATE posenc_mpi)
    add_test(NAME example_${name} COMMAND ${root}/backends/distributed/run.sh 2 $<TARGET_FILE:example_${name}>)
    continue()
  endif()
  add_test(NAME example_${name} COMMAND example_${name} WORKING_DIRECTORY ${root})
endforeach()

add_test(NAME example_decode_as_documented
         COMMAND ${repo}/example_output.sh ${root}/docs/cache.md examples/decode.cc $<TARGET_FILE:example_decode>)

if(TARGET posenc_mpi_command)
  add_test(NAME distributed_command COMMAND ${root}/backends/distributed/tests/command.sh ${root}/backends/distributed/run.sh
           $<TARGET_FILE:posenc_command>)
  set_tests_properties(distributed_command PROPERTIES RUN_SERIAL ON LABELS distributed
                       ENVIRONMENT "MPIRUN=${MPIEXEC_EXECUTABLE}")
endif()

# The C++ of the docs, as one program.
file(GLOB pages CONFIGURE_DEPENDS README.md docs/*.md)
set(snippets ${PROJECT_BINARY_DIR}/doc_snippets.cc)
add_custom_command(OUTPUT ${snippets} COMMAND ${repo}/snippets.sh source ${root} > ${snippets}
                   DEPENDS ${pages} ${repo}/snippets.sh VERBATIM)
add_executable(doc_snippets ${snippets})
target_link_libraries(doc_snippets PRIVATE posenc)
add_test(NAME doc_snippets
         COMMAND ${repo}/snippets.sh test ${root} $<TARGET_FILE:doc_snippets>)

# The C interface from files compiled as C; and what WebAssembly makes of it beside the native answers.
file(GLOB c_sources CONFIGURE_DEPENDS tests/c/*.c)
add_executable(posenc_c_test ${c_sources})
target_include_directories(posenc_c_test PRIVATE ${root})
add_executable(posenc_native tests/wasm/native.c)
foreach(target IN ITEMS posenc_c_test posenc_native)
  target_link_libraries(${target} PRIVATE posenc)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Werror)
endforeach()
add_test(NAME c_interface COMMAND posenc_c_test WORKING_DIRECTORY ${root}/tests/data)
add_test(NAME wasm_answers_like_native
         COMMAND ${root}/tests/wasm/compare.sh ${root}/build/wasm $<TARGET_FILE:posenc_native>)
set_tests_properties(wasm_answers_like_native PROPERTIES SKIP_RETURN_CODE 77)

# The house and its playground are the same under a sanitizer, and a sanitized library could not be used from outside.
if(NOT POSENC_SANITIZE)
  add_test(NAME playground_is_formatted COMMAND ${root}/web/ctest.sh format)
  add_test(NAME playground COMMAND ${root}/web/ctest.sh test)
  add_test(NAME npm_package COMMAND ${root}/web/ctest.sh package)
  foreach(language IN ITEMS rust go)
    add_test(NAME ${language} COMMAND ${root}/bindings/${language}/test.sh)
    # The first time cargo compiles a runtime for WebAssembly.
    set_tests_properties(${language} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
  endforeach()
  # The longest of all, in two parts: they run side by side, and each shows its own panels.
  set(in_a_browser)
  foreach(part IN ITEMS 1 2)
    add_test(NAME playground_in_a_browser_${part} COMMAND ${root}/web/ctest.sh browser ${part}/2)
    list(APPEND in_a_browser playground_in_a_browser_${part})
  endforeach()
  if(TARGET posenc_command)
    add_test(NAME webgpu_says_what_is_emitted COMMAND ${root}/bindings/webgpu/angles.sh $<TARGET_FILE:posenc_command>)
    set_property(TEST ${in_a_browser} PROPERTY ENVIRONMENT POSENC_COMMAND=$<TARGET_FILE:posenc_command>)
  endif()
  set_tests_properties(playground_is_formatted playground npm_package ${in_a_browser} PROPERTIES SKIP_RETURN_CODE 77)
  # The longest begin first, so that no processor waits for them at the end.
  set_tests_properties(${in_a_browser} PROPERTIES COST 1000 TIMEOUT 900)
  set_tests_properties(playground PROPERTIES COST 900)

  # A program of its own: it replaces operator new, which a sanitizer brings along, to count what is asked for.
  add_executable(posenc_decode_step tests/decode_step/decode_step_test.cc)
  target_link_libraries(posenc_decode_step PRIVATE posenc GTest::gtest_main)
  # g++ 12 takes free() in the program's own operator delete for a mismatch with its own operator new.
  target_compile_options(posenc_decode_step PRIVATE ${quickest_to_build}
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
  add_test(NAME decode_step COMMAND posenc_decode_step)

  add_test(NAME include_rules COMMAND ${root}/cmake/check_includes.sh ${root})
  add_test(NAME include_rules_find_violations COMMAND ${repo}/include_rules.sh)
  add_test(NAME family_names COMMAND ${root}/cmake/check_family_names.sh ${root})
  add_test(NAME family_names_find_violations COMMAND ${repo}/family_names.sh)
  add_test(NAME content_names COMMAND ${root}/cmake/check_content_names.sh ${root})
  add_test(NAME content_names_find_violations COMMAND ${repo}/content_names.sh)
  add_test(NAME pages_name_what_is_there COMMAND ${repo}/paths.sh ${root})
  add_test(NAME docs_site COMMAND ${repo}/docs_site.sh ${root})
  add_test(NAME words COMMAND ${repo}/words.sh ${root})
  add_test(NAME versions_are_one COMMAND ${repo}/versions.sh ${root})
  set_tests_properties(words PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME warnings_are_documented COMMAND ${repo}/warning_codes.sh ${root})
  add_test(NAME missing_packages COMMAND ${repo}/missing_packages.sh)
  add_test(NAME without_packages COMMAND ${repo}/dependencies.sh ${PROJECT_BINARY_DIR} ${root} ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER})
  set_tests_properties(without_packages PROPERTIES SKIP_RETURN_CODE 77)
  # Every public header compiles alone, c.h also as C99: the build shows it.
  file(GLOB_RECURSE headers RELATIVE ${root}/include/posenc CONFIGURE_DEPENDS include/posenc/*.h)
  set(alone ${PROJECT_BINARY_DIR}/headers)
  file(CONFIGURE OUTPUT ${alone}/c.c CONTENT "#include \"posenc/c.h\"\n")
  add_library(headers_stand_alone OBJECT ${alone}/c.c)
  foreach(header IN LISTS headers)
    cmake_path(REMOVE_EXTENSION header OUTPUT_VARIABLE name)
    file(CONFIGURE OUTPUT ${alone}/${name}.cc CONTENT "#include \"posenc/${header}\"\n")
    target_sources(headers_stand_alone PRIVATE ${alone}/${name}.cc)
  endforeach()
  target_link_libraries(headers_stand_alone PRIVATE posenc_claims posenc_harness)
  target_compile_options(headers_stand_alone PRIVATE -Werror)
  set_target_properties(headers_stand_alone PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  # Who compiles them by an older standard is told the cure; c.h is content with C++11.
  set(read_only ${CMAKE_CXX_COMPILER} -fsyntax-only -I ${root}/include -x c++)
  foreach(standard IN ITEMS 17 20)
    add_test(NAME headers_in_cxx${standard}_tell_the_cure COMMAND ${read_only} -std=c++${standard} ${alone}/posenc.cc)
    set_tests_properties(headers_in_cxx${standard}_tell_the_cure PROPERTIES
                         PASS_REGULAR_EXPRESSION "error[^\n]*compile with -std=c\\+\\+23")
  endforeach()
  add_test(NAME c_h_in_cxx11 COMMAND ${read_only} -std=c++11 -Wall -Wextra -Wpedantic -Werror ${alone}/c.c)
  find_program(POSENC_CLANG clang++-22)
  if(POSENC_CLANG)
    # It warns of an infinity where there is to be none.
    add_test(NAME headers_under_fast_math COMMAND ${POSENC_CLANG} -fsyntax-only -I ${root}/include -std=c++23
             -ffast-math -Wall -Wextra -Werror ${alone}/posenc.cc)
  endif()
  add_test(NAME posenc_h_has_every_header COMMAND ${repo}/headers.sh ${root}/include)
  add_test(NAME api_reference COMMAND ${root}/cmake/reference/make.sh ${PROJECT_BINARY_DIR}/docs)
  set_tests_properties(api_reference PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME library_without_exceptions COMMAND ${repo}/symbols.sh $<TARGET_FILE:posenc> $<TARGET_FILE:posenc_claims>
           $<TARGET_FILE:posenc_harness>)
  if(POSENC_INSTALL)
    add_test(NAME install COMMAND ${repo}/install.sh ${PROJECT_BINARY_DIR} ${root}
             ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER} ${CMAKE_C_COMPILER})
  endif()
endif()
