// Softmax of a row in two passes over it: the largest logit, then exponentials and their sum. The
// gradient takes a third, for shares.
#include "src/attention/softmax.h"

#if POSENC_SIMD

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/attention/softmax.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));
template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

// Of weights e^x beside one of 1, those below e^least add nothing, but sums with subnormal numbers
// in them are many times slower. Online, a row_max found later may shrink a sum again, hence the
// early end.
template <class T>
constexpr T least = sizeof(T) == sizeof(float) ? T{-64} : T{-700};

// e^x where x is neither above 80 nor, for floats, below −87, whatever of others. Of floats by
// 2^n · e^r with r + r²·P(r), fitted within 3.1e-9 relatively (weighted least squares, the weights
// following the error), in all 0.7 of a unit in the last place. It made attention a tenth faster
// than Highway's own.
template <class D, class V>
HWY_INLINE V ExponentialInside(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    return hn::Exp(d, x);
  } else {
    const hn::RebindToUnsigned<D> du;
    // Added to it, a number is rounded to an integer, which stands in the lowest bits.
    const auto rounder = hn::Set(d, 0x1.8p23f);
    const auto rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
    const auto n = hn::Sub(rounded, rounder);
    auto r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x);  // ln 2 in two parts
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
    auto p = hn::MulAdd(hn::Set(d, 0.00138146128f), r, hn::Set(d, 0.00836871006f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.041668389f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.166665211f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
    const auto power = hn::BitCast(
        d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(du, rounded)), hn::Set(du, 0x3f800000u)));
    return hn::MulAdd(hn::MulAdd(hn::Mul(p, r), r, r), power, power);
  }
}

// e^x, 0 below `least_x`, and NaN of NaN, which Highway's own turns into 0.
template <class D, class V>
HWY_INLINE V Exponential(D d, V x, V least_x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    const auto e = ExponentialInside(d, hn::Max(x, least_x));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(hn::Lt(x, least_x), e));
  } else {
    return hn::IfThenZeroElse(hn::Lt(x, least_x), ExponentialInside(d, x));
  }
}

