// Printed frequencies beside those of the model, as far as their digits go.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>

#include "src/core/kept_as.h"
#include "src/core/pair_frequencies.h"
#include "src/core/try.h"
#include "src/explain/odd_pair.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {
namespace {

constexpr const char* compute_anew = "compute inv_freq anew when the weights have been loaded";

std::string of_three_digits(double number) {
  const double unit = std::pow(10, std::floor(std::log10(number)) - 2);
  return grouped(std::llround(std::round(number / unit) * unit));
}

// base^(2r/d) in place of base^(−2r/d).
std::optional<Finding> reciprocal(const std::vector<double>& printed,
                                  const std::vector<double>& resolution) {
  constexpr std::size_t few = 4;
  if (printed.size() < few || printed.front() != 1 || printed[1] <= 1) return std::nullopt;
  const auto count = static_cast<double>(printed.size());
  const double slope = std::log(printed.back()) / (count - 1);
  for (std::size_t r = 0; r < printed.size(); ++r) {
    const double meant = std::exp(slope * static_cast<double>(r));
    if (!(std::abs(printed[r] - meant) <= 2 * resolution[r] + 1e-3 * meant)) return std::nullopt;
  }
  return Finding{.code = "frequencies_reciprocal",
                 .position = 1,
                 .expected = "numbers from 1 down",
                 .found = "numbers from 1 up to " + shown(printed.back(), 4),
                 .message = "these are the reciprocals of the frequencies of base " +
                            of_three_digits(std::exp(slope * count)) +
                            ": the sign of the exponent, or the division 1 / x, was forgotten",
                 .cure = "inv_freq = 1 / base^(2r/d)"};
}

// Numbers that rise by one step, or by one factor: a rule made them, and not a text's.
std::optional<Finding> rising(const std::vector<double>& printed,
                              const std::vector<double>& resolution) {
  constexpr std::size_t few = 4;
  constexpr double alike = 1e-3;
  if (printed.size() < few || !(printed.front() > 0) || printed.back() <= printed.front())
    return std::nullopt;
  const auto steps = static_cast<double>(printed.size() - 1);
  const double step = (printed.back() - printed.front()) / steps,
               factor = std::pow(printed.back() / printed.front(), 1 / steps);
  bool even = true, by_factor = true;
  for (std::size_t r = 0; r < printed.size(); ++r) {
    const auto k = static_cast<double>(r);
    const auto is_near = [&](double meant) {
      return std::abs(printed[r] - meant) <= 2 * resolution[r] + alike * meant;
    };
    even = even && is_near(printed.front() + k * step);
    by_factor = by_factor && is_near(printed.front() * std::pow(factor, k));
  }
  if (!even && !by_factor) return std::nullopt;
  const bool of_pixels =
      std::abs(printed.front() - std::numbers::pi) < 2 * resolution.front() + alike;
  return Finding{
      .code = "frequencies_rising",
      .severity = Severity::warning,
      .position = 1,
      .expected = "numbers from 1 down",
      .found = shown(printed.front(), 5) + " to " + shown(printed.back(), 5),
      .message = even
                     ? "these rise evenly, by " + shown(step, 4) +
                           (of_pixels ? ": so freqs_for='pixel' makes them (linspace(1, max_freq / "
                                        "2) · π), for coordinates of pictures between −1 and 1"
                                      : ": a rule for coordinates, and none for positions of a "
                                        "text")
                     : "each is " + shown(factor, 4) +
                           " times the one before: so NeRF's features of coordinates have them",
      .cure = "right for coordinates; positions of a text want 1 / base^(2r/d)"};
}

// What no base and no scaling makes.
std::optional<Finding> without_a_base(const std::vector<double>& printed,
                                      const std::vector<double>& resolution) {
  const auto is_none = [](double number) { return !std::isfinite(number); };
  if (const auto none = std::ranges::count_if(printed, is_none); none > 0)
    return Finding{.code = "not_finite",
                   .position = 1,
                   .expected = "numbers from 1 down, each above 0",
                   .found = std::to_string(none) + " of " + std::to_string(printed.size()) +
                            " are NaN or infinite",
                   .message =
                       "the frequencies were never computed: inv_freq is saved with no "
                       "weights, and a model that is built without its initialisation "
                       "(meta device, low_cpu_mem_usage, FSDP's other ranks) holds memory "
                       "that nobody filled; every logit becomes NaN",
                   .cure = compute_anew};
  if (auto reversed = reciprocal(printed, resolution)) return reversed;
  if (auto ordered = rising(printed, resolution)) return ordered;
  if (std::ranges::count(printed, printed.front()) == std::ssize(printed))
    return Finding{.code = "frequencies_alike",
                   .position = 1,
                   .expected = "each pair slower than the one before",
                   .found = "all of them " + number_text(printed.front()),
                   .message =
                       "no base makes these: one number was written over all frequencies, "
                       "or memory that nobody filled holds it",
                   .cure = compute_anew};
  constexpr double least = 1e-30;  // of no base and no length
  const auto impossible = std::ranges::find_if(
      printed, [](double number) { return number < 0 || (number > 0 && number < least); });
  if (impossible != printed.end())
    return Finding{.code = "frequencies_unordered",
                   .position = 1,
                   .expected = "numbers from 1 down, each above 0",
                   .found = number_text(*impossible) + " for pair " +
                            std::to_string(impossible - printed.begin()),
                   .message = "no base and no scaling makes these: memory that nobody filled",
                   .cure = compute_anew};
  std::vector<std::int64_t> faster;
  for (std::size_t r = 1; r < printed.size(); ++r)
    if (printed[r] > printed[r - 1] + resolution[r] + resolution[r - 1])
      faster.push_back(static_cast<std::int64_t>(r));
  if (10 * faster.size() < printed.size()) return std::nullopt;
  return Finding{.code = "frequencies_unordered",
                 .position = 1,
                 .expected = "each pair slower than the one before",
                 .found = "pairs " + layer_list(faster) + " are faster",
                 .message = "no base and no scaling makes these: memory that nobody filled",
                 .cure = compute_anew};
}

// Numbers of four bits before the exponent and none below 2^-9: what float8 (e4m3) keeps.
bool is_of_float8(double number, double resolution) {
  constexpr int bits = 4, least = -9;
  if (number == 0) return true;
  int exponent = 0;
  std::frexp(number, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - bits, least));
  return std::abs(number - step * std::round(number / step)) <= 2 * resolution;
}

