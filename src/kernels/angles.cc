// rotation_angles: the angles themselves, exact or as an engine forms them, of whole or real
// positions; and rotation_turns, which they are products of.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/apply.h"
#include "posenc/features.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"
#include "src/kernels/rotation.h"
#include "src/kernels/threads.h"

namespace posenc {
namespace {

// The output as the plan's rotation needs it, with an entry for each head and pair.
Expected<Tensor> output_of(std::string_view where, const Plan& plan, const Tensor& given) {
  POSENC_TRY(out, detail::viewed(where, "out", given, 4));
  POSENC_CHECK(detail::check_distinct(where, out));
  if (!plan.rotate)
    return fail(where, "the plan must have a rotation", "none", "compile RoPE or one of its kin");
  POSENC_CHECK(check_takes(rooms::rotation_angles, plan, where));
  const Rotate& rotate = *plan.rotate;
  POSENC_CHECK(detail::check_rotation(where, rotate, Side::value, out.shape[1],
                                      rotate.slice.first_dim + rotate.slice.rotary_dim));
  if (out.shape[3] == rotate.pairs()) return out;
  return fail(where,
              "out must have an entry for each of " + std::to_string(rotate.pairs()) + " pairs",
              shape_text(out), "pass [batch, head, seq, pair]");
}

}  // namespace

Expected<void> rotation_angles(const Plan& plan, const Positions& positions, const Tensor& out_view,
                               Threads threads) {
  constexpr std::string_view where = "rotation_angles";
  POSENC_TRY(out, output_of(where, plan, out_view));
  const Rotate& rotate = *plan.rotate;
  const std::int64_t batch = out.shape[0], heads = out.shape[1], seq = out.shape[2];
  POSENC_CHECK(detail::check_positions(where, positions, batch, seq, rotate.frequencies.axes));
  POSENC_CHECK(detail::check_length(where, plan, positions));
  POSENC_CHECK(detail::check_engine(where, rotate, positions));
  const auto fill = [&](std::int64_t first, std::int64_t last) {
    std::vector<float> row(static_cast<std::size_t>(rotate.pairs()));
    for (; first < last; ++first) {
      const std::int64_t b = first / seq, t = first % seq;
      if (rotate.angles() != Angles::exact) {
        detail::engine_angles(rotate, positions, t, b, row);
        if (out.dtype == DType::f64 && out.stride[3] == 1) {  // millions of them are asked for
          for (std::int64_t h = 0; h < heads; ++h)
            std::ranges::copy(row, static_cast<double*>(out.data) + out.offset(b, h, t));
          continue;
        }
      }
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
          double value = row[static_cast<std::size_t>(r)];
          if (rotate.angles() == Angles::exact) {
            const detail::Angle angle = detail::angle(rotate, positions, t, b, h, r);
            value = angle.high + angle.low;
          }
          out.set(out.offset(b, h, t, r), value);
        }
      }
    }
  };
  detail::share_out(batch * seq, detail::thread_count(threads, detail::bytes_of(out)), fill);
  return {};
}

Expected<void> rotation_angles(const Plan& plan, const Tensor& at_view, const Tensor& out_view,
                               Threads threads) {
  constexpr std::string_view where = "rotation_angles";
  POSENC_TRY(out, output_of(where, plan, out_view));
  const Rotate& rotate = *plan.rotate;
  if (rotate.angles() != Angles::exact) {
    return fail(where, "the plan's angles must be exact", name(rotate.angles()),
                "engines take whole positions");
  }
  const std::int64_t batch = out.shape[0], heads = out.shape[1], seq = out.shape[2];
  POSENC_TRY(at, detail::real_positions(where, at_view, rotate.frequencies.axes, batch, seq));
  const auto fill = [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) {
      const std::int64_t b = first / seq, t = first % seq;
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
          double angle = 0;
          for (std::int64_t a = 0; a < rotate.frequencies.axes; ++a)
            angle = std::fma(at.get(at.offset(a, b, t)), rotate.at(h, a, r), angle);
          out.set(out.offset(b, h, t, r), angle);
        }
      }
    }
  };
  detail::share_out(batch * seq, detail::thread_count(threads, detail::bytes_of(out)), fill);
  return {};
}

Expected<std::vector<Turns>> rotation_turns(const Plan& plan) {
  constexpr std::string_view where = "rotation_turns";
  if (!plan.rotate)
    return fail(where, "the plan must have a rotation", "none", "compile RoPE or one of its kin");
  POSENC_CHECK(check_takes(rooms::rotation_turns, plan, where));
  std::vector<Turns> turns;
  turns.reserve(plan.rotate->frequencies.radians.size());
  for (const double frequency : plan.rotate->frequencies.radians) {
    if (!(std::abs(frequency) < 0x1p200))
      return fail(where, "a frequency must be below 2^200", std::to_string(frequency));
    turns.push_back(turns_of(frequency));
  }
  return turns;
}

}  // namespace posenc
