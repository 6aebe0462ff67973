// The WebAssembly module's own part. Checks of libc++ that fail, and memory that runs out, trap: their
// messages would import a file to be written to, and the module imports nothing.
#include <version>  // the inline namespace of libc++

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

extern "C" [[noreturn]] void __abort_message(const char*, ...) { __builtin_trap(); }
