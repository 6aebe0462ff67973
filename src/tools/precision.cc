// Angles in float as engines form them, beside the same in long double.
// A scan of a million positions would form hundreds of millions of angles, nearly all of them near
// the truth. Where an engine's roundings bound how far an angle can be off, only those are formed
// that can be off by what is sought.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/kept_as.h"

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

constexpr float turns_of_a_radian = 0.15915494F;

// What all engines are measured against.
class Truth {
 public:
  explicit Truth(const std::vector<long double>& frequency) {
    for (const long double f : frequency) {
      high_.push_back(static_cast<float>(f));
      low_.push_back(static_cast<double>(f - static_cast<long double>(high_.back())));
    }
  }
  std::size_t pairs() const { return high_.size(); }
  double frequency(std::size_t pair) const { return high_[pair] + low_[pair]; }
  double angle(std::int64_t position, std::size_t pair) const {
    const auto p = static_cast<double>(position);
    return p * high_[pair] + p * low_[pair];
  }
  // The angle less the true one. Positions are below 2^24, so that one product is exact and the
  // other is nearly.
  double off(double angle, std::int64_t position, std::size_t pair) const {
    const auto p = static_cast<double>(position);
    return (angle - p * high_[pair]) - p * low_[pair];
  }

 private:
  std::vector<double> high_;  // a float's bits of it
  std::vector<double> low_;   // the rest
};

// Half a unit in the last place of floats up to x.
double half_unit(double x) {
  constexpr int bits = std::numeric_limits<float>::digits;
  return x > 0 ? std::ldexp(1.0, std::ilogb(x) - bits) : 0;
}

// Angles of a stretch of positions, [position][pair].
class Former {
 public:
  Former(const FloatEngine& engine, Plan plan, const Truth& truth)
      : engine_(engine), plan_(std::move(plan)) {
    const Rotate& rotate = *plan_.rotate;
    for (std::int64_t r = 0; r < rotate.pairs(); r++) {
      double frequency = 0;
      for (std::int64_t axis = 0; axis < rotate.frequencies.axes; axis++)
        frequency += rotate.at(0, axis, r);
      float_.push_back(static_cast<float>(frequency));
      narrow_.push_back(narrow(float_.back()));
    }
    // Of powers of two ggml rounds as it does of 1, so that this is what its way from pair to pair
    // drifts by.
    std::vector<double> first;
    if (engine.angles != Angles::ggml_float || !form(1, 1, first)) return;
    for (std::size_t r = 0; r < first.size(); r++)
      drift_.push_back(std::abs(truth.off(first[r], 1, r)));
  }

  // How far an angle up to that position may be off.
  double most_off(const Truth& truth, std::int64_t position, std::size_t pair) const {
    const auto p = static_cast<double>(position);
    const double angle = std::abs(truth.angle(position, pair)) * (1 + 0x1p-20);
    if (engine_.angles == Angles::ggml_float) {
      if (drift_.empty()) return std::numeric_limits<double>::infinity();
      constexpr double others = 8;  // roundings beside one a pair
      return p * drift_[pair] + 2 * (static_cast<double>(pair) + others) * half_unit(angle);
    }
    const bool by_bfloat16 =
        engine_.slip == Slip::narrow_frequency || engine_.slip == Slip::narrow_everything;
    if (by_bfloat16) return std::numeric_limits<double>::infinity();
    const double product = p * std::abs(float_[pair] - truth.frequency(pair)) + half_unit(angle);
    if (engine_.slip != Slip::fast_sines) return product;
    constexpr double turn = 2 * std::numbers::pi;
    return product + angle * std::abs(turn * turns_of_a_radian - 1) +
           turn * half_unit(angle / turn);
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
      for (double& angle : angles) angle = with_fast_sines(static_cast<float>(angle));
      return {};
    }
    for (std::size_t i = 0; i < angles.size(); i++)
      angles[i] = narrowed(begin + static_cast<std::int64_t>(i / pairs), i % pairs);
    return {};
  }
  // Whether an angle depends on its position and pair alone, as formed() does.
  bool forms_one() const { return engine_.angles == Angles::hf_float; }
  double formed(std::int64_t position, std::size_t pair) const {
    if (engine_.slip == Slip::none || engine_.slip == Slip::fast_sines) {
      const float angle = static_cast<float>(position) * float_[pair];
      return engine_.slip == Slip::none ? angle : with_fast_sines(angle);
    }
    return narrowed(position, pair);
  }

 private:
  static double with_fast_sines(float angle) {
    return 2 * std::numbers::pi * (angle * turns_of_a_radian);
  }
  double narrowed(std::int64_t at, std::size_t pair) const {
    const bool everything = engine_.slip == Slip::narrow_everything;
    const auto position = static_cast<float>(at);
    const float angle = (everything ? narrow(position) : position) * narrow_[pair];
    return everything ? narrow(angle) : angle;
  }

  const FloatEngine& engine_;
  Plan plan_;
  std::vector<float> float_, narrow_;  // frequencies
  std::vector<double> drift_;          // of ggml at position 1
};

