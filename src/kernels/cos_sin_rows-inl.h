// Rows of cos and sin by vectors: makes the factors of cos_sin_rows.h and multiplies them. Included
// once per instruction set.
#if defined(POSENC_COS_SIN_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_COS_SIN_ROWS_INL_H
#undef POSENC_COS_SIN_ROWS_INL_H
#else
#define POSENC_COS_SIN_ROWS_INL_H
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "src/kernels/cos_sin_rows.h"
#include "src/kernels/sincos-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Lanes = hn::ScalableTag<T>;
using Doubles = Lanes<double>;
template <class T>
constexpr auto lanes_of = static_cast<std::int64_t>(hn::MaxLanes(Lanes<T>()));

// (c, s) := (c, s) · (d, e) as complex numbers.
template <class V>
HWY_INLINE void ComplexMultiply(V& c, V& s, V d, V e) {
  const V cosine = hn::NegMulAdd(s, e, hn::Mul(c, d));
  s = hn::MulAdd(c, e, hn::Mul(s, d));
  c = cosine;
}

// --- Factors: made once for a row or for eight, hence out of line, compiled once for all the kinds
//   of
// rows that MakeRow() and MakeEightRows() write below.

// cos[size] and sin[size] of position · frequency, from the product's exact value.
template <class F>
HWY_NOINLINE void ExactRow(const CosSinRows<F>& cos_sin, const typename CosSinRows<F>::Axis& axis,
                           std::int64_t position, double* row) {
  const Doubles d;
  const auto whole = static_cast<double>(position);
  if (!((whole < 0 ? -whole : whole) * axis.fastest < largest_angle)) {
    return cos_sin.exact_row_slowly(axis, position, row);
  }
  const auto p = hn::Set(d, whole);
#if !HWY_NATIVE_FMA
  // Halves of at most 26 bits, whose products are exact.
  const std::int64_t bits = position < 0 ? -(-position & 0x3ffffff) : position & 0x3ffffff;
  const auto p_low = hn::Set(d, static_cast<double>(bits));
  const auto p_high = hn::Set(d, static_cast<double>(position - bits));
  const hn::RebindToUnsigned<Doubles> du;
  const auto upper = hn::BitCast(d, hn::Set(du, ~0x7ffffffull));
#endif
  for (std::int64_t i = 0; i < cos_sin.size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto f = hn::LoadU(d, axis.frequency + i);
    const auto high = hn::Mul(p, f);
#if HWY_NATIVE_FMA
    const auto low = hn::MulSub(p, f, high);
#else
    const auto f_high = hn::And(f, upper), f_low = hn::Sub(f, f_high);
    auto low = hn::Sub(hn::Mul(p_high, f_high), high);
    low = hn::Add(hn::Add(low, hn::Mul(p_high, f_low)), hn::Mul(p_low, f_high));
    low = hn::Add(low, hn::Mul(p_low, f_low));
#endif
    auto sine = high, cosine = high;
    SinCos(d, high, low, sine, cosine);
    hn::StoreU(cosine, d, row + i);
    hn::StoreU(sine, d, row + cos_sin.size + i);
  }
}

// Row `at` of a table, of a position, rounded to its type; only those that are asked for are made.
template <class F, class Of>
HWY_INLINE const F* TableRow(const CosSinRows<Of>& cos_sin,
                             const typename CosSinRows<Of>::Axis& axis, F* table, unsigned& made,
                             std::int64_t at, std::int64_t position) {
  F* const row = table + at * 2 * cos_sin.size;
  if ((made >> at & 1) == 0) {
    made |= 1u << at;
    double* exact = cos_sin.exact;
    if constexpr (sizeof(F) == sizeof(double)) exact = row;
    ExactRow(cos_sin, axis, position, exact);
    const bool grows = cos_sin.rule.growth != nullptr && &axis == cos_sin.axes;
    if (grows) cos_sin.scale_row(exact, static_cast<double>(position), false);
    if constexpr (sizeof(F) < sizeof(double))
      for (std::int64_t i = 0; i < 2 * cos_sin.size; ++i) row[i] = static_cast<F>(exact[i]);
  }
  return row;
}
// The factor of j steps, from -3 to 4 but not 0.
template <class F>
HWY_INLINE const F* FineRow(CosSinRows<F>& cos_sin, std::int64_t a, std::int64_t j) {
  typename CosSinRows<F>::Axis& axis = cos_sin.axes[a];
  return TableRow(cos_sin, axis, axis.fine, axis.fine_made, j + 3, j);
}