// Frequencies that were stored in eight bits: some are rounded by percents, and slow ones are none.
std::optional<Finding> kept_in_float8(const std::vector<double>& printed,
                                      const std::vector<double>& resolution) {
  const auto none = std::ranges::count(printed, 0.0);
  const auto many = std::ssize(printed);
  std::int64_t of_float8 = 0;
  for (std::size_t r = 0; r < printed.size(); ++r)
    of_float8 += is_of_float8(printed[r], resolution[r]) ? 1 : 0;
  if (of_float8 < many || none == 0 || many < 8) return std::nullopt;
  return Finding{.code = "frequencies_float8",
                 .position = 1,
                 .expected = "float32",
                 .found = std::to_string(none) + " of " + std::to_string(many) + " are 0",
                 .message =
                     "every frequency is a number of float8 (e4m3): a checkpoint that was "
                     "cast whole keeps them so; " +
                     std::to_string(none) +
                     " pairs do not turn at all, and the others turn by percents too much "
                     "or too little",
                 .cure = "compute them anew in float32 (base^(-r/" + std::to_string(many) +
                         ")), or cast weights alone to float8: leave out what is named freqs and "
                         "inv_freq"};
}

// Whether what was printed is this number, as far as its digits go.
bool prints(double printed, double resolution, double meant) {
  return std::abs(printed - meant) <= 2 * resolution + 1e-6 * std::abs(meant);
}

// Of as many of them as were printed, those that are other numbers.
std::vector<std::int64_t> pairs_off(const std::vector<double>& printed,
                                    const std::vector<double>& resolution,
                                    const std::vector<double>& meant) {
  std::vector<std::int64_t> pairs;
  for (std::size_t i = 0; i < printed.size(); ++i)
    if (!prints(printed[i], resolution[i], meant[i])) pairs.push_back(static_cast<std::int64_t>(i));
  return pairs;
}

