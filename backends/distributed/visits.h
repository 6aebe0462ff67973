// Which ranks' keys a rank has to visit: windows and texts of a pack leave most of them out. A
// quick look that says yes where it does not know; every rank comes to the same answer for all.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/layout.h"

namespace posenc::mpi {

class Visits {
 public:
  Visits() = default;
  Visits(const Layout& layout, std::int64_t rank, const Positions& own);

  // Whether some of these queries may see some of those keys.
  bool see(const Visits& keys, const Mask& mask) const;

 private:
  // Tokens beside each other in the text.
  struct Span {
    std::int64_t first = 0, last = 0;  // lowest and highest of what a mask counts by
    std::int64_t first_segment = 0, last_segment = 0;
  };
  static bool sees(const Span& queries, const Span& keys, const Mask& mask);
  std::vector<Span> spans_;
};

}  // namespace posenc::mpi