// The row of 64b, with amplitude, magnitudes and phases and, of xPos, its growth up to there.
template <class F>
HWY_NOINLINE void MakeBase(CosSinRows<F>& cos_sin, std::int64_t a, std::int64_t b) {
  typename CosSinRows<F>::Axis& axis = cos_sin.axes[a];
  axis.base_of = b;
  ExactRow(cos_sin, axis, b * 64, axis.base);
  if (a != 0) return;
  const CosSinRule& rule = cos_sin.rule;
  if (rule.growth != nullptr) {
    const double steps = static_cast<double>(b * 64) - rule.growth->centre;
    cos_sin.scale_row(axis.base, steps, true);
  } else if (rule.scales()) {
    cos_sin.scale_row(axis.base, 0, true);
  }
  if (!rule.phase.empty()) cos_sin.shift_row(axis.base);
  if (rule.swapped) cos_sin.swap_row(axis.base);
}

// Factors whose product is a row; null where there is no second.
template <class F>
struct Factors {
  const F *first, *second;
};

template <class F, class V = hn::Vec<Lanes<F>>>
HWY_INLINE void LoadRow(const Factors<F>& row, std::int64_t size, std::int64_t i, V& c, V& s) {
  const Lanes<F> d;
  c = hn::LoadU(d, row.first + i);
  s = hn::LoadU(d, row.first + size + i);
  if (row.second == nullptr) return;
  ComplexMultiply(c, s, hn::LoadU(d, row.second + i), hn::LoadU(d, row.second + size + i));
}
template <class F, class V>
HWY_INLINE void StoreRow(V c, V s, std::int64_t size, std::int64_t i, F* row) {
  hn::StoreU(c, Lanes<F>(), row + i);
  hn::StoreU(s, Lanes<F>(), row + size + i);
}

// The row of 8m, multiplied in double and rounded to F, cached for the next positions.
template <class F>
HWY_NOINLINE const F* CentreRow(CosSinRows<F>& cos_sin, std::int64_t a, std::int64_t m) {
  typename CosSinRows<F>::Axis& axis = cos_sin.axes[a];
  if (axis.centre_of == m) return axis.centre;
  axis.centre_of = m;
  if (axis.base_of != m >> 3) MakeBase(cos_sin, a, m >> 3);
  const std::int64_t coarse = m & 7, size = cos_sin.size;
  Factors<double> row = {axis.base, nullptr};
  if (coarse != 0)
    row.second = TableRow(cos_sin, axis, axis.coarse, axis.coarse_made, coarse, 8 * coarse);
  const hn::Rebind<F, Doubles> d;
  auto c = hn::Zero(Doubles()), s = c;
  for (std::int64_t i = 0; i < size; i += lanes_of<double>) {
    LoadRow(row, size, i, c, s);
    if constexpr (sizeof(F) == sizeof(double)) {
      StoreRow(c, s, size, i, axis.centre);
    } else {
      hn::StoreU(hn::DemoteTo(d, c), d, axis.centre + i);
      hn::StoreU(hn::DemoteTo(d, s), d, axis.centre + size + i);
    }
  }
  return axis.centre;
}

// The row of a position of one axis.
template <class F>
HWY_NOINLINE Factors<F> FactorsOf(CosSinRows<F>& cos_sin, std::int64_t a, std::int64_t position) {
  const std::int64_t m = CosSinRows<F>::centre_of(position), j = position - 8 * m;
  const F* const centre = CentreRow(cos_sin, a, m);
  return {centre, j == 0 ? nullptr : FineRow(cos_sin, a, j)};
}

