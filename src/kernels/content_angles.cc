// Angles as models make them of what tokens say: a step of each token and pair, gated, summed in
// double and multiplied by the plan's frequencies, and the gradients of all of them.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/angles.h"
#include "posenc/features.h"
#include "src/core/try.h"
#include "src/kernels/angle_sum.h"
#include "src/kernels/check.h"
#include "src/kernels/rotation.h"

namespace posenc {
namespace {

using detail::softplus;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One number stands for all heads, or all pairs.
std::int64_t offset_by_head(const Tensor& x, std::int64_t b, std::int64_t h, std::int64_t t) {
  return x.offset(b, x.shape[1] == 1 ? 0 : h, t);
}

struct Arguments {
  const AngleForm* form;
  const Rotate* rotate;
  Tensor said, gate, start, angles;
  std::int64_t batch, heads, seq, pairs;
  std::int64_t turning;  // pairs that do

  static Expected<Arguments> of(std::string_view where, const AngleForm& form, const SaidAngles& in,
                                std::string_view name, const Tensor& angles) {
    if (!form.plan.rotate)
      return fail(where, "the form's plan must have a rotation", "none",
                  "take selective_rope() or one of its kin");
    const Rotate& rotate = *form.plan.rotate;
    POSENC_CHECK(check_takes(rooms::content_angles, form.plan, where));
    POSENC_TRY(all, detail::viewed(where, name, angles, 4));
    Arguments made{.form = &form,
                   .rotate = &rotate,
                   .said = {},
                   .gate = {},
                   .start = {},
                   .angles = all,
                   .batch = all.shape[0],
                   .heads = all.shape[1],
                   .seq = all.shape[2],
                   .pairs = rotate.pairs(),
                   .turning = form.turning == 0 ? rotate.pairs() : form.turning};
    if (!form.sums && !form.own_step)
      return fail(where, "a form must have the token's own step, or the sum of those before",
                  "neither", "set own_step or sums");
    if (form.turning < 0 || form.turning > made.pairs)
      return fail(where, "form.turning must be at most " + std::to_string(made.pairs) + " pairs",
                  std::to_string(form.turning), "0 is all of them");
    POSENC_CHECK(detail::check_rotation(where, rotate, Side::value, made.heads,
                                        rotate.slice.first_dim + rotate.slice.rotary_dim));
    if (all.shape[3] != made.pairs)
      return fail(
          where,
          std::string(name) + " must be [batch, head, seq, " + std::to_string(made.pairs) + "]",
          shape_text(angles), "an angle for each pair of the form's plan");
    POSENC_TRY(said, made.viewed(where, "said", in.said));
    made.said = said;
    const bool gated = form.gate != AngleGate::none;
    if (gated != static_cast<bool>(in.gate))
      return fail(where, gated ? "the form's gate must be given" : "the form has no gate",
                  gated ? "none" : shape_text(in.gate),
                  gated ? "pass what it is made of" : "set form.gate, or drop it");
    if (gated) {
      POSENC_TRY(gate, made.viewed(where, "gate", in.gate));
      made.gate = gate;
    }
    if (in.start) {
      POSENC_TRY(start, made.row(where, "start", in.start));
      made.start = start;
    }
    return made;
  }

  detail::AngleSum begun(std::int64_t b, std::int64_t h, std::int64_t r) const {
    return {start ? start.get(start.offset(b, h, r)) : 0, rotate->at(h, 0, r)};
  }

  // [batch, head or 1, seq, pair or 1]
  Expected<Tensor> viewed(std::string_view where, std::string_view name, const Tensor& x) const {
    POSENC_TRY(view, detail::viewed(where, name, x, 4));
    const auto& s = view.shape;
    const bool power = form->step == AngleStep::powers && name == "said";
    if (s[0] == batch && (s[1] == heads || s[1] == 1) && s[2] == seq &&
        (s[3] == 1 || (!power && s[3] == turning)))
      return view;
    return fail(where,
                std::string(name) + " must be [" + std::to_string(batch) + ", " +
                    std::to_string(heads) + " or 1, " + std::to_string(seq) + ", " +
                    (power ? "1]" : std::to_string(turning) + " or 1]"),
                shape_text(x),
                "a number for each token, and for heads and pairs where they differ");
  }
  // [batch, head, pair]
  Expected<Tensor> row(std::string_view where, std::string_view name, const Tensor& x) const {
    POSENC_TRY(view, detail::viewed(where, name, x, 3));
    const Tensor like = Tensor::dense(view.data, view.dtype, {batch, heads, pairs});
    POSENC_CHECK(detail::check_shape(where, name, view, like));
    return view;
  }

