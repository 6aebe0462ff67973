// Four vectors of two rows of y stay in registers while all terms are added to them.
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

template <bool skips_zeros, class T>
void AddRow(const Product<T>& p, std::int64_t row, std::int64_t first_column) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* const y = p.y + row * p.y_step;
  const T* const weights = p.weight + row * p.weight_row;
  std::int64_t c = first_column;
  for (; c + 4 * lanes <= p.columns; c += 4 * lanes) {
    auto y0 = hn::LoadU(d, y + c), y1 = hn::LoadU(d, y + c + lanes);
    auto y2 = hn::LoadU(d, y + c + 2 * lanes), y3 = hn::LoadU(d, y + c + 3 * lanes);
    const T* x = p.x + c;
    for (std::int64_t t = 0; t < p.terms; ++t, x += p.x_step) {
      const T weight = weights[t * p.weight_step];
      if (skips_zeros && weight == 0) continue;
      const auto w = hn::Set(d, weight);
      y0 = hn::MulAdd(w, hn::LoadU(d, x), y0);
      y1 = hn::MulAdd(w, hn::LoadU(d, x + lanes), y1);
      y2 = hn::MulAdd(w, hn::LoadU(d, x + 2 * lanes), y2);
      y3 = hn::MulAdd(w, hn::LoadU(d, x + 3 * lanes), y3);
    }
    hn::StoreU(y0, d, y + c);
    hn::StoreU(y1, d, y + c + lanes);
    hn::StoreU(y2, d, y + c + 2 * lanes);
    hn::StoreU(y3, d, y + c + 3 * lanes);
  }
  for (; c + lanes <= p.columns; c += lanes) {
    auto sum = hn::LoadU(d, y + c);
    const T* x = p.x + c;
    for (std::int64_t t = 0; t < p.terms; ++t, x += p.x_step) {
      const T weight = weights[t * p.weight_step];
      if (skips_zeros && weight == 0) continue;
      sum = hn::MulAdd(hn::Set(d, weight), hn::LoadU(d, x), sum);
    }
    hn::StoreU(sum, d, y + c);
  }
  for (; c < p.columns; ++c) {
    for (std::int64_t t = 0; t < p.terms; ++t) {
      const T weight = weights[t * p.weight_step];
      if (skips_zeros && weight == 0) continue;
      y[c] += weight * p.x[t * p.x_step + c];
    }
  }
}

// Two rows at once: each x is read once for both. Columns beyond whole groups of four vectors are left to
// AddRow; returns how many were done.
template <bool skips_zeros, class T>
std::int64_t AddTwoRows(const Product<T>& p, std::int64_t row) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* const y = p.y + row * p.y_step;
  T* const z = y + p.y_step;
  const T* const weights = p.weight + row * p.weight_row;
  std::int64_t c = 0;
  for (; c + 4 * lanes <= p.columns; c += 4 * lanes) {
    auto y0 = hn::LoadU(d, y + c), y1 = hn::LoadU(d, y + c + lanes);
    auto y2 = hn::LoadU(d, y + c + 2 * lanes), y3 = hn::LoadU(d, y + c + 3 * lanes);
    auto z0 = hn::LoadU(d, z + c), z1 = hn::LoadU(d, z + c + lanes);
    auto z2 = hn::LoadU(d, z + c + 2 * lanes), z3 = hn::LoadU(d, z + c + 3 * lanes);
    const T* x = p.x + c;
    for (std::int64_t t = 0; t < p.terms; ++t, x += p.x_step) {
      const T y_weight = weights[t * p.weight_step];
      const T z_weight = weights[t * p.weight_step + p.weight_row];
      const bool adds_to_y = !skips_zeros || y_weight != 0;
      const bool adds_to_z = !skips_zeros || z_weight != 0;
      if (!adds_to_y && !adds_to_z) continue;
      const auto x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + lanes);
      const auto x2 = hn::LoadU(d, x + 2 * lanes), x3 = hn::LoadU(d, x + 3 * lanes);
      if (adds_to_y) {
        const auto w = hn::Set(d, y_weight);
        y0 = hn::MulAdd(w, x0, y0);
        y1 = hn::MulAdd(w, x1, y1);
        y2 = hn::MulAdd(w, x2, y2);
        y3 = hn::MulAdd(w, x3, y3);
      }
      if (adds_to_z) {
        const auto w = hn::Set(d, z_weight);
        z0 = hn::MulAdd(w, x0, z0);
        z1 = hn::MulAdd(w, x1, z1);
        z2 = hn::MulAdd(w, x2, z2);
        z3 = hn::MulAdd(w, x3, z3);
      }
    }
    hn::StoreU(y0, d, y + c);
    hn::StoreU(y1, d, y + c + lanes);
    hn::StoreU(y2, d, y + c + 2 * lanes);
    hn::StoreU(y3, d, y + c + 3 * lanes);
    hn::StoreU(z0, d, z + c);
    hn::StoreU(z1, d, z + c + lanes);
    hn::StoreU(z2, d, z + c + 2 * lanes);
    hn::StoreU(z3, d, z + c + 3 * lanes);
  }
  return c;
}

template <bool skips_zeros, class T>
void AddRows(const Product<T>& p) {
  std::int64_t row = 0;
  for (; row + 2 <= p.rows; row += 2) {
    const std::int64_t done = AddTwoRows<skips_zeros>(p, row);
    AddRow<skips_zeros>(p, row, done);
    AddRow<skips_zeros>(p, row + 1, done);
  }
  if (row < p.rows) AddRow<skips_zeros>(p, row, 0);
}

template <class T>
void AddProduct(const Product<T>& p) {
  p.skips_zeros ? AddRows<true>(p) : AddRows<false>(p);
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
