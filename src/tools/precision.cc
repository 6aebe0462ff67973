// Angles in float as engines form them, beside the same in long double.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "posenc/apply.h"
#include "posenc/tools.h"

namespace posenc {
namespace {

constexpr std::int64_t usual_end = 1 << 20;

// A float as bfloat16 holds it.
float narrow(float value) { return bfloat16_to_float(float_to_bfloat16(value)); }

constexpr DType kept_types[] = {DType::f32, DType::f16, DType::bf16};
constexpr std::span all_types(kept_types);
constexpr auto float_only = all_types.first(1), bfloat16_only = all_types.last(1);

// What is done to the angles of a plan.
enum class Slip {
  none,
  fast_sines,        // reduced to turns by one product in float, as CUDA's __sinf and sin.approx do
  narrow_frequency,  // frequencies in bfloat16
  narrow_everything,  // positions and angles too
};

// An engine: its plan, or one of the known slips made on Hugging Face's plan.
struct FloatEngine {
  std::string_view id, name;
  Angles angles;
  std::span<const DType> kept;
  Slip slip = Slip::none;
};

constexpr FloatEngine float_engines[] = {
    {"exact", "double (posenc)", Angles::exact, float_only},
    {"hf_float", "float product (Hugging Face)", Angles::hf_float, all_types},
    {"ggml_float", "float, pair after pair (ggml)", Angles::ggml_float, float_only},
    {"fast_sines", "float product, fast-math sines", Angles::hf_float, float_only,
     Slip::fast_sines},
    {"bfloat16_frequencies", "frequencies in bfloat16", Angles::hf_float, bfloat16_only,
     Slip::narrow_frequency},
    {"bfloat16", "all of it in bfloat16", Angles::hf_float, bfloat16_only, Slip::narrow_everything},
};

// Angles of a stretch of positions, [position][pair].
class Former {
 public:
  Former(const FloatEngine& engine, Plan plan) : engine_(engine), plan_(std::move(plan)) {
    const Rotate& rotate = *plan_.rotate;
    for (std::int64_t r = 0; r < rotate.pairs(); r++) {
      double frequency = 0;
      for (std::int64_t axis = 0; axis < rotate.axes; axis++) frequency += rotate.at(0, axis, r);
      narrow_.push_back(narrow(static_cast<float>(frequency)));
    }
  }

  Expected<void> form(std::int64_t begin, std::int64_t count, std::vector<double>& angles) const {
    const std::size_t pairs = narrow_.size();
    angles.resize(static_cast<std::size_t>(count) * pairs);
    if (engine_.slip == Slip::none || engine_.slip == Slip::fast_sines) {
      const Expected<void> formed = rotation_angles(
          plan_, Positions::range(begin, count),
          Tensor::dense(angles.data(), {1, 1, count, static_cast<std::int64_t>(pairs)}),
          Threads{.count = 1});  // a window is too small to share
      if (!formed || engine_.slip == Slip::none) return formed;
      constexpr float turns_of_a_radian = 0.15915494F;
      for (double& angle : angles)
        angle = 2 * std::numbers::pi * (static_cast<float>(angle) * turns_of_a_radian);
      return {};
    }
    const bool everything = engine_.slip == Slip::narrow_everything;
    for (std::size_t i = 0; i < angles.size(); i++) {
      float position = static_cast<float>(begin + static_cast<std::int64_t>(i / pairs));
      if (everything) position = narrow(position);
      const float angle = position * narrow_[i % pairs];
      angles[i] = everything ? narrow(angle) : angle;
    }
    return {};
  }

