#include "src/kernels/cached_rows.h"

#include "src/kernels/byte_tables.h"
#include "src/kernels/elements.h"
#include "src/kernels/rows.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/cached_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, row_lanes>;

// Numbers of 8 bits.
struct E4m3 {
  std::uint8_t bits;
};
struct E5m2 {
  std::uint8_t bits;
};
struct Q8Block {
  Half factor;
  std::int8_t numbers[q8_block];
};
static_assert(sizeof(Q8Block) == q8_block_bytes);

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> LoadBytes(D, const std::uint8_t* from) {
  const hn::Rebind<std::uint16_t, D> d16;
  return hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, D>(), from));
}
template <class D>
HWY_INLINE hn::Vec<D> FromHalves(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
#if POSENC_HALF_IN_HARDWARE
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
  Half halves[hn::MaxLanes(D())];
  hn::StoreU(bits, hn::Rebind<std::uint16_t, D>(), &halves[0].bits);
  return LoadElements(d, halves);
#endif
}
// The vector that begins with a row's number c, a multiple of the lanes.
template <class D, class Element>
HWY_INLINE hn::Vec<D> LoadAt(D d, const Element* row, std::int64_t c) {
  return LoadElements(d, row + c);
}
// Of 8 bits through halves, whose subnormals cost nothing: those of floats would wait for microcode.
template <class D>
HWY_INLINE hn::Vec<D> LoadAt(D d, const E5m2* row, std::int64_t c) {
  return FromHalves(d, hn::ShiftLeft<8>(LoadBytes(d, &row[c].bits)));
}
// The factor that is left to sums: of e4m3 a half of the same bits below its sign is taken, whose
// exponent has another bias.
template <class Element>
constexpr float left_to_sums = std::is_same_v<Element, E4m3> ? 256.0f : 1.0f;

// Halves of e4m3's bits, which are numbers of 8 bits in words of 16.
template <class V16>
HWY_INLINE V16 HalvesOfE4m3(V16 bits) {
  const hn::DFromV<V16> d16;
  const hn::RebindToSigned<decltype(d16)> di16;
  // The sign is kept, and stands again in the exponent, where it is taken out.
  const auto below = hn::ShiftRight<1>(hn::BitCast(di16, hn::ShiftLeft<8>(bits)));
  return hn::And(hn::BitCast(d16, below), hn::Set(d16, std::uint16_t{0xbfff}));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAt(D d, const E4m3* row, std::int64_t c) {
  const hn::Rebind<std::uint16_t, D> d16;
  const auto half = HalvesOfE4m3(LoadBytes(d, &row[c].bits));
  // All ones are NaN.
  const auto ones = hn::Eq(hn::Or(half, hn::Set(d16, std::uint16_t{0x8000})),
                           hn::Set(d16, std::uint16_t{0xbf80}));
  const auto number = hn::IfThenElse(ones, hn::Set(d16, std::uint16_t{0x7e00}), half);
  return hn::Mul(FromHalves(d, number), hn::Set(d, left_to_sums<E4m3>));
}

template <class D>
HWY_INLINE hn::Vec<D> LoadAt(D d, const Q8Block* row, std::int64_t c) {
  const Q8Block& block = row[c / q8_block];
  const auto factor = FromHalves(d, hn::Set(hn::Rebind<std::uint16_t, D>(), block.factor.bits));
  const auto numbers = hn::LoadU(hn::Rebind<std::int8_t, D>(), block.numbers + c % q8_block);
  return hn::Mul(factor, hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), numbers)));
}

#undef POSENC_TWO_OF_8_BITS  // once for each instruction set
#define POSENC_TWO_OF_8_BITS \
  (POSENC_HALF_IN_HARDWARE && !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR)

// Numbers of 8 bits come out of their bytes two vectors at a time, but for left_to_sums and, of
// e4m3, its NaN, for which HoldsNan() asks.
template <class Element>
constexpr bool comes_in_twos =
    POSENC_TWO_OF_8_BITS && (std::is_same_v<Element, E4m3> || std::is_same_v<Element, E5m2> ||
                             std::is_same_v<Element, Q8Block>);

