// Numbers taken from a fuzzer's bytes, one after another; 0 when they are used up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace posenc::fuzz {

class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::span<const std::uint8_t> rest() const { return rest_; }

  std::uint8_t byte() {
    std::uint8_t value = 0;
    take(&value, 1);
    return value;
  }

  // Mostly small, sometimes any: the first byte tells how many more belong to it.
  std::int64_t integer() {
    const std::uint8_t first = byte();
    if (first < 0xF0) return first - 16;
    std::uint64_t value = 0;
    take(&value, first % 8 + 1u);
    return static_cast<std::int64_t>(first < 0xF8 ? value : -value);
  }

  double number() {
    double value = 0;
    take(&value, sizeof value);
    return value;
  }

  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list(byte() % 64u);
    for (std::int64_t& value : list) value = integer();
    return list;
  }

 private:
  void take(void* to, std::size_t count) {
    if (count > rest_.size()) count = rest_.size();
    if (count > 0) std::memcpy(to, rest_.data(), count);
    rest_ = rest_.subspan(count);
  }

  std::span<const std::uint8_t> rest_;
};

}  // namespace posenc::fuzz
