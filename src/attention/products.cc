// Two vectors of four rows of y stay in registers while all terms are added to them.
#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/attention/products.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "hwy/highway.h"
#include "src/attention/products.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile of y from (row, column) on. The sums of a row are formed in one order, however many go together.
template <int rows, int vectors, bool skips_zeros, class T>
HWY_INLINE void AddTile(const Product<T>& p, std::int64_t row, std::int64_t column) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* const y = p.y + row * p.y_step + column;
  const T* weights = p.weight + row * p.weight_row;
  const T* x = p.x + column;
  const std::int64_t y_step = p.y_step, weight_row = p.weight_row, weight_step = p.weight_step;
  const std::int64_t x_step = p.x_step, terms = p.terms;
  hn::Vec<hn::ScalableTag<T>> sums[rows][vectors];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::LoadU(d, y + r * y_step + v * lanes);
  }
  for (std::int64_t t = 0; t < terms; ++t, x += x_step, weights += weight_step) {
    hn::Vec<hn::ScalableTag<T>> from[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) from[v] = hn::LoadU(d, x + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const T weight = weights[r * weight_row];
      if (skips_zeros && weight == 0) continue;
      const auto w = hn::Set(d, weight);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(w, from[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, y + r * y_step + v * lanes);
  }
}

template <int rows, bool skips_zeros, class T>
void AddRows(const Product<T>& p, std::int64_t row) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t c = 0;
  for (; c + 2 * lanes <= p.columns; c += 2 * lanes) AddTile<rows, 2, skips_zeros>(p, row, c);
  for (; c + lanes <= p.columns; c += lanes) AddTile<rows, 1, skips_zeros>(p, row, c);
  for (; c < p.columns; ++c) {
    for (std::int64_t r = row; r < row + rows; ++r) {
      const T* const weights = p.weight + r * p.weight_row;
      for (std::int64_t t = 0; t < p.terms; ++t) {
        const T weight = weights[t * p.weight_step];
        if (skips_zeros && weight == 0) continue;
        p.y[r * p.y_step + c] += weight * p.x[t * p.x_step + c];
      }
    }
  }
}

template <bool skips_zeros, class T>
void AddAll(const Product<T>& p) {
  std::int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) AddRows<4, skips_zeros>(p, row);
  for (; row < p.rows; ++row) AddRows<1, skips_zeros>(p, row);
}

template <class T>
void AddProduct(const Product<T>& p) {
  p.skips_zeros ? AddAll<true>(p) : AddAll<false>(p);
}

void AddFloats(const Product<float>& p) { AddProduct(p); }
void AddDoubles(const Product<double>& p) { AddProduct(p); }

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(AddFloats);
HWY_EXPORT(AddDoubles);

void add_product(const Product<float>& product) { HWY_DYNAMIC_DISPATCH(AddFloats)(product); }
void add_product(const Product<double>& product) { HWY_DYNAMIC_DISPATCH(AddDoubles)(product); }

}  // namespace posenc::detail
#endif

#else  // plain loops

#include "src/attention/products.h"

namespace posenc::detail {
namespace {

template <class T>
void add(const Product<T>& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    T* const y = p.y + row * p.y_step;
    for (std::int64_t t = 0; t < p.terms; ++t) {
      const T weight = p.weight[row * p.weight_row + t * p.weight_step];
      if (p.skips_zeros && weight == 0) continue;
      const T* const x = p.x + t * p.x_step;
      for (std::int64_t c = 0; c < p.columns; ++c) y[c] += weight * x[c];
    }
  }
}

}  // namespace

void add_product(const Product<float>& product) { add(product); }
void add_product(const Product<double>& product) { add(product); }

}  // namespace posenc::detail
#endif