template <class D>
struct Two {
  hn::Vec<D> first, second;
};
#if POSENC_TWO_OF_8_BITS
template <class D, class V16>
HWY_INLINE Two<D> TwoFromHalves(D d, V16 bits) {
  const hn::DFromV<V16> d16;
  const hn::Half<decltype(d16)> half;
  return {FromHalves(d, hn::LowerHalf(half, bits)), FromHalves(d, hn::UpperHalf(half, bits))};
}
template <class D>
HWY_INLINE auto LoadBytesOfTwo(D, const std::uint8_t* from) {
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, decltype(d16)>(), from));
}
template <class D>
HWY_INLINE Two<D> LoadTwo(D d, const E5m2* row, std::int64_t c) {
  return TwoFromHalves(d, hn::ShiftLeft<8>(LoadBytesOfTwo(d, &row[c].bits)));
}
template <class D>
HWY_INLINE Two<D> LoadTwo(D d, const E4m3* row, std::int64_t c) {
  return TwoFromHalves(d, HalvesOfE4m3(LoadBytesOfTwo(d, &row[c].bits)));
}
template <class D>
HWY_INLINE Two<D> LoadTwo(D d, const Q8Block* row, std::int64_t c) {
  const Q8Block& block = row[c / q8_block];
  const auto factor = FromHalves(d, hn::Set(hn::Rebind<std::uint16_t, D>(), block.factor.bits));
  const hn::Rebind<std::int8_t, D> d8;
  const hn::RebindToSigned<D> di;
  const std::int8_t* const numbers = block.numbers + c % q8_block;
  const auto number = [&](const std::int8_t* from) HWY_ATTR {
    return hn::Mul(factor, hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, from))));
  };
  return {number(numbers), number(numbers + hn::MaxLanes(D()))};
}

// Whether a NaN of e4m3 stands among so many numbers, a multiple of 16.
HWY_INLINE bool HoldsNan(const E4m3* row, std::int64_t count) {
  const hn::CappedTag<std::uint8_t, 64> wide;
  const hn::CappedTag<std::uint8_t, 16> narrow;
  constexpr auto lanes8 = static_cast<std::int64_t>(hn::MaxLanes(wide)),
                 few = static_cast<std::int64_t>(hn::MaxLanes(narrow));
  constexpr std::uint8_t below_sign = 0x7f;
  auto most = hn::Zero(wide);
  std::int64_t c = 0;
  for (; c + lanes8 <= count; c += lanes8)
    most = hn::Max(most, hn::And(hn::LoadU(wide, &row[c].bits), hn::Set(wide, below_sign)));
  bool holds = !hn::AllFalse(wide, hn::Eq(most, hn::Set(wide, below_sign)));
  for (; c < count; c += few)
    holds |= !hn::AllFalse(
        narrow, hn::Eq(hn::And(hn::LoadU(narrow, &row[c].bits), hn::Set(narrow, below_sign)),
                       hn::Set(narrow, below_sign)));
  return holds;
}
template <class Element>
HWY_INLINE bool HoldsNan(const Element*, std::int64_t) {
  return false;
}

#endif

// What sums multiply by left_to_sums afterwards, and one vector as they add it.
template <class Element>
constexpr float factor_of_dots = comes_in_twos<Element> ? left_to_sums<Element> : 1.0f;
template <class D, class Element>
HWY_INLINE hn::Vec<D> LoadOfSums(D d, const Element* row, std::int64_t c) {
  const auto x = LoadAt(d, row, c);
  return factor_of_dots<Element> == 1 ? x : hn::Mul(x, hn::Set(d, 1 / factor_of_dots<Element>));
}

// The row that begins `numbers` further on.
template <class Element>
HWY_INLINE const Element* Moved(const Element* row, std::int64_t numbers) {
  return row + numbers;
}
HWY_INLINE const Q8Block* Moved(const Q8Block* row, std::int64_t numbers) {
  return row + numbers / q8_block;
}

// Calls act with a null pointer of the dtype's element type, of those that a cache has.
template <class Act>
HWY_INLINE void WithCached(DType dtype, const Act& act) {
  switch (dtype) {
    case DType::f64: return;  // has_cached_rows() says no
    case DType::f32: return act(static_cast<float*>(nullptr));
    case DType::f16: return act(static_cast<Half*>(nullptr));
    case DType::bf16: return act(static_cast<BFloat16*>(nullptr));
    case DType::e4m3: return act(static_cast<E4m3*>(nullptr));
    case DType::e5m2: return act(static_cast<E5m2*>(nullptr));
    case DType::q8_0: return act(static_cast<Q8Block*>(nullptr));
  }
}
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Floats()));
// Rows whose sums stay in registers together, with those of four keys or of four vectors.
constexpr int at_once = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;

