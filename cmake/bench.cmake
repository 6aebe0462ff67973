# posenc_bench: kernels beside the limits of memory, gradients beside what they are of.
find_package(benchmark REQUIRED)
add_executable(posenc_bench bench/kernels.cc bench/content.cc bench/gradients.cc bench/cache.cc)
target_include_directories(posenc_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(posenc_bench PRIVATE posenc benchmark::benchmark)
