// Keys from one rotation and place to another (posenc/rekey.h).
#include "posenc/rekey.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/features.h"
#include "src/cache/rekey_parts.h"
#include "src/cache/rerotate.h"
#include "src/core/try.h"

namespace posenc {
namespace {

constexpr std::int64_t at_once = std::int64_t{1} << 16;  // numbers of a scratch in double

// What rotates on: alike in all but frequencies and amplitude.
bool alike_but_for_angles(const Rotate& from, const Rotate& to) {
  Rotate other = to;
  other.frequencies.radians = from.frequencies.radians;
  other.amplitude = from.amplitude;
  return other == from;
}

bool is_plain(const Rotate& rotate) { return std::holds_alternative<Plain>(rotate.kind); }

// new − old of every token and axis.
Expected<Positions> moved_by(const Positions& from, const Positions& to, std::int64_t tokens) {
  const std::int64_t axes = std::max(from.axes(), to.axes()),
                     batch = std::max(from.batch(), to.batch());
  std::vector<std::int64_t> steps;
  steps.reserve(static_cast<std::size_t>(axes * batch * tokens));
  for (std::int64_t axis = 0; axis < axes; ++axis)
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < tokens; ++t)
        steps.push_back(to.at(t, b, axis) - from.at(t, b, axis));
  return Positions::signed_ids(steps, axes, batch);
}

// The same rotation: once by the difference of the positions.
Expected<void> move_on(const Plan& plan, const Positions& steps, const Tensor& x, const Tensor& out,
                       Side side, Threads threads) {
  Plan step = plan;
  step.valid.reset();
  step.rotate = detail::move_of(*plan.rotate);
  return rotate(step, x, steps, side, out, threads);
}

Tensor tokens_of(Tensor x, std::int64_t first, std::int64_t count) {
  x.data = static_cast<std::byte*>(x.data) +
           x.stride[2] * first * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[2] = count;
  return x;
}

Tensor sequence_of(Tensor x, std::int64_t b) {
  x.data = static_cast<std::byte*>(x.data) +
           x.stride[0] * b * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[0] = 1;
  return x;
}

// Frequencies or amplitude differ: once by the difference of the two angles. An angle is a sum over
// axes, so that the new positions and the old ones, negative, are axes of one rotation.
Expected<void> turn_by_difference(const Stand& from, const Stand& to, const Tensor& x,
                                  const Tensor& out, Side side, Threads threads) {
  Plan step = *to.plan;
  step.valid.reset();
  Rotate& rotation = *step.rotate;
  rotation.amplitude /= from.plan->rotate->amplitude;
  rotation.kind = Plain{};  // phases are the same before and after
  const std::int64_t axes = rotation.frequencies.axes, tokens = x.shape[2],
                     batch = std::max(from.at.batch(), to.at.batch());
  rotation.frequencies.axes = 2 * axes;
  rotation.frequencies.radians.clear();
  for (std::int64_t head = 0; head < rotation.frequencies.heads; ++head)
    for (const Plan* plan : {to.plan, from.plan})
      for (std::int64_t axis = 0; axis < axes; ++axis)
        for (std::int64_t pair = 0; pair < rotation.pairs(); ++pair)
          rotation.frequencies.radians.push_back(plan->rotate->at(head, axis, pair));
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(2 * axes * batch * tokens));
  for (const auto& [at, sign] : {std::pair{&to.at, 1}, std::pair{&from.at, -1}})
    for (std::int64_t axis = 0; axis < axes; ++axis)
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t t = 0; t < tokens; ++t) ids.push_back(sign * at->at(t, b, axis));
  POSENC_TRY(positions, Positions::signed_ids(ids, 2 * axes, batch));
  return rotate(step, x, positions, side, out, threads);
}

