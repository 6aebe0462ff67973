// Memory between pages that nobody may touch: what reads or writes beyond a tensor ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace posenc {

class GuardedMemory {
 public:
  // Which of the two guards `data` touches.
  enum class Beside { end, start };

  GuardedMemory(std::size_t bytes, Beside beside) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes + page - 1) / page * page;
    size_ = inside + 2 * page;
    void* const all = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) std::abort();
    all_ = static_cast<char*>(all);
    if (mprotect(all_ + page, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = all_ + page + (beside == Beside::end ? inside - bytes : 0);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(all_, size_); }

  void* data() const { return data_; }

 private:
  char* all_ = nullptr;
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace posenc
