// Sums over channels, which compilers make vectors of. In WebAssembly this file is compiled to be
// fast and the rest to be small (cmake/wasm_module.cmake).
#include "src/attention/sums.h"

namespace posenc::detail::reference {

double dot(const double* a, const double* b, std::int64_t count) {
  double sum[4] = {};
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[lane] += a[c + lane] * b[c + lane];
  }
  for (int lane = 0; c < count; ++c, ++lane) sum[lane] += a[c] * b[c];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

void add_multiple(double factor, const double* __restrict x, std::int64_t count,
                  double* __restrict to) {
  for (std::int64_t c = 0; c < count; ++c) to[c] += factor * x[c];
}

}  // namespace posenc::detail::reference