// Rotations of two kinds: back and anew, in double, and rounded once.
Expected<void> back_and_anew(const Stand& from, const Stand& to, const Tensor& x, const Tensor& out,
                             Side side, Threads threads) {
  const std::int64_t of_token = std::max<std::int64_t>(1, x.shape[1] * x.shape[3]);
  const std::int64_t part = std::max<std::int64_t>(1, at_once / of_token);
  std::vector<double> memory(static_cast<std::size_t>(part * of_token));
  for (std::int64_t batch = 0; batch < x.shape[0]; ++batch)
    for (std::int64_t first = 0; first < x.shape[2]; first += part) {
      const std::int64_t count = std::min(part, x.shape[2] - first);
      const Tensor in = tokens_of(sequence_of(x, batch), first, count);
      const Tensor result = tokens_of(sequence_of(out, batch), first, count);
      const Tensor wide = Tensor::dense(memory.data(), {1, x.shape[1], count, x.shape[3]});
      const auto each = [&](auto&& element) {
        for (std::int64_t h = 0; h < x.shape[1]; ++h)
          for (std::int64_t t = 0; t < count; ++t)
            for (std::int64_t d = 0; d < x.shape[3]; ++d) element(h, t, d);
      };
      each([&](std::int64_t h, std::int64_t t, std::int64_t d) {
        wide.set(wide.offset(0, h, t, d), in.get(in.offset(0, h, t, d)));
      });
      POSENC_CHECK(rotate_inverse(*from.plan, wide, from.at.slice(batch, first, count), side, wide,
                                  threads));
      POSENC_CHECK(rotate(*to.plan, wide, to.at.slice(batch, first, count), side, wide, threads));
      each([&](std::int64_t h, std::int64_t t, std::int64_t d) {
        result.set(result.offset(0, h, t, d), wide.get(wide.offset(0, h, t, d)));
      });
    }
  return {};
}

}  // namespace

namespace detail {

Expected<void> check_stands(const Stand& from, const Stand& to, Side side) {
  if (!from.plan || !to.plan)
    return fail("rekey", "needs the plan that rotated the keys, and the one they shall have",
                "none", "give both: Stand{&plan, positions}");
  if (side == Side::query)
    return fail("rekey", "moves what is cached: keys, or values", "queries", "rotate() queries");
  POSENC_CHECK(check_takes(rooms::rekey, *from.plan));
  return check_takes(rooms::rekey, *to.plan);
}

Expected<void> check_positions(const Stand& from, const Stand& to, std::int64_t sequences,
                               std::int64_t tokens) {
  for (const auto& [stand, which] : {std::pair{&from, "from"}, std::pair{&to, "to"}}) {
    if (stand->at.size() != tokens)
      return fail("rekey", std::string(which) + " has a position for each token",
                  std::to_string(stand->at.size()) + " for " + std::to_string(tokens),
                  "give as many as the keys have tokens");
    if (stand->at.batch() != 1 && stand->at.batch() != sequences)
      return fail("rekey", std::string(which) + " has a row for each sequence, or one for all",
                  std::to_string(stand->at.batch()) + " for " + std::to_string(sequences),
                  "give as many as the batch has");
  }
  return {};
}

Expected<void> move_keys(const Stand& from, const Stand& to, const Tensor& keys,
                         const Tensor& result, Side side, Threads threads) {
  const std::optional<Rotate>&a = from.plan->rotate, &b = to.plan->rotate;
  if (a && b && is_plain(*a) && is_plain(*b)) {
    if (a == b) {
      POSENC_TRY(steps, moved_by(from.at, to.at, keys.shape[2]));
      return move_on(*from.plan, steps, keys, result, side, threads);
    }
    if (!a->growth() && alike_but_for_angles(*a, *b))
      return turn_by_difference(from, to, keys, result, side, threads);
  }
  return back_and_anew(from, to, keys, result, side, threads);
}

}  // namespace detail

Expected<void> rekey(const Stand& from, const Stand& to, const Tensor& x, const Tensor& out,
                     Side side, Threads threads) {
  POSENC_CHECK(detail::check_stands(from, to, side));
  if (x.rank > 4 || x.rank < 2 || out.rank != x.rank || out.shape != x.shape ||
      out.dtype != x.dtype)
    return fail("rekey", "out must be of the keys' shape and type", shape_text(out),
                "make it like the keys, " + shape_text(x));
  const Tensor keys = x.with_rank(4);
  POSENC_CHECK(detail::check_positions(from, to, keys.shape[0], keys.shape[2]));
  return detail::move_keys(from, to, keys, out.with_rank(4), side, threads);
}

}  // namespace posenc
