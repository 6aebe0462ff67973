# posenc.wasm: the C interface as one module that imports nothing. Exported are the functions of c.h, and
# malloc and free for what is passed to them.
file(STRINGS include/posenc/c.h declarations REGEX "^POSENC_API .*posenc_[a-z_]+\\(")
set(exports malloc free)
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "posenc_[a-z_]+\\(" name "${declaration}")
  string(REPLACE "(" "" name "${name}")
  list(APPEND exports ${name})
endforeach()
list(TRANSFORM exports PREPEND "LINKER:--export=")

add_executable(posenc_wasm src/wasm.cc)
set_target_properties(posenc_wasm PROPERTIES OUTPUT_NAME posenc SUFFIX .wasm)
target_compile_options(posenc_wasm PRIVATE -fno-exceptions -fno-rtti)
target_link_libraries(posenc_wasm PRIVATE posenc)
target_link_options(posenc_wasm PRIVATE -mexec-model=reactor LINKER:--gc-sections,--strip-all ${exports})