// The model's own, cast with the weights.
std::optional<Finding> rounded(const std::vector<double>& printed,
                               const std::vector<double>& resolution,
                               const std::vector<double>& meant) {
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<double> kept;
    double most = 0;
    for (const double f : meant) {
      kept.push_back(kept_as(type, f));
      most = std::max(most, std::abs(kept.back() - f));
    }
    if (most == 0 || !pairs_off(printed, resolution, kept).empty()) continue;
    const std::string word(name(type));
    const auto from = static_cast<std::int64_t>(std::ceil(angle_that_shows / most));
    return Finding{.code = "frequencies_rounded",
                   .position = from,
                   .expected = "float32",
                   .found = word,
                   .message = "the frequencies are the file's, rounded to " + word +
                              ": the buffer was cast with the weights (model.to(torch." + word +
                              ")); beyond position " + grouped(from) +
                              " an angle is off by more than " + shown(angle_that_shows) + " rad",
                   .cure =
                       "keep inv_freq in float32, or compute it anew when the model has been "
                       "cast; cosines and sines alone may be cast"};
  }
  return std::nullopt;
}

// The base alone, where the file asks for a scaling besides.
std::optional<Finding> without_the_scaling(const LayerGroup& group,
                                           const std::vector<double>& printed,
                                           const std::vector<double>& resolution) {
  LayerGroup bare = group;
  std::string base, scaling;
  for (Scheme& scheme : bare.schemes)
    if (auto* rope = std::get_if<Rope>(&scheme);
        rope && !std::holds_alternative<Unscaled>(rope->scaling)) {
      base = "base " + number_text(rope->rope_theta);
      scaling = info(std::exchange(rope->scaling, Unscaled{})).name;
    }
  const Expected<Plan> plan = compile(bare);
  if (scaling.empty() || !plan || !plan->rotate ||
      !pairs_off(printed, resolution, frequencies_of(*plan->rotate)).empty())
    return std::nullopt;
  return Finding{
      .code = "inv_freq",
      .expected = base + ", scaling " + scaling,
      .found = base + ", no scaling",
      .message = "the frequencies are " + base + " without the " + scaling + " scaling of the file",
      .cure =
          "have the engine read the file's rope_scaling (rope_parameters): a buffer that is "
          "computed anew without the configuration has the base alone"};
}

// Of LongRoPE's two lists the one that this length does not want.
std::optional<Finding> of_the_other_list(const LayerGroup& group,
                                         const std::vector<double>& printed,
                                         const std::vector<double>& resolution,
                                         std::int64_t length) {
  const Rope* rope = rope_of(group);
  const auto* lists = rope ? std::get_if<LongRope>(&rope->scaling) : nullptr;
  if (!lists) return std::nullopt;
  const std::int64_t trained = lists->original_max_position_embeddings;
  const bool wants_long = length > trained;
  const Expected<Plan> other = compile(group, wants_long ? trained : trained + 1);
  if (!other || !other->rotate ||
      !pairs_off(printed, resolution, frequencies_of(*other->rotate)).empty())
    return std::nullopt;
  const std::string upto = grouped(trained);
  return Finding{
      .code = "longrope_list",
      .expected = wants_long ? "long_factor" : "short_factor",
      .found = wants_long ? "short_factor" : "long_factor",
      .message = wants_long ? "the frequencies are those of short_factor, and texts beyond " +
                                  upto + " tokens want those of long_factor"
                            : "the frequencies are those of long_factor, and texts up to " + upto +
                                  " tokens want those of short_factor",
      .cure =
          "build both tables, and choose by the length of the whole text at each forward pass; "
          "with one of them alone serve texts on its side of " +
          upto};
}

