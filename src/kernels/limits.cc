#if POSENC_SIMD

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/limits.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"
#include "src/kernels/limits.h"
#include "src/kernels/threads.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// data[i] = change(data[i]) for a whole number of vectors, then for the rest one by one.
template <class T, class Change>
HWY_INLINE void ChangeEach(T* data, std::int64_t count, const Change& change) {
  const hn::ScalableTag<Compute<T>> d;
  const hn::CappedTag<Compute<T>, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) change(d, data + i);
  for (; i < count; ++i) change(one, data + i);
}

void Scale(void* data, DType dtype, std::int64_t first, std::int64_t last, double factor) {
  with_element(dtype, [&]<class T>(T*) HWY_ATTR {
    ChangeEach(static_cast<T*>(data) + first, last - first, [&](auto d, T* at) HWY_ATTR {
      StoreElements(hn::Mul(LoadElements(d, at), hn::Set(d, static_cast<Compute<T>>(factor))), d,
                    at);
    });
  });
}

void Fill(void* data, DType dtype, std::int64_t first, std::int64_t last, double value) {
  with_element(dtype, [&]<class T>(T*) HWY_ATTR {
    ChangeEach(static_cast<T*>(data) + first, last - first, [&](auto d, T* at) HWY_ATTR {
      StoreElements(hn::Set(d, static_cast<Compute<T>>(value)), d, at);
    });
  });
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(Scale);
HWY_EXPORT(Fill);

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

}  // namespace posenc::detail
#endif

#else  // without vectors the limit is what a compiler makes of plain loops

#include "src/kernels/limits.h"

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

}  // namespace posenc::detail
#endif
