# posenc_bench: kernels beside the limits of memory.
find_package(benchmark REQUIRED)
add_executable(posenc_bench bench/kernels.cc bench/limit.cc)
target_include_directories(posenc_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(posenc_bench PRIVATE
  $<TARGET_PROPERTY:posenc,COMPILE_DEFINITIONS>)
target_link_libraries(posenc_bench PRIVATE posenc hwy::hwy benchmark::benchmark)
if(TARGET OpenMP::OpenMP_CXX)
  target_link_libraries(posenc_bench PRIVATE OpenMP::OpenMP_CXX)
endif()