// Dynamic NTK's frequencies of a longer text: for how many tokens they were made; 0: for none.
std::int64_t length_of_dynamic(const LayerGroup& group, const std::vector<double>& printed,
                               const std::vector<double>& resolution) {
  const Rope* rope = rope_of(group);
  const auto* dynamic = rope ? std::get_if<DynamicNtk>(&rope->scaling) : nullptr;
  if (!dynamic || printed.size() < 2 || !(printed.back() > 0)) return 0;
  const auto pairs = static_cast<double>(printed.size());
  const double base = std::pow(printed.back(), -pairs / (pairs - 1)),
               growth = std::pow(base / rope->rope_theta, (pairs - 1) / pairs),
               tokens = static_cast<double>(dynamic->max_position_embeddings) *
                        (growth + dynamic->factor - 1) / dynamic->factor;
  if (!(tokens > 0 && tokens < 0x1p40)) return 0;
  const Expected<Plan> plan = compile(group, std::llround(tokens));
  const bool fits = plan && plan->rotate && plan->rotate->pairs() == std::ssize(printed) &&
                    pairs_off(printed, resolution, frequencies_of(*plan->rotate)).empty();
  return fits ? std::llround(tokens) : 0;
}

// Pairs that were printed as 0, where smaller numbers than theirs could be printed.
std::optional<Finding> that_stand_still(const LayerGroup& group, const std::vector<double>& printed,
                                        const std::vector<double>& resolution,
                                        const std::vector<double>& meant) {
  double finest = 0;  // half of the last digit of the smallest number
  for (std::size_t r = 0; r < printed.size(); ++r)
    if (printed[r] > 0) finest = resolution[r];
  std::vector<std::int64_t> still;
  for (std::size_t r = 0; r < printed.size(); ++r)
    if (printed[r] == 0 && meant[r] > 4 * finest) still.push_back(static_cast<std::int64_t>(r));
  const Rope* rope = rope_of(group);
  if (still.empty() || finest == 0 || !rope) return std::nullopt;
  constexpr double largest_half = 65504;
  const double power = std::pow(
      rope->rope_theta, static_cast<double>(still.front()) / static_cast<double>(printed.size()));
  const bool overflows =
      power > largest_half && still.back() - still.front() + 1 == std::ssize(still);
  return Finding{
      .code = "frequencies_zero",
      .position = 1,
      .expected = "each above 0",
      .found = "0",
      .message = "pairs " + layer_list(still) + " of " + std::to_string(printed.size()) +
                 " do not turn: " +
                 (overflows ? "base^(2r/d) was formed in float16, which ends at 65,504, so that "
                              "1 / x is 0"
                            : "something has overwritten them, or rounded them to 0"),
      .cure = "compute inv_freq in float32"};
}

// People print the first of them, which are so few.
constexpr std::ptrdiff_t few_frequencies = 16;

// One pair alone that has a frequency of its own.
std::optional<Finding> of_one_pair(std::int64_t pair, const std::vector<double>& printed,
                                   const std::vector<double>& resolution,
                                   const std::vector<double>& all) {
  const auto at = static_cast<std::size_t>(pair);
  const OddPair odd = odd_pair(pair, printed[at], resolution[at], all);
  if (odd.slower || std::ssize(printed) <= few_frequencies) return std::nullopt;
  return Finding{.code = "odd_pair",
                 .pair = pair,
                 .expected = shown(all[at], 5),
                 .found = shown(printed[at], 5),
                 .message = odd.message,
                 .cure = odd.cure};
}

// Of as many numbers as were printed before "..." the first, and of the others the last.
Finding beside_a_gap(const LayerGroup& group, const std::vector<double>& all,
                     const std::vector<double>& printed, const std::vector<double>& resolution,
                     std::int64_t before) {
  std::vector<double> meant(all.begin(), all.begin() + before);
  meant.insert(meant.end(), all.end() - (std::ssize(printed) - before), all.end());
  if (pairs_off(printed, resolution, meant).empty())
    return {.code = "inv_freq_agrees",
            .severity = Severity::note,
            .layers = group.layers,
            .message =
                "the first and the last frequencies that are printed are those of the file, "
                "as far as their digits go; what stands between is left out"};
  return {
      .code = "inv_freq",
      .layers = group.layers,
      .position = 1,
      .expected = "the file's",
      .found = "others, of those that are printed",
      .message = "the engine rotates by other frequencies than the file's base and scaling give",
      .cure = "posenc explain MODEL --pairs prints them; a scaling or a base was not read"};
}

