#include "evidence/bench/harness/blas.h"

#include <dlfcn.h>

#include <cstdlib>

namespace posenc::detail {

const Blas* Blas::found(std::string_view instruction_set) {
  static const Blas blas = [&] {
    Blas made;
    // Of processors newer than itself OpenBLAS believes the least; it is told what posenc uses.
    if (instruction_set.starts_with("AVX3")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    if (instruction_set == "AVX2") setenv("OPENBLAS_CORETYPE", "Haswell", 0);
    void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return made;
    made.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    made.set_threads_ = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    return made;
  }();
  return blas.sgemm_ != nullptr && blas.set_threads_ != nullptr ? &blas : nullptr;
}

void Blas::multiply(Factor a, Factor b, float* c, std::int64_t m, std::int64_t n, std::int64_t k,
                    int threads, float keep) const {
  constexpr int row_major = 101, as_is = 111, turned = 112;
  set_threads_(threads);
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  sgemm_(row_major, a.transposed ? turned : as_is, b.transposed ? turned : as_is, rows, columns,
         depth, 1, a.numbers, a.transposed ? rows : depth, b.numbers,
         b.transposed ? depth : columns, keep, c, columns);
}

}  // namespace posenc::detail
