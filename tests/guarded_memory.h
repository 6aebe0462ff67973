// Memory between pages that nobody may touch: what reads or writes beyond a tensor ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace posenc {

class GuardedMemory {
 public:
  // Which of the two guards the bytes touch; towards the other lies the rest of a page.
  enum class Beside { end, start };

  GuardedMemory() = default;
  // All zeros.
  GuardedMemory(std::size_t bytes, Beside beside) : size_(bytes), beside_(beside) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes + page - 1) / page * page;
    pages_size_ = inside + 2 * page;
    void* const pages = mmap(nullptr, pages_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) std::abort();
    pages_ = static_cast<char*>(pages);
    if (mprotect(pages_ + page, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = pages_ + page + (beside == Beside::end ? inside - bytes : 0);
  }
  GuardedMemory(const GuardedMemory& from) : GuardedMemory(from.size_, from.beside_) {
    std::memcpy(data_, from.data_, size_);
  }
  GuardedMemory(GuardedMemory&& from) noexcept { swap(from); }
  GuardedMemory& operator=(GuardedMemory from) noexcept {
    swap(from);
    return *this;
  }
  ~GuardedMemory() {
    if (pages_ != nullptr) munmap(pages_, pages_size_);
  }

  char* data() const { return data_; }
  bool operator==(const GuardedMemory& other) const {
    return size_ == other.size_ && std::memcmp(data_, other.data_, size_) == 0;
  }

 private:
  void swap(GuardedMemory& with) {
    std::swap(pages_, with.pages_);
    std::swap(pages_size_, with.pages_size_);
    std::swap(data_, with.data_);
    std::swap(size_, with.size_);
    std::swap(beside_, with.beside_);
  }

  char* pages_ = nullptr;
  std::size_t pages_size_ = 0;
  char* data_ = nullptr;
  std::size_t size_ = 0;
  Beside beside_ = Beside::end;
};

}  // namespace posenc
