# posenc_cuda: plans acting on NVIDIA's devices (posenc/cuda.h), where it is asked for; `make cuda` brings the compiler. Its text runs on
# the host as well, over an emulated grid, and is tested so everywhere.
option(POSENC_CUDA "Build posenc_cuda, rotation on NVIDIA's devices; needs nvcc" OFF)
if(POSENC_FUZZ OR CMAKE_CROSSCOMPILING OR CMAKE_SYSTEM_PROCESSOR STREQUAL wasm32
   OR NOT (POSENC_CUDA OR POSENC_TESTS OR POSENC_PYTHON))
  return()
endif()

# The device fuses nothing that the text does not fuse, and so must the host.
set(cuda_options $<$<CONFIG:Release>:-O2> -ffp-contract=off -fno-exceptions -fno-rtti)
function(cuda_library name kind)
  add_library(${name} ${kind} backends/cuda/rotations.cc backends/cuda/additions.cc backends/cuda/biases.cc backends/cuda/calls.cc backends/cuda/emulated.cc ${ARGN})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/backends/cuda>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cuda_options}>")
  target_link_libraries(${name} PUBLIC posenc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

if(POSENC_TESTS OR POSENC_PYTHON)
  cuda_library(posenc_cuda_emulated STATIC)
  set_target_properties(posenc_cuda_emulated PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
if(POSENC_TESTS)
  need_googletest()
  file(GLOB cuda_tests CONFIGURE_DEPENDS backends/cuda/*_test.cc)
  add_executable(posenc_cuda_tests ${cuda_tests})
  target_include_directories(posenc_cuda_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(posenc_cuda_tests PRIVATE ${quickest_to_build} -ffp-contract=off)
  target_link_libraries(posenc_cuda_tests PRIVATE posenc_cuda_emulated GTest::gtest_main)
  add_test(NAME cuda_emulated COMMAND posenc_cuda_tests --gtest_brief=1)
  set_tests_properties(cuda_emulated PROPERTIES LABELS cuda)

  # The program of `make cuda` with the emulated grid alone, for the test of the script that goes to a machine with a device.
  set(program backends/cuda/program/main.cc backends/cuda/program/measure.cc backends/cuda/program/errors.cc)
  add_executable(posenc_cuda_no_device ${program} backends/cuda/program/without_device.cc backends/cuda/device_default.cc)
  target_include_directories(posenc_cuda_no_device PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(posenc_cuda_no_device PRIVATE ${quickest_to_build} -ffp-contract=off)
  target_link_libraries(posenc_cuda_no_device PRIVATE posenc_cuda_emulated)
  add_test(NAME cuda_on_device COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/backends/cuda/on_device_test.sh $<TARGET_FILE:posenc_cuda_no_device>)
  set_tests_properties(cuda_on_device PROPERTIES LABELS cuda SKIP_RETURN_CODE 77)

  # And with OpenCL for a device, by pocl's own clang: `make gpu-test` builds and runs it.
  find_library(POSENC_OPENCL OpenCL)
  find_program(POSENC_OPENCL_CLANG clang-15)
  if(POSENC_OPENCL AND POSENC_OPENCL_CLANG)
    set(kernels ${CMAKE_CURRENT_BINARY_DIR}/opencl_kernels.bc)
    set(room ${CMAKE_CURRENT_SOURCE_DIR}/backends/cuda/program/opencl)
    add_custom_command(OUTPUT ${kernels} VERBATIM
      COMMAND ${POSENC_OPENCL_CLANG} -x clcpp -cl-std=clc++2021 -target spir64-unknown-unknown -O1 -Wall -Werror -emit-llvm -c
              -I ${room}/std -I ${CMAKE_CURRENT_SOURCE_DIR} -I ${CMAKE_CURRENT_SOURCE_DIR}/include
              -MD -MF ${kernels}.d ${room}/kernels.cl -o ${kernels}
      DEPENDS ${room}/kernels.cl DEPFILE ${kernels}.d)
    add_executable(posenc_cuda_opencl EXCLUDE_FROM_ALL ${program} ${room}/device.cc backends/cuda/device_default.cc ${kernels})
    target_include_directories(posenc_cuda_opencl PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(posenc_cuda_opencl PRIVATE CL_TARGET_OPENCL_VERSION=300 POSENC_OPENCL_KERNELS="${kernels}")
    target_compile_options(posenc_cuda_opencl PRIVATE ${quickest_to_build} -ffp-contract=off)
    target_link_libraries(posenc_cuda_opencl PRIVATE posenc_cuda_emulated ${POSENC_OPENCL})
  endif()
endif()

if(POSENC_CUDA)
  set(POSENC_CUDA_ARCHITECTURES 80-real 90-real 100-real 80-virtual CACHE STRING "Devices that posenc_cuda has code for")
  set(CMAKE_CUDA_ARCHITECTURES ${POSENC_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  cuda_library(posenc_cuda_objects OBJECT backends/cuda/device.cu backends/cuda/device_default.cc)
  set_target_properties(posenc_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # All that it stands on is within, CUDA's runtime too: who links it needs nothing of CUDA.
  add_library(posenc_cuda SHARED $<TARGET_OBJECTS:posenc_cuda_objects>)
  add_library(posenc::cuda ALIAS posenc_cuda)
  target_include_directories(posenc_cuda INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/backends/cuda>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(posenc_cuda PRIVATE $<BUILD_INTERFACE:posenc>
                        INTERFACE $<BUILD_INTERFACE:posenc> $<INSTALL_INTERFACE:posenc::posenc>)
  target_link_options(posenc_cuda PRIVATE LINKER:--exclude-libs,ALL)
  set_target_properties(posenc_cuda PROPERTIES EXPORT_NAME cuda LINKER_LANGUAGE CUDA VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  add_executable(posenc_cuda_device backends/cuda/program/main.cc backends/cuda/program/measure.cc backends/cuda/program/errors.cc backends/cuda/program/bench.cu)
  target_include_directories(posenc_cuda_device PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(posenc_cuda_device PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cuda_options}>")
  # To be carried to a machine with a device and an older or newer system, with the libraries that stand beside it.
  set_target_properties(posenc_cuda_device PROPERTIES BUILD_RPATH "$ORIGIN")
  add_custom_command(TARGET posenc_cuda_device POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:posenc_cuda_device> -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/carry.cmake)
  target_link_libraries(posenc_cuda_device PRIVATE posenc_cuda_objects)
  foreach(target IN ITEMS posenc_cuda_objects posenc_cuda posenc_cuda_device)
    set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-fmad=false>")
  endforeach()
endif()
