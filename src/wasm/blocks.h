// Memory for malloc and free in a few hundred bytes of code: the C library's dlmalloc takes a
// twentieth of the module. Blocks hold a power of two, so what vectors double into and what a panel
// asks for again fits a block that was given back; pages of a block that nobody writes to are never
// made by the engine. (Knuth, "The Art of Computer Programming", volume 1, 2.5, without the
// buddies: a module that runs for one page need not join blocks.)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace posenc::detail {

class Blocks {
 public:
  // The end of memory after it grew by at least so many bytes, or nullptr where it cannot. Memory
  // grows in one piece, from `begin` on.
  using Grow = std::byte* (*)(std::size_t bytes);

  constexpr explicit Blocks(Grow grow) : grow_(grow) {}

  // Memory begins here, aligned to 16 bytes; nothing before.
  void begin(std::byte* memory, std::byte* end) { free_memory_ = memory, end_ = end; }
  bool begun() const { return end_ != nullptr; }

  // At least so many bytes, aligned to 16; nullptr where memory does not suffice.
  void* take(std::size_t bytes) {
    const int power = bytes <= alignment ? 4 : std::bit_width(bytes - 1);
    if (power > largest_power) return nullptr;
    if (Header* block = given_back_[power]) {
      given_back_[power] = block->next;
      block->power = power;
      return block + 1;
    }
    const std::size_t needed = sizeof(Header) + (std::size_t{1} << power);
    if (needed > static_cast<std::size_t>(end_ - free_memory_)) {
      std::byte* const end = grow_(needed - static_cast<std::size_t>(end_ - free_memory_));
      if (end == nullptr) return nullptr;
      end_ = end;
    }
    Header* const block = reinterpret_cast<Header*>(free_memory_);
    free_memory_ += needed;
    block->power = power;
    return block + 1;
  }

  // nullptr is nothing to give.
  void give_back(void* memory) {
    if (memory == nullptr) return;
    Header* const block = static_cast<Header*>(memory) - 1;
    const int power = block->power;
    block->next = given_back_[power];
    given_back_[power] = block;
  }

 private:
  static constexpr std::size_t alignment = 16;
  static constexpr int largest_power = 30;
  union alignas(alignment) Header {
    int power;     // of a block that is in use
    Header* next;  // of one that was given back
  };

  Grow grow_;
  std::byte* free_memory_ = nullptr;
  std::byte* end_ = nullptr;
  Header* given_back_[largest_power + 1] = {};
};

}  // namespace posenc::detail
