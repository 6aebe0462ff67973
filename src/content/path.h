// The products of Householder-like factors of PaTH, H_l = I − β_l w_l w_lᵀ, a block of keys at a
// time. With W the rows w of a block, N the part of W Wᵀ below the diagonal and B the diagonal of
// β, T = (I + B N)⁻¹ B is lower triangular, and for every i ≥ j of the block (the UT transform;
// Joffrain et al. 2006)
//   H_i … H_{j+1} = I − Σ_{i ≥ l ≥ m > j} w_l T_lm w_mᵀ
// since a square on the diagonal of T is the T of its own keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/attention/head_rows.h"
#include "src/content/stream.h"

namespace posenc::detail {

constexpr std::int64_t square = block_keys * block_keys;

// Zeros above the diagonal, and on it where `strictly`.
template <class T>
void keep_lower(T* x, bool strictly) {
  for (std::int64_t l = 0; l < block_keys; ++l)
    std::fill(x + l * block_keys + l + (strictly ? 0 : 1), x + (l + 1) * block_keys, T{0});
}

// What a block of keys of one key head does to queries that pass it.
template <class T>
struct PathBlock {
  Aligned<T> w;          // [block_keys][dim]; zeros of padding, and behind the last key
  Aligned<T> w_columns;  // [dim][block_keys]
  Aligned<T> minus_t;    // [block_keys][block_keys]: −T
  Aligned<T> u;  // [block_keys][block_keys]: −T (W Kᵀ below the diagonal); empty without keys
  Aligned<T> y;  // [block_keys][dim]: −T W
  Aligned<T>
      // [dim][dim]: I + Wᵀ y, which a query's row is multiplied by on its way across the block
      across;
  Aligned<T>
      moved;  // [dim][block_keys]: the keys, moved to the end of the block; empty without keys
  bool finite = true;

  // w [block_keys][dim] is taken; keys: [dim][block_keys], 0 where hidden; null: none.
  PathBlock(Aligned<T> rows, const double* beta, const T* keys, std::int64_t dim)
      : w(std::move(rows)),
        w_columns(block_keys * dim),
        minus_t(square),
        u(keys == nullptr ? 0 : square),
        y(block_keys * dim),
        across(dim * dim),
        moved(keys == nullptr ? 0 : block_keys * dim) {
    transpose(w.data(), dim, block_keys, dim, w_columns.data(), block_keys);
    Aligned<T> products(square);
    block_products(w.data(), w_columns.data(), block_keys, dim, products.data());
    // Row by row, in double: T_l = β_l (e_l − Σ_{n<l} N_ln T_n).
    std::vector<double> t(static_cast<std::size_t>(square));
    for (std::int64_t l = 0; l < block_keys; ++l) {
      if (beta[l] == 0) continue;
      double* const row = t.data() + l * block_keys;
      row[l] = beta[l];
      for (std::int64_t n = 0; n < l; ++n) {
        const double by = -beta[l] * static_cast<double>(products.data()[l * block_keys + n]);
        const double* const other = t.data() + n * block_keys;
        for (std::int64_t m = 0; m <= n; ++m) row[m] += by * other[m];
      }
    }
    for (std::int64_t e = 0; e < square; ++e)
      minus_t.data()[e] = static_cast<T>(-t[static_cast<std::size_t>(e)]);
    finite =
        all_finite(w.data(), dim, block_keys, dim) && all_finite(minus_t.data(), square, 1, square);
    multiply(minus_t.data(), block_keys, 1, w.data(), block_keys, block_keys, dim, y.data());
    multiply(w.data(), 1, dim, y.data(), dim, block_keys, dim, across.data());
    for (std::int64_t c = 0; c < dim; ++c) across.data()[c * dim + c] += 1;
    if (keys == nullptr) return;
    keys_by_w(keys, dim, products.data());
    multiply(minus_t.data(), block_keys, 1, products.data(), block_keys, block_keys, block_keys,
             u.data(), false, finite);
    std::copy_n(keys, block_keys * dim, moved.data());
    multiply(w_columns.data(), block_keys, 1, u.data(), dim, block_keys, block_keys, moved.data(),
             true);
  }

  // to [m][j] = w_m · k_j below the diagonal.
  void keys_by_w(const T* keys, std::int64_t dim, T* to) const {
    block_products(w.data(), keys, block_keys, dim, to);
    keep_lower(to, true);
  }
};

}  // namespace posenc::detail
