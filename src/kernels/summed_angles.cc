// Prefix sums of angles, and the sums from behind that are their gradient.
#include "posenc/angles.h"

#include <string>
#include <string_view>

#include "src/core/try.h"
#include "src/kernels/angle_sum.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

struct SumArguments {
  Tensor from, out;
};

Expected<SumArguments> checked(std::string_view where, std::string_view name, const Tensor& from,
                               std::span<const double> factor, const Tensor& to) {
  POSENC_TRY(x, detail::viewed(where, name, from, 4));
  POSENC_TRY(out, detail::viewed(where, "out", to, 4));
  POSENC_CHECK(detail::check_shape(where, "out", out, x));
  POSENC_CHECK(detail::check_distinct(where, out));
  if (!factor.empty() && std::ssize(factor) != x.shape[3]) {
    return fail(where,
                "factor must have a number for each of " + std::to_string(x.shape[3]) + " pairs",
                std::to_string(factor.size()), "leave it empty for ones");
  }
  return SumArguments{x, out};
}

// act(b, h, r, factor) of each pair of each head.
template <class Act>
void each_pair(const Tensor& x, std::span<const double> factor, const Act& act) {
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t h = 0; h < x.shape[1]; ++h)
      for (std::int64_t r = 0; r < x.shape[3]; ++r)
        act(b, h, r, factor.empty() ? 1 : factor[static_cast<std::size_t>(r)]);
}

}  // namespace

Expected<void> summed_angles(const Tensor& steps, std::span<const double> factor,
                             const Tensor& start, const Tensor& out) {
  constexpr std::string_view where = "summed_angles";
  POSENC_TRY(in, checked(where, "steps", steps, factor, out));
  Tensor begin;
  if (start) {
    POSENC_TRY(view, detail::viewed(where, "start", start, 3));
    const Tensor like = Tensor::dense(view.data, view.dtype,
                                      {in.from.shape[0], in.from.shape[1], in.from.shape[3]});
    POSENC_CHECK(detail::check_shape(where, "start", view, like));
    begin = view;
  }
  const Tensor &x = in.from, &to = in.out;
  each_pair(x, factor, [&](std::int64_t b, std::int64_t h, std::int64_t r, double times) {
    detail::AngleSum sum(begin ? begin.get(begin.offset(b, h, r)) : 0, times);
    for (std::int64_t t = 0; t < x.shape[2]; ++t) {
      sum.add(x.get(x.offset(b, h, t, r)));
      to.set(to.offset(b, h, t, r), sum.angle());
    }
  });
  return {};
}

Expected<void> summed_angles_gradient(const Tensor& angles_gradient, std::span<const double> factor,
                                      const Tensor& out) {
  POSENC_TRY(in,
             checked("summed_angles_gradient", "angles_gradient", angles_gradient, factor, out));
  const Tensor &x = in.from, &to = in.out;
  each_pair(x, factor, [&](std::int64_t b, std::int64_t h, std::int64_t r, double times) {
    double sum = 0;
    for (std::int64_t t = x.shape[2] - 1; t >= 0; --t) {
      sum += x.get(x.offset(b, h, t, r));
      to.set(to.offset(b, h, t, r), times * sum);
    }
  });
  return {};
}

}  // namespace posenc
