#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limit.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "bench/limit.h"
#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"
#include "src/kernels/threads.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void ScaleElements(T* x, std::int64_t count, double factor) {
  const hn::ScalableTag<Compute<T>> d;
  const auto scale = hn::Set(d, static_cast<Compute<T>>(factor));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + lanes <= count; i += lanes) {
    StoreElements(hn::Mul(LoadElements(d, x + i), scale), d, x + i);
  }
}

template <class T>
void FillElements(T* x, std::int64_t count, double value) {
  const hn::ScalableTag<Compute<T>> d;
  const auto values = hn::Set(d, static_cast<Compute<T>>(value));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + lanes <= count; i += lanes) StoreElements(values, d, x + i);
}

void Scale(const Tensor& x, double factor, std::int64_t first, std::int64_t last) {
  with_element(x.dtype, [&]<class T>(T*) {
    ScaleElements(static_cast<T*>(x.data) + first, last - first, factor);
  });
}

void Fill(const Tensor& x, double value, std::int64_t first, std::int64_t last) {
  with_element(x.dtype, [&]<class T>(T*) {
    FillElements(static_cast<T*>(x.data) + first, last - first, value);
  });
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc {
namespace detail {

HWY_EXPORT(Scale);
HWY_EXPORT(Fill);

// Shared out by whole pages.
template <class Act>
void by_pages(const Tensor& x, Threads threads, const Act& act) {
  constexpr std::int64_t page = 4096;
  const std::int64_t size = x.size(), bytes = size * static_cast<std::int64_t>(size_of(x.dtype));
  share_out((size + page - 1) / page, thread_count(threads, bytes),
            [&](std::int64_t first, std::int64_t last) {
              act(first * page, std::min(last * page, size));
            });
}

}  // namespace detail

namespace bench {

void scale_in_place(const Tensor& x, double factor, Threads threads) {
  detail::by_pages(x, threads, [&](std::int64_t first, std::int64_t last) {
    using namespace detail;
    HWY_DYNAMIC_DISPATCH(Scale)(x, factor, first, last);
  });
}

void fill(const Tensor& x, double value, Threads threads) {
  detail::by_pages(x, threads, [&](std::int64_t first, std::int64_t last) {
    using namespace detail;
    HWY_DYNAMIC_DISPATCH(Fill)(x, value, first, last);
  });
}

}  // namespace bench
}  // namespace posenc
#endif
