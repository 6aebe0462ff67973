#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/attention/tiles.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "src/attention/tiles.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr Floats d = {};
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
// With the rows of a tile these fill 32 registers, or 16.
constexpr int panel_vectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;
constexpr std::int64_t panel = panel_vectors * lanes;
constexpr float lowest = -std::numeric_limits<float>::infinity();

// c[row][column] (+)= Σ_k a[row][k] · b[k][column] for `rows` rows and `vectors` vectors of columns.
template <int rows, int vectors, bool adds>
HWY_INLINE void Multiply(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step,
                         std::int64_t depth, float* c, std::int64_t c_step) {
  Vector sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = adds ? hn::LoadU(d, c + r * c_step + v * lanes) : hn::Zero(d);
  }
  for (std::int64_t k = 0; k < depth; ++k, b += b_step) {
    Vector from[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) from[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vector x = hn::Set(d, a[r * a_step + k]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(x, from[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) hn::StoreU(sum[r][v], d, c + r * c_step + v * lanes);
  }
}

HWY_INLINE float Product(const float* a, const float* b, std::int64_t count) {
  auto sum = hn::Zero(d), other = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    other = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), other);
  }
  for (; i + lanes <= count; i += lanes)
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other)));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

HWY_INLINE void Scores(const Tile& tile) {
  float* const s = tile.weights;
  if (tile.panels == nullptr) {
    constexpr std::int64_t line = 64 / sizeof(float), rows_ahead = 8;
    for (int r = 0; r < tile.rows; ++r) {
      for (std::int64_t j = tile.begin[r]; j < tile.end[r]; ++j) {
        // Memory is what a single query waits for: keys come early, values while keys are looked at.
        for (std::int64_t c = 0; c < tile.head_dim && r == 0; c += line) {
          Fetch(tile.k + (j + rows_ahead) * tile.k_step + c);
          Fetch(tile.v + j * tile.v_step + c);
        }
        s[r * tile.weights_step + j] =
            Product(tile.q + r * tile.q_step, tile.k + j * tile.k_step, tile.head_dim);
      }
    }
    return;
  }
  for (std::int64_t j = tile.first; j < tile.last; j += panel) {
    const float* const keys = tile.panels + j * tile.head_dim;
    if (tile.rows == tile_rows) {
      Multiply<tile_rows, panel_vectors, false>(tile.q, tile.q_step, keys, panel, tile.head_dim,
                                                s + j, tile.weights_step);
      continue;
    }
    for (int r = 0; r < tile.rows; ++r) {
      Multiply<1, panel_vectors, false>(tile.q + r * tile.q_step, 0, keys, panel, tile.head_dim,
                                        s + r * tile.weights_step + j, 0);
    }
  }
}

// Beside a weight of 1 those below e^-64 are nothing, but their sums of subnormal numbers would be slow.
constexpr float least_logit = -64;

// e^x, and NaN of NaN.
HWY_INLINE Vector Exponential(Vector x) {
  const auto least = hn::Set(d, least_logit);
  const auto e = hn::Exp(d, hn::Max(x, least));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(hn::Lt(x, least), e));
}