// Adds the bias of [from, to), if there is one, to what is multiplied by `times`, and finds the
// largest logit. Without a bias x stays as it is.
template <class T>
HWY_INLINE T AddBias(T* x, T times, const T* bias, T bias_factor, std::int64_t from,
                     std::int64_t to) {
  const Tag<T> d;
  const auto scale = hn::Set(d, times), factor = hn::Set(d, bias_factor);
  auto most = hn::Set(d, hidden<T>);
  if (bias == nullptr) {
    // A maximum waits for the one before it, and nothing else here takes as long.
    auto second = most, third = most, fourth = most;
    const auto logit = [&](std::int64_t j) HWY_ATTR { return hn::Mul(hn::LoadU(d, x + j), scale); };
    std::int64_t j = from;
    for (; j + 4 * lanes<T> <= to; j += 4 * lanes<T>) {
      most = hn::Max(most, logit(j));
      second = hn::Max(second, logit(j + lanes<T>));
      third = hn::Max(third, logit(j + 2 * lanes<T>));
      fourth = hn::Max(fourth, logit(j + 3 * lanes<T>));
    }
    for (; j < to; j += lanes<T>) most = hn::Max(most, logit(j));
    most = hn::Max(hn::Max(most, second), hn::Max(third, fourth));
  } else {
    for (std::int64_t j = from; j < to; j += lanes<T>) {
      const auto logit =
          hn::MulAdd(hn::LoadU(d, bias + j), factor, hn::Mul(hn::LoadU(d, x + j), scale));
      hn::StoreU(logit, d, x + j);
      most = hn::Max(most, logit);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// The ends of the whole vectors, counted from `first`, that hold [begin, end).
template <class T>
struct Vectors {
  std::int64_t from, to;
  Vectors(std::int64_t first, std::int64_t begin, std::int64_t end)
      : from(first + (begin - first) / lanes<T> * lanes<T>),
        to(first + (end - first + lanes<T> - 1) / lanes<T> * lanes<T>) {}
};

// tanh, to some units in the last place. Of floats by x·P(x²)/Q(x²), fitted within 1.5e-8
// relatively up to where tanh is 1 (weighted least squares, the weights following the error), at a
// third of what Highway's own takes.
template <class D, class V>
HWY_INLINE V TanhOf(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    // Highway's rounds to an integer, which no NaN is.
    const auto none = hn::IsNaN(x);
    return hn::IfThenElse(none, x, hn::Tanh(d, hn::IfThenZeroElse(none, x)));
  } else {
    const auto end = hn::Set(d, 8.7f);
    const auto u = hn::Max(hn::Neg(end), hn::Min(end, x)), s = hn::Mul(u, u);
    auto p = hn::Set(d, 1.38980366e-08f), q = hn::Set(d, 7.99670258e-07f);
    p = hn::MulAdd(p, s, hn::Set(d, 2.09941557e-05f));
    q = hn::MulAdd(q, s, hn::Set(d, 3.32368121e-04f));
    p = hn::MulAdd(p, s, hn::Set(d, 3.51876485e-03f));
    q = hn::MulAdd(q, s, hn::Set(d, 2.59649744e-02f));
    p = hn::MulAdd(p, s, hn::Set(d, 1.34004846e-01f));
    q = hn::MulAdd(q, s, hn::Set(d, 4.67338049e-01f));
    p = hn::MulAdd(p, s, hn::Set(d, 1.0f));
    q = hn::MulAdd(q, s, hn::Set(d, 1.0f));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(hn::Mul(u, p), q));
  }
}

template <class T>
void SoftcapOf(T* x, std::int64_t count, T cap, T* slope) {
  const Tag<T> d;
  const auto by = hn::Set(d, 1 / cap), most = hn::Set(d, cap), one = hn::Set(d, T{1});
  for (std::int64_t j = 0; j < count; j += lanes<T>) {
    const auto t = TanhOf(d, hn::Mul(hn::LoadU(d, x + j), by));
    hn::StoreU(hn::Mul(t, most), d, x + j);
    if (slope != nullptr) hn::StoreU(hn::NegMulAdd(t, t, one), d, slope + j);
  }
}

template <class T>
T Fold(SoftmaxRow<T>& row) {
  const Tag<T> d;
  T* const x = row.x;
  const std::int64_t begin = row.begin, end = row.end;
  row.added = 0;
  if (begin >= end) {
    std::fill(x + row.first, x + row.last, T{0});
    return 1;
  }
  const Vectors<T> seen(row.first, begin, end);
  std::fill(x + row.first, x + begin, hidden<T>);
  std::fill(x + end, x + std::max(row.last, seen.to), hidden<T>);
  const T most = AddBias(x, row.factor, row.bias, row.bias_factor, seen.from, seen.to);
  const T old = row.row_max;
  T row_max = most > old ? most : old;
  if (row_max == hidden<T>) {  // all are hidden, or NaN
    if (std::none_of(x + begin, x + end, [](T logit) { return std::isnan(logit); })) {
      std::fill(x + row.first, x + row.last, T{0});
      return 1;
    }
    row_max = 0;
  }
  const auto top = hn::Set(d, row_max), least_x = hn::Set(d, least<T>);
  const auto times = hn::Set(d, row.bias == nullptr ? row.factor : T{1});
  auto sums = hn::Zero(d);
  for (std::int64_t j = seen.from; j < seen.to; j += lanes<T>) {
    const auto e = Exponential(d, hn::MulSub(hn::LoadU(d, x + j), times, top), least_x);
    hn::StoreU(e, d, x + j);
    sums = hn::Add(sums, e);
  }
  std::fill(x + row.first, x + seen.from, T{0});
  std::fill(x + seen.to, x + std::max(row.last, seen.to), T{0});
  T correction = 1;
  if (row_max != old) correction = old - row_max < least<T> ? T{0} : std::exp(old - row_max);
  row.row_max = row_max;
  row.added = hn::GetLane(hn::SumOfLanes(d, sums));
  row.sum = row.sum * correction + row.added;
  return correction;
}

template <class T>
double Differentiate(const SoftmaxGradientRow<T>& row) {
  const Tag<T> d;
  T *const weight = row.weight, *const delta = row.delta;
  const Vectors<T> seen(0, row.begin, row.end);
  std::fill(weight + seen.from, weight + row.begin, hidden<T>);
  std::fill(weight + row.end, weight + seen.to, hidden<T>);
  const auto none = hn::Set(d, hidden<T>);
  const T most = AddBias(weight, T{1}, row.bias, row.bias_factor, seen.from, seen.to);
  const T top = row.of_whole ? row.log_sum : row.sink > most ? row.sink : most;
  const auto row_max = hn::Set(d, top);
  const auto least_x = hn::Set(d, std::log(std::numeric_limits<T>::min()));

  // Sums of so many keys at most are kept in T.
  constexpr std::int64_t run = 1024;
  const double of_sink = share_of_sink(row.sink, top);
  double sum = of_sink, mean = 0;
  for (std::int64_t first = seen.from; first < seen.to; first += run) {
    auto sums = hn::Zero(d), means = hn::Zero(d);
    for (std::int64_t j = first; j < std::min(first + run, seen.to); j += lanes<T>) {
      const auto x = hn::LoadU(d, weight + j);
      // Where all is hidden, −∞ less −∞ is no NaN.
      const auto gone = hn::Eq(x, none);
      const auto e = hn::IfThenZeroElse(gone, Exponential(d, hn::Sub(x, row_max), least_x));
      hn::StoreU(e, d, weight + j);
      sums = hn::Add(sums, e);
      // What a weight of 0 meets may be hidden, and hold NaN.
      means = hn::Add(
          means, hn::IfThenZeroElse(hn::Eq(e, hn::Zero(d)), hn::Mul(e, hn::LoadU(d, delta + j))));
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
    mean += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, means)));
  }
  if (row.of_whole) sum = 1, mean = row.whole_mean;
  const auto share = hn::Set(d, sum == 0 ? T{0} : static_cast<T>(1 / sum));
  const auto middle = hn::Set(d, sum == 0 ? T{0} : static_cast<T>(mean / sum));
  for (std::int64_t j = seen.from; j < seen.to; j += lanes<T>) {
    const auto e = hn::LoadU(d, weight + j);
    const auto gone = hn::Eq(e, hn::Zero(d));  // a NaN stays with those that see it
    const auto a = hn::IfThenZeroElse(gone, hn::Mul(e, share));
    const auto off = hn::Sub(hn::LoadU(d, delta + j), middle);
    hn::StoreU(a, d, weight + j);
    hn::StoreU(hn::IfThenZeroElse(gone, hn::Mul(a, off)), d, delta + j);
  }
  return of_sink == 0 ? 0 : -of_sink / sum * (mean / sum);
}