// The sums of four vectors' lanes times a factor, to four numbers.
HWY_INLINE void StoreSums(const hn::Vec<Floats> (&v)[4], float factor, float* to) {
  const Floats d;
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) to[i] = factor * hn::GetLane(hn::SumOfLanes(d, v[i]));
#else
  // Woven into each other by blocks of four lanes, first single lanes and then pairs.
  const hn::Repartition<std::uint64_t, Floats> pairs;
  const auto one = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const auto two = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto first = hn::BitCast(pairs, one), second = hn::BitCast(pairs, two);
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                            hn::BitCast(d, hn::InterleaveUpper(pairs, first, second)));
  if constexpr (lanes == 16) {
    const hn::Half<Floats> half;
    const hn::Half<decltype(half)> quarter;
    const auto halves = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    const auto quarters = hn::Add(hn::LowerHalf(quarter, halves), hn::UpperHalf(quarter, halves));
    hn::StoreU(hn::Mul(quarters, hn::Set(quarter, factor)), quarter, to);
  } else if constexpr (lanes == 8) {
    const hn::Half<Floats> half;
    const auto halves = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    hn::StoreU(hn::Mul(halves, hn::Set(half, factor)), half, to);
  } else {
    hn::StoreU(hn::Mul(sums, hn::Set(d, factor)), d, to);
  }
#endif
}

// Asks for four keys of so many rows on, and for the values of these, at each line of memory.
template <class Element>
HWY_INLINE void AskAhead(const Element* const (&key)[4], std::int64_t step, std::int64_t c,
                         const char* value, const CachedRows* values) {
  // Bytes of a line, in numbers; of 8 bits with what stands between them, it is asked for twice.
  constexpr std::int64_t ahead = 16, line = sizeof(Element) > 8 ? 64 : 64 / sizeof(Element);
  if (value == nullptr || c % line != 0) return;
  for (int i = 0; i < 4; ++i) {
    __builtin_prefetch(Moved(key[i], ahead * step + c));
    __builtin_prefetch(value + bytes_of(values->dtype, i * values->step + c));
  }
}

// NaN for the dots of keys that hold one, which LoadTwo() takes for a number.
template <class Element>
HWY_INLINE void TellNans(const Element* const (&key)[4], std::int64_t count, std::int64_t width,
                         int rows, float* to, std::int64_t to_step) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!HoldsNan(key[i], width)) continue;
    for (int r = 0; r < rows; ++r) to[r * to_step + i] = std::numeric_limits<float>::quiet_NaN();
  }
}

// `keys` dots of `rows` rows, of four keys at a time.
template <int rows, class Element>
HWY_INLINE void Dots(const Element* k, std::int64_t step, std::int64_t keys, std::int64_t width,
                     const float* q, std::int64_t q_step, float* to, std::int64_t to_step,
                     const CachedRows* values) {
  const Floats d;
  for (std::int64_t j = 0; j < keys; j += 4, k = Moved(k, 4 * step)) {
    const std::int64_t count = std::min<std::int64_t>(keys - j, 4);
    const auto* const value =
        values == nullptr ? nullptr : static_cast<const char*>(values->from(j).first);
    hn::Vec<Floats> sum[rows][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) sum[r][i] = hn::Zero(d);
    }
    // Behind the last key it is read again.
    const Element* const key[4] = {k, Moved(k, std::min<std::int64_t>(1, count - 1) * step),
                                   Moved(k, std::min<std::int64_t>(2, count - 1) * step),
                                   Moved(k, (count - 1) * step)};
    const auto ask = [&](std::int64_t c) HWY_ATTR { AskAhead(key, step, c, value, values); };
    std::int64_t c = 0;
    if constexpr (comes_in_twos<Element>) {
      for (; c + 2 * lanes <= width; c += 2 * lanes) {
        ask(c);
#pragma GCC unroll 8
        for (int i = 0; i < 4; ++i) {
          const Two<Floats> x = LoadTwo(d, key[i], c);
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r) {
            const float* const query = q + r * q_step + c;
            sum[r][i] = hn::MulAdd(x.first, hn::LoadU(d, query), sum[r][i]);
            sum[r][i] = hn::MulAdd(x.second, hn::LoadU(d, query + lanes), sum[r][i]);
          }
        }
      }
    }
    for (; c < width; c += lanes) {
      ask(c);
      hn::Vec<Floats> x[4];
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) x[i] = LoadOfSums(d, key[i], c);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const auto query = hn::LoadU(d, q + r * q_step + c);
#pragma GCC unroll 8
        for (int i = 0; i < 4; ++i) sum[r][i] = hn::MulAdd(x[i], query, sum[r][i]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float four[4];
      StoreSums(sum[r], factor_of_dots<Element>, count == 4 ? to + r * to_step + j : four);
      if (count < 4) std::copy_n(four, count, to + r * to_step + j);
    }
    if constexpr (comes_in_twos<Element> && std::is_same_v<Element, E4m3>)
      TellNans(key, count, width, rows, to + j, to_step);
  }
}

