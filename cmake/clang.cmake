# What is sanitized clang compiles in half the time of g++ 12, whose thread sanitizer fails under the memory layout
# of newer kernels. Its libomp-dev has OpenMP for it, and Archer, by which (see CMakePresets.json) it knows OpenMP's barriers.
find_program(CLANG_C clang-22)
find_program(CLANG_CXX clang++-22)
if(CLANG_C AND CLANG_CXX)
  set(CMAKE_C_COMPILER ${CLANG_C})
  set(CMAKE_CXX_COMPILER ${CLANG_CXX})
endif()