// How far the angle that a kept cosine and sine have is from the true one, whole turns aside.
double off_as_kept(DType dtype, double angle, double off) {
  const double kept =
      std::atan2(detail::kept_as(dtype, std::sin(angle)), detail::kept_as(dtype, std::cos(angle)));
  return std::abs(std::remainder(kept - std::remainder(angle, 2 * std::numbers::pi) + off,
                                 2 * std::numbers::pi));
}

// 16 bits move an angle by less, so that nearer ones need no cosine.
constexpr double most_rounding = 0.01;

// What one angle adds to the firsts that are sought.
void note_firsts(double angle, double off, std::int64_t position, EngineError& out) {
  const auto note = [&](std::optional<std::int64_t>& first, double least) {
    if (std::abs(off) > least) first = std::min(first.value_or(position), position);
  };
  note(out.beyond_half, half_rounding);
  note(out.beyond_bfloat16, bfloat16_rounding);
  if (std::abs(off) < angle_that_shows - most_rounding) return;
  for (KeptError& kept : out.kept)
    if (kept.shows.value_or(position) >= position &&
        off_as_kept(kept.dtype, angle, off) > angle_that_shows)
      kept.shows = position;
}

// The least that is still sought; absent: all are found.
std::optional<double> least_sought(const EngineError& out) {
  if (!out.beyond_half) return half_rounding;
  if (!out.beyond_bfloat16) return bfloat16_rounding;
  for (const KeptError& kept : out.kept)
    if (!kept.shows) return angle_that_shows - most_rounding;
  return {};
}

// Positions of a window of so many pairs, which fits into a cache.
std::int64_t window_of(std::size_t pairs) {
  constexpr std::int64_t most = 1 << 16;
  return std::clamp<std::int64_t>(most / static_cast<std::int64_t>(pairs), 1, PhaseErrors::window);
}

// The first positions from which on an angle is off by more than 16 bits round, and by one that
// shows.
Expected<void> find_firsts(const Former& former, const Truth& truth, std::int64_t end,
                           EngineError& out, const std::function<void(double)>& tell) {
  const std::size_t pairs = truth.pairs();
  const std::int64_t window = window_of(pairs);
  std::vector<double> angles;
  std::vector<std::size_t> near;  // pairs that may be off by `least` before position `known`
  std::int64_t known = 0;
  double least = 0;
  const auto find_near = [&](std::int64_t last) {
    known = last;
    near.clear();
    for (std::size_t r = 0; r < pairs; r++)
      if (former.most_off(truth, last, r) > least) near.push_back(r);
    return !near.empty();
  };
  for (std::int64_t begin = 0; begin < end;) {
    const std::optional<double> sought = least_sought(out);
    if (!sought) break;
    const std::int64_t count = std::min(window, end - begin);
    if (*sought != least || begin + count > known) {
      least = *sought;
      // What holds a bit further on holds for many windows.
      if (!find_near(begin + count + begin / 16)) {
        begin = known;
        continue;
      }
    }
    if (!former.forms_one()) {
      if (Expected<void> formed = former.form(begin, count, angles); !formed) return formed;
    }
    for (std::int64_t position = begin; position < begin + count; position++) {
      const double* const row =
          former.forms_one() ? nullptr
                             : angles.data() + static_cast<std::size_t>(position - begin) * pairs;
      for (const std::size_t r : near) {
        const double angle = row ? row[r] : former.formed(position, r);
        const double off = truth.off(angle, position, r);
        if (std::abs(off) > least) note_firsts(angle, off, position, out);
      }
    }
    begin += count;
    if (tell) tell(static_cast<double>(begin) / static_cast<double>(end));
  }
  return {};
}