// The row of a position of several axes, whose angles add: the product of the rows of all.
template <class F>
HWY_NOINLINE Factors<F> ProductOfAxes(CosSinRows<F>& cos_sin, const std::int64_t* position) {
  const std::int64_t size = cos_sin.size;
  F* const product = cos_sin.all_axes;
  auto c = hn::Zero(Lanes<F>()), s = c, e = c, f = c;
  for (std::int64_t a = 0; a < cos_sin.rule.axes; ++a) {
    const Factors<F> row = FactorsOf(cos_sin, a, position[a]);
    for (std::int64_t i = 0; i < size; i += lanes_of<F>) {
      LoadRow(row, size, i, e, f);
      if (a == 0) {
        StoreRow(e, f, size, i, product);
        continue;
      }
      LoadRow<F>({product, nullptr}, size, i, c, s);
      ComplexMultiply(c, s, e, f);
      StoreRow(c, s, size, i, product);
    }
  }
  return {product, nullptr};
}

// The row of angles that are given, [size] with zeros behind the last: what position 1 gives at
// such frequencies.
HWY_NOINLINE inline Factors<double> FactorsOfAngles(CosSinRows<double>& cos_sin,
                                                    const double* angle) {
  CosSinRows<double>::Axis axis;
  axis.frequency = angle;
  for (std::int64_t i = 0; i < cos_sin.size; ++i)
    axis.fastest = std::max(axis.fastest, std::abs(angle[i]));
  ExactRow(cos_sin, axis, 1, cos_sin.all_axes);
  if (cos_sin.rule.scales()) cos_sin.scale_row(cos_sin.all_axes, 0, true);
  if (!cos_sin.rule.phase.empty()) cos_sin.shift_row(cos_sin.all_axes);
  if (cos_sin.rule.swapped) cos_sin.swap_row(cos_sin.all_axes);
  return {cos_sin.all_axes, nullptr};
}

// --- How a row is written: as whole vectors of what is computed with -----------------------------

// Vectors of F, which make one of C.
#if HWY_TARGET == HWY_SCALAR
template <class F, class C>
constexpr int parts = 1;
#else
template <class F, class C>
constexpr int parts = sizeof(F) / sizeof(C);
#endif

// One vector of C, from `n` of F.
template <class C, int n, class V>
HWY_INLINE hn::Vec<Lanes<C>> Rounded(const V* v) {
  using F = hn::TFromV<V>;
  if constexpr (sizeof(C) == sizeof(F)) {
    return v[0];
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (n == 2) {
    const hn::Half<Lanes<C>> half;
    return hn::Combine(Lanes<C>(), hn::DemoteTo(half, v[1]), hn::DemoteTo(half, v[0]));
#endif
  } else {
    return hn::DemoteTo(Lanes<C>(), v[0]);
  }
}

// What a row looks like: cos and sin of all pairs apart ...
template <class C>
struct Apart {
  C *cosine, *sine;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    hn::StoreU(c, d, cosine + i);
    hn::StoreU(s, d, sine + i);
  }
};

