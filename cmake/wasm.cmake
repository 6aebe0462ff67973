# clang's own WebAssembly target with Debian's wasi-libc and libc++. (CMake 3.25 does not know WASI.)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_AR llvm-ar-22)
set(CMAKE_RANLIB llvm-ranlib-22)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# "wasm32-wasi" is the only one of clang's names for it that finds Debian's headers, and it warns of itself.
# wasm-opt, where installed, is Debian's of 2022 and would be run unasked.
add_compile_options(-Wno-deprecated)
add_link_options(-Wno-deprecated --no-wasm-opt)