// A part of the columns, `vectors` vectors of them behind `from`, of `rows` rows.
template <int rows, int vectors, class Element>
HWY_INLINE void Add(const Element* v, std::int64_t from, std::int64_t step, std::int64_t keys,
                    const float* weights, std::int64_t weights_step, float* sums,
                    std::int64_t sums_step) {
  const Floats d;
  constexpr float factor = factor_of_dots<Element>;
  hn::Vec<Floats> sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i)
      sum[r][i] = factor == 1 ? hn::LoadU(d, sums + r * sums_step + i * lanes) : hn::Zero(d);
  }
  for (std::int64_t j = 0; j < keys; ++j, v = Moved(v, step)) {
    hn::Vec<Floats> x[vectors];
    bool is_loaded = false;
    if constexpr (comes_in_twos<Element> && vectors % 2 == 0) {
      is_loaded = !HoldsNan(Moved(v, from), vectors * lanes);
#pragma GCC unroll 8
      for (int i = 0; is_loaded && i < vectors; i += 2) {
        const Two<Floats> two = LoadTwo(d, v, from + i * lanes);
        x[i] = two.first, x[i + 1] = two.second;
      }
    }
    if (!is_loaded) {
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) x[i] = LoadOfSums(d, v, from + i * lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto weight = hn::Set(d, weights[r * weights_step + j]);
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) sum[r][i] = hn::MulAdd(weight, x[i], sum[r][i]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
      float* const to = sums + r * sums_step + i * lanes;
      if (factor != 1) sum[r][i] = hn::MulAdd(sum[r][i], hn::Set(d, factor), hn::LoadU(d, to));
      hn::StoreU(sum[r][i], d, to);
    }
  }
}

// Calls act of at_once rows, then of two and of one.
template <class Act>
HWY_INLINE void ByRows(std::int64_t rows, const Act& act) {
  std::int64_t row = 0;
  for (; row + at_once <= rows; row += at_once) act(std::integral_constant<int, at_once>(), row);
  if (at_once > 2 && row + 2 <= rows) act(std::integral_constant<int, 2>(), row), row += 2;
  if (row < rows) act(std::integral_constant<int, 1>(), row);
}

template <class Element>
HWY_NOINLINE void DotsOf(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                         std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                         const CachedRows* values) {
  ByRows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) HWY_ATTR {
    Dots<count>(static_cast<const Element*>(k.first), k.step, keys, width, q + row * q_step, q_step,
                to + row * to_step, to_step, row == 0 ? values : nullptr);
  });
}

template <class Element>
HWY_NOINLINE void AddOf(const CachedRows& v, std::int64_t keys, std::int64_t width,
                        const float* weights, std::int64_t weights_step, std::int64_t rows,
                        float* sums, std::int64_t sums_step) {
  // As many as leave registers for the sums of at_once rows.
  constexpr int vectors = static_cast<int>(std::min<std::int64_t>(64 / lanes, 4));
  const auto* const first = static_cast<const Element*>(v.first);
  ByRows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) HWY_ATTR {
    const float* const w = weights + row * weights_step;
    float* const to = sums + row * sums_step;
    std::int64_t c = 0;
    for (; c + vectors * lanes <= width; c += vectors * lanes)
      Add<count, vectors>(first, c, v.step, keys, w, weights_step, to + c, sums_step);
    for (; c < width; c += lanes)
      Add<count, 1>(first, c, v.step, keys, w, weights_step, to + c, sums_step);
  });
}

}  // namespace

