// The WebAssembly module's own part, which keeps it from importing anything. Nothing in it is ever printed:
// a failed check of libc++ and memory that ran out trap, and the C library, which would still tell of a long
// double on stderr, finds no file there.
#include <version>  // the inline namespace of libc++

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

extern "C" {
[[noreturn]] void __abort_message(const char*, ...) { __builtin_trap(); }

// WASI's own, by the names under which wasi-libc imports them.
constexpr int bad_file = 8;
int __imported_wasi_snapshot_preview1_fd_close(int) { return bad_file; }
int __imported_wasi_snapshot_preview1_fd_seek(int, long long, int, int) { return bad_file; }
int __imported_wasi_snapshot_preview1_fd_write(int, int, int, int) { return bad_file; }
}
