// Keys of the cache when their rotation or their position changes: by the difference of two angles
// where there is one, otherwise back and anew.
#include "src/cache/rerotate.h"

#include <cstddef>

namespace posenc::detail {
namespace {

// R(p)·R⁻¹(p) of two rotations that differ in frequency and amplitude alone: p·f′ − p·f = p·(f′ −
// f).
Rotation difference(const Rotation& from, const Rotation& to) {
  if (!from || !to || to->angles() != Angles::exact) return {};
  Rotate step = *to;
  step.frequencies.radians = from->frequencies.radians;
  step.amplitude = from->amplitude;
  if (step != *from) return {};
  for (std::size_t r = 0; r < step.frequencies.radians.size(); ++r) {
    step.frequencies.radians[r] = to->frequencies.radians[r] - from->frequencies.radians[r];
  }
  step.amplitude = to->amplitude / from->amplitude;
  step.kind = Plain{};  // phases and growth are the same before and after
  return step;
}

void rotate_both(const Rotation& rotation, Action action, const Tensor& keys, const Tensor& values,
                 const Positions& positions, Threads threads) {
  if (!rotation) return;
  rotate_checked(&*rotation, keys, positions, Side::key, action, keys, threads);
  rotate_checked(&*rotation, values, positions, Side::value, action, values, threads);
}

}  // namespace

void change_rotation(const Rotation& from, const Rotation& to, const Tensor& keys,
                     const Tensor& values, const Positions& positions, Threads threads) {
  if (const Rotation step = difference(from, to)) {
    return rotate_both(step, Action::forward, keys, values, positions, threads);
  }
  rotate_both(from, Action::inverse, keys, values, positions, threads);
  rotate_both(to, Action::forward, keys, values, positions, threads);
}

Rotate move_of(const Rotate& rotation) {
  Rotate step = rotation;
  step.amplitude = 1;
  Plain moved_on;
  if (const XposDecay* const growth = rotation.growth())
    moved_on.growth = XposDecay{.factor = growth->factor, .scale = growth->scale};
  step.kind = std::move(moved_on);
  return step;
}

void move_tokens(const Rotation& rotation, const Tensor& keys, const Tensor& values,
                 const Positions& positions, const Positions& moved, std::int64_t offset) {
  if (!rotation) return;
  const Threads alone{.count = 1};
  if (rotation->angles() == Angles::exact) {
    // Seen as a batch of single tokens they all rotate by the one angle of `offset`.
    return rotate_both(move_of(*rotation), Action::forward, keys.swapped(0, 2),
                       values.swapped(0, 2), Positions::range(offset, 1), alone);
  }
  rotate_both(rotation, Action::inverse, keys, values, positions, alone);
  rotate_both(rotation, Action::forward, keys, values, moved, alone);
}

}  // namespace posenc::detail
