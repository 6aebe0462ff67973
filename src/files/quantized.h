// ggml's types, and its blocks of numbers that share a scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc::detail {

// A block as it lies in the file.
class Block {
 public:
  explicit Block(const std::byte* bytes) : bytes_(bytes) {}

  unsigned byte(int at) const { return std::to_integer<unsigned>(bytes_[at]); }
  int signed_byte(int at) const { return static_cast<std::int8_t>(byte(at)); }
  float half(int at) const {
    return half_to_float(static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8));
  }
  unsigned word(int at) const {
    return byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
  }

 private:
  const std::byte* bytes_;
};

// A type of ggml's numbers, as its files name it.
struct GgmlType {
  std::uint32_t id;
  std::string_view name;
  std::int64_t block;  // elements that are stored together
  std::int64_t bytes;  // of a block
};
// Null for a number that is not known here.
const GgmlType* ggml_type(std::uint32_t id);

struct Quantized {
  std::string_view name;
  int numbers, bytes;                  // of a block
  void (*restore)(Block, float* out);  // of one block
};

// Null for other types.
const Quantized* quantized(std::string_view type);

}  // namespace posenc::detail
