// What the system tells of memory in use.
#pragma once

#include <cstdint>

namespace posenc::detail {

// By how much the memory in use rose at its highest since this was made.
class PeakMemory {
 public:
  PeakMemory();
  std::int64_t bytes() const;  // -1 where the system does not tell

 private:
  std::int64_t before_ = -1;
};

}  // namespace posenc::detail