// --- a word of keys ------------------------------------------------------------------------------

template <class T>
void ExponentialsOf(T* x, T shift) {
  const Tag<T> d;
  const auto by = hn::Set(d, shift);
  const auto least_x = hn::Set(d, std::log(std::numeric_limits<T>::min()));
  for (std::int64_t i = 0; i < block_keys; i += lanes<T>)
    hn::StoreU(Exponential(d, hn::Sub(hn::LoadU(d, x + i), by), least_x), d, x + i);
}

template <class T>
T FoldWord(T* x, SoftmaxOfWords<T>& row) {
  const Tag<T> d;
  auto most = hn::LoadU(d, x);
  for (std::int64_t j = lanes<T>; j < block_keys; j += lanes<T>)
    most = hn::Max(most, hn::LoadU(d, x + j));
  T correction = 1;
  // Later keys have the larger logits, as a rule: then no maximum over lanes is asked for.
  if (!hn::AllFalse(d, hn::Gt(most, hn::Set(d, row.row_max)))) {
    const T row_max = hn::GetLane(hn::MaxOfLanes(d, most));
    correction = row.row_max - row_max < least<T> ? T{0} : std::exp(row.row_max - row_max);
    row.row_max = row_max;
  }
  T shift = row.row_max;
  if (shift == hidden<T>) {  // all are hidden, or NaN
    if (std::none_of(x, x + block_keys, [](T logit) { return std::isnan(logit); })) {
      std::fill_n(x, block_keys, T{0});
      return 1;
    }
    row.row_max = shift = 0;
  }
  const auto top = hn::Set(d, shift), least_x = hn::Set(d, least<T>);
  const auto by = hn::Set(d, correction);
  constexpr std::int64_t columns = SoftmaxOfWords<T>::columns;
  static_assert(columns % lanes<T> == 0);
  for (std::int64_t column = 0; column < columns; column += lanes<T>) {
    auto sum = hn::Mul(hn::LoadU(d, row.sums + column), by);
    for (std::int64_t j = column; j < block_keys; j += columns) {
      const auto e = Exponential(d, hn::Sub(hn::LoadU(d, x + j), top), least_x);
      hn::StoreU(e, d, x + j);
      sum = hn::Add(sum, e);
    }
    hn::StoreU(sum, d, row.sums + column);
  }
  return correction;
}

