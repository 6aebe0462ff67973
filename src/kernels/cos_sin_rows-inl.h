// Rows of cos and sin by vectors: makes the factors of cos_sin_rows.h and multiplies them. Included
// once per instruction set.
#if defined(POSENC_COS_SIN_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_COS_SIN_ROWS_INL_H
#undef POSENC_COS_SIN_ROWS_INL_H
#else
#define POSENC_COS_SIN_ROWS_INL_H
#endif

#include "hwy/highway.h"
#include "src/kernels/cos_sin_rows.h"
#include "src/kernels/sincos-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

// (c, s) := (c, s) · (d, e) as complex numbers.
template <class V>
HWY_INLINE void ComplexMultiply(V& c, V& s, V d, V e) {
  const V cosine = hn::NegMulAdd(s, e, hn::Mul(c, d));
  s = hn::MulAdd(c, e, hn::Mul(s, d));
  c = cosine;
}

// --- Factors: made once for a row or for four, hence out of line, compiled once for all the kinds of
// rows that MakeRow() and MakeFourRows() write below.

// cos[size] and sin[size] of position · frequency, from the product's exact value.
HWY_NOINLINE inline void ExactRow(const CosSinRows& cos_sin, const CosSinRows::Axis& axis,
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

// Row j of a table; only those that are asked for are made.
HWY_INLINE const double* TableRow(const CosSinRows& cos_sin, const CosSinRows::Axis& axis,
                                  double* table, unsigned& made, std::int64_t j, std::int64_t step,
                                  bool grows) {
  double* const row = table + j * 2 * cos_sin.size;
  if ((made >> j & 1) == 0) {
    made |= 1u << j;
    ExactRow(cos_sin, axis, j * step, row);
    if (grows) cos_sin.scale_row(row, static_cast<double>(j * step), 1);
  }
  return row;
}

// The row of 64⌊p/64⌋, with the amplitude and, of xPos, its growth up to there.
HWY_NOINLINE inline void MakeBase(CosSinRows& cos_sin, std::int64_t a, std::int64_t position) {
  CosSinRows::Axis& axis = cos_sin.axes[a];
  axis.base_of = position >> 6;
  axis.base_coarse_of = CosSinRows::none;
  const std::int64_t start = axis.base_of * 64;
  const CosSinRule& rule = cos_sin.rule;
  ExactRow(cos_sin, axis, start, axis.base);
  if (a == 0 && rule.growth != nullptr) {
    const double steps = static_cast<double>(start) - rule.growth->centre;
    cos_sin.scale_row(axis.base, steps, rule.amplitude);
  } else if (a == 0 && rule.amplitude != 1) {
    cos_sin.scale_row(axis.base, 0, rule.amplitude);
  }
  if (a == 0 && !rule.phase.empty()) cos_sin.shift_row(axis.base);
}
// Sees to it that axis.base is the row of 64⌊p/64⌋.
HWY_INLINE void UpdateBase(CosSinRows& cos_sin, std::int64_t a, std::int64_t position) {
  if (cos_sin.axes[a].base_of != position >> 6) MakeBase(cos_sin, a, position);
}

// Factors whose product is a row; null where there is no second.
struct Factors {
  const double *first, *second;
};

HWY_INLINE void LoadRow(const Factors& row, std::int64_t size, std::int64_t i, hn::Vec<Doubles>& c,
                        hn::Vec<Doubles>& s) {
  const Doubles d;
  c = hn::LoadU(d, row.first + i);
  s = hn::LoadU(d, row.first + size + i);
  if (row.second == nullptr) return;
  ComplexMultiply(c, s, hn::LoadU(d, row.second + i), hn::LoadU(d, row.second + size + i));
}
HWY_INLINE void StoreRow(hn::Vec<Doubles> c, hn::Vec<Doubles> s, std::int64_t size, std::int64_t i,
                         double* row) {
  hn::StoreU(c, Doubles(), row + i);
  hn::StoreU(s, Doubles(), row + size + i);
}

// The row of a position of one axis: base · coarse, cached for the next three positions, and fine.
HWY_NOINLINE inline Factors FactorsOf(CosSinRows& cos_sin, std::int64_t a, std::int64_t position) {
  CosSinRows::Axis& axis = cos_sin.axes[a];
  const bool grows = a == 0 && cos_sin.rule.growth != nullptr;
  const std::int64_t coarse = position >> 2 & 15, fine = position & 3, size = cos_sin.size;
  if (axis.base_coarse_of != position >> 2) {
    UpdateBase(cos_sin, a, position);
    axis.base_coarse_of = position >> 2;
    if (coarse != 0) {
      const Factors both = {
          axis.base, TableRow(cos_sin, axis, axis.coarse, axis.coarse_made, coarse, 4, grows)};
      auto c = hn::Zero(Doubles()), s = c;
      for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(Doubles()))) {
        LoadRow(both, size, i, c, s);
        StoreRow(c, s, size, i, axis.base_coarse);
      }
    }
  }
  return {coarse == 0 ? axis.base : axis.base_coarse,
          fine == 0 ? nullptr : TableRow(cos_sin, axis, axis.fine, axis.fine_made, fine, 1, grows)};
}

