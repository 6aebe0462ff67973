// A row's pairs times their matrices. In WebAssembly this file is compiled to be fast and the rest
// to be small (cmake/wasm_module.cmake).
#include "src/kernels/pairs.h"

#include <cstring>

// Of rows that are the same memory each pair is read before it is written, and no other pair is.
#ifdef __clang__
#define POSENC_PAIRS_ARE_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define POSENC_PAIRS_ARE_APART _Pragma("GCC ivdep")
#else
#define POSENC_PAIRS_ARE_APART
#endif

namespace posenc::detail {
namespace {

// Pairs (a[i·step], b[i·step]).
template <std::int64_t step, class T>
void multiply(const T* a, const T* b, T* a_out, T* b_out, std::int64_t pairs, const double* cosine,
              const double* sine, const double* second_cosine, const double* second_sine) {
  POSENC_PAIRS_ARE_APART
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double x = a[i * step], y = b[i * step];
    a_out[i * step] = static_cast<T>(x * cosine[i] - y * sine[i]);
    b_out[i * step] = static_cast<T>(x * second_sine[i] + y * second_cosine[i]);
  }
}

template <class T>
void multiply_row(const Rotate& rotate, const PairMatrices& by, const Tensor& x, std::int64_t from,
                  const Tensor& out, std::int64_t to) {
  const T* row = static_cast<const T*>(x.data) + from;
  T* row_out = static_cast<T*>(out.data) + to;
  const Slice& slice = rotate.slice;
  if (row != row_out) {
    const std::int64_t behind = slice.first_dim + slice.rotary_dim;
    std::memcpy(row_out, row, static_cast<std::size_t>(slice.first_dim) * sizeof(T));
    std::memcpy(row_out + behind, row + behind,
                static_cast<std::size_t>(x.shape[3] - behind) * sizeof(T));
  }
  row += slice.first_dim;
  row_out += slice.first_dim;
  const double *c = by.cosine.data(), *s = by.sine.data();
  const double *d = by.second_cosine.data(), *t = by.second_sine.data();
  if (slice.pairing == Pairing::interleaved)
    return multiply<2>(row, row + 1, row_out, row_out + 1, rotate.pairs(), c, s, d, t);
  const std::int64_t pairs = rotate.pairs() / slice.blocks;
  for (std::int64_t block = 0; block < slice.blocks; ++block) {
    const std::int64_t first = block * pairs;
    multiply<1>(row + 2 * first, row + 2 * first + pairs, row_out + 2 * first,
                row_out + 2 * first + pairs, pairs, c + first, s + first, d + first, t + first);
  }
}

}  // namespace

void PairMatrices::set(std::span<const PairMatrix> matrices) {
  for (std::size_t r = 0; r < matrices.size(); ++r) {
    cosine[r] = matrices[r].cosine;
    sine[r] = matrices[r].sine;
    second_cosine[r] = matrices[r].second_cosine;
    second_sine[r] = matrices[r].second_sine;
  }
}

bool multiplies_pairs(const Rotate& rotate, const Tensor& x, const Tensor& out) {
  return !rotate.polar() && x.dtype == out.dtype && size_of(x.dtype) >= sizeof(float) &&
         x.stride[3] == 1 && out.stride[3] == 1;
}

void multiply_pairs(const Rotate& rotate, const PairMatrices& by, const Tensor& x,
                    std::int64_t from, const Tensor& out, std::int64_t to) {
  x.dtype == DType::f64 ? multiply_row<double>(rotate, by, x, from, out, to)
                        : multiply_row<float>(rotate, by, x, from, out, to);
}

}  // namespace posenc::detail
