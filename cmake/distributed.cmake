# posenc_mpi: attention over several machines (posenc/distributed.h), where there is an MPI.
set(POSENC_MPI auto CACHE STRING "Build posenc_mpi, attention over several machines: auto (where MPI is found), ON or OFF")
set_property(CACHE POSENC_MPI PROPERTY STRINGS auto ON OFF)
if(POSENC_MPI STREQUAL auto)
  find_program(POSENC_MPICXX NAMES mpicxx mpic++)
  if(NOT POSENC_MPICXX OR POSENC_SANITIZE OR POSENC_FUZZ OR POSENC_PYTHON OR CMAKE_CROSSCOMPILING
     OR CMAKE_SYSTEM_PROCESSOR STREQUAL wasm32)
    return()
  endif()
elseif(NOT POSENC_MPI)
  return()
endif()
# Neither the C++ bindings, which MPI gave up in 2012, nor all that hangs on them.
set(MPI_CXX_SKIP_MPICXX ON)
if(POSENC_MPI STREQUAL auto)
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  return()
endif()

sources(mpi_sources distributed/*.cc)
list(FILTER mpi_sources EXCLUDE REGEX "/distributed/(program|tests)/")
add_library(posenc_mpi ${mpi_sources})
add_library(posenc::mpi ALIAS posenc_mpi)
set_target_properties(posenc_mpi PROPERTIES EXPORT_NAME mpi POSITION_INDEPENDENT_CODE ON VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
compile_rooms(posenc_mpi 8 ${mpi_sources})
target_compile_options(posenc_mpi PRIVATE $<$<CONFIG:Release>:-O3> -fno-exceptions -fno-rtti)
target_include_directories(posenc_mpi PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/distributed>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(posenc_mpi PUBLIC posenc MPI::MPI_CXX)

if(POSENC_TESTS)
  find_package(GTest REQUIRED)
  set(mpirun ${CMAKE_CURRENT_SOURCE_DIR}/distributed/run.sh)
  file(GLOB mpi_tests CONFIGURE_DEPENDS distributed/*_test.cc)
  add_executable(posenc_mpi_tests ${mpi_tests})
  add_executable(posenc_killed_rank distributed/tests/killed_rank.cc)
  foreach(target IN ITEMS posenc_mpi_tests posenc_killed_rank)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(${target} PRIVATE ${quickest_to_build})
    target_link_libraries(${target} PRIVATE posenc_mpi)
  endforeach()
  target_link_libraries(posenc_mpi_tests PRIVATE GTest::gtest)
  # More ranks than cores, in turns: a test that waits for another's processes is slow, and no test of anything.
  foreach(ranks IN ITEMS 1 2 3 4 7 8)
    add_test(NAME distributed_${ranks} COMMAND ${mpirun} ${ranks} $<TARGET_FILE:posenc_mpi_tests> --gtest_brief=1)
    list(APPEND under_mpi distributed_${ranks})
  endforeach()
  add_test(NAME distributed_killed_rank 
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/distributed/tests/killed_rank.sh ${mpirun} $<TARGET_FILE:posenc_killed_rank>)
  list(APPEND under_mpi distributed_killed_rank)
  set_tests_properties(${under_mpi} PROPERTIES RUN_SERIAL ON TIMEOUT 280
    ENVIRONMENT "MPIRUN=${MPIEXEC_EXECUTABLE}" LABELS distributed)
endif()