  // Steps of a token and head as the sum takes them, [pair], without their gate.
  void steps(std::int64_t b, std::int64_t h, std::int64_t t, std::vector<double>& to) const {
    const std::int64_t at = offset_by_head(said, b, h, t), given = said.shape[3];
    const auto number = [&](std::int64_t r) { return said.get(at + r * said.stride[3]); };
    if (form->step == AngleStep::powers) {
      const double root = 1 / (1 + softplus(number(0)));
      double power = 1;
      for (std::int64_t r = 0; r < turning; ++r)
        to[static_cast<std::size_t>(r)] = power, power *= root;
      return;
    }
    for (std::int64_t r = 0; r < pairs; ++r) {
      double& step = to[static_cast<std::size_t>(r)];
      if (r >= turning) {
        step = 0;
        continue;
      }
      if (given == 1 && r > 0) {
        step = to[0];
        continue;
      }
      const double x = number(r);
      switch (form->step) {
        case AngleStep::tanh: step = std::tanh(x); break;
        case AngleStep::softplus: step = softplus(x); break;
        default: step = x;
      }
    }
  }
  // What the step of pair r changes by, by the number that it is made of.
  double slope(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t r, double step) const {
    const std::int64_t at = offset_by_head(said, b, h, t);
    const double x = said.get(at + (said.shape[3] == 1 ? 0 : r * said.stride[3]));
    switch (form->step) {
      case AngleStep::tanh: return 1 - step * step;
      case AngleStep::softplus: return sigmoid(x);
      case AngleStep::powers:
        return -static_cast<double>(r) * step * sigmoid(x) / (1 + softplus(x));
      default: return 1;
    }
  }
  double gate_number(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t r) const {
    return gate.get(offset_by_head(gate, b, h, t) + (gate.shape[3] == 1 ? 0 : r * gate.stride[3]));
  }
  void gates(std::int64_t b, std::int64_t h, std::int64_t t, std::vector<double>& to) const {
    if (!gate) return;
    for (std::int64_t r = 0; r < turning; ++r) {
      double& made = to[static_cast<std::size_t>(r)];
      if (gate.shape[3] == 1 && r > 0) {
        made = to[0];
        continue;
      }
      const double y = gate_number(b, h, t, r);
      made = form->gate == AngleGate::sigmoid ? sigmoid(y) : softplus(y);
    }
  }
};

// The plan of halves or interleaved pairs of a head, and frequencies to be filled in.
Expected<AngleForm> form_of(std::string_view where, std::int64_t head_dim, AngleStep step,
                            Pairing pairing = Pairing::halves) {
  if (head_dim < 2 || head_dim % 2 != 0)
    return fail(where, "head_dim must be even", std::to_string(head_dim),
                "pairs are of two channels");
  AngleForm form{.step = step};
  form.plan.rotate = Rotate{.slice = {.pairing = pairing, .rotary_dim = head_dim}};
  form.plan.rotate->frequencies.radians.assign(static_cast<std::size_t>(head_dim / 2), 1);
  return form;
}

Expected<void> set_base(std::string_view where, Rotate& rotate, double theta, double times) {
  if (!(theta > 1) || !std::isfinite(theta) || !std::isfinite(times))
    return fail(where, "theta must be above 1", number_text(theta), "500000 is selective RoPE's");
  for (std::int64_t r = 0; r < rotate.pairs(); ++r)
    rotate.frequencies.radians[static_cast<std::size_t>(r)] =
        times *
        std::pow(theta, -2 * static_cast<double>(r) / static_cast<double>(rotate.slice.rotary_dim));
  return {};
}

}  // namespace

Expected<AngleForm> selective_rope(std::int64_t head_dim, double theta, double maximum) {
  constexpr std::string_view where = "selective_rope";
  POSENC_TRY(form, form_of(where, head_dim, AngleStep::plain));
  POSENC_CHECK(set_base(where, *form.plan.rotate, theta, maximum));
  return std::move(form);
}

Expected<AngleForm> carope(std::int64_t head_dim) {
  return form_of("carope", head_dim, AngleStep::powers);
}

Expected<AngleForm> mamba3(std::int64_t head_dim, double part, Pairing pairing) {
  constexpr std::string_view where = "mamba3";
  if (!(part > 0 && part <= 1))
    return fail(where, "part must be above 0 and at most 1", number_text(part),
                "Mamba-3 has 0.5 or 1");
  POSENC_TRY(form, form_of(where, head_dim, AngleStep::tanh, pairing));
  Rotate& rotate = *form.plan.rotate;
  form.turning = static_cast<std::int64_t>(static_cast<double>(head_dim) * part) / 2;
  if (form.turning == 0)
    return fail(where, "part must leave a pair", number_text(part),
                "there are " + std::to_string(head_dim) + " channels");
  if (pairing == Pairing::interleaved) rotate.slice.rotary_dim = 2 * form.turning;
  rotate.frequencies.radians.assign(static_cast<std::size_t>(rotate.pairs()), std::numbers::pi);
  form.gate = AngleGate::softplus;
  return std::move(form);
}

Expected<AngleForm> grape_m(std::int64_t head_dim, double theta) {
  constexpr std::string_view where = "grape_m";
  POSENC_TRY(form, form_of(where, head_dim, AngleStep::softplus));
  POSENC_CHECK(set_base(where, *form.plan.rotate, theta, -1));
  form.own_step = false;
  return std::move(form);
}

Expected<AngleForm> repo(std::int64_t head_dim, double theta) {
  constexpr std::string_view where = "repo";
  POSENC_TRY(form, form_of(where, head_dim, AngleStep::plain));
  POSENC_CHECK(set_base(where, *form.plan.rotate, theta, 1));
  form.sums = false;
  return std::move(form);
}

Expected<void> content_angles(const AngleForm& form, const SaidAngles& given, const Tensor& out,
                              const Tensor& next) {
  constexpr std::string_view where = "content_angles";
  POSENC_TRY(in, Arguments::of(where, form, given, "out", out));
  POSENC_CHECK(detail::check_distinct(where, in.angles));
  Tensor behind;
  if (next) {
    POSENC_TRY(view, in.row(where, "next", next));
    POSENC_CHECK(detail::check_distinct(where, view));
    behind = view;
  }
  const auto pairs = static_cast<std::size_t>(in.pairs);
  std::vector<double> step(pairs), gate(pairs, 1);
  std::vector<detail::AngleSum> sums(pairs * static_cast<std::size_t>(in.heads));
  for (std::int64_t b = 0; b < in.batch; ++b) {
    for (std::int64_t h = 0; h < in.heads; ++h)
      for (std::int64_t r = 0; r < in.pairs; ++r)
        sums[static_cast<std::size_t>(h * in.pairs + r)] = in.begun(b, h, r);
    for (std::int64_t t = 0; t < in.seq; ++t) {
      for (std::int64_t h = 0; h < in.heads; ++h) {
        // Heads that share what is said share its steps.
        if (h == 0 || in.said.shape[1] != 1) in.steps(b, h, t, step);
        if (h == 0 || (in.gate && in.gate.shape[1] != 1)) in.gates(b, h, t, gate);
        detail::AngleSum* const sum = sums.data() + h * in.pairs;
        const std::int64_t to = in.angles.offset(b, h, t);
        for (std::int64_t r = 0; r < in.pairs; ++r) {
          const auto at = static_cast<std::size_t>(r);
          const double turn = step[at] * gate[at];
          if (!form.sums) sum[r] = in.begun(b, h, r);
          if (form.own_step) sum[r].add(turn);
          in.angles.set(to + r * in.angles.stride[3], sum[r].angle());
          if (!form.own_step) sum[r].add(turn);
        }
      }
    }
    for (std::int64_t h = 0; behind && h < in.heads; ++h)
      for (std::int64_t r = 0; r < in.pairs; ++r)
        behind.set(
            behind.offset(b, h, r),
            (form.sums ? sums[static_cast<std::size_t>(h * in.pairs + r)] : in.begun(b, h, r))
                .angle());
  }
  return {};
}

// With G_t the gradient by a token's angles, R_s = Σ G_t over the tokens whose angles have its
// step (its own alone where nothing is summed),
//   ∂step_s = f·R_s·gate_s,   ∂gate_s = f·R_s·step_s,   ∂f = Σ_s R_s·step_s·gate_s,   ∂start = Σ_t
//                             G_t
Expected<void> content_angles_gradient(const AngleForm& form, const SaidAngles& given,
                                       const Tensor& angles_gradient,
                                       const SaidGradients& gradients) {
  constexpr std::string_view where = "content_angles_gradient";
  POSENC_TRY(in, Arguments::of(where, form, given, "angles_gradient", angles_gradient));
  const auto wanted = [&](std::string_view name, const Tensor& to,
                          const Tensor& like) -> Expected<Tensor> {
    if (!to) return Tensor{};
    if (!like) return fail(where, std::string(name) + " was not given", shape_text(to), "drop it");
    POSENC_TRY(view, detail::viewed(where, name, to, like.rank));
    POSENC_CHECK(detail::check_shape(where, name, view, like));
    POSENC_CHECK(detail::check_distinct(where, view));
    return view;
  };
  POSENC_TRY(by_said, wanted("the gradient of said", gradients.said, in.said));
  POSENC_TRY(by_gate, wanted("the gradient of gate", gradients.gate, in.gate));
  POSENC_TRY(by_start, wanted("the gradient of start", gradients.start, in.start));
  const Rotate& rotate = *in.rotate;
  POSENC_TRY(by_frequency, wanted("the gradient of frequency", gradients.frequency,
                                  Tensor::dense(gradients.frequency.data, gradients.frequency.dtype,
                                                {rotate.frequencies.heads, in.pairs})));

  const auto numbers = [](const Tensor& like) {
    return std::vector<double>(static_cast<std::size_t>(like ? like.size() : 0));
  };
  std::vector<double> said(numbers(by_said)), gated(numbers(by_gate)),
      frequency(numbers(by_frequency)), rest(static_cast<std::size_t>(in.heads * in.pairs));
  const auto at = [](const Tensor& of, std::int64_t b, std::int64_t h, std::int64_t t,
                     std::int64_t r) {
    const auto& s = of.shape;
    return static_cast<std::size_t>(((b * s[1] + (s[1] == 1 ? 0 : h)) * s[2] + t) * s[3] +
                                    (s[3] == 1 ? 0 : r));
  };
  std::vector<double> step(static_cast<std::size_t>(in.pairs)), gate(step.size(), 1);
  for (std::int64_t b = 0; b < in.batch; ++b) {
    std::ranges::fill(rest, 0.0);
    for (std::int64_t t = in.seq - 1; t >= 0; --t) {
      for (std::int64_t h = 0; h < in.heads; ++h) {
        if (h == 0 || in.said.shape[1] != 1) in.steps(b, h, t, step);
        if (h == 0 || (in.gate && in.gate.shape[1] != 1)) in.gates(b, h, t, gate);
        for (std::int64_t r = 0; r < in.pairs; ++r) {
          double& sum = rest[static_cast<std::size_t>(h * in.pairs + r)];
          const double by_angle = in.angles.get(in.angles.offset(b, h, t, r));
          if (form.own_step) sum += by_angle;
          const auto pair = static_cast<std::size_t>(r);
          const double later = form.sums ? sum : by_angle;  // of the angles that have this step
          const double by = rotate.at(h, 0, r) * later;
          const bool turns = r < in.turning;
          if (by_said && turns)
            said[at(by_said, b, h, t, r)] += by * gate[pair] * in.slope(b, h, t, r, step[pair]);
          if (by_gate && turns) {
            const double y = in.gate_number(b, h, t, r);
            gated[at(by_gate, b, h, t, r)] +=
                by * step[pair] *
                (form.gate == AngleGate::sigmoid ? gate[pair] * (1 - gate[pair]) : sigmoid(y));
          }
          if (by_frequency)
            frequency[static_cast<std::size_t>((rotate.frequencies.heads == 1 ? 0 : h) * in.pairs +
                                               r)] += later * step[pair] * gate[pair];
          if (!form.own_step) sum += by_angle;
        }
      }
    }
    for (std::int64_t h = 0; by_start && h < in.heads; ++h)
      for (std::int64_t r = 0; r < in.pairs; ++r)
        by_start.set(by_start.offset(b, h, r), rest[static_cast<std::size_t>(h * in.pairs + r)]);
  }
  for (const auto& [to, from] : {std::pair{&by_said, &said}, {&by_gate, &gated}})
    for (std::int64_t e = 0; *to && e < to->size(); ++e) {
      const auto& s = to->shape;
      to->set(
          to->offset(e / (s[1] * s[2] * s[3]), e / (s[2] * s[3]) % s[1], e / s[3] % s[2], e % s[3]),
          (*from)[static_cast<std::size_t>(e)]);
    }
  for (std::int64_t e = 0; by_frequency && e < by_frequency.size(); ++e)
    by_frequency.set(by_frequency.offset(e / in.pairs, e % in.pairs),
                     frequency[static_cast<std::size_t>(e)]);
  return {};
}

}  // namespace posenc
