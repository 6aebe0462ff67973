# posenc.wasm: the C interface as one module that imports nothing. Exported are the functions of c.h up to
# its #ifndef __wasm__, and malloc and free for what is passed to them.
file(READ include/posenc/c.h declarations)
string(REGEX REPLACE "#ifndef __wasm__.*" "" declarations "${declarations}")
string(REGEX MATCHALL "\nPOSENC_API [^\n]*posenc_[a-z_]+\\(" declarations "${declarations}")
set(exports malloc free)
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "posenc_[a-z_]+\\(" name "${declaration}")
  string(REPLACE "(" "" name "${name}")
  list(APPEND exports ${name})
endforeach()
list(TRANSFORM exports PREPEND "LINKER:--export=")

# What makes the library small (docs/c.md has the measured table): one program seen as a whole; a string_view
# passed as two numbers and not through memory (the multi-value ABI); libc++'s failed checks without their
# texts; calls between files inlined only where that makes the code shorter.
target_compile_options(posenc PRIVATE -flto -mmultivalue "SHELL:-Xclang -target-abi -Xclang experimental-mv"
  "-D_LIBCPP_VERBOSE_ABORT(...)=__builtin_trap()")

# These are compiled as the C library is, which calls some of their functions.
add_executable(posenc_wasm src/wasm.cc src/files/wasm_numbers.cc)
set_target_properties(posenc_wasm PROPERTIES OUTPUT_NAME posenc SUFFIX .wasm)
target_include_directories(posenc_wasm PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(posenc_wasm PRIVATE -fno-exceptions -fno-rtti)
target_link_libraries(posenc_wasm PRIVATE posenc)
target_link_options(posenc_wasm PRIVATE -mexec-model=reactor -mmultivalue
  LINKER:--gc-sections,--strip-all,-O2,--compress-relocations
  LINKER:-mllvm,-inline-threshold=-50,-mllvm,-enable-merge-functions ${exports})
