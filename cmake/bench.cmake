# posenc_bench: kernels beside the limits of memory, gradients beside what they are of.
find_package(benchmark REQUIRED)
add_executable(posenc_bench evidence/bench/micro/kernels.cc evidence/bench/micro/content.cc evidence/bench/micro/gradients.cc evidence/bench/micro/cache.cc evidence/bench/micro/convolution.cc)
target_include_directories(posenc_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(posenc_bench PRIVATE posenc_harness benchmark::benchmark)
