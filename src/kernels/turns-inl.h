// Turns put to work: rows of cos and sin by vectors. Included once per instruction set.
#if defined(POSENC_TURNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_TURNS_INL_H
#undef POSENC_TURNS_INL_H
#else
#define POSENC_TURNS_INL_H
#endif

#include "hwy/highway.h"
#include "src/kernels/sincos-inl.h"
#include "src/kernels/turns.h"

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

// Row j of a table of eight; only those that are asked for are made.
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

// The two factors whose product is the row of a position.
struct Factors {
  const double *near, *one;
};

HWY_INLINE Factors FactorsOf(Turns& turns, std::int64_t a, std::int64_t position) {
  const Doubles d;
  Turns::Axis& axis = turns.axes[static_cast<std::size_t>(a)];
  const bool first = a == 0, grows = first && turns.rule.growth != nullptr;
  if (axis.neared != position >> 3) {
    axis.neared = position >> 3;
    if (axis.anchored != position >> 6) {
      axis.anchored = position >> 6;
      const std::int64_t start = axis.anchored * 64;
      Direct(turns, axis, start, axis.anchor);
      if (grows) {
        turns.magnify(axis.anchor, static_cast<double>(start) - turns.rule.growth->centre,
                      turns.rule.amplitude);
      } else if (first && turns.rule.amplitude != 1) {
        turns.magnify(axis.anchor, 0, turns.rule.amplitude);
      }
    }
    const double* const eight =
        TableRow(turns, axis, axis.eights, axis.eights_made, axis.neared & 7, 8, grows);
    for (std::int64_t i = 0; i < turns.size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      auto c = hn::LoadU(d, axis.anchor + i), s = hn::LoadU(d, axis.anchor + turns.size + i);
      Multiply(c, s, hn::LoadU(d, eight + i), hn::LoadU(d, eight + turns.size + i));
      hn::StoreU(c, d, axis.near + i);
      hn::StoreU(s, d, axis.near + turns.size + i);
    }
  }
  return {axis.near, TableRow(turns, axis, axis.ones, axis.ones_made, position & 7, 1, grows)};
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

// ... or as interleaved pairs want them, c c and −s s ...
template <class C>
struct Doubled {
  C *cosine, *sine;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    hn::StoreInterleaved2(c, c, d, cosine + 2 * i);
    hn::StoreInterleaved2(hn::Neg(s), s, d, sine + 2 * i);
  }
};

// ... or s c, the interleaved waves themselves.
template <class C>
struct Alternating {
  C* wave;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    hn::StoreInterleaved2(s, c, d, wave + 2 * i);
  }
};

// Hands cos and sin of all pairs at a position (one number an axis) to `put`, as vectors of C.
template <class C, class Put>
HWY_INLINE void MakeRow(Turns& turns, const std::int64_t* position, const Put& put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Factors first = FactorsOf(turns, 0, position[0]);
  const std::int64_t size = turns.size;
  if (turns.rule.axes == 1) {
    for (std::int64_t i = 0; i < size; i += lanes) {
      auto c = hn::LoadU(d, first.near + i), s = hn::LoadU(d, first.near + size + i);
      Multiply(c, s, hn::LoadU(d, first.one + i), hn::LoadU(d, first.one + size + i));
      put(dc, i, As(d, C(), c), As(d, C(), s));
    }
    return;
  }
  for (std::int64_t a = 1; a < turns.rule.axes; ++a) FactorsOf(turns, a, position[a]);
  for (std::int64_t i = 0; i < size; i += lanes) {
    auto c = hn::LoadU(d, first.near + i), s = hn::LoadU(d, first.near + size + i);
    Multiply(c, s, hn::LoadU(d, first.one + i), hn::LoadU(d, first.one + size + i));
    for (std::int64_t a = 1; a < turns.rule.axes; ++a) {
      const Factors next = FactorsOf(turns, a, position[a]);
      auto e = hn::LoadU(d, next.near + i), f = hn::LoadU(d, next.near + size + i);
      Multiply(e, f, hn::LoadU(d, next.one + i), hn::LoadU(d, next.one + size + i));
      Multiply(c, s, e, f);
    }
    put(dc, i, As(d, C(), c), As(d, C(), s));
  }
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
