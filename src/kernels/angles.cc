// rotation_angles: the angles themselves, exact or as an engine forms them.
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"
#include "src/kernels/rotation.h"
#include "src/kernels/threads.h"

namespace posenc {

Expected<void> rotation_angles(const Plan& plan, const Positions& positions, const Tensor& out_view,
                               Threads threads) {
  constexpr std::string_view where = "rotation_angles";
  POSENC_TRY(out, detail::viewed(where, "out", out_view, 4));
  POSENC_CHECK(detail::check_distinct(where, out));
  if (!plan.rotate) {
    return fail(where, "the plan must have a rotation", "none", "compile RoPE or one of its kin");
  }
  const Rotate& rotate = *plan.rotate;
  const std::int64_t batch = out.shape[0], heads = out.shape[1], seq = out.shape[2];
  POSENC_CHECK(detail::check_positions(where, positions, batch, seq, rotate.axes));
  POSENC_CHECK(detail::check_length(where, plan, positions));
  POSENC_CHECK(detail::check_rotation(where, rotate, heads, rotate.first_dim + rotate.rotary_dim));
  POSENC_CHECK(detail::check_engine(where, rotate, positions));
  if (out.shape[3] != rotate.pairs()) {
    return fail(where,
                "out must have an entry for each of " + std::to_string(rotate.pairs()) + " pairs",
                shape_text(out_view), "pass [batch, head, seq, pair]");
  }
  const auto fill = [&](std::int64_t first, std::int64_t last) {
    std::vector<float> row(static_cast<std::size_t>(rotate.pairs()));
    for (; first < last; ++first) {
      const std::int64_t b = first / seq, t = first % seq;
      if (rotate.angles != Angles::exact) detail::engine_angles(rotate, positions, t, b, row);
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
          double value = row[static_cast<std::size_t>(r)];
          if (rotate.angles == Angles::exact) {
            const detail::Angle angle = detail::angle(rotate, positions, t, b, h, r);
            value = angle.high + angle.low;
          }
          out.set(out.offset(b, h, t, r), value);
        }
      }
    }
  };
  const std::int64_t numbers = batch * heads * seq * rotate.pairs();
  detail::share_out(
      batch * seq,
      detail::thread_count(threads, numbers * static_cast<std::int64_t>(size_of(out.dtype))), fill);
  return {};
}

}  // namespace posenc
