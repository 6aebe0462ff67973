// A well-kept matrix product to compare with: OpenBLAS, where this machine has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace posenc::detail {

// Looked for when first asked, never linked.
class Blas {
 public:
  static const Blas* found(std::string_view instruction_set);

  // c[m][n] = a[m][k] · b[k][n], or b as [n][k] where it is transposed.
  void multiply(const float* a, const float* b, bool transposed, float* c, std::int64_t m,
                std::int64_t n, std::int64_t k, int threads) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  Sgemm sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
};

}  // namespace posenc::detail