// One row's logits to weights, in the light of all before.
HWY_INLINE void Soften(Tile& tile, int r) {
  float* const s = tile.weights + r * tile.weights_step;
  const std::int64_t first = tile.first, last = tile.last;
  const auto none = hn::Set(d, lowest);
  tile.shrink[r] = 1;
  const std::int64_t begin = tile.begin[r], end = tile.end[r];
  if (begin >= end) {
    std::fill(s + first, s + last, 0.0f);
    return;
  }
  // Hidden keys in front of and behind those that the row sees.
  std::fill(s + first, s + begin, lowest);
  std::fill(s + end, s + last, lowest);
  const std::int64_t from = first + (begin - first) / lanes * lanes;
  const std::int64_t to = std::min(last, first + (end - first + lanes - 1) / lanes * lanes);
  const float* const bias = tile.bias[r];
  const float* const hide = tile.hide[r];
  auto peaks = none;
  if (bias != nullptr) {
    const auto factor = hn::Set(d, tile.bias_factor[r]);
    for (std::int64_t j = from; j < to; j += lanes) {
      const auto x = hn::MulAdd(hn::LoadU(d, bias + j), factor, hn::LoadU(d, s + j));
      hn::StoreU(x, d, s + j);
      peaks = hn::Max(peaks, x);
    }
  }
  if (hide != nullptr) {
    peaks = none;
    for (std::int64_t j = from; j < to; j += lanes) {
      const auto hidden = hn::Lt(hn::LoadU(d, hide + j), hn::Zero(d));
      const auto x = hn::IfThenElse(hidden, none, hn::LoadU(d, s + j));
      hn::StoreU(x, d, s + j);
      peaks = hn::Max(peaks, x);
    }
  } else if (bias == nullptr) {
    for (std::int64_t j = from; j < to; j += lanes) peaks = hn::Max(peaks, hn::LoadU(d, s + j));
  }
  const float old = *tile.peak[r];
  float peak = hn::GetLane(hn::MaxOfLanes(d, peaks));
  if (!(peak > old)) peak = old;
  if (peak == lowest) {  // all hidden, or NaN
    bool nan = false;
    for (std::int64_t j = begin; j < end; ++j) nan = nan || std::isnan(s[j]);
    if (!nan) {
      std::fill(s + first, s + last, 0.0f);
      return;
    }
    peak = 0;
  }
  const auto top = hn::Set(d, peak);
  auto sums = hn::Zero(d);
  for (std::int64_t j = from; j < to; j += lanes) {
    const auto e = Exponential(hn::Sub(hn::LoadU(d, s + j), top));
    hn::StoreU(e, d, s + j);
    sums = hn::Add(sums, e);
  }
  std::fill(s + first, s + from, 0.0f);
  std::fill(s + to, s + last, 0.0f);
  if (peak != old) tile.shrink[r] = old - peak < least_logit ? 0 : std::exp(old - peak);
  *tile.peak[r] = peak;
  tile.added[r] = hn::GetLane(hn::SumOfLanes(d, sums));
  *tile.sum[r] = *tile.sum[r] * tile.shrink[r] + tile.added[r];
}

template <int rows>
HWY_INLINE void Gather(const Tile& tile, int r) {
  const std::int64_t width = (tile.head_dim + lanes - 1) / lanes * lanes;
  const float* const weights = tile.weights + r * tile.weights_step + tile.first;
  const float* const values = tile.v + tile.first * tile.v_step;
  float* const out = tile.out + r * tile.out_step;
  const std::int64_t depth = std::min(tile.last, tile.values) - tile.first;
  std::int64_t c = 0;
  const auto part = [&]<int vectors>(std::integral_constant<int, vectors>) HWY_ATTR {
    for (; c + vectors * lanes <= width; c += vectors * lanes) {
      Multiply<rows, vectors, true>(weights, tile.weights_step, values + c, tile.v_step, depth,
                                    out + c, tile.out_step);
    }
  };
  part(std::integral_constant<int, panel_vectors>());
  if constexpr (panel_vectors > 2) part(std::integral_constant<int, 2>());
  part(std::integral_constant<int, 1>());
}

void AttendTile(Tile& tile) {
  Scores(tile);
  for (int r = 0; r < tile.rows; ++r) {
    Soften(tile, r);
    if (tile.shrink[r] == 1) continue;
    const auto shrink = hn::Set(d, tile.shrink[r]);
    float* const out = tile.out + r * tile.out_step;
    for (std::int64_t c = 0; c < tile.head_dim; c += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, out + c), shrink), d, out + c);
  }
  if (!tile.v_finite) {
    for (int r = 0; r < tile.rows; ++r) {
      for (std::int64_t j = tile.begin[r]; j < tile.end[r]; ++j) {
        const float weight = tile.weights[r * tile.weights_step + j];
        if (weight == 0) continue;
        for (std::int64_t c = 0; c < tile.head_dim; ++c)
          tile.out[r * tile.out_step + c] += weight * tile.v[j * tile.v_step + c];
      }
    }
  } else if (tile.rows == tile_rows) {
    Gather<tile_rows>(tile, 0);
  } else {
    for (int r = 0; r < tile.rows; ++r) Gather<1>(tile, r);
  }
}

