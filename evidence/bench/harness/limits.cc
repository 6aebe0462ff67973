// Scaling, filling and reading by vectors, compiled once for each instruction set as kernels are.
#if POSENC_SIMD

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "evidence/bench/harness/limits.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "evidence/bench/harness/limits.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/kernels/ahead.h"
#include "src/kernels/elements-inl.h"
#include "src/kernels/threads.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How far ahead Read() asks, and how much Scale() does between two choices whether to ask.
constexpr std::int64_t ahead_bytes = Ahead::distance, part_bytes = 64 << 10;

void Scale(void* data, DType dtype, std::int64_t first, std::int64_t last, double factor) {
  with_element(dtype, [=]<class T>(T*) HWY_ATTR {
    using C = Compute<T>;
    const hn::ScalableTag<C> d;
    const hn::CappedTag<C, 1> one;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), count = last - first;
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const auto scale = hn::Set(d, static_cast<C>(factor));
    T* const at = static_cast<T*>(data) + first;
    const auto two = [=](std::int64_t i) HWY_ATTR {
      if constexpr (words_are_pairs<T>) {
        hn::Vec<decltype(d)> a, b;
        LoadPairs(d, at + i, a, b);
        StorePairs(hn::Mul(a, scale), hn::Mul(b, scale), d, at + i);
      } else {
        StoreTwoResults(hn::Mul(LoadElements(d, at + i), scale),
                        hn::Mul(LoadElements(d, at + i + lanes), scale), d, at + i);
      }
    };
    std::int64_t i = 0;
    for (Ahead ahead(Loop::scaling, count * size); i + part_bytes / size <= count;) {
      const std::int64_t end = i + part_bytes / size;
      const auto asking = [&](const auto& fetch) HWY_ATTR {
        for (; i < end; i += 2 * lanes) {
          fetch(at + i + ahead_bytes / size);
          if constexpr (sizeof(T) == sizeof(C)) fetch(at + i + lanes + ahead_bytes / size);
          two(i);
        }
      };
      const Ask ask = ahead(part_bytes);
      if (ask == Ask::first) asking([](const T* from) HWY_ATTR { Fetch(from); });
      if (ask == Ask::second) asking([](const T* from) HWY_ATTR { FetchToSecond(from); });
      for (; i < end; i += 2 * lanes) two(i);
    }
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      two(i);
    }
    for (; i < count; ++i) {
      StoreResult(hn::Mul(LoadElements(one, at + i), hn::Set(one, static_cast<C>(factor))), one,
                  at + i);
    }
  });
}

void Fill(void* data, DType dtype, std::int64_t first, std::int64_t last, double value) {
  with_element(dtype, [=]<class T>(T*) HWY_ATTR {
    using C = Compute<T>;
    const hn::ScalableTag<C> d;
    const hn::CappedTag<C, 1> one;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), count = last - first;
    const auto values = hn::Set(d, static_cast<C>(value));
    T* const at = static_cast<T*>(data) + first;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) StoreTwoResults(values, values, d, at + i);
    for (; i < count; ++i) StoreResult(hn::Set(one, static_cast<C>(value)), one, at + i);
  });
}

// Reads every cache line once.
double Read(const void* data, std::int64_t bytes) {
  const hn::ScalableTag<float> d;
  const auto* const at = static_cast<const float*>(data);
  const auto count = bytes / static_cast<std::int64_t>(sizeof(float));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d), other = hn::Zero(d);
  for (std::int64_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    __builtin_prefetch(at + i + ahead_bytes / 4);
    sum = hn::Add(sum, hn::LoadU(d, at + i));
    other = hn::Add(other, hn::LoadU(d, at + i + lanes));
  }
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other))));
}

const char* Name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(Scale);
HWY_EXPORT(Fill);
HWY_EXPORT(Read);
HWY_EXPORT(Name);

void scale_in_place(void* data, DType dtype, std::int64_t count, double factor, int threads) {
  const auto bytes = count * static_cast<std::int64_t>(size_of(dtype));
  share_out(count, thread_count({threads}, bytes), [&](std::int64_t first, std::int64_t last) {
    HWY_DYNAMIC_DISPATCH(Scale)(data, dtype, first, last, factor);
  });
}

void fill(void* data, DType dtype, std::int64_t count, double value, int threads) {
  const auto bytes = count * static_cast<std::int64_t>(size_of(dtype));
  share_out(count, thread_count({threads}, bytes), [&](std::int64_t first, std::int64_t last) {
    HWY_DYNAMIC_DISPATCH(Fill)(data, dtype, first, last, value);
  });
}

void read_all(const void* data, std::int64_t bytes, int threads) {
  // What nobody looks at need not be read.
  [[maybe_unused]] static volatile double seen;
  share_out(bytes / 64, thread_count({threads}, bytes), [&](std::int64_t first, std::int64_t last) {
    seen = HWY_DYNAMIC_DISPATCH(Read)(static_cast<const char*>(data) + first * 64,
                                      (last - first) * 64);
  });
}

std::string_view instruction_set() { return HWY_DYNAMIC_DISPATCH(Name)(); }

}  // namespace posenc::detail
#endif

#else  // without vectors the limit is what a compiler makes of plain loops

#include "evidence/bench/harness/limits.h"

namespace posenc::detail {
namespace {

Tensor line(void* data, DType dtype, std::int64_t count) {
  return Tensor::dense(data, dtype, {count});
}

}  // namespace

void scale_in_place(void* data, DType dtype, std::int64_t count, double factor, int) {
  Tensor all = line(data, dtype, count);
  for (std::int64_t i = 0; i < count; ++i) all.set(i, all.get(i) * factor);
}

void fill(void* data, DType dtype, std::int64_t count, double value, int) {
  Tensor all = line(data, dtype, count);
  for (std::int64_t i = 0; i < count; ++i) all.set(i, value);
}

void read_all(const void* data, std::int64_t bytes, int) {
  [[maybe_unused]] static volatile unsigned seen;
  unsigned sum = 0;
  for (std::int64_t i = 0; i < bytes; i += 64) sum += static_cast<const unsigned char*>(data)[i];
  seen = sum;
}

std::string_view instruction_set() { return {}; }

}  // namespace posenc::detail
#endif