#if HWY_TARGET == HWY_SCALAR
template <class D, class V, class C>
HWY_INLINE void StoreAlternating(D, V c, V s, C* wave) {
  wave[0] = hn::GetLane(s);
  wave[1] = hn::GetLane(c);
}
#else
template <class D, class V>
HWY_INLINE void StoreAlternating(D d, V c, V s, double* wave) {
  hn::StoreInterleaved2(s, c, d, wave);
}
// Cos and sin of pairs as interleaved channels want them, c c ... and -s s ..., of the lower and of
// the upper lanes.
template <class D, class V>
struct EachTwice {
  V c[2], s[2];
  HWY_INLINE EachTwice(D d, V cosine, V sine) {
    const hn::RebindToUnsigned<D> bits;
    using Bits = hn::TFromD<decltype(bits)>;
    const auto half = hn::Set(bits, static_cast<Bits>(hn::Lanes(d) / 2));
    const auto lower = hn::ShiftRight<1>(hn::Iota(bits, 0));
    const auto in_lower = hn::IndicesFromVec(d, lower);
    const auto in_upper = hn::IndicesFromVec(d, hn::Add(lower, half));
    const auto sign =
        hn::BitCast(d, hn::ShiftLeft<8 * sizeof(Bits) - 1>(hn::Not(hn::Iota(bits, 0))));
    c[0] = hn::TableLookupLanes(cosine, in_lower);
    c[1] = hn::TableLookupLanes(cosine, in_upper);
    s[0] = hn::Xor(hn::TableLookupLanes(sine, in_lower), sign);
    s[1] = hn::Xor(hn::TableLookupLanes(sine, in_upper), sign);
  }
};
// s c s c ... of the lower and of the upper lanes.
template <class D, class V>
struct Alternated {
  V lower, upper;
  HWY_INLINE Alternated(D d, V c, V s) {
    const hn::RebindToUnsigned<D> bits;
    const auto lane = hn::Iota(bits, 0), odd = hn::And(lane, hn::Set(bits, 1u));
    const auto step = hn::Set(bits, static_cast<std::uint32_t>(hn::Lanes(d) / 2));
    const auto order = hn::IndicesFromVec(d, hn::Add(hn::ShiftRight<1>(lane), hn::Mul(odd, step)));
    lower = hn::TableLookupLanes(hn::ConcatLowerLower(d, c, s), order);
    upper = hn::TableLookupLanes(hn::ConcatUpperUpper(d, c, s), order);
  }
};
template <class D, class V>
HWY_INLINE void StoreAlternating(D d, V c, V s, float* wave) {
  const Alternated<D, V> both(d, c, s);
  hn::StoreU(both.lower, d, wave);
  hn::StoreU(both.upper, d, wave + hn::Lanes(d));
}
#endif

// ... or s c, the interleaved waves themselves.
template <class C>
struct Alternating {
  C* wave;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    StoreAlternating(d, c, s, wave + 2 * i);
  }
};

// --- Rows ----------------------------------------------------------------------------------------

// A Put takes cos and sin of pairs from `i` on, as whole vectors: (d, i, c, s). One that is `wide`
// also takes two vectors of each, (d, i, c, s, next c, next s), since its elements are half as
// wide.
template <class Put>
constexpr int vectors_of = requires { Put::wide; } ? 2 : 1;

template <class C, int vectors, class V, class Put>
HWY_INLINE void Hand(const Put& put, std::int64_t i, const V* c, const V* s) {
  constexpr int n = parts<hn::TFromV<V>, C>;
  const Lanes<C> d;
  if constexpr (vectors == 1) {
    put(d, i, Rounded<C, n>(c), Rounded<C, n>(s));
  } else {
    put(d, i, Rounded<C, n>(c), Rounded<C, n>(s), Rounded<C, n>(c + n), Rounded<C, n>(s + n));
  }
}

template <class C, int vectors, class F, class Put>
HWY_INLINE void PutVectors(std::int64_t size, const Factors<F>& row, std::int64_t i,
                           const Put& put) {
  constexpr int n = vectors * parts<F, C>;
  hn::Vec<Lanes<F>> c[n], s[n];
  for (int v = 0; v < n; ++v) LoadRow<F>(row, size, i + v * lanes_of<F>, c[v], s[v]);
  Hand<C, vectors>(put, i, c, s);
}
// Hands cos and sin of pairs [begin, end) to `put`. Both are multiples of CosSinRows::lanes.
template <class C, class F, class Put>
HWY_INLINE void PutRow(const CosSinRows<F>& cos_sin, const Factors<F>& row, std::int64_t begin,
                       std::int64_t end, const Put& put) {
  constexpr std::int64_t one = lanes_of<C>, all = vectors_of<Put> * one;
  const std::int64_t size = cos_sin.size;
  std::int64_t i = begin;
  for (; i + all <= end; i += all) PutVectors<C, vectors_of<Put>>(size, row, i, put);
  if (all > one && i < end) PutVectors<C, 1>(size, row, i, put);
}

