// Elements of every dtype as vectors of what is computed with. Included once per instruction set.
#if defined(POSENC_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ELEMENTS_INL_H
#undef POSENC_ELEMENTS_INL_H
#else
#define POSENC_ELEMENTS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "src/kernels/elements.h"

// Highway's own conversions of half precision truncate where the machine has none.
#undef POSENC_HALF_IN_HARDWARE
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM
#define POSENC_HALF_IN_HARDWARE 1
#else
#define POSENC_HALF_IN_HARDWARE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Asks for memory that is written soon, see ahead.h.
HWY_INLINE void Fetch(const void* address) { __builtin_prefetch(address, 1); }
HWY_INLINE void FetchToSecond(const void* address) { __builtin_prefetch(address, 0, 2); }

// How a vector is written: to the caches, or past them where nobody reads it soon. The latter wants
// an address that is a multiple of the vector's size, and fences at the end (hwy::FlushStream).
struct Kept {
  template <class V, class D, class T>
  HWY_INLINE void operator()(V v, D d, T* to) const {
    hn::StoreU(v, d, to);
  }
};
struct Streamed {
  template <class V, class D, class T>
  HWY_INLINE void operator()(V v, D d, T* to) const {
    if constexpr (hn::MaxLanes(D()) * sizeof(T) >= 16) {
      hn::Stream(v, d, to);
    } else {
      hn::StoreU(v, d, to);
    }
  }
};

template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class How = Kept, class D>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, double* to) {
  How()(v, d, to);
}
template <class How = Kept, class D>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, float* to) {
  How()(v, d, to);
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> LoadBits(D, const std::uint16_t* from) {
  const hn::RebindToUnsigned<D> du;
  return hn::PromoteTo(du, hn::LoadU(hn::Rebind<std::uint16_t, D>(), from));
}
template <class How, class D>
HWY_INLINE void StoreBits(hn::Vec<hn::RebindToUnsigned<D>> bits, D, std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  How()(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), bits)), d16, to);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const BFloat16* from) {
  return hn::BitCast(d, hn::ShiftLeft<16>(LoadBits(d, &from->bits)));
}
// A float's bits, of which the upper half is rounded to nearest, ties to even. A NaN with many bits
// overflows.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> RoundedNumber(D, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  return hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd);
}
// The same of any float; a NaN is made quiet and keeps its leading bits.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> RoundedUpperBits(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto quiet = hn::Or(hn::BitCast(du, v), hn::Set(du, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, RoundedNumber(d, v));
}
template <class How = Kept, class D>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, BFloat16* to) {
  StoreBits<How>(hn::ShiftRight<16>(RoundedUpperBits(d, v)), d, &to->bits);
}

#if POSENC_HALF_IN_HARDWARE

template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const Half* from) {
  const hn::Rebind<hwy::float16_t, D> d16;
  const auto bits = hn::LoadU(hn::RebindToUnsigned<decltype(d16)>(), &from->bits);
  return hn::PromoteTo(d, hn::BitCast(d16, bits));
}
template <class How = Kept, class D>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, Half* to) {
  const hn::Rebind<hwy::float16_t, D> d16;
  const hn::RebindToUnsigned<decltype(d16)> du16;
  How()(hn::BitCast(du16, hn::DemoteTo(d16, v)), du16, &to->bits);
}

#else