// e^−|x| with subnormal numbers kept: they tell how near a gate is to being shut.
template <class D, class V>
HWY_INLINE V ExponentialOfMinus(D d, V x) {
  // Highway's rounds to an integer, which no NaN is.
  const auto none = hn::IsNaN(x);
  const auto minus = hn::Neg(hn::Abs(hn::IfThenZeroElse(none, x)));
  return hn::IfThenElse(none, x, hn::Exp(d, minus));
}

template <class T>
void SigmoidsOf(const T* x, T* out) {
  const Tag<T> d;
  const auto one = hn::Set(d, T{1});
  for (std::int64_t i = 0; i < block_keys; i += lanes<T>) {
    const auto v = hn::LoadU(d, x + i);
    const auto e = ExponentialOfMinus(d, v);
    const auto top = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), e, one);
    hn::StoreU(hn::Div(top, hn::Add(one, e)), d, out + i);
  }
}

// ln(1 + e) for e in [0, 1]. Of floats by 2 artanh(s), s = e/(2 + e), whose series in s² was fitted
// within 4.5e-9 (weighted least squares): 1.5 units in the last place in all, and half the
// instructions of Highway's own.
template <class D, class V>
HWY_INLINE V Log1pInside(D d, V e) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    return hn::IfThenElse(hn::IsNaN(e), e, hn::Log1p(d, e));
  } else {
    const auto s = hn::Div(e, hn::Add(e, hn::Set(d, 2.0f)));
    const auto u = hn::Mul(s, s);
    auto p = hn::MulAdd(hn::Set(d, 0.140055988f), u, hn::Set(d, 0.140009762f));
    p = hn::MulAdd(p, u, hn::Set(d, 0.200107596f));
    p = hn::MulAdd(p, u, hn::Set(d, 0.333332082f));
    const auto twice = hn::Add(s, s);
    return hn::MulAdd(twice, hn::Mul(u, p), twice);
  }
}

// ln(1 + e^−|x|), of which ln σ(x) = min(x, 0) − it and ln(1 − σ(x)) = −max(x, 0) − it. What would
// be subnormal is 0.
template <class D, class V>
HWY_INLINE V SoftplusTail(D d, V x) {
  const auto least_x = hn::Set(d, std::log(std::numeric_limits<hn::TFromD<D>>::min()));
  return Log1pInside(d, Exponential(d, hn::Neg(hn::Abs(x)), least_x));
}

