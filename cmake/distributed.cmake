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
# Neither the C++ bindings, which MPI gave up in 2012, nor all that depends on them.
set(MPI_CXX_SKIP_MPICXX ON)
if(POSENC_MPI STREQUAL auto)
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  return()
endif()

sources(mpi_sources backends/distributed/*.cc)
list(FILTER mpi_sources EXCLUDE REGEX "/distributed/(program|tests)/")
add_library(posenc_mpi ${mpi_sources})
add_library(posenc::mpi ALIAS posenc_mpi)
set_target_properties(posenc_mpi PROPERTIES EXPORT_NAME mpi POSITION_INDEPENDENT_CODE ON VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
compile_rooms(posenc_mpi 8 ${mpi_sources})
target_compile_options(posenc_mpi PRIVATE $<$<CONFIG:Release>:-O3> -fno-exceptions -fno-rtti)
target_include_directories(posenc_mpi PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/backends/distributed>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(posenc_mpi PUBLIC posenc MPI::MPI_CXX)

if(POSENC_TESTS)
  need_googletest()
  set(mpirun ${CMAKE_CURRENT_SOURCE_DIR}/backends/distributed/run.sh)
  set(mpi_test_scripts ${CMAKE_CURRENT_SOURCE_DIR}/backends/distributed/tests)
  file(GLOB mpi_tests CONFIGURE_DEPENDS backends/distributed/*_test.cc)
  # Whatever the tests labelled distributed run (make distributed).
  add_custom_target(posenc_distributed)

  # The tests of an MPI: `library` is posenc_mpi compiled for it, `starter` its mpirun, further arguments numbers of ranks.
  # More ranks than cores, in turns: a test that waits for another's processes is slow, and no test of anything.
  function(test_mpi name library starter)
    string(REPLACE distributed posenc_mpi tests ${name}_tests)
    string(REPLACE distributed posenc killed ${name}_killed_rank)
    add_executable(${tests} ${mpi_tests})
    add_executable(${killed} backends/distributed/tests/killed_rank.cc)
    foreach(target IN ITEMS ${tests} ${killed})
      target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
      target_compile_options(${target} PRIVATE ${quickest_to_build})
      target_link_libraries(${target} PRIVATE ${library})
    endforeach()
    target_link_libraries(${tests} PRIVATE GTest::gtest)
    add_dependencies(posenc_distributed ${tests} ${killed})
    foreach(ranks IN LISTS ARGN)
      add_test(NAME ${name}_${ranks} COMMAND ${mpirun} ${ranks} $<TARGET_FILE:${tests}> --gtest_brief=1)
      list(APPEND added ${name}_${ranks})
    endforeach()
    add_test(NAME ${name}_killed_rank COMMAND ${mpi_test_scripts}/killed_rank.sh ${mpirun} $<TARGET_FILE:${killed}>)
    set_tests_properties(${added} ${name}_killed_rank PROPERTIES RUN_SERIAL ON TIMEOUT 280
      ENVIRONMENT "MPIRUN=${starter}" LABELS distributed)
  endfunction()
  test_mpi(distributed posenc_mpi "${MPIEXEC_EXECUTABLE}" 1 2 3 4 7 8)

  # Debian's MPICH beside Debian's Open MPI: each by the names that it keeps whichever of them is mpirun.
  find_path(MPICH_INCLUDE mpi.h PATH_SUFFIXES ${CMAKE_CXX_LIBRARY_ARCHITECTURE}/mpich NO_DEFAULT_PATH PATHS /usr/include)
  find_library(MPICH_LIBRARY mpich)
  find_program(MPICH_RUN mpirun.mpich)
  if(MPICH_INCLUDE AND MPICH_LIBRARY AND MPICH_RUN AND NOT "${MPI_CXX_INCLUDE_DIRS}" MATCHES mpich)
    add_library(posenc_mpich STATIC EXCLUDE_FROM_ALL ${mpi_sources})
    compile_rooms(posenc_mpich 8 ${mpi_sources})
    target_compile_options(posenc_mpich PRIVATE ${quickest_to_build} -fno-exceptions -fno-rtti)
    target_compile_definitions(posenc_mpich PUBLIC MPICH_SKIP_MPICXX)
    target_include_directories(posenc_mpich PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/backends/distributed
                               PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_include_directories(posenc_mpich SYSTEM PUBLIC ${MPICH_INCLUDE})
    target_link_libraries(posenc_mpich PUBLIC posenc ${MPICH_LIBRARY})
    test_mpi(distributed_mpich posenc_mpich "${MPICH_RUN}" 2 3)
  endif()
endif()
