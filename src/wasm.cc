// The WebAssembly module's own part, which keeps it from importing anything. Nothing in it is ever printed:
// a failed check of libc++ and memory that ran out trap, and the C library, which would still tell of a long
// double on stderr, finds no file there.
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <version>  // the inline namespace of libc++

#include "src/files/decimal.h"
#include "src/small_math.h"

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

// What the JSON parser calls, without the C library's long double and its tables. (libc++ names the other two.)
double strtod(const char* text, char** end) {
  return posenc::detail::read_decimal(text, const_cast<const char**>(end));
}
float strtof(const char*, char**) { __builtin_trap(); }
long double strtold(const char*, char**) { __builtin_trap(); }

// The parser's one use of it: a control character as "<U+%.4X>", in 9 bytes.
int snprintf(char* out, std::size_t size, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int character = va_arg(arguments, int);
  va_end(arguments);
  constexpr char hex[] = "0123456789ABCDEF";
  const char text[] = {'<', 'U', '+', '0', '0', hex[character >> 4 & 15], hex[character & 15],
                       '>', 0};
  for (std::size_t i = 0; i < sizeof text && i < size; i++) out[i] = text[i];
  return sizeof text - 1;
}

// The C library's are as exact, with 30 KB of tables; its float functions go through double.
double exp(double x) { return posenc::detail::small_exp(x); }
double exp2(double x) { return posenc::detail::small_exp2(x); }
double log(double x) { return posenc::detail::small_log(x); }
double log1p(double x) { return posenc::detail::small_log1p(x); }
double pow(double x, double y) { return posenc::detail::small_pow(x, y); }
float powf(float x, float y) { return static_cast<float>(pow(x, y)); }
float logf(float x) { return static_cast<float>(log(x)); }

// Under its sine and cosine: the digits of a large angle in base 2^24, the first times 2^exponent.
int __rem_pio2_large(double* digits, double* rest, int exponent, int count, int) {
  double angle = 0;
  for (int i = count; i-- > 0;) angle = angle / 0x1p24 + digits[i];
  return posenc::detail::reduce_by_half_pi(std::ldexp(angle, exponent), rest);
}
}