// The row of a position of several axes, whose angles add: the product of the rows of all.
HWY_NOINLINE inline Factors ProductOfAxes(CosSinRows& cos_sin, const std::int64_t* position) {
  const std::int64_t size = cos_sin.size;
  double* const product = cos_sin.all_axes;
  auto c = hn::Zero(Doubles()), s = c, e = c, f = c;
  for (std::int64_t a = 0; a < cos_sin.rule.axes; ++a) {
    const Factors row = FactorsOf(cos_sin, a, position[a]);
    for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(Doubles()))) {
      LoadRow(row, size, i, e, f);
      if (a == 0) {
        StoreRow(e, f, size, i, product);
        continue;
      }
      LoadRow({product, nullptr}, size, i, c, s);
      ComplexMultiply(c, s, e, f);
      StoreRow(c, s, size, i, product);
    }
  }
  return {product, nullptr};
}

// The row of angles that are given, [size] with zeros behind the last: what position 1 gives at such frequencies.
HWY_NOINLINE inline Factors FactorsOfAngles(CosSinRows& cos_sin, const double* angle) {
  CosSinRows::Axis axis;
  axis.frequency = angle;
  for (std::int64_t i = 0; i < cos_sin.size; ++i)
    axis.fastest = std::max(axis.fastest, std::abs(angle[i]));
  ExactRow(cos_sin, axis, 1, cos_sin.all_axes);
  if (cos_sin.rule.amplitude != 1) cos_sin.scale_row(cos_sin.all_axes, 0, cos_sin.rule.amplitude);
  if (!cos_sin.rule.phase.empty()) cos_sin.shift_row(cos_sin.all_axes);
  return {cos_sin.all_axes, nullptr};
}

// What four rows from a multiple of 4 on are made of: row r is base · coarse · fine[r - 1], the first
// without a fine one. No coarse (null) at a multiple of 64.
struct FourFactors {
  const double *base, *coarse, *fine[3];
};

HWY_NOINLINE inline FourFactors FourFactorsOf(CosSinRows& cos_sin, std::int64_t position) {
  UpdateBase(cos_sin, 0, position);
  CosSinRows::Axis& axis = cos_sin.axes[0];
  const bool grows = cos_sin.rule.growth != nullptr;
  const auto fine = [&](std::int64_t j) {
    return TableRow(cos_sin, axis, axis.fine, axis.fine_made, j, 1, grows);
  };
  const std::int64_t j = position >> 2 & 15;
  return {axis.base,
          j == 0 ? nullptr : TableRow(cos_sin, axis, axis.coarse, axis.coarse_made, j, 4, grows),
          {fine(1), fine(2), fine(3)}};
}

// --- How a row is written --------------------------------------------------------------------------