// Numbers of a word of keys, with a vector of zeros behind them.
template <class T>
struct Word {
  HWY_ALIGN T x[block_keys + lanes<T>];
  Word() { hn::StoreU(hn::Zero(Tag<T>()), Tag<T>(), x + block_keys); }
};

// Calls use(j, Σ of the numbers behind each of the lanes from j on), the last vector first; returns
// the sum of all. In a vector by doubling: each lane takes the sum of the lane 1, 2, 4, … further.
template <class T, class Use>
HWY_INLINE T SumsBehind(const Word<T>& word, const Use& use) {
  const Tag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Lane = hn::TFromD<decltype(di)>;
  auto behind = hn::Zero(d);
  for (std::int64_t j = block_keys - lanes<T>; j >= 0; j -= lanes<T>) {
    auto sum = hn::LoadU(d, word.x + j + 1);
    for (std::int64_t step = 1; step < lanes<T>; step *= 2) {
      const auto from = hn::Add(hn::Iota(di, 0), hn::Set(di, static_cast<Lane>(step)));
      const auto inside = hn::Lt(from, hn::Set(di, static_cast<Lane>(lanes<T>)));
      const auto further =
          hn::TableLookupLanes(sum, hn::IndicesFromVec(d, hn::IfThenElseZero(inside, from)));
      sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, inside), further));
    }
    // The last lane counts what the vector behind this one has first.
    sum = hn::Add(sum, behind);
    use(j, sum);
    behind = hn::Set(d, hn::GetLane(sum));
  }
  return hn::GetLane(behind) + word.x[0];
}

template <class T>
T BreakOff(T* x, T left) {
  const Tag<T> d;
  const auto least_x = hn::Set(d, std::log(std::numeric_limits<T>::min()));
  Word<T> broken;
  for (std::int64_t j = 0; j < block_keys; j += lanes<T>) {
    const auto z = hn::LoadU(d, x + j), tail = SoftplusTail(d, z);
    hn::StoreU(hn::Sub(hn::Min(z, hn::Zero(d)), tail), d, x + j);
    hn::StoreU(hn::Add(hn::Max(z, hn::Zero(d)), tail), d, broken.x + j);
  }
  const auto of_whole = hn::Set(d, left);
  return SumsBehind(broken, [&](std::int64_t j, auto behind) HWY_ATTR {
    const auto log_weight = hn::Add(hn::Sub(of_whole, behind), hn::LoadU(d, x + j));
    hn::StoreU(Exponential(d, log_weight, least_x), d, x + j);
  });
}

template <class T>
T Forget(const T* x, std::uint64_t seen, T slope, T before, T* scores) {
  const Tag<T> d;
  Word<T> forgotten;
  const auto by = hn::Set(d, slope);
  for (std::int64_t j = 0; j < block_keys; j += lanes<T>) {
    const auto z = hn::LoadU(d, x + j);
    const auto log_gate = hn::Sub(hn::Min(z, hn::Zero(d)), SoftplusTail(d, z));
    const std::uint64_t bits = seen >> j;
    const auto sees = hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&bits));
    hn::StoreU(hn::IfThenElseZero(sees, hn::Mul(by, log_gate)), d, forgotten.x + j);
  }
  const auto later = hn::Set(d, before);
  return SumsBehind(forgotten, [&](std::int64_t j, auto behind) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, scores + j), hn::Add(later, behind)), d, scores + j);
  });
}

}  // namespace

