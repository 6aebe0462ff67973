#include "tests/fuzz/check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace posenc::fuzz {
namespace {

// Length of the UTF-8 character that begins here; 0: none does.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xC2 ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                             : byte(0) < 0xF5 ? 4
                                              : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

// What a terminal obeys instead of showing: C0, DEL and C1.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first == 0xC2) return static_cast<unsigned char>(character[1]) < 0xA0;
  return first < 0x20 || first == 0x7F;
}

}  // namespace

void must(bool holds, std::string_view rule, std::string_view seen) {
  if (holds) return;
  std::fputs("broken rule: ", stderr);
  std::fwrite(rule.data(), 1, rule.size(), stderr);
  std::fputs("\n  seen: ", stderr);
  if (!seen.empty()) std::fwrite(seen.data(), 1, seen.size(), stderr);
  std::fputc('\n', stderr);
  std::abort();
}

void check_text(std::string_view text, std::size_t longest) {
  must(text.size() <= longest, "text from outside is shortened",
       std::to_string(text.size()) + " bytes: " + std::string(text.substr(0, 200)));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = character(rest);
    must(length > 0, "text is UTF-8", text);
    must(!is_control(rest.substr(0, length)), "text has no control characters", text);
    rest.remove_prefix(length);
  }
}

void check_error(const Error& error) {
  must(!error.where.empty(), "an error says where", error.message());
  must(!error.rule.empty(), "an error names a rule", error.message());
  check_text(error.message());
}

void check_tensor(const StoredTensor& tensor, std::span<const std::byte> file) {
  const auto inside = [](const std::byte* data, std::size_t size, std::span<const std::byte> of) {
    return data >= of.data() && data <= of.data() + of.size() &&
           size <= static_cast<std::size_t>(of.data() + of.size() - data);
  };
  if (!tensor.bytes.empty())
    must(inside(tensor.bytes.data(), tensor.bytes.size(), file), "bytes lie in the file",
         tensor.name);
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    must(extent >= 0, "no extent is negative", tensor.name);
    must(extent == 0 || elements == 0 || !__builtin_mul_overflow(elements, extent, &elements),
         "the number of elements is a number", tensor.name);
    if (extent == 0) elements = 0;
  }
  const Tensor& view = tensor.view;
  if (!view) return;
  must(static_cast<std::size_t>(view.rank) == tensor.shape.size(), "a view has the file's axes");
  for (int axis = 0; axis < view.rank; ++axis)
    must(view.shape[static_cast<std::size_t>(axis)] == tensor.shape[static_cast<std::size_t>(axis)],
         "a view has the file's shape", tensor.name);
  const auto bytes = static_cast<std::size_t>(elements) * size_of(view.dtype);
  must(view.size() == elements && bytes == tensor.bytes.size(), "a view is all of the tensor",
       tensor.name);
  const auto* data = static_cast<const std::byte*>(view.data);
  must(inside(data, bytes, tensor.bytes), "a view lies in the tensor's bytes", tensor.name);
  must(reinterpret_cast<std::uintptr_t>(data) % size_of(view.dtype) == 0, "a view is aligned",
       tensor.name);
  if (elements > 0) view.get(elements - 1);  // for the sanitizer
}

void check_doubles(const StoredTensor& tensor) {
  const auto numbers = doubles_of(tensor);
  if (!numbers) {
    check_error(numbers.error());
    return must(!tensor.view, "what has a view has numbers", tensor.type);
  }
  if (!tensor.view) return;
  must(static_cast<std::int64_t>(numbers->size()) == tensor.view.size(), "all numbers are copied");
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const double seen = tensor.view.get(static_cast<std::int64_t>(i));
    must((*numbers)[i] == seen || (std::isnan((*numbers)[i]) && std::isnan(seen)),
         "a number copied is the one seen", std::to_string(i));
  }
}

void check_tensors(std::span<const StoredTensor> tensors, std::span<const std::byte> file) {
  std::size_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    check_tensor(tensor, file);
    check_doubles(tensor);
    must(find_tensor(tensors, tensor.name) == &tensor, "a name is one tensor's", tensor.name);
    covered += tensor.bytes.size();
  }
  must(covered <= file.size(), "no byte belongs to two tensors");
}

}  // namespace posenc::fuzz
