// FNV-1a, which names runs and texts and gives parameters seeds of their own.
#pragma once

#include <cstdint>
#include <string>

namespace posenc::lab {

class Hash {
 public:
  explicit Hash(std::uint64_t seed = 0) : mark_(0xcbf29ce484222325U ^ seed) {}
  template <class Bytes>
  Hash& add(const Bytes& bytes) {
    for (const auto byte : bytes)
      mark_ = (mark_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    return *this;
  }
  std::uint64_t number() const { return mark_; }
  std::string text() const {  // the upper half, as hexadecimal digits
    std::string made;
    for (int bit = 60; bit >= 32; bit -= 4) made += "0123456789abcdef"[mark_ >> bit & 15];
    return made;
  }

 private:
  std::uint64_t mark_;
};

}  // namespace posenc::lab
