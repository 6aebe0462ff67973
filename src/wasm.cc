// The WebAssembly module's own part. A check of libc++ that fails traps: its message would import a
// file to be written to, and the module imports nothing.
#include <version>  // the inline namespace of libc++

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD
