// Up to six rows of c and a panel's width of its columns stay in registers while all of the depth
// is added to them: 6 x 4 vectors fill 32 registers, 6 x 2 fill 16. The depth is never cut, so the
// order of a number's sum depends on nothing but its depth.
#include "src/kernels/gemm.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/gemm.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
constexpr int panel_vectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;
// Without vectors of four, as panels of a multiple of four too.
template <class T>
constexpr std::int64_t panel = std::max<std::int64_t>(panel_vectors * lanes<T>, 4);

// What a product is added to.
enum class To { nothing, c, plus };

// One tile of c: `rows` x `vectors` vectors from `column` of c's row on, which is p.plus[0]'s too.
template <int rows, int vectors, To to, class T>
HWY_INLINE void Tile(const Gemm<T>& p, const T* a, const T* b, T* c, std::int64_t column,
                     const T* const* plus) {
  const hn::ScalableTag<T> d;
  const std::int64_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step, depth = p.depth;
  hn::Vec<hn::ScalableTag<T>> sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sum[r][v] =
          to == To::c ? hn::LoadU(d, c + r * p.c_step + column + v * lanes<T>) : hn::Zero(d);
  }
  for (std::int64_t k = 0; k < depth; ++k, a += a_step, b += b_step) {
    hn::Vec<hn::ScalableTag<T>> from[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) from[v] = hn::LoadU(d, b + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto x = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(x, from[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t at = column + v * lanes<T>;
      if constexpr (to == To::plus) sum[r][v] = hn::Add(sum[r][v], hn::LoadU(d, plus[r] + at));
      hn::StoreU(sum[r][v], d, c + r * p.c_step + at);
    }
  }
}

// A single sum of MulAdds waits for each of them; where columns are few, rows keep the units busy.
template <int rows, To to, class T>
HWY_NOINLINE void Rows(const Gemm<T>& p, std::int64_t row) {
  const T* const a = p.a + row * p.a_row;
  T* const c = p.c + row * p.c_step;
  const T* const* const plus = to == To::plus ? p.plus + row : nullptr;
  for (std::int64_t start = 0; start < p.columns; start += panel<T>) {
    const T* const b = p.b + (p.panel_step != 0 ? start / panel<T> * p.panel_step : start);
    const std::int64_t count = std::min(panel<T>, p.columns - start);
    std::int64_t i = 0;
    const auto part = [&]<int vectors>(std::integral_constant<int, vectors>) HWY_ATTR {
      for (; i + vectors * lanes<T> <= count; i += vectors * lanes<T>)
        Tile<rows, vectors, to>(p, a, b + i, c, start + i, plus);
    };
    part(std::integral_constant<int, panel_vectors>());
    if constexpr (panel_vectors > 2) part(std::integral_constant<int, 2>());
    part(std::integral_constant<int, 1>());
    for (; i < count; ++i) {
      for (int r = 0; r < rows; ++r) {
        T sum = to == To::c ? c[r * p.c_step + start + i] : T{0};
        for (std::int64_t k = 0; k < p.depth; ++k)
          sum += a[r * p.a_row + k * p.a_step] * b[k * p.b_step + i];
        if constexpr (to == To::plus) sum += plus[r][start + i];
        c[r * p.c_step + start + i] = sum;
      }
    }
  }
}

// Row by row and factor by factor: what needs it is rare.
template <class T>
HWY_NOINLINE void SkipZeros(const Gemm<T>& p) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    T* const c = p.c + row * p.c_step;
    if (!p.adds) std::fill_n(c, p.columns, T{0});
    for (std::int64_t k = 0; k < p.depth; ++k) {
      const T factor = p.a[row * p.a_row + k * p.a_step];
      if (factor == 0) continue;
      const auto x = hn::Set(d, factor);
      for (std::int64_t start = 0; start < p.columns; start += panel<T>) {
        const T* const b =
            p.b + (p.panel_step != 0 ? start / panel<T> * p.panel_step : start) + k * p.b_step;
        const std::int64_t count = std::min(panel<T>, p.columns - start);
        std::int64_t i = 0;
        for (; i + lanes<T> <= count; i += lanes<T>) {
          T* const to = c + start + i;
          hn::StoreU(hn::MulAdd(x, hn::LoadU(d, b + i), hn::LoadU(d, to)), d, to);
        }
        for (; i < count; ++i) c[start + i] += factor * b[i];
      }
    }
  }
}

template <To to, class T>
void AllRows(const Gemm<T>& p) {
  std::int64_t row = 0;
  for (; row + gemm_rows <= p.rows; row += gemm_rows) Rows<gemm_rows, to>(p, row);
  if (row + 4 <= p.rows) Rows<4, to>(p, row), row += 4;
  if (row + 2 <= p.rows) Rows<2, to>(p, row), row += 2;
  if (row < p.rows) Rows<1, to>(p, row);
}

template <class T>
void Multiply(const Gemm<T>& p) {
  if (p.skips_zeros) return SkipZeros(p);
  if (p.plus != nullptr) return AllRows<To::plus>(p);
  p.adds ? AllRows<To::c>(p) : AllRows<To::nothing>(p);
}

// Squares of four by four: two rounds of pairs woven into each other.
template <class T>
HWY_INLINE void TransposeSquare(const T* x, std::int64_t step, T* to, std::int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) to[c * to_step + r] = x[r * step + c];
  }
#else
  if constexpr (sizeof(T) == 4) {
    const hn::Full128<T> d;
    const hn::Repartition<std::uint64_t, decltype(d)> pairs;
    const auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + step), e = hn::LoadU(d, x + 2 * step),
               f = hn::LoadU(d, x + 3 * step);
    const auto low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
               high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
               next_low = hn::BitCast(pairs, hn::InterleaveLower(d, e, f)),
               next_high = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low, next_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low, next_low)), d, to + to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high, next_high)), d, to + 2 * to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high, next_high)), d, to + 3 * to_step);
  } else {
    const hn::Full128<T> d;
    for (std::int64_t r = 0; r < 4; r += 2) {
      for (std::int64_t c = 0; c < 4; c += 2) {
        const auto a = hn::LoadU(d, x + r * step + c), b = hn::LoadU(d, x + (r + 1) * step + c);
        hn::StoreU(hn::InterleaveLower(d, a, b), d, to + c * to_step + r);
        hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + (c + 1) * to_step + r);
      }
    }
  }
#endif
}

template <class T>
HWY_INLINE void Transpose(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                          T* to, std::int64_t to_step) {
  const std::int64_t squares = rows / 4 * 4, wide = columns / 4 * 4;
  for (std::int64_t c = 0; c < wide; c += 4) {
    for (std::int64_t r = 0; r < squares; r += 4)
      TransposeSquare(x + r * step + c, step, to + c * to_step + r, to_step);
    for (std::int64_t r = squares; r < rows; ++r) {
      for (std::int64_t i = c; i < c + 4; ++i) to[i * to_step + r] = x[r * step + i];
    }
  }
  for (std::int64_t c = wide; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_step + r] = x[r * step + c];
  }
}

template <class T>
void TransposeToPanels(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                       T* to) {
  for (std::int64_t start = 0; start < rows; start += panel<T>, to += panel<T> * columns) {
    const std::int64_t count = std::min(panel<T>, rows - start);
    Transpose(x + start * step, step, count, columns, to, panel<T>);
    for (std::int64_t c = 0; c < columns && count < panel<T>; ++c)
      std::fill(to + c * panel<T> + count, to + (c + 1) * panel<T>, T{0});
  }
}

}  // namespace

#define POSENC_FOR_TYPE(T, Type)                                                               \
  void Gemm##Type(const Gemm<T>& p) { Multiply(p); }                                           \
  std::int64_t Panel##Type() { return panel<T>; }                                              \
  void Transpose##Type(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, \
                       T* to, std::int64_t to_step) {                                          \
    Transpose(x, step, rows, columns, to, to_step);                                            \
  }                                                                                            \
  void Panels##Type(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns,    \
                    T* panels) {                                                               \
    TransposeToPanels(x, step, rows, columns, panels);                                         \
  }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

void PanelsWords(const std::uint32_t* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                 std::uint32_t* panels) {
  TransposeToPanels(x, step, rows, columns, panels);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

#define POSENC_FOR_TYPE(T, Type)                                                                   \
  HWY_EXPORT(Gemm##Type);                                                                          \
  HWY_EXPORT(Panel##Type);                                                                         \
  HWY_EXPORT(Transpose##Type);                                                                     \
  HWY_EXPORT(Panels##Type);                                                                        \
  void gemm(const Gemm<T>& product) { HWY_DYNAMIC_DISPATCH(Gemm##Type)(product); }                 \
  template <>                                                                                      \
  std::int64_t panel_columns<T>() {                                                                \
    return HWY_DYNAMIC_DISPATCH(Panel##Type)();                                                    \
  }                                                                                                \
  void transpose(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, T* to,    \
                 std::int64_t to_step) {                                                           \
    HWY_DYNAMIC_DISPATCH(Transpose##Type)(x, step, rows, columns, to, to_step);                    \
  }                                                                                                \
  void transpose_to_panels(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, \
                           T* panels) {                                                            \
    HWY_DYNAMIC_DISPATCH(Panels##Type)(x, step, rows, columns, panels);                            \
  }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

HWY_EXPORT(PanelsWords);
void transpose_to_panels(const std::uint32_t* x, std::int64_t step, std::int64_t rows,
                         std::int64_t columns, std::uint32_t* panels) {
  HWY_DYNAMIC_DISPATCH(PanelsWords)(x, step, rows, columns, panels);
}

}  // namespace posenc::detail
#endif

#else  // the same in plain loops

#include <algorithm>

namespace posenc::detail {
namespace {

constexpr std::int64_t panel = 16;

template <class T>
void multiply(const Gemm<T>& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    T* const c = p.c + row * p.c_step;
    if (!p.adds) std::fill_n(c, p.columns, T{0});
    for (std::int64_t k = 0; k < p.depth; ++k) {
      const T factor = p.a[row * p.a_row + k * p.a_step];
      if (p.skips_zeros && factor == 0) continue;
      const T* const b = p.b + k * p.b_step;
      for (std::int64_t i = 0; i < p.columns; ++i)
        c[i] += factor * b[p.panel_step != 0 ? i / panel * p.panel_step + i % panel : i];
    }
    for (std::int64_t i = 0; i < p.columns && p.plus != nullptr; ++i) c[i] += p.plus[row][i];
  }
}

template <class T>
void transpose_rows(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, T* to,
                    std::int64_t to_step) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[c * to_step + r] = x[r * step + c];
  }
}

template <class T>
void rows_to_panels(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, T* to) {
  std::fill_n(to, (rows + panel - 1) / panel * panel * columns, T{0});
  for (std::int64_t start = 0; start < rows; start += panel, to += panel * columns)
    transpose_rows(x + start * step, step, std::min(panel, rows - start), columns, to, panel);
}

}  // namespace

#define POSENC_FOR_TYPE(T)                                                                         \
  void gemm(const Gemm<T>& product) { multiply(product); }                                         \
  template <>                                                                                      \
  std::int64_t panel_columns<T>() {                                                                \
    return panel;                                                                                  \
  }                                                                                                \
  void transpose(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, T* to,    \
                 std::int64_t to_step) {                                                           \
    transpose_rows(x, step, rows, columns, to, to_step);                                           \
  }                                                                                                \
  void transpose_to_panels(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns, \
                           T* panels) {                                                            \
    rows_to_panels(x, step, rows, columns, panels);                                                \
  }

POSENC_FOR_TYPE(float)
POSENC_FOR_TYPE(double)
#undef POSENC_FOR_TYPE

void transpose_to_panels(const std::uint32_t* x, std::int64_t step, std::int64_t rows,
                         std::int64_t columns, std::uint32_t* panels) {
  rows_to_panels(x, step, rows, columns, panels);
}

}  // namespace posenc::detail

#endif
