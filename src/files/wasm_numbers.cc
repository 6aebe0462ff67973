// What the JSON parser calls of the C library, for numbers whose spelling it has checked; the library's own
// brings long doubles, their tables and all of printf. Only in WebAssembly.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "src/files/decimal.h"

extern "C" {
unsigned long long strtoull(const char* text, char** end, int) {
  constexpr unsigned long long most = ~0ull;
  unsigned long long value = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    const unsigned digit = static_cast<unsigned>(*text - '0');
    if (value > (most - digit) / 10) {
      errno = ERANGE;
      value = most;
      continue;
    }
    value = 10 * value + digit;
  }
  *end = const_cast<char*>(text);
  return value;
}

double strtod(const char* text, char** end) {
  return posenc::detail::read_decimal(text, const_cast<const char**>(end));
}

long long strtoll(const char* text, char** end, int) {
  const bool negative = *text == '-';
  const unsigned long long size = strtoull(text + negative, end, 10);
  const unsigned long long most = (1ull << 63) - !negative;
  if (size > most) errno = ERANGE;
  return static_cast<long long>(negative ? 0 - std::min(size, most) : std::min(size, most));
}

// libc++ names these, and nothing calls them.
float strtof(const char*, char**) { __builtin_trap(); }
long double strtold(const char*, char**) { __builtin_trap(); }
long strtol(const char*, char**, int) { __builtin_trap(); }
unsigned long strtoul(const char*, char**, int) { __builtin_trap(); }

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