 private:
  const FloatEngine& engine_;
  Plan plan_;
  std::vector<float> narrow_;
};

double kept_as(DType dtype, double value) {
  float kept = static_cast<float>(value);
  if (dtype == DType::f16) kept = half_to_float(float_to_half(kept));
  if (dtype == DType::bf16) kept = narrow(kept);
  return kept;
}

// What all engines are measured against.
struct Truth {
  std::vector<long double> frequency;
  long double angle(std::int64_t position, std::size_t pair) const {
    return static_cast<long double>(position) * frequency[pair];
  }
};

double off(double angle, long double truth) {
  return static_cast<double>(std::abs(static_cast<long double>(angle) - truth));
}

// How far the angle that a kept cosine and sine have is from the true one, whole turns aside.
double off_as_kept(DType dtype, double angle, long double truth) {
  const double kept = std::atan2(kept_as(dtype, std::sin(angle)), kept_as(dtype, std::cos(angle)));
  return static_cast<double>(std::abs(
      std::remainder(static_cast<long double>(kept) - truth, 2 * std::numbers::pi_v<long double>)));
}

// What one position adds to the firsts that are sought.
void note_firsts(double angle, long double truth, std::int64_t position, EngineError& out) {
  // 16 bits move an angle by less, so that nearer ones need no cosine.
  constexpr double most_rounding = 0.01;
  const double error = off(angle, truth);
  if (error > half_rounding && !out.beyond_half) out.beyond_half = position;
  if (error > bfloat16_rounding && !out.beyond_bfloat16) out.beyond_bfloat16 = position;
  if (error < angle_that_shows - most_rounding) return;
  for (KeptError& kept : out.kept)
    if (!kept.shows && off_as_kept(kept.dtype, angle, truth) > angle_that_shows)
      kept.shows = position;
}

// The first positions from which on an angle is off by more than 16 bits round, and by one that shows.
Expected<void> find_firsts(const Former& former, const Truth& truth, std::int64_t end,
                           EngineError& out, const std::function<void(double)>& tell) {
  const std::size_t pairs = truth.frequency.size();
  const auto all_found = [&] {
    return std::ranges::all_of(out.kept, [](const KeptError& kept) { return !!kept.shows; });
  };
  std::vector<double> angles;
  for (std::int64_t begin = 0; begin < end && !all_found(); begin += PhaseErrors::window) {
    const std::int64_t count = std::min(PhaseErrors::window, end - begin);
    if (Expected<void> formed = former.form(begin, count, angles); !formed) return formed;
    for (std::size_t i = 0; i < angles.size(); i++) {
      const std::int64_t position = begin + static_cast<std::int64_t>(i / pairs);
      note_firsts(angles[i], truth.angle(position, i % pairs), position, out);
    }
    if (tell) tell(static_cast<double>(begin) / static_cast<double>(end));
  }
  return {};
}

const Rope* first_rope(const LayerGroup& group) {
  return group.schemes.empty() ? nullptr : std::get_if<Rope>(&group.schemes.front());
}

}  // namespace

std::int64_t phase_end(const Plan& plan, std::int64_t asked) {
  if (asked > 0) return asked;
  return plan.valid ? std::min(plan.valid->to, usual_end) : usual_end;
}

std::vector<std::int64_t> usual_marks(std::int64_t end) {
  std::vector<std::int64_t> marks;
  for (const std::int64_t mark : {1 << 10, 1 << 12, 1 << 13, 1 << 15, 1 << 17, 1 << 20})
    if (mark < end) marks.push_back(mark);
  marks.push_back(end);
  return marks;
}

Expected<PhaseErrors> phase_errors(const LayerGroup& group, std::int64_t asked,
                                   std::vector<std::int64_t> marks,
                                   const std::function<void(double)>& tell) {
  const Rope* rope = first_rope(group);
  if (!rope)
    return fail("precision", "these layers have no RoPE", group.label, "choose others by --layer");
  Geometry geometry = group.geometry;
  geometry.length = asked;
  const Expected<Scaled<long double>> scaled = rope_frequencies<long double>(*rope, geometry);
  if (!scaled) return std::unexpected(scaled.error());
  const Truth truth{scaled->frequency};
  const std::size_t pairs = truth.frequency.size();

  PhaseErrors result{std::move(marks), {}};
  std::vector<Former> formers;
  for (const FloatEngine& engine : float_engines) {
    EngineError& out = result.engines.emplace_back();
    out.id = engine.id;
    out.name = engine.name;
    const Expected<Plan> plan = compile(group, asked, engine.angles);
    if (!plan && engine.angles == Angles::exact) return std::unexpected(plan.error());
    if (!plan) {
      out.refused = plan.error().message();
      formers.emplace_back(engine, *compile(group, asked));
      continue;
    }
    formers.emplace_back(engine, *plan);
    for (const DType dtype : engine.kept) out.kept.push_back({.dtype = dtype});
  }

  std::vector<double> angles;
  std::vector<long double> cosine, sine;
  for (const std::int64_t mark : result.marks) {
    const std::int64_t count = std::min(PhaseErrors::window, mark), begin = mark - count;
    cosine.resize(static_cast<std::size_t>(count) * pairs);
    sine.resize(cosine.size());
    for (std::size_t i = 0; i < cosine.size(); i++) {
      const long double angle =
          truth.angle(begin + static_cast<std::int64_t>(i / pairs), i % pairs);
      cosine[i] = std::cos(angle);
      sine[i] = std::sin(angle);
    }
    for (std::size_t e = 0; e < formers.size(); e++) {
      EngineError& out = result.engines[e];
      if (!out.refused.empty()) continue;
      if (Expected<void> formed = formers[e].form(begin, count, angles); !formed)
        return std::unexpected(formed.error());
      double phase = 0;
      std::vector<double> kept(out.kept.size());
      for (std::size_t i = 0; i < angles.size(); i++) {
        const std::int64_t position = begin + static_cast<std::int64_t>(i / pairs);
        phase = std::max(phase, off(angles[i], truth.angle(position, i % pairs)));
        const double c = std::cos(angles[i]), s = std::sin(angles[i]);
        for (std::size_t k = 0; k < kept.size(); k++)
          kept[k] = std::max({kept[k], off(kept_as(out.kept[k].dtype, c), cosine[i]),
                              off(kept_as(out.kept[k].dtype, s), sine[i])});
      }
      // The largest up to the mark: an error that shrank again still happened.
      const double before = out.phase.empty() ? 0 : out.phase.back();
      out.phase.push_back(std::max(before, phase));
      for (std::size_t k = 0; k < kept.size(); k++) {
        std::vector<double>& list = out.kept[k].error;
        list.push_back(std::max(list.empty() ? 0 : list.back(), kept[k]));
      }
    }
    if (tell) tell(0.3 * static_cast<double>(mark) / static_cast<double>(result.marks.back()));
  }
  const auto part = [&](std::size_t e, double done) {
    if (tell)
      tell(0.3 + 0.7 * (static_cast<double>(e) + done) / static_cast<double>(formers.size()));
  };
  for (std::size_t e = 0; e < formers.size(); e++) {
    EngineError& out = result.engines[e];
    // In double nothing comes near; a scan would only prove it slowly.
    if (!out.refused.empty() || float_engines[e].angles == Angles::exact) continue;
    const auto told = [&](double done) { part(e, done); };
    if (Expected<void> found = find_firsts(formers[e], truth, result.marks.back(), out, told);
        !found)
      return std::unexpected(found.error());
  }
  return result;
}

}  // namespace posenc