Finding against(const LayerGroup& group, const Rotate& rotate, const std::vector<double>& printed,
                const std::vector<double>& resolution, std::int64_t length, std::int64_t gap) {
  const auto count = std::ssize(printed);
  if (gap > 0 && gap < count && rotate.pairs() > count)
    return beside_a_gap(group, frequencies_of(rotate), printed, resolution, gap);
  const bool first_alone = count < few_frequencies && count < rotate.pairs();
  if (rotate.pairs() != count && !first_alone)
    return {.code = "rotary_dim",
            .position = 1,
            .expected = std::to_string(rotate.pairs()) + " frequencies",
            .found = std::to_string(printed.size()),
            .message = "another part of a head rotates than the file says"};
  const std::vector<double> all = frequencies_of(rotate);
  if (auto still = that_stand_still(group, printed, resolution, all)) {
    still->layers = group.layers;
    return *std::move(still);
  }
  const std::vector<std::int64_t> pairs = pairs_off(printed, resolution, all);
  if (const std::int64_t tokens = pairs.empty() ? 0 : length_of_dynamic(group, printed, resolution);
      tokens > 0)
    return {.code = "inv_freq_agrees",
            .severity = Severity::note,
            .layers = group.layers,
            .message = "the printed frequencies are those of the file for a text of " +
                       grouped(tokens) +
                       " tokens: its dynamic scaling grows the base with the "
                       "length"};
  if (pairs.empty())
    return {.code = "inv_freq_agrees",
            .severity = Severity::note,
            .layers = group.layers,
            .message = "the printed frequencies are those of the file, as far as their digits go"};
  double most = 0;
  for (const std::int64_t r : pairs)
    most = std::max(
        most, std::abs(printed[static_cast<std::size_t>(r)] - all[static_cast<std::size_t>(r)]));
  const auto from = static_cast<std::int64_t>(std::ceil(angle_that_shows / most));
  if (auto cast = rounded(printed, resolution, all)) {
    cast->layers = group.layers;
    return *std::move(cast);
  }
  if (auto list = of_the_other_list(group, printed, resolution, length)) {
    list->layers = group.layers;
    list->position = from;
    return *std::move(list);
  }
  if (auto bare = without_the_scaling(group, printed, resolution)) {
    bare->layers = group.layers;
    bare->position = from;
    bare->message +=
        ": pairs " + layer_list(pairs) + " of " + std::to_string(rotate.pairs()) + " differ";
    return *std::move(bare);
  }
  if (auto odd =
          pairs.size() == 1 ? of_one_pair(pairs.front(), printed, resolution, all) : std::nullopt) {
    odd->layers = group.layers;
    odd->position = from;
    return *std::move(odd);
  }
  return {
      .code = "inv_freq",
      .layers = group.layers,
      .position = from,
      .expected = "the file's",
      .found = "pairs " + layer_list(pairs) + " of " + std::to_string(rotate.pairs()) + " differ",
      .message = "the engine rotates by other frequencies than the file's base and scaling give",
      .cure = "posenc explain MODEL --pairs prints them; a scaling or a base was not read"};
}

// One pair that leaves the ladder of a base. The base is that of all others, by the first and the
// last of them.
std::optional<Finding> leaves_the_ladder(const std::vector<double>& printed,
                                         const std::vector<double>& resolution) {
  constexpr std::ptrdiff_t few = 6;
  const std::ptrdiff_t count = std::ssize(printed);
  if (count < few || printed.front() != 1 || !(printed.back() > 0)) return std::nullopt;
  const double slope = std::log(printed.back()) / static_cast<double>(count - 1);
  std::optional<std::int64_t> odd;
  for (std::int64_t r = 0; r < count; ++r) {
    const double meant = std::exp(slope * static_cast<double>(r));
    const auto i = static_cast<std::size_t>(r);
    const double last = resolution.back() / printed.back() * meant;  // of the slope
    if (std::abs(printed[i] - meant) <= 2 * (resolution[i] + last) + 1e-5 * meant) continue;
    if (odd) return std::nullopt;
    odd = r;
  }
  if (!odd) return std::nullopt;
  std::vector<double> meant;
  meant.reserve(static_cast<std::size_t>(count));
  for (std::ptrdiff_t r = 0; r < count; ++r)
    meant.push_back(std::exp(slope * static_cast<double>(r)));
  const auto at = static_cast<std::size_t>(*odd);
  OddPair words = odd_pair(*odd, printed[at], resolution[at], meant);
  return Finding{.code = "odd_pair",
                 .severity = words.slower ? Severity::warning : Severity::error,
                 .pair = odd,
                 .expected = shown(meant[at], 5),
                 .found = shown(printed[at], 5),
                 .message = "of " + std::to_string(count) + " frequencies of base " +
                            shown(std::exp(-slope * static_cast<double>(count)), 3) + " " +
                            words.message,
                 .cure = std::move(words.cure)};
}