// cos and sin of an angle that is `off` from one of which they are known.
struct CosSin {
  double cosine, sine;
  CosSin near(double angle, double off) const {
    constexpr double most = 0.25;
    if (!(std::abs(off) < most)) return {std::cos(angle), std::sin(angle)};
    const double x = off * off;  // Taylor, good to 1e-17
    const double c = 1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56 * (1 - x / 90)))),
                 s = off * (1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72 * (1 - x / 110)))));
    return {cosine * c - sine * s, sine * c + cosine * s};
  }
};

// The largest errors of an engine among the positions before a mark.
struct Largest {
  double phase = 0;
  std::array<double, std::size(kept_types)> kept = {};
};

// Angles of positions [begin, begin + count), whose true cosines and sines are given.
void note_window(const Truth& truth, std::int64_t begin, const std::vector<double>& angles,
                 const std::vector<CosSin>& right, const EngineError& engine, Largest& largest) {
  const std::size_t pairs = truth.pairs();
  for (std::size_t i = 0; i < angles.size(); i++) {
    const double off =
        truth.off(angles[i], begin + static_cast<std::int64_t>(i / pairs), i % pairs);
    largest.phase = std::max(largest.phase, std::abs(off));
    const CosSin& truly = right[i];
    const CosSin made = truly.near(angles[i], off);
    for (std::size_t k = 0; k < engine.kept.size(); k++) {
      const DType dtype = engine.kept[k].dtype;
      largest.kept[k] =
          std::max({largest.kept[k], std::abs(detail::kept_as(dtype, made.cosine) - truly.cosine),
                    std::abs(detail::kept_as(dtype, made.sine) - truly.sine)});
    }
  }
}

// Of all engines, each added to its lists: in `window` positions before the mark, or in fewer that
// are spread over them where there would be more than `most` angles.
Expected<void> measure_mark(std::int64_t mark, std::int64_t most, const Truth& truth,
                            const std::vector<Former>& formers, std::vector<EngineError>& engines) {
  const std::int64_t all = std::min(PhaseErrors::window, mark),
                     pairs = static_cast<std::int64_t>(truth.pairs()),
                     step = std::max<std::int64_t>(1, all * pairs / most),
                     count = step > 1 ? 1 : std::min(window_of(truth.pairs()), all);
  std::vector<Largest> largest(formers.size());
  std::vector<double> angles;
  std::vector<CosSin> right;
  for (std::int64_t begin = mark - all; begin < mark; begin += std::max(step, count)) {
    const std::int64_t some = std::min(count, mark - begin);
    right.clear();
    for (std::int64_t position = begin; position < begin + some; position++) {
      for (std::size_t r = 0; r < truth.pairs(); r++) {
        const double angle = truth.angle(position, r);
        const CosSin rounded{std::cos(angle), std::sin(angle)};
        right.push_back(rounded.near(angle, -truth.off(angle, position, r)));
      }
    }
    for (std::size_t e = 0; e < formers.size(); e++) {
      if (!engines[e].refused.empty()) continue;
      if (Expected<void> formed = formers[e].form(begin, some, angles); !formed) return formed;
      note_window(truth, begin, angles, right, engines[e], largest[e]);
    }
  }
  // The largest up to the mark: an error that shrank again still happened.
  const auto add = [](std::vector<double>& list, double error) {
    list.push_back(std::max(list.empty() ? 0 : list.back(), error));
  };
  for (std::size_t e = 0; e < formers.size(); e++) {
    if (!engines[e].refused.empty()) continue;
    add(engines[e].phase, largest[e].phase);
    for (std::size_t k = 0; k < engines[e].kept.size(); k++)
      add(engines[e].kept[k].error, largest[e].kept[k]);
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
  const Truth truth(scaled->frequency);

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
      formers.emplace_back(engine, *compile(group, asked), truth);
      continue;
    }
    formers.emplace_back(engine, *plan, truth);
    for (const DType dtype : engine.kept) out.kept.push_back({.dtype = dtype});
  }

  for (std::size_t m = 0; m < result.marks.size(); m++) {
    constexpr std::int64_t most_angles = 1 << 21;  // half a second
    const std::int64_t most = most_angles / std::ssize(result.marks);
    if (Expected<void> done = measure_mark(result.marks[m], most, truth, formers, result.engines);
        !done)
      return std::unexpected(done.error());
    if (tell) tell(0.9 * static_cast<double>(m + 1) / static_cast<double>(result.marks.size()));
  }
  const auto part = [&](std::size_t e, double done) {
    if (tell)
      tell(0.9 + 0.1 * (static_cast<double>(e) + done) / static_cast<double>(formers.size()));
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