// The same of the rows j steps after and before one that both share: of (c ± i s) · (d + i e) four
// products serve both.
template <class C, int vectors, class F, class Put>
HWY_INLINE void PutVectorsOfBoth(std::int64_t size, const Factors<F>& rows, std::int64_t i,
                                 const Put& after, const Put& before) {
  constexpr int n = vectors * parts<F, C>;
  const Lanes<F> d;
  hn::Vec<Lanes<F>> c[n], s[n], c_before[n], s_before[n];
  for (int v = 0; v < n; ++v) {
    const std::int64_t at = i + v * lanes_of<F>;
    const auto x = hn::LoadU(d, rows.first + at), y = hn::LoadU(d, rows.first + size + at);
    const auto e = hn::LoadU(d, rows.second + at), f = hn::LoadU(d, rows.second + size + at);
    const auto xe = hn::Mul(x, e), ye = hn::Mul(y, e);
    c[v] = hn::NegMulAdd(y, f, xe);
    s[v] = hn::MulAdd(x, f, ye);
    c_before[v] = hn::MulAdd(y, f, xe);
    s_before[v] = hn::NegMulAdd(x, f, ye);
  }
  Hand<C, vectors>(after, i, c, s);
  Hand<C, vectors>(before, i, c_before, s_before);
}
template <class C, class F, class Put>
HWY_INLINE void PutBoth(const CosSinRows<F>& cos_sin, const Factors<F>& rows, std::int64_t begin,
                        std::int64_t end, const Put& after, const Put& before) {
  constexpr std::int64_t one = lanes_of<C>, all = vectors_of<Put> * one;
  const std::int64_t size = cos_sin.size;
  std::int64_t i = begin;
  for (; i + all <= end; i += all)
    PutVectorsOfBoth<C, vectors_of<Put>>(size, rows, i, after, before);
  if (all > one && i < end) PutVectorsOfBoth<C, 1>(size, rows, i, after, before);
}

// The factors of the row at a position, one number an axis.
template <class F>
HWY_INLINE Factors<F> RowAt(CosSinRows<F>& cos_sin, const std::int64_t* position) {
  return cos_sin.rule.axes == 1 ? FactorsOf(cos_sin, 0, position[0])
                                : ProductOfAxes(cos_sin, position);
}
template <class C, class F, class Put>
HWY_INLINE void MakeRow(CosSinRows<F>& cos_sin, const std::int64_t* position, std::int64_t begin,
                        std::int64_t end, const Put& put) {
  PutRow<C>(cos_sin, RowAt(cos_sin, position), begin, end, put);
}

// How many of `most` rows are made together: eight whose positions follow each other from 8m - 3
// on, else one. position_of(i) is that of row i.
template <class At>
HWY_INLINE std::int64_t RowsTogether(std::int64_t most, const At& position_of) {
  const std::int64_t position = position_of(0);
  if (most < 8 || (position & 7) != 5) return 1;
  for (std::int64_t i = 1; i < 8; ++i)
    if (position_of(i) != position + i) return 1;
  return 8;
}

// The same as MakeRow(), bit for bit, for the eight positions from 8m - 3 on, along one axis:
// put[r] takes position + r. What they share is read, or made, once. Growth is not the same on both
// sides of 8m.
template <class C, class F, class Put>
HWY_INLINE void MakeEightRows(CosSinRows<F>& cos_sin, std::int64_t position, std::int64_t begin,
                              std::int64_t end, const Put (&put)[8]) {
  const F* const centre = CentreRow(cos_sin, 0, CosSinRows<F>::centre_of(position));
  const bool grows = cos_sin.rule.growth != nullptr;
  PutRow<C>(cos_sin, Factors<F>{centre, nullptr}, begin, end, put[3]);
  PutRow<C>(cos_sin, Factors<F>{centre, FineRow(cos_sin, 0, 4)}, begin, end, put[7]);
  for (std::int64_t j = 1; j < 4; ++j) {
    const Factors<F> after = {centre, FineRow(cos_sin, 0, j)};
    if (!grows) {
      PutBoth<C>(cos_sin, after, begin, end, put[3 + j], put[3 - j]);
      continue;
    }
    PutRow<C>(cos_sin, after, begin, end, put[3 + j]);
    PutRow<C>(cos_sin, Factors<F>{centre, FineRow(cos_sin, 0, -j)}, begin, end, put[3 - j]);
  }
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