// A half's exponent and mantissa moved into a float's place are the value times 2^-112, subnormals
// too; infinity and NaN need the largest exponent.
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const Half* from) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = LoadBits(d, &from->bits);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
  const auto value = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto special = hn::Gt(magnitude, hn::Set(du, (0x7bffu << 13)));
  const auto exponent = hn::Set(du, 0x7f800000u);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(special, hn::Or(magnitude, exponent), value)));
}
// Rounded to nearest, ties to even: a subnormal by adding a float whose last place is 2^-24, a
// normal number in its bits, whose carry becomes the next exponent and, at the end, infinity.
template <class How = Kept, class D>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, Half* to) {
  const hn::RebindToUnsigned<D> du;
  const auto all = hn::BitCast(du, v);
  const auto sign = hn::And(all, hn::Set(du, 0x80000000u));
  const auto bits = hn::Xor(all, sign);
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, bits), hn::Set(d, 0.5f))),
                             hn::BitCast(du, hn::Set(d, 0.5f)));
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1u));
  const auto shifted = hn::Sub(bits, hn::Set(du, 112u << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(shifted, hn::Set(du, 0xfffu)), odd));
  const auto infinity = hn::Set(du, 0x7c00u);
  const auto nan =
      hn::Or(hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x3ffu)), hn::Set(du, 0x7e00u));
  auto half = hn::IfThenElse(hn::Lt(bits, hn::Set(du, 113u << 23)), small, normal);
  half = hn::IfThenElse(hn::Gt(bits, hn::Set(du, (143u << 23) - 1)), infinity, half);
  half = hn::IfThenElse(hn::Gt(bits, hn::Set(du, 0x7f800000u)), nan, half);
  StoreBits<How>(hn::Or(half, hn::ShiftRight<16>(sign)), d, &to->bits);
}

#endif

// The same of what arithmetic makes of elements T and finite numbers. A NaN of it has the bits that
// came in, or the one that arithmetic makes: nothing in the lower half, whose rounding then does
// not overflow, and nothing to make quiet.
template <class How = Kept, class D, class T>
HWY_INLINE void StoreResult(hn::Vec<D> v, D d, T* to) {
  StoreElements<How>(v, d, to);
}
template <class How = Kept, class D>
HWY_INLINE void StoreResult(hn::Vec<D> v, D d, BFloat16* to) {
  StoreBits<How>(hn::ShiftRight<16>(RoundedNumber(d, v)), d, &to->bits);
}

// Two such vectors that follow each other. Where an element is half of what it is computed in, one
// shuffle packs both.
template <class How = Kept, class D, class T>
HWY_INLINE void StoreTwoResults(hn::Vec<D> v, hn::Vec<D> next, D d, T* to) {
  StoreResult<How>(v, d, to);
  StoreResult<How>(next, d, to + hn::Lanes(d));
}
#if HWY_TARGET != HWY_SCALAR
template <class How = Kept, class D>
HWY_INLINE void StoreTwoResults(hn::Vec<D> v, hn::Vec<D> next, D d, BFloat16* to) {
  const hn::Repartition<std::uint16_t, D> d16;
  const auto lower = hn::BitCast(d16, RoundedNumber(d, v));
  const auto upper = hn::BitCast(d16, RoundedNumber(d, next));
  How()(hn::ConcatOdd(d16, upper, lower), d16, &to->bits);
}
#endif

// Neighbours of bfloat16 fall apart in whole words: the first is its lower half moved up, the
// second the upper half as it stands. No shuffles; and where they are a pair, its cos and sin need
// not stand twice.
template <class T>
constexpr bool words_are_pairs = HWY_TARGET != HWY_SCALAR && std::is_same_v<T, BFloat16>;

#if HWY_TARGET != HWY_SCALAR
template <class D>
HWY_INLINE void LoadPairs(D d, const BFloat16* from, hn::Vec<D>& first, hn::Vec<D>& second) {
  const hn::RebindToUnsigned<D> du;
  const auto words = hn::BitCast(du, hn::LoadU(hn::Repartition<std::uint16_t, D>(), &from->bits));
  first = hn::BitCast(d, hn::ShiftLeft<16>(words));
  second = hn::BitCast(d, hn::And(words, hn::Set(du, 0xffff0000u)));
}
// Results of arithmetic, as StoreResult() wants them.
template <class How = Kept, class D>
HWY_INLINE void StorePairs(hn::Vec<D> first, hn::Vec<D> second, D d, BFloat16* to) {
  const hn::RebindToUnsigned<D> du;
  const auto lower = hn::ShiftRight<16>(RoundedNumber(d, first));
  const auto words = hn::OrAnd(lower, RoundedNumber(d, second), hn::Set(du, 0xffff0000u));
  const hn::Repartition<std::uint16_t, D> d16;
  How()(hn::BitCast(d16, words), d16, &to->bits);
}
#endif

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
