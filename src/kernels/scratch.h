// Memory that a thread uses again from call to call, so that after the first nothing is allocated:
// what a decoding step needs is little beside what it reads, but allocating it is not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace posenc::detail {

// Takes memory from the thread's own store while it lives; scopes nest.
class Scratch {
 public:
  Scratch() : store_(store()), block_(store_.block), used_(store_.used) { ++store_.scopes; }
  ~Scratch() {
    store_.block = block_;
    store_.used = used_;
    if (--store_.scopes == 0) store_.settle();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // `count` numbers on a cache line, whatever they hold.
  template <class T>
  T* take(std::int64_t count) {
    return reinterpret_cast<T*>(store_.take(static_cast<std::size_t>(count) * sizeof(T)));
  }
  template <class T>
  T* take_zeros(std::int64_t count) {
    T* const memory = take<T>(count);
    std::fill_n(memory, count, T{0});
    return memory;
  }

 private:
  static constexpr std::size_t line = 64, first_bytes = 64 * 1024, most_kept = 8 << 20;

  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{line});
    }
  };
  struct Block {
    std::unique_ptr<std::byte[], Free> memory;
    std::size_t size = 0;
    explicit Block(std::size_t bytes)
        : memory(new (std::align_val_t{line}) std::byte[bytes]), size(bytes) {}
  };
  struct Store {
    std::vector<Block> blocks;
    std::size_t block = 0, used = 0;  // what is taken: all before blocks[block], and `used` of it
    int scopes = 0;

    std::byte* take(std::size_t bytes) {
      bytes = (bytes + line - 1) / line * line;
      while (block < blocks.size() && blocks[block].size - used < bytes) ++block, used = 0;
      if (block == blocks.size()) {
        const std::size_t before = blocks.empty() ? first_bytes : 2 * blocks.back().size;
        blocks.emplace_back(std::max(before, bytes));
      }
      std::byte* const memory = blocks[block].memory.get() + used;
      used += bytes;
      return memory;
    }
    // One block that holds what several did, for the next call; nothing where that is much.
    void settle() {
      if (blocks.size() < 2) return;
      std::size_t all = 0;
      for (const Block& each : blocks) all += each.size;
      blocks.clear();
      if (all <= most_kept) blocks.emplace_back(all);
    }
  };
  static Store& store() {
    thread_local Store mine;
    return mine;
  }

  Store& store_;
  const std::size_t block_, used_;
};

}  // namespace posenc::detail
