#include "evidence/lab/train/content_rope.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

template <class T>
struct Dense {
  std::vector<T> numbers;
  Tensor view;
  explicit Dense(const std::array<std::int64_t, 4>& s)
      : numbers(static_cast<std::size_t>(s[0] * s[1] * s[2] * s[3])),
        view(Tensor::dense(numbers.data(), {s[0], s[1], s[2], s[3]})) {}
};

// Queries and keys as the angles of their tokens have rotated them.
struct Turned {
  std::array<std::int64_t, 4> shape;
  Dense<double> angles;
  Dense<float> q, k;
  AttentionInputs in;

  Turned(const AttentionInputs& given, const AngleForm& form)
      : shape(given.q.shape),
        angles({shape[0], shape[1], shape[2], form.plan.rotate->pairs()}),
        q(shape),
        k(shape),
        in(given) {
    in.q = q.view;
    in.k = k.view;
  }
  Expected<void> turn(const AttentionInputs& given, const AngleForm& form, const SaidAngles& said) {
    Expected<void> done = content_angles(form, said, angles.view);
    if (done) done = rotate_by(form.plan, given.q, angles.view, Side::query, q.view, given.threads);
    if (done) done = rotate_by(form.plan, given.k, angles.view, Side::key, k.view, given.threads);
    return done;
  }
};

}  // namespace

bool ContentRope::is_name(std::string_view name) {
  constexpr std::string_view names[] = {"selective_rope", "carope", "mamba3", "grape_m", "repo"};
  return std::ranges::find(names, name) != std::end(names);
}

Expected<AngleForm> ContentRope::form(std::int64_t head_dim) const {
  if (name == "selective_rope") return selective_rope(head_dim);
  if (name == "carope") return carope(head_dim);
  if (name == "repo") return repo(head_dim);
  return name == "mamba3" ? mamba3(head_dim) : grape_m(head_dim);
}

Expected<void> attend(const AttentionInputs& in, const AngleForm& form, const SaidAngles& said,
                      const Tensor& out) {
  Turned turned(in, form);
  POSENC_CHECK(turned.turn(in, form, said));
  return posenc::attend(turned.in, Plan{}, out);
}

Expected<void> attend_backward(const AttentionInputs& in, const AngleForm& form,
                               const SaidAngles& said, const Tensor& out_gradient,
                               const AttentionGradients& wanted, const SaidGradients& by_said) {
  Turned turned(in, form);
  Dense<float> q(turned.shape), k(turned.shape);
  Dense<double> by_angle(turned.angles.view.shape), by_key(turned.angles.view.shape);
  Expected<void> done = turned.turn(in, form, said);
  if (done)
    done = posenc::attend_backward(turned.in, Plan{}, out_gradient,
                                   {.q = q.view, .k = k.view, .v = wanted.v});
  if (done) done = angle_gradient(form.plan, turned.q.view, q.view, by_angle.view);
  if (done) done = angle_gradient(form.plan, turned.k.view, k.view, by_key.view);
  if (!done) return done;
  std::ranges::transform(by_angle.numbers, by_key.numbers, by_angle.numbers.begin(), std::plus());
  done = content_angles_gradient(form, said, by_angle.view, by_said);
  const Tensor& angles = turned.angles.view;
  if (done)
    done = rotate_by_transpose(form.plan, q.view, angles, Side::query, wanted.q, in.threads);
  if (done) done = rotate_by_transpose(form.plan, k.view, angles, Side::key, wanted.k, in.threads);
  return done;
}

}  // namespace posenc::lab