// Axes of a picture or a video, each with frequencies of its own: which one these are of.
std::optional<Finding> of_an_axis(const LayerGroup& group, const Rotate& rotate,
                                  const std::vector<double>& printed,
                                  const std::vector<double>& resolution) {
  constexpr std::string_view names[] = {"first axis", "second axis", "third axis", "fourth axis"};
  for (std::int64_t axis = 0; axis < std::min<std::int64_t>(rotate.frequencies.axes, 4); ++axis) {
    std::vector<double> meant;
    for (std::int64_t r = 0; r < rotate.pairs(); ++r)
      if (const double frequency = rotate.at(0, axis, r); frequency != 0)
        meant.push_back(frequency);
    if (meant.size() != printed.size()) continue;
    const std::vector<std::int64_t> pairs = pairs_off(printed, resolution, meant);
    const std::string whose = std::string(names[axis]);
    if (pairs.empty())
      return Finding{.code = "inv_freq_agrees",
                     .severity = Severity::note,
                     .stack = group.stack,
                     .layers = group.layers,
                     .message = "the printed frequencies are those of the " + whose +
                                ", as far as their digits go"};
    if (auto odd = leaves_the_ladder(printed, resolution); odd && pairs.size() == 1) {
      odd->stack = group.stack;
      odd->layers = group.layers;
      odd->message = whose + ": " + odd->message;
      return odd;
    }
  }
  return std::nullopt;
}

// Of layers of several kinds those count that the numbers are nearest to; kinds of which the same
// is to be said are one.
void keep_nearest(Finding found, std::optional<Finding>& nearest) {
  const auto rank = [](const Finding& one) {
    return one.severity == Severity::note ? 2 : one.code == "rotary_dim" ? 0 : 1;
  };
  if (!nearest || rank(found) > rank(*nearest)) {
    nearest = std::move(found);
    return;
  }
  std::vector<std::int64_t> layers = std::exchange(found.layers, nearest->layers);
  if (found == *nearest) {
    nearest->layers.insert(nearest->layers.end(), layers.begin(), layers.end());
    std::ranges::sort(nearest->layers);
  } else if (rank(found) == rank(*nearest) && rank(found) > 0) {
    found.layers = std::move(layers);
    nearest = std::move(found);
  }
}

}  // namespace

Expected<std::optional<Finding>> compare_frequencies(const Model* model, std::string_view text,
                                                     std::int64_t length) {
  std::vector<double> resolution;
  POSENC_TRY(printed, read_printed_frequencies(text, &resolution));
  std::optional<Finding> of_axis;
  if (model)
    for (const LayerGroup& group : model->groups)
      if (const auto plan = compile(group, length);
          !of_axis && plan && plan->rotate && plan->rotate->frequencies.axes > 1)
        of_axis = of_an_axis(group, *plan->rotate, printed, resolution);
  if (of_axis) return of_axis;
  if (!model)
    if (auto odd = leaves_the_ladder(printed, resolution)) return odd;
  if (auto strange = without_a_base(printed, resolution)) return strange;
  if (auto rounded = kept_in_float8(printed, resolution)) return rounded;
  std::optional<Finding> nearest;
  if (!model) return nearest;
  const std::int64_t gap = numbers_before_gap(text);
  for (const LayerGroup& group : model->groups)
    if (const auto plan = compile(group, length); plan && plan->rotate && !is_tower(group.stack))
      keep_nearest(against(group, *plan->rotate, printed, resolution, length, gap), nearest);
  return nearest;
}

}  // namespace posenc::detail
