// A well-kept matrix product, to compare with and for what the lab multiplies: OpenBLAS, where this
// machine has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace posenc::detail {

struct Factor {
  const float* numbers = nullptr;
  bool transposed = false;
};

// Looked for when first asked, never linked.
class Blas {
 public:
  static const Blas* found(std::string_view instruction_set);

  // c[m][n] = a[m][k] · b[k][n] + keep · c. A transposed a lies in memory as [k][m], a transposed b
  // as [n][k]. All rows are dense; c is not read where keep is 0.
  void multiply(Factor a, Factor b, float* c, std::int64_t m, std::int64_t n, std::int64_t k,
                int threads, float keep = 0) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  Sgemm sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
};

}  // namespace posenc::detail