void CachedDots(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                const CachedRows* values) {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
  if (dots_by_tables(k, keys, width, q, q_step, rows, to, to_step, values)) return;
#endif
  WithCached(k.dtype, [&]<class Element>(Element*) {
    DotsOf<Element>(k, keys, width, q, q_step, rows, to, to_step, values);
  });
}

void AddCached(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
               std::int64_t weights_step, std::int64_t rows, float* sums, std::int64_t sums_step) {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
  if (add_by_tables(v, keys, width, weights, weights_step, rows, sums, sums_step)) return;
#endif
  WithCached(v.dtype, [&]<class Element>(Element*) {
    AddOf<Element>(v, keys, width, weights, weights_step, rows, sums, sums_step);
  });
}

void LoadCached(const CachedRows& x, std::int64_t rows, std::int64_t width, float* to,
                std::int64_t to_step) {
  WithCached(x.dtype, [&]<class Element>(Element*) HWY_ATTR {
    const Floats d;
    const auto* row = static_cast<const Element*>(x.first);
    for (std::int64_t j = 0; j < rows; ++j, row = Moved(row, x.step), to += to_step)
      for (std::int64_t c = 0; c < width; c += lanes) hn::StoreU(LoadAt(d, row, c), d, to + c);
  });
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(CachedDots);
HWY_EXPORT(AddCached);
HWY_EXPORT(LoadCached);

void cached_dots(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                 std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                 const CachedRows* values) {
  HWY_DYNAMIC_DISPATCH(CachedDots)
  (k, keys, width, q, q_step, rows, to, to_step, values);
}
void add_cached(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
                std::int64_t weights_step, std::int64_t rows, float* sums, std::int64_t sums_step) {
  HWY_DYNAMIC_DISPATCH(AddCached)
  (v, keys, width, weights, weights_step, rows, sums, sums_step);
}

bool has_cached_rows(const Tensor& x) {
  return x.dtype != DType::f64 && x.stride[3] == 1 && x.shape[3] % row_lanes == 0;
}

}  // namespace posenc::detail
#endif

#else

namespace posenc::detail {

bool has_cached_rows(const Tensor&) { return false; }  // nothing is gained by plain loops
void cached_dots(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                 std::int64_t, float*, std::int64_t, const CachedRows*, std::int64_t) {}
void add_cached(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                std::int64_t, float*, std::int64_t) {}

}  // namespace posenc::detail
#endif

#if !POSENC_SIMD || HWY_ONCE
namespace posenc::detail {
namespace {

// What no vector reads: doubles, odd widths and strides.
template <class T>
void load_one_by_one(const Tensor& x, std::int64_t from, std::int64_t rows, T* to,
                     std::int64_t to_step) {
  for (std::int64_t row = 0; row < rows; ++row, from += x.stride[2], to += to_step) {
    std::int64_t c = 0;
    for (; c < x.shape[3]; ++c) to[c] = static_cast<T>(x.get(from + c * x.stride[3]));
    for (; c < padded(x.shape[3]); ++c) to[c] = 0;
  }
}

}  // namespace

void load_cached_rows(const Tensor& x, std::int64_t from, std::int64_t rows, float* to,
                      std::int64_t to_step) {
  if (!has_8_bits(x.dtype)) return load_rows(x, from, rows, to, to_step);
#if POSENC_SIMD
  if (has_cached_rows(x)) {
    HWY_DYNAMIC_DISPATCH(LoadCached)
    (CachedRows{x.data, x.dtype, x.stride[2]}.from_number(from), rows, x.shape[3], to, to_step);
    return;
  }
#endif
  load_one_by_one(x, from, rows, to, to_step);
}
void load_cached_rows(const Tensor& x, std::int64_t from, std::int64_t rows, double* to,
                      std::int64_t to_step) {
  if (!has_8_bits(x.dtype)) return load_rows(x, from, rows, to, to_step);
  load_one_by_one(x, from, rows, to, to_step);
}

}  // namespace posenc::detail
#endif