#define POSENC_FOR_TYPE(T, Type)                                                              \
  void Softcap##Type(T* x, std::int64_t count, T cap, T* slope) {                             \
    SoftcapOf(x, count, cap, slope);                                                          \
  }                                                                                           \
  T Fold##Type(SoftmaxRow<T>& row) { return Fold(row); }                                      \
  double Differentiate##Type(const SoftmaxGradientRow<T>& row) { return Differentiate(row); } \
  T FoldWord##Type(T* x, SoftmaxOfWords<T>& row) { return FoldWord(x, row); }                 \
  void Exponentials##Type(T* x, T shift) { ExponentialsOf(x, shift); }                        \
  void Sigmoids##Type(const T* x, T* out) { SigmoidsOf(x, out); }                             \
  T BreakOff##Type(T* x, T left) { return BreakOff(x, left); }                                \
  T Forget##Type(const T* x, std::uint64_t seen, T slope, T before, T* scores) {              \
    return Forget(x, seen, slope, before, scores);                                            \
  }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

#define POSENC_FOR_TYPE(T, Type)                                                           \
  HWY_EXPORT(Softcap##Type);                                                               \
  void softcap(T* x, std::int64_t count, T cap, T* slope) {                                \
    HWY_DYNAMIC_DISPATCH(Softcap##Type)(x, count, cap, slope);                             \
  }                                                                                        \
  HWY_EXPORT(Fold##Type);                                                                  \
  HWY_EXPORT(Differentiate##Type);                                                         \
  HWY_EXPORT(FoldWord##Type);                                                              \
  HWY_EXPORT(Exponentials##Type);                                                          \
  HWY_EXPORT(Sigmoids##Type);                                                              \
  HWY_EXPORT(BreakOff##Type);                                                              \
  HWY_EXPORT(Forget##Type);                                                                \
  T fold(SoftmaxRow<T>& row) { return HWY_DYNAMIC_DISPATCH(Fold##Type)(row); }             \
  double differentiate(const SoftmaxGradientRow<T>& row) {                                 \
    return HWY_DYNAMIC_DISPATCH(Differentiate##Type)(row);                                 \
  }                                                                                        \
  T fold_word(T* x, SoftmaxOfWords<T>& row) {                                              \
    return HWY_DYNAMIC_DISPATCH(FoldWord##Type)(x, row);                                   \
  }                                                                                        \
  void exponentials(T* x, T shift) { HWY_DYNAMIC_DISPATCH(Exponentials##Type)(x, shift); } \
  void sigmoids(const T* x, T* out) { HWY_DYNAMIC_DISPATCH(Sigmoids##Type)(x, out); }      \
  T break_off(T* x, T left) { return HWY_DYNAMIC_DISPATCH(BreakOff##Type)(x, left); }      \
  T forget(const T* x, std::uint64_t seen, T slope, T before, T* scores) {                 \
    return HWY_DYNAMIC_DISPATCH(Forget##Type)(x, seen, slope, before, scores);             \
  }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail
#endif

#else  // the same in plain loops

#include <algorithm>
#include <cmath>
#include <limits>

namespace posenc::detail {
namespace {

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

template <class T>
T largest(T* x, T factor, const T* bias, T bias_factor, std::int64_t begin, std::int64_t end) {
  T most = hidden<T>;
  for (std::int64_t j = begin; j < end; ++j) {
    x[j] *= factor;
    if (bias != nullptr) x[j] += bias[j] * bias_factor;
    most = std::max(most, x[j]);
  }
  return most;
}

template <class T>
T fold_row(SoftmaxRow<T>& row) {
  T* const x = row.x;
  const T old = row.row_max;
  row.added = 0;
  std::fill(x + row.first, x + row.begin, T{0});
  std::fill(x + std::max(row.begin, row.end), x + row.last, T{0});
  row.row_max =
      std::max(old, largest(x, row.factor, row.bias, row.bias_factor, row.begin, row.end));
  const T shift = row.row_max == hidden<T> ? T{0} : row.row_max;
  for (std::int64_t j = row.begin; j < row.end; ++j) row.added += x[j] = std::exp(x[j] - shift);
  const T correction = row.row_max == old ? T{1} : std::exp(old - row.row_max);
  row.sum = row.sum * correction + row.added;
  return correction;
}

template <class T>
double differentiate_row(const SoftmaxGradientRow<T>& row) {
  T *const x = row.weight, *const delta = row.delta;
  const T most =
      std::max(largest(x, T{1}, row.bias, row.bias_factor, row.begin, row.end), row.sink);
  const T row_max = row.of_whole ? row.log_sum : most;
  const double of_sink = share_of_sink(row.sink, row_max);
  double sum = of_sink, mean = 0;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    x[j] = x[j] == hidden<T> ? T{0} : std::exp(x[j] - row_max);
    if (x[j] < std::numeric_limits<T>::min()) x[j] = 0;
    if (x[j] == 0) continue;
    sum += static_cast<double>(x[j]);
    mean += static_cast<double>(x[j]) * static_cast<double>(delta[j]);
  }
  if (row.of_whole) sum = 1, mean = row.whole_mean;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    x[j] = x[j] == 0 ? T{0} : static_cast<T>(static_cast<double>(x[j]) / sum);
    delta[j] = x[j] == 0 ? T{0} : x[j] * (delta[j] - static_cast<T>(mean / sum));
  }
  return of_sink == 0 ? 0 : -of_sink / sum * (mean / sum);
}

template <class T>
void softcap_row(T* x, std::int64_t count, T cap, T* slope) {
  for (std::int64_t j = 0; j < count; ++j) {
    const T t = std::tanh(x[j] / cap);
    x[j] = cap * t;
    if (slope != nullptr) slope[j] = 1 - t * t;
  }
}

template <class T>
T fold_one_word(T* x, SoftmaxOfWords<T>& row) {
  SoftmaxRow<T> whole{.x = x, .last = block_keys, .end = block_keys, .row_max = row.row_max};
  const T correction = fold_row(whole);
  row.row_max = whole.row_max;
  for (T& sum : row.sums) sum *= correction;
  row.sums[0] += whole.added;
  return correction;
}

// ln(1 + e^−|x|)
template <class T>
T softplus_tail(T x) {
  return std::log1p(std::exp(-std::abs(x)));
}

template <class T>
T break_off_word(T* x, T left) {
  T broken = 0;
  for (std::int64_t j = block_keys - 1; j >= 0; --j) {
    const T z = x[j], tail = softplus_tail(z);
    x[j] = std::exp(left - broken + (std::min(z, T{0}) - tail));
    broken += std::max(z, T{0}) + tail;
  }
  return broken;
}

template <class T>
T forget_word(const T* x, std::uint64_t seen, T slope, T before, T* scores) {
  T forgotten = 0;
  for (std::int64_t j = block_keys - 1; j >= 0; --j) {
    scores[j] += before + forgotten;
    if ((seen >> j & 1) != 0) forgotten += slope * (std::min(x[j], T{0}) - softplus_tail(x[j]));
  }
  return forgotten;
}

template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

}  // namespace

#define POSENC_FOR_TYPE(T)                                                                       \
  void softcap(T* x, std::int64_t count, T cap, T* slope) { softcap_row(x, count, cap, slope); } \
  T fold(SoftmaxRow<T>& row) { return fold_row(row); }                                           \
  double differentiate(const SoftmaxGradientRow<T>& row) { return differentiate_row(row); }      \
  void exponentials(T* x, T shift) {                                                             \
    std::transform(x, x + block_keys, x, [shift](T each) { return std::exp(each - shift); });    \
  }                                                                                              \
  void sigmoids(const T* x, T* out) { std::transform(x, x + block_keys, out, sigmoid<T>); }      \
  T break_off(T* x, T left) { return break_off_word(x, left); }                                  \
  T forget(const T* x, std::uint64_t seen, T slope, T before, T* scores) {                       \
    return forget_word(x, seen, slope, before, scores);                                          \
  }

POSENC_FOR_TYPE(float)
POSENC_FOR_TYPE(double)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail

#endif
