# The C interface as WebAssembly modules that import nothing: posenc.wasm with all that computes, and
# posenc-models.wasm with the readers of model files and the doctor besides, which are twice as large, and with
# what the playground does not call: q and k at once, gradients, rotation by given angles. Exported are the functions
# of c.h up to its #ifndef __wasm__, and malloc and free for what is passed to them.
file(READ include/posenc/c.h declarations)
string(REGEX REPLACE "#ifndef __wasm__.*" "" declarations "${declarations}")
# A function that is new there is exported by the next build, not by the next configuration.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/posenc/c.h)
string(REGEX MATCHALL "\nPOSENC_API [^\n]*posenc_[a-z_]+\\(" declarations "${declarations}")
set(exports malloc free)
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "posenc_[a-z_]+\\(" name "${declaration}")
  string(REPLACE "(" "" name "${name}")
  list(APPEND exports ${name})
endforeach()
list(TRANSFORM exports PREPEND "LINKER:--export=")
set(exports_without_models ${exports})
list(FILTER exports_without_models EXCLUDE REGEX
     "=posenc_(models?_|doctor_|engines_|rotate_qk|rotate_transpose|rotate_by|angle_|rotation_angles_at|positions_grid|positions_signed)")

# What makes the library small: one program seen as a whole; a string_view
# passed and returned as two numbers and not through memory (the multi-value ABI); libc++'s failed checks without
# their texts; calls between files inlined only where that makes the code shorter, and no address kept in a variable of its own
# that the loop's counter gives (strength reduction: 1 % of the size gzipped); no destructors of
# what lives as long as the module, and no locks about what is made once.
foreach(part posenc posenc_fast)
  target_compile_options(${part} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-c++-static-destructors;-fno-threadsafe-statics>)
  target_compile_options(${part} PRIVATE -flto -mmultivalue "SHELL:-Xclang -target-abi -Xclang experimental-mv"
    "-D_LIBCPP_VERBOSE_ABORT(...)=__builtin_trap()")
endforeach()

# Vectors of 128 bits, which Node has had from 16.4 on and every browser since 2023; the loops over channels, which
# are worth them, are compiled to be fast.
foreach(part posenc posenc_fast)
  target_compile_options(${part} PRIVATE -msimd128)
endforeach()
set_source_files_properties(src/kernels/pairs.cc src/attention/sums.cc PROPERTIES COMPILE_OPTIONS -O2 SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)

# These are compiled as the C library is, which calls some of their functions.
add_library(posenc_wasm_own OBJECT src/wasm/runtime.cc src/wasm/c_library.cc)
target_include_directories(posenc_wasm_own PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_features(posenc_wasm_own PRIVATE cxx_std_23)
target_compile_options(posenc_wasm_own PRIVATE -fno-exceptions -fno-rtti)

# How the structs of c.h lie in memory, for JavaScript.
set(layout ${CMAKE_CURRENT_BINARY_DIR}/layout.json)
set(layout_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/wasm_layout.sh)
set(c_header ${CMAKE_CURRENT_SOURCE_DIR}/include/posenc/c.h)
add_custom_command(OUTPUT ${layout} COMMAND ${layout_script} ${CMAKE_C_COMPILER} ${c_header} > ${layout}
                   DEPENDS ${layout_script} ${c_header} VERBATIM)

function(wasm_module name)
  string(REPLACE "-" "_" target ${name}_wasm)
  add_executable(${target} $<TARGET_OBJECTS:posenc_wasm_own> ${layout})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .wasm LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE posenc)
  target_link_options(${target} PRIVATE -mexec-model=reactor -mmultivalue
    LINKER:--fatal-warnings,--gc-sections,--strip-all,-O2,--compress-relocations
    LINKER:-mllvm,-target-abi=experimental-mv,-mllvm,-inline-threshold=-50,-mllvm,-enable-merge-functions
    LINKER:-mllvm,-disable-lsr ${ARGN})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${layout})
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND llvm-objcopy-22 --add-section=posenc.layout=${layout} $<TARGET_FILE:${target}>)
endfunction()
wasm_module(posenc ${exports_without_models})
wasm_module(posenc-models ${exports})
