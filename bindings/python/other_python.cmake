# What find_package(Python) gives, for a module that another system's Python will load: this machine's runs nanobind's scripts, and the
# headers are those of the limited API (bindings/python/wheels.py makes them).
foreach(needed IN ITEMS Python_EXECUTABLE Python_INCLUDE_DIR)
  if(NOT EXISTS "${${needed}}")
    message(FATAL_ERROR "${needed} must be there, got '${${needed}}'; bindings/python/wheels.py sets it for a cross build")
  endif()
endforeach()
execute_process(COMMAND ${Python_EXECUTABLE} -c "import sys; print('%d.%d.%d' % sys.version_info[:3])"
                OUTPUT_VARIABLE Python_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
set(Python_INTERPRETER_ID Python)
set(Python_INCLUDE_DIRS ${Python_INCLUDE_DIR})
add_executable(Python::Interpreter IMPORTED)
set_target_properties(Python::Interpreter PROPERTIES IMPORTED_LOCATION ${Python_EXECUTABLE})
foreach(module IN ITEMS Module SABIModule)
  add_library(Python::${module} INTERFACE IMPORTED)
  target_include_directories(Python::${module} INTERFACE ${Python_INCLUDE_DIR})
endforeach()
set(SKBUILD_SOABI none-none-none)
set(SKBUILD_SOSABI abi3)
if(WIN32)
  # Of its names only those of the limited API, which python3.dll hands on to the Python that runs.
  if(NOT EXISTS "${Python_SABI_LIBRARY}")
    message(FATAL_ERROR "Python_SABI_LIBRARY must be python3.lib, got '${Python_SABI_LIBRARY}'; bindings/python/wheels.py makes it")
  endif()
  target_link_libraries(Python::SABIModule INTERFACE ${Python_SABI_LIBRARY})
  set(SKBUILD_SOSABI "")
endif()

# zig's linker for macOS makes no bundle, and takes no file of the names that Python will have: a library will do, in which any name may
# be left open.
function(link_by_zig module)
  get_target_property(options ${module} LINK_OPTIONS)
  list(FILTER options EXCLUDE REGEX "darwin-ld-")
  set_target_properties(${module} PROPERTIES LINK_OPTIONS "${options};LINKER:-undefined,dynamic_lookup")
  set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS -dynamiclib PARENT_SCOPE)
endfunction()