HWY_INLINE hn::Vec<Doubles> As(Doubles, double, hn::Vec<Doubles> v) { return v; }
HWY_INLINE auto As(Doubles d, float, hn::Vec<Doubles> v) {
  return hn::DemoteTo(hn::Rebind<float, decltype(d)>(), v);
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
HWY_INLINE void StoreDoubled(D, V c, V s, C* cosine, C* sine) {
  cosine[0] = cosine[1] = hn::GetLane(c);
  sine[0] = -hn::GetLane(s);
  sine[1] = hn::GetLane(s);
}
template <class D, class V, class C>
HWY_INLINE void StoreAlternating(D, V c, V s, C* wave) {
  wave[0] = hn::GetLane(s);
  wave[1] = hn::GetLane(c);
}
#else
// Vectors of doubles fill theirs.
template <class D, class V>
HWY_INLINE void StoreDoubled(D d, V c, V s, double* cosine, double* sine) {
  hn::StoreInterleaved2(c, c, d, cosine);
  hn::StoreInterleaved2(hn::Neg(s), s, d, sine);
}
template <class D, class V>
HWY_INLINE void StoreAlternating(D d, V c, V s, double* wave) {
  hn::StoreInterleaved2(s, c, d, wave);
}
// Vectors of floats that were doubles fill half of theirs: lanes of a whole one are put in place.
template <class D, class V>
HWY_INLINE void StoreDoubled(D, V c, V s, float* cosine, float* sine) {
  const hn::Twice<D> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto both = hn::Combine(d, s, c);
  const auto order = hn::ShiftRight<1>(hn::Iota(bits, 0));
  const auto half = hn::Set(bits, static_cast<std::uint32_t>(hn::Lanes(d) / 2));
  const auto sign = hn::ShiftLeft<31>(hn::Not(hn::Iota(bits, 0)));
  const auto sines = hn::TableLookupLanes(both, hn::IndicesFromVec(d, hn::Add(order, half)));
  hn::StoreU(hn::TableLookupLanes(both, hn::IndicesFromVec(d, order)), d, cosine);
  hn::StoreU(hn::Xor(sines, hn::BitCast(d, sign)), d, sine);
}
template <class D, class V>
HWY_INLINE hn::Vec<hn::Twice<D> > Alternated(D, V c, V s) {
  const hn::Twice<D> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto lane = hn::Iota(bits, 0), odd = hn::And(lane, hn::Set(bits, 1u));
  const auto half = hn::Set(bits, static_cast<std::uint32_t>(hn::Lanes(d) / 2));
  const auto order = hn::Add(hn::ShiftRight<1>(lane), hn::Mul(odd, half));
  return hn::TableLookupLanes(hn::Combine(d, c, s), hn::IndicesFromVec(d, order));
}
template <class D, class V>
HWY_INLINE void StoreAlternating(D d, V c, V s, float* wave) {
  hn::StoreU(Alternated(d, c, s), hn::Twice<D>(), wave);
}
#endif

// ... or as interleaved pairs want them, c c and −s s ...
template <class C>
struct Doubled {
  C *cosine, *sine;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    StoreDoubled(d, c, s, cosine + 2 * i, sine + 2 * i);
  }
};

// ... or s c, the interleaved waves themselves.
template <class C>
struct Alternating {
  C* wave;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    StoreAlternating(d, c, s, wave + 2 * i);
  }
};

// --- Rows ------------------------------------------------------------------------------------------

// Hands cos and sin of pairs [begin, end) to `put`, as vectors of C and with the number of the first
// pair. Both are multiples of CosSinRows::lanes.
template <class C, class Put>
HWY_INLINE void PutRow(const CosSinRows& cos_sin, const Factors& row, std::int64_t begin,
                       std::int64_t end, const Put& put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  auto c = hn::Zero(d), s = c;
  for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    LoadRow(row, cos_sin.size, i, c, s);
    put(dc, i, As(d, C(), c), As(d, C(), s));
  }
}

// The factors of the row at a position, one number an axis.
HWY_INLINE Factors RowAt(CosSinRows& cos_sin, const std::int64_t* position) {
  return cos_sin.rule.axes == 1 ? FactorsOf(cos_sin, 0, position[0])
                                : ProductOfAxes(cos_sin, position);
}
template <class C, class Put>
HWY_INLINE void MakeRow(CosSinRows& cos_sin, const std::int64_t* position, std::int64_t begin,
                        std::int64_t end, const Put& put) {
  PutRow<C>(cos_sin, RowAt(cos_sin, position), begin, end, put);
}

// The same, bit for bit, for the four positions from a multiple of 4 on, along one axis: put[r] takes
// position + r. What they share is read, or made, once.
template <class C, class Put>
HWY_INLINE void MakeFourRows(CosSinRows& cos_sin, std::int64_t position, std::int64_t begin,
                             std::int64_t end, const Put (&put)[4]) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const FourFactors factors = FourFactorsOf(cos_sin, position);
  const std::int64_t size = cos_sin.size;
  auto c = hn::Zero(d), s = c;
  for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    LoadRow({factors.base, factors.coarse}, size, i, c, s);
    put[0](dc, i, As(d, C(), c), As(d, C(), s));
#pragma GCC unroll 4
    for (int r = 1; r < 4; ++r) {
      const double* const fine = factors.fine[r - 1];
      auto cosine = c, sine = s;
      ComplexMultiply(cosine, sine, hn::LoadU(d, fine + i), hn::LoadU(d, fine + size + i));
      put[r](dc, i, As(d, C(), cosine), As(d, C(), sine));
    }
  }
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
