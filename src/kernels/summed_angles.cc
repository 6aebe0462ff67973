// Prefix sums of angles, and the sums from behind that are their gradient.
#include "posenc/angles.h"

#include <string>
#include <string_view>

#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

struct Arguments {
  Tensor from, out;
};

Expected<Arguments> checked(std::string_view where, std::string_view name, const Tensor& from,
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
  return Arguments{x, out};
}

// out = begin + factor · the sums so far, from the first token on or from the last.
void sum(const Arguments& in, std::span<const double> factor, const Tensor& start,
         bool from_behind) {
  const Tensor &x = in.from, &out = in.out;
  const std::int64_t seq = x.shape[2];
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (std::int64_t h = 0; h < x.shape[1]; ++h) {
      for (std::int64_t r = 0; r < x.shape[3]; ++r) {
        const double times = factor.empty() ? 1 : factor[static_cast<std::size_t>(r)];
        const double begin = start ? start.get(start.offset(b, h, r)) : 0;
        double sum = 0;
        for (std::int64_t n = 0; n < seq; ++n) {
          const std::int64_t t = from_behind ? seq - 1 - n : n;
          sum += x.get(x.offset(b, h, t, r));
          out.set(out.offset(b, h, t, r), begin + times * sum);
        }
      }
    }
  }
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
  sum(in, factor, begin, false);
  return {};
}

Expected<void> summed_angles_gradient(const Tensor& angles_gradient, std::span<const double> factor,
                                      const Tensor& out) {
  POSENC_TRY(in,
             checked("summed_angles_gradient", "angles_gradient", angles_gradient, factor, out));
  sum(in, factor, {}, true);
  return {};
}

}  // namespace posenc
