#include "src/attention/kept_keys.h"

#include <cstddef>

namespace posenc::detail {
namespace {

Plan plan_of(const Rotation& rotation) {
  Plan plan;
  plan.rotate = rotation;
  return plan;
}

// R(p)·R⁻¹(p) of two rotations that differ in frequency and amplitude alone: p·f′ − p·f = p·(f′ −
// f).
Rotation difference(const Rotation& from, const Rotation& to) {
  if (!from || !to || to->angles != Angles::exact) return {};
  Rotate turn = *to;
  turn.frequency = from->frequency;
  turn.amplitude = from->amplitude;
  if (turn != *from) return {};
  for (std::size_t r = 0; r < turn.frequency.size(); ++r) {
    turn.frequency[r] = to->frequency[r] - from->frequency[r];
  }
  turn.amplitude = to->amplitude / from->amplitude;
  turn.growth.reset();  // the same before and after
  return turn;
}

Expected<void> turn_both(const Plan& plan, const Tensor& keys, const Tensor& values,
                         const Positions& positions, Threads threads) {
  if (auto ok = rotate(plan, keys, positions, Side::key, keys, threads); !ok) return ok;
  return rotate(plan, values, positions, Side::value, values, threads);
}

Expected<void> turn_back_both(const Plan& plan, const Tensor& keys, const Tensor& values,
                              const Positions& positions, Threads threads) {
  if (auto ok = rotate_inverse(plan, keys, positions, Side::key, keys, threads); !ok) return ok;
  return rotate_inverse(plan, values, positions, Side::value, values, threads);
}

}  // namespace

Expected<void> change_rotation(const Rotation& from, const Rotation& to, const Tensor& keys,
                               const Tensor& values, const Positions& positions, Threads threads) {
  if (const Rotation turn = difference(from, to)) {
    return turn_both(plan_of(turn), keys, values, positions, threads);
  }
  if (auto ok = turn_back_both(plan_of(from), keys, values, positions, threads); !ok) return ok;
  return turn_both(plan_of(to), keys, values, positions, threads);
}

Expected<void> move_tokens(const Rotation& rotation, const Tensor& keys, const Tensor& values,
                           const Positions& positions, std::int64_t offset) {
  if (!rotation) return {};
  const Threads alone{.count = 1};
  if (rotation->angles == Angles::exact) {
    Rotation turn = rotation;
    turn->amplitude = 1;                         // it is in the keys already,
    if (turn->growth) turn->growth->centre = 0;  // and so is the centre
    // Seen as a batch of single tokens they all turn by the one angle of `offset`.
    return turn_both(plan_of(turn), keys.swapped(0, 2), values.swapped(0, 2),
                     Positions::range(offset, 1), alone);
  }
  const auto moved = positions.shifted(offset);
  if (!moved) return std::unexpected(moved.error());
  const Plan plan = plan_of(rotation);
  if (auto ok = turn_back_both(plan, keys, values, positions, alone); !ok) return ok;
  return turn_both(plan, keys, values, *moved, alone);
}

}  // namespace posenc::detail
