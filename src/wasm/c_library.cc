// The C library's memory, and what the JSON parser calls of it, for numbers whose spelling it has
// checked. The library's own bring an allocator for threads and for years, long doubles, their
// tables and all of printf.
#include <cstdarg>
#include <cstddef>
#include <cstring>

#include "src/wasm/blocks.h"
#include "src/wasm/decimal.h"

namespace {

constexpr std::size_t page = 65536;

std::byte* memory_at(std::size_t address) { return reinterpret_cast<std::byte*>(address); }

std::byte* grow_memory(std::size_t bytes) {
  const std::size_t before = __builtin_wasm_memory_grow(0, (bytes + page - 1) / page);
  return before == SIZE_MAX ? nullptr : memory_at(__builtin_wasm_memory_size(0) * page);
}

constinit posenc::detail::Blocks blocks(grow_memory);

}  // namespace

extern "C" {
extern std::byte __heap_base;  // by the linker: where the program's own data and stack end

void* malloc(std::size_t bytes) {
  if (!blocks.begun()) blocks.begin(&__heap_base, memory_at(__builtin_wasm_memory_size(0) * page));
  return blocks.take(bytes);
}
void free(void* memory) { blocks.give_back(memory); }
// By this name the C library's atexit, which no program without an end calls, wants it.
void* __libc_calloc(std::size_t, std::size_t) { __builtin_trap(); }
// For objects aligned to more than 16 bytes, which the kernels of WebAssembly do not have.
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return alignment <= 16 ? malloc(bytes) : nullptr;
}

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
