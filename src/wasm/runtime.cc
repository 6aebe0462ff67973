// What the C and C++ libraries call of the system, and mathematics smaller than theirs, so that the
// module imports nothing. Nothing is ever printed: a failed check of libc++ and memory that runs
// out trap, and the C library, which would report a long double on stderr, finds no file there.
#include <cmath>
#include <version>  // the inline namespace of libc++

#include "src/wasm/small_math.h"

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

// The C library's own bring 30 KB of tables for the same digits; its float functions go through
// double.
double exp(double x) { return posenc::detail::small_exp(x); }
double exp2(double x) { return posenc::detail::small_exp2(x); }
double log(double x) { return posenc::detail::small_log(x); }
double log1p(double x) { return posenc::detail::small_log1p(x); }
double pow(double x, double y) { return posenc::detail::small_pow(x, y); }
double fma(double a, double b, double c) { return posenc::detail::small_fma(a, b, c); }
float powf(float x, float y) { return static_cast<float>(posenc::detail::small_pow(x, y)); }
float logf(float x) { return static_cast<float>(posenc::detail::small_log(x)); }

// Under its sine and cosine: the digits of a large angle in base 2^24, the first times 2^exponent.
// Those of float have precision 0 and room for one number.
int __rem_pio2_large(double* digits, double* rest, int exponent, int count, int precision) {
  double angle = 0, both[2];
  for (int i = count; i-- > 0;) angle = angle / 0x1p24 + digits[i];
  const int n = posenc::detail::reduce_by_half_pi(std::ldexp(angle, exponent), both);
  rest[0] = both[0];
  if (precision > 0) rest[1] = both[1];
  return n;
}
}