std::int64_t PanelWidth() { return panel; }

void LoadRows(const Tensor& x, std::int64_t from, std::int64_t count, std::int64_t head_dim,
              float* to, std::int64_t to_step) {
  const std::int64_t step = x.stride[2], inner = x.stride[3];
  with_element(x.dtype, [&]<class T>(T*) HWY_ATTR {
    if constexpr (sizeof(T) < sizeof(double)) {
      const T* row = static_cast<const T*>(x.data) + from;
      for (std::int64_t t = 0; t < count; ++t, row += step, to += to_step) {
        std::int64_t c = 0;
        if (inner == 1) {
          for (; c + lanes <= head_dim; c += lanes) hn::StoreU(LoadElements(d, row + c), d, to + c);
        }
        const hn::CappedTag<float, 1> one;
        for (; c < head_dim; ++c) hn::StoreU(LoadElements(one, row + c * inner), one, to + c);
      }
    }
  });
}

void MakePanels(const float* k, std::int64_t k_step, std::int64_t count, std::int64_t head_dim,
                float* panels) {
  for (std::int64_t start = 0; start < count; start += panel, panels += panel * head_dim) {
    const std::int64_t keys = std::min(panel, count - start);
    // By squares that stay in the first cache.
    for (std::int64_t c0 = 0; c0 < head_dim; c0 += 16) {
      const std::int64_t c1 = std::min(c0 + 16, head_dim);
      for (std::int64_t j = 0; j < keys; ++j) {
        const float* const row = k + (start + j) * k_step;
        for (std::int64_t c = c0; c < c1; ++c) panels[c * panel + j] = row[c];
      }
    }
    if (keys < panel) {
      for (std::int64_t c = 0; c < head_dim; ++c)
        std::fill(panels + c * panel + keys, panels + (c + 1) * panel, 0.0f);
    }
  }
}

bool AllFinite(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {
  float rest = 0;
  auto sum = hn::Zero(d);
  for (std::int64_t t = 0; t < rows; ++t) {
    const float* const row = x + t * step;
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes)
      sum = hn::MulAdd(hn::LoadU(d, row + c), hn::Zero(d), sum);  // 0 · ∞ and 0 · NaN are NaN
    for (; c < columns; ++c) rest += row[c] * 0.0f;
  }
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest == 0.0f;
}

float ProductOf(const float* a, const float* b, std::int64_t count) { return Product(a, b, count); }

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(AttendTile);
HWY_EXPORT(PanelWidth);
HWY_EXPORT(LoadRows);
HWY_EXPORT(MakePanels);
HWY_EXPORT(AllFinite);
HWY_EXPORT(ProductOf);

void attend_tile(Tile& tile) { HWY_DYNAMIC_DISPATCH(AttendTile)(tile); }
std::int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
void load_rows(const Tensor& x, std::int64_t from, std::int64_t count, std::int64_t head_dim,
               float* to, std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(LoadRows)(x, from, count, head_dim, to, to_step);
}
void make_panels(const float* k, std::int64_t k_step, std::int64_t count, std::int64_t head_dim,
                 float* panels) {
  HWY_DYNAMIC_DISPATCH(MakePanels)(k, k_step, count, head_dim, panels);
}
bool all_finite(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {
  return HWY_DYNAMIC_DISPATCH(AllFinite)(x, step, rows, columns);
}
float product(const float* a, const float* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ProductOf)(a, b, count);
}

}  // namespace posenc::detail
#endif
