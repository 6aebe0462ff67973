# Compiles for another system, or for an older glibc, by zig (`pip install ziglang`), which brings clang, libc++ and each system's libc:
# cmake --toolchain cmake/zig.cmake -D ZIG_TARGET=aarch64-linux-gnu.2.28. Its C++ library is linked statically.
if(NOT ZIG_TARGET MATCHES "^(x86_64|aarch64)-(linux|windows|macos)([.0-9]*)(-([a-z]+)[.0-9]*)?$")
  message(FATAL_ERROR "ZIG_TARGET must be as x86_64-linux-gnu.2.28, aarch64-macos.11.0 or x86_64-windows-gnu, got '${ZIG_TARGET}'; "
                      "`zig targets` lists the rest")
endif()
set(zig_system ${CMAKE_MATCH_2})
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_TARGET ZIG)
if(NOT ZIG)
  find_program(ZIG zig)
endif()
if(NOT ZIG)
  message(FATAL_ERROR "ZIG must be the program zig, which is not on the path; pip install ziglang, and -D ZIG=.../ziglang/zig")
endif()

# As of 3.25 CMake takes each of binutils to be one word.
set(zig_tools ${CMAKE_CURRENT_LIST_DIR}/../build/zig/${ZIG_TARGET})
foreach(tool IN ITEMS cc c++ ar ranlib)
  set(with_target "")
  if(tool MATCHES "^c")
    # zig traps undefined behaviour where nothing else is said, and would build its libc++ once more, for minutes, where the compiler
    # is asked its name without optimization.
    set(with_target " -target ${ZIG_TARGET} -fno-sanitize=undefined -O1")
  endif()
  file(CONFIGURE OUTPUT ${zig_tools}/${tool} CONTENT "#!/bin/sh\nexec '${ZIG}' ${tool}${with_target} \"$@\"\n" @ONLY)
  file(CHMOD ${zig_tools}/${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER ${zig_tools}/cc)
set(CMAKE_CXX_COMPILER ${zig_tools}/c++)
set(CMAKE_AR ${zig_tools}/ar)
set(CMAKE_RANLIB ${zig_tools}/ranlib)

# zig's libc++ comes with what debuggers read: 28 MB a wheel.
add_link_options(-s)

# Setting the system is what makes CMake take a build for a cross one. The machine's own is left native where it can run what it
# makes: stubs and manuals come of it.
cmake_host_system_information(RESULT zig_host QUERY OS_PLATFORM)
if(NOT (zig_system STREQUAL linux AND CMAKE_HOST_SYSTEM_NAME STREQUAL Linux AND zig_host STREQUAL CMAKE_SYSTEM_PROCESSOR
        AND ZIG_TARGET MATCHES "gnu"))
  string(REPLACE "linux" "Linux" CMAKE_SYSTEM_NAME ${zig_system})
  string(REPLACE "windows" "Windows" CMAKE_SYSTEM_NAME ${CMAKE_SYSTEM_NAME})
  string(REPLACE "macos" "Darwin" CMAKE_SYSTEM_NAME ${CMAKE_SYSTEM_NAME})
  # A program that is only tried would have zig build its libc++ once more, unoptimized: minutes.
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
