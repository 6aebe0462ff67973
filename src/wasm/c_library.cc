// What the JSON parser calls of the C library, for numbers whose spelling it has checked. The
// library's own bring long doubles, their tables and all of printf.
#include <cstdarg>
#include <cstddef>

#include "src/wasm/decimal.h"

extern "C" {
double strtod(const char* text, char** end) {
  return posenc::detail::read_decimal(text, const_cast<const char**>(end));
}

// libc++ names these, and nothing calls them.
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
}
