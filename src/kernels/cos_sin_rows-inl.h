// Turns put to work: rows of cos and sin by vectors. Included once per instruction set.
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

// (c, s) · (d, e) as complex numbers.
template <class V>
HWY_INLINE void Multiply(V& c, V& s, V d, V e) {
  const V cosine = hn::NegMulAdd(s, e, hn::Mul(c, d));
  s = hn::MulAdd(c, e, hn::Mul(s, d));
  c = cosine;
}

// cos[size] and sin[size] of position · frequency, from the product's exact value.
HWY_NOINLINE inline void Direct(const Turns& turns, const Turns::Axis& axis, std::int64_t position,
                                double* row) {
  const Doubles d;
  const auto whole = static_cast<double>(position);
  if (!((whole < 0 ? -whole : whole) * axis.fastest < largest_angle)) {
    return turns.direct_slowly(axis, position, row);
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
  for (std::int64_t i = 0; i < turns.size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
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
    hn::StoreU(sine, d, row + turns.size + i);
  }
}

// Row j of a table; only those that are asked for are made.
HWY_INLINE const double* TableRow(const Turns& turns, const Turns::Axis& axis, double* table,
                                  unsigned& made, std::int64_t j, std::int64_t step, bool grows) {
  double* const row = table + j * 2 * turns.size;
  if ((made >> j & 1) == 0) {
    made |= 1u << j;
    Direct(turns, axis, j * step, row);
    if (grows) turns.magnify(row, static_cast<double>(j * step), 1);
  }
  return row;
}

// The two factors whose product is the row of a position. Where the position is a multiple of 4
// there is no second.
struct Factors {
  const double *near, *one;
};

// The row of 64⌊p/64⌋ stands in axis.anchor.
HWY_INLINE void Anchor(Turns& turns, std::int64_t a, std::int64_t position) {
  Turns::Axis& axis = turns.axes[static_cast<std::size_t>(a)];
  if (axis.anchored == position >> 6) return;
  axis.anchored = position >> 6;
  axis.neared = Turns::none;
  const std::int64_t start = axis.anchored * 64;
  Direct(turns, axis, start, axis.anchor);
  if (a == 0 && turns.rule.growth != nullptr) {
    turns.magnify(axis.anchor, static_cast<double>(start) - turns.rule.growth->centre,
                  turns.rule.amplitude);
  } else if (a == 0 && turns.rule.amplitude != 1) {
    turns.magnify(axis.anchor, 0, turns.rule.amplitude);
  }
}

HWY_INLINE Factors FactorsOf(Turns& turns, std::int64_t a, std::int64_t position) {
  const Doubles d;
  Turns::Axis& axis = turns.axes[static_cast<std::size_t>(a)];
  const bool grows = a == 0 && turns.rule.growth != nullptr;
  const std::int64_t four = position >> 2 & 15, one = position & 3;
  if (axis.neared != position >> 2) {
    Anchor(turns, a, position);
    axis.neared = position >> 2;
    if (four != 0) {
      const double* const row = TableRow(turns, axis, axis.fours, axis.fours_made, four, 4, grows);
      for (std::int64_t i = 0; i < turns.size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
        auto c = hn::LoadU(d, axis.anchor + i), s = hn::LoadU(d, axis.anchor + turns.size + i);
        Multiply(c, s, hn::LoadU(d, row + i), hn::LoadU(d, row + turns.size + i));
        hn::StoreU(c, d, axis.near + i);
        hn::StoreU(s, d, axis.near + turns.size + i);
      }
    }
  }
  return {four == 0 ? axis.anchor : axis.near,
          one == 0 ? nullptr : TableRow(turns, axis, axis.ones, axis.ones_made, one, 1, grows)};
}

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

// Hands cos and sin of pairs [begin, end) at a position (one number an axis) to `put`, as vectors of C
// and with the number of the first pair. Both are multiples of Turns::lanes.
template <class C, class Put>
HWY_INLINE void MakeRow(Turns& turns, const std::int64_t* position, std::int64_t begin,
                        std::int64_t end, const Put& put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Factors first = FactorsOf(turns, 0, position[0]);
  const std::int64_t size = turns.size;
  const auto row = [&](const Factors& factors, std::int64_t i, auto& c, auto& s) HWY_ATTR {
    c = hn::LoadU(d, factors.near + i);
    s = hn::LoadU(d, factors.near + size + i);
    if (factors.one == nullptr) return;
    Multiply(c, s, hn::LoadU(d, factors.one + i), hn::LoadU(d, factors.one + size + i));
  };
  auto c = hn::Zero(d), s = hn::Zero(d), e = hn::Zero(d), f = hn::Zero(d);
  if (turns.rule.axes == 1) {
    for (std::int64_t i = begin; i < end; i += lanes) {
      row(first, i, c, s);
      put(dc, i, As(d, C(), c), As(d, C(), s));
    }
    return;
  }
  for (std::int64_t a = 1; a < turns.rule.axes; ++a) FactorsOf(turns, a, position[a]);
  for (std::int64_t i = begin; i < end; i += lanes) {
    row(first, i, c, s);
    for (std::int64_t a = 1; a < turns.rule.axes; ++a) {
      row(FactorsOf(turns, a, position[a]), i, e, f);
      Multiply(c, s, e, f);
    }
    put(dc, i, As(d, C(), c), As(d, C(), s));
  }
}

// The same, bit for bit, for the four positions from a multiple of 4 on, along one axis: put[r] takes
// position + r. What they share is read, or made, once.
template <class C, class Put>
HWY_INLINE void MakeFourRows(Turns& turns, std::int64_t position, std::int64_t begin,
                             std::int64_t end, const Put (&put)[4]) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  Anchor(turns, 0, position);
  Turns::Axis& axis = turns.axes[0];
  const bool grows = turns.rule.growth != nullptr;
  const auto ones = [&](std::int64_t j) HWY_ATTR {
    return TableRow(turns, axis, axis.ones, axis.ones_made, j, 1, grows);
  };
  const double *const anchor = axis.anchor, *const one = ones(1), *const two = ones(2),
                      *const three = ones(3);
  const std::int64_t j = position >> 2 & 15, size = turns.size;
  const double* const four =
      j == 0 ? nullptr : TableRow(turns, axis, axis.fours, axis.fours_made, j, 4, grows);
  for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto c = hn::LoadU(d, anchor + i), s = hn::LoadU(d, anchor + size + i);
    if (four != nullptr) {
      Multiply(c, s, hn::LoadU(d, four + i), hn::LoadU(d, four + size + i));
    }
    const auto turned = [&](const double* factor, const Put& to) HWY_ATTR {
      auto cosine = c, sine = s;
      Multiply(cosine, sine, hn::LoadU(d, factor + i), hn::LoadU(d, factor + size + i));
      to(dc, i, As(d, C(), cosine), As(d, C(), sine));
    };
    put[0](dc, i, As(d, C(), c), As(d, C(), s));
    turned(one, put[1]);
    turned(two, put[2]);
    turned(three, put[3]);
  }
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
