#include "src/identify/explain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "src/explain/odd_pair.h"
#include "src/explain/text.h"
#include "src/identify/frequency_fit.h"
#include "src/identify/precision.h"

namespace posenc::detail {
namespace {

// Frequencies that are off by less, in units of what the dump resolves, are explained.
constexpr double explains = 3;

class Explanation {
 public:
  Explanation(const Measurement& in, Identified& out) : in_(in), out_(out) {}

  void run() {
    std::vector<Measured> measured;
    std::int64_t first_unseen = -1;
    for (const IdentifiedPair& pair : out_.pairs) {
      const double f = static_cast<double>(out_.sign) * pair.frequency;
      if (f > 4 * pair.resolution) measured.push_back({pair_index(out_, pair), f, pair.resolution});
    }
    std::vector<FrequencyFit> fits = fitted(measured);
    if (!fits.empty() && fits.front().misfit > explains) try_rounded(measured, fits);
    if (!fits.empty() && fits.front().misfit > explains) try_twice(measured, fits);
    if (!fits.empty() && fits.front().misfit > explains) try_restart(measured, fits);
    if (!fits.empty() && fits.front().misfit > explains) try_repeated(measured, fits);
    if (!fits.empty() && fits.front().misfit > explains) try_odd(measured, fits);
    if ((fits.empty() || fits.front().misfit > explains) && tell_unordered()) return;
    if (fits.empty()) return;
    constexpr double largest_base = 1e12;  // no model has one near it
    if (fits.front().misfit > explains && fits.front().base > largest_base)
      return say(
          "frequencies: no base and no scaling that are known explain them; were the "
          "positions those of these tokens? Those of a picture come by axis (--positions)");
    const std::int64_t turning = try_proportional(measured, fits);
    out_.frequencies = fits.front();
    if (fits.size() > 1) out_.runner_up = fits[1];
    if (fits.front().misfit < explains) out_.angles = forms(fits.front());
    tell_rounded();
    tell_ntk_of_gte();
    if (measured.size() < 4)
      say("scaling: " + std::to_string(measured.size()) +
          " pairs are seen, too few to tell; dump more tokens, or farther ones");
    else if (fits.front().misfit > explains)
      say("scaling: none that is known explains the frequencies");
    else if (fits.size() > 1 && fits[1].misfit < explains)
      say("scaling: " + std::string(info(fits[1].scaling).name) + " with base " +
          shown(fits[1].base, 6) + " explains the pairs that are seen as well");
    std::vector<bool> seen(static_cast<std::size_t>(out_.rotary_dim / 2));
    for (const Measured& m : measured)
      if (m.pair >= 0 && m.pair < std::ssize(seen)) seen[static_cast<std::size_t>(m.pair)] = true;
    std::int64_t unseen = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(turning); ++r) {
      if (seen[r] || tell_still(static_cast<std::int64_t>(r), measured, fits.front())) continue;
      ++unseen;
      if (first_unseen < 0) first_unseen = static_cast<std::int64_t>(r);
    }
    if (unseen == 0) return;
    const double slowest =
        std::pow(fits.front().base, 2.0 / static_cast<double>(out_.rotary_dim) - 1);
    // No base tells how slow the others are where none explains those that are seen.
    const bool known = fits.front().misfit < explains;
    say(std::to_string(unseen) + " of " + std::to_string(seen.size()) + " pairs, from pair " +
        std::to_string(first_unseen) + " on, rotated less than the noise" +
        (known ? "; a dump of positions up to " + shown(std::ceil(8 * in_.spread / slowest), 2) +
                     " would show them all"
               : ""));
  }

 private:
  void say(std::string sentence) { out_.cannot_tell.push_back(std::move(sentence)); }

  // Frequencies that rise again and again are made by no rule.
  bool tell_unordered() {
    constexpr std::size_t few = 3;
    if (out_.pairs.size() < few || out_.axis_layout != AxisLayout::one) return false;
    std::vector<std::int64_t> faster;
    for (std::size_t r = 1; r < out_.pairs.size(); ++r) {
      const IdentifiedPair &before = out_.pairs[r - 1], &pair = out_.pairs[r];
      if (std::abs(pair.frequency) >
          std::abs(before.frequency) + 4 * (pair.resolution + before.resolution))
        faster.push_back(pair_index(out_, pair));
    }
    if (10 * faster.size() < out_.pairs.size()) return false;
    out_.findings.push_back(
        {.code = "frequencies_unordered",
         .expected = "each pair slower than the one before",
         .found = "pairs " + layer_list(faster) + " of " + std::to_string(out_.rotary_dim / 2) +
                  " are faster",
         .message = "no base and no scaling makes these: memory that nobody filled. inv_freq is "
                    "saved with no weights, and a model that is built without its initialisation "
                    "(meta device, low_cpu_mem_usage) must compute it afterwards",
         .cure = "compute inv_freq anew when the weights have been loaded"});
    return true;
  }

  // Pairs that stand still where their neighbours' frequencies would show do not turn at all.
  // Returns how many do.
  std::int64_t try_proportional(const std::vector<Measured>& measured,
                                std::vector<FrequencyFit>& fits) {
    const std::int64_t pairs = out_.rotary_dim / 2, last = measured.back().pair + 1;
    FrequencyFit& fit = fits.front();
    if (!std::holds_alternative<Unscaled>(fit.scaling) || fit.misfit > explains || last >= pairs ||
        out_.axis_layout != AxisLayout::one)
      return pairs;
    const double next = of_base(fit.base, last);
    if (next * usual_position() < 16 * in_.spread) return pairs;
    // No scheme leaves out a pair or two.
    constexpr std::int64_t few = 2;
    if (pairs - last <= few) {
      for (std::int64_t pair = last; pair < pairs; ++pair)
        if (holds_numbers(pair)) tell_pair_still(pair, fit);
      return last;
    }
    fit.scaling = Proportional{.partial_rotary_factor =
                                   static_cast<double>(last) / static_cast<double>(pairs)};
    // Others would turn what stands still.
    std::erase_if(fits, [&](const FrequencyFit& other) {
      if (&other == &fits.front()) return false;
      const std::vector<double> made = frequencies_of(other);
      const auto still = static_cast<std::size_t>(last);
      return other.misfit > 10 ||
             (still < made.size() && made[still] * usual_position() > 4 * in_.spread);
    });
    say("pairs " + std::to_string(last) + " to " + std::to_string(pairs - 1) +
        ": they stand still, by design (proportional RoPE, as in Gemma 4's wide layers) or since "
        "the buffer of frequencies was filled in part");
    return last;
  }

  // A pair that stands still while slower ones are seen to turn.
  bool tell_still(std::int64_t pair, const std::vector<Measured>& measured,
                  const FrequencyFit& fit) {
    if (fit.misfit > explains || measured.empty() || measured.back().pair < pair) return false;
    if (out_.axis_layout != AxisLayout::one) return false;
    // The dump would show it turn, as try_proportional() asks; channels of zeros show nothing.
    if (of_base(fit.base, pair) * usual_position() < 16 * in_.spread) return false;
    if (!holds_numbers(pair)) return false;
    tell_pair_still(pair, fit);
    return true;
  }
  // Channels of zeros show no rotation.
  bool holds_numbers(std::int64_t pair) {
    const bool neighbours = out_.pairing == Pairing::interleaved;
    const std::int64_t a = out_.first_dim + (neighbours ? 2 * pair : pair),
                       b = neighbours ? a + 1 : a + out_.rotary_dim / 2;
    if (b >= in_.dump.dim) return false;
    const std::vector<double>& most = largest_by_channel();
    return std::max(most[static_cast<std::size_t>(a)], most[static_cast<std::size_t>(b)]) >
           1e-3 * std::ranges::max(most);
  }
  const std::vector<double>& largest_by_channel() {
    if (!largest_.empty()) return largest_;
    largest_.resize(static_cast<std::size_t>(in_.dump.dim));
    for (std::int64_t head = 0; head < in_.dump.heads; ++head)
      for (std::int64_t token = 0; token < in_.dump.tokens; ++token)
        for (std::int64_t channel = 0; channel < in_.dump.dim; ++channel) {
          double& largest = largest_[static_cast<std::size_t>(channel)];
          largest = std::max(largest, std::abs(in_.dump.is(head, token, channel)));
        }
    return largest_;
  }
  void tell_pair_still(std::int64_t pair, const FrequencyFit& fit) {
    const std::vector<double> meant = frequencies_of(fit);
    if (pair >= std::ssize(meant)) return;
    const double own = meant[static_cast<std::size_t>(pair)];
    const std::string rule = rule_of(fit);
    for (const IdentifiedPair& one : out_.pairs) {
      const double f = static_cast<double>(out_.sign) * one.frequency;
      if (pair_index(out_, one) == pair && f < -4 * one.resolution)
        return tell_pair_backwards(pair, own, f, rule);
    }
    out_.findings.push_back(
        {.code = "odd_pair",
         .pair = pair,
         .expected = shown(own, 5),
         .found = "0",
         .message = "pair " + std::to_string(pair) + " of " + std::to_string(out_.rotary_dim / 2) +
                    " stands still, and all others rotate by " + rule,
         .cure = "see that the table has rotary_dim / 2 frequencies, and that none is "
                 "overwritten"});
  }

  // "base 500,000", "base 500,000 and llama3 scaling".
  static std::string rule_of(const FrequencyFit& fit) {
    const bool plain = std::holds_alternative<Unscaled>(fit.scaling) ||
                       std::holds_alternative<Proportional>(fit.scaling);
    return "base " + shown(fit.base, 6) +
           (plain ? "" : " and " + std::string(info(fit.scaling).name) + " scaling");
  }

  void tell_pair_backwards(std::int64_t pair, double own, double frequency,
                           const std::string& rule) {
    out_.findings.push_back(
        {.code = "odd_pair",
         .pair = pair,
         .expected = shown(own, 5),
         .found = shown(frequency, 5),
         .message = "pair " + std::to_string(pair) + " of " + std::to_string(out_.rotary_dim / 2) +
                    " turns backwards, and all others forwards by " + rule +
                    ": its sine has the other sign",
         .cure = "see which sign its sine is multiplied by, and that no row of its weights was "
                 "negated"});
  }

  // GTE's ntk by s of base b is base b·s and a divisor s^(2/d), which no linear scaling has.
  void tell_ntk_of_gte() {
    const auto* linear = std::get_if<Linear>(&out_.frequencies->scaling);
    constexpr double most_factor = 64, near = 2e-3;
    constexpr std::size_t round = 4;  // digits that a factor has which somebody wrote
    if (!linear || out_.frequencies->misfit > explains ||
        significant_digits(linear->factor) < round)
      return;
    const double s = std::pow(linear->factor, static_cast<double>(out_.rotary_dim) / 2),
                 whole = std::round(2 * s) / 2;
    if (whole <= 1 || whole > most_factor || std::abs(s / whole - 1) > near) return;
    const double base = std::round(out_.frequencies->base / whole);
    if (significant_digits(base) > round) return;
    out_.findings.push_back(
        {.code = "ntk",
         .severity = Severity::note,
         .message = "base " + shown(out_.frequencies->base, 6) + " and a divisor of " +
                    shown(linear->factor, 6) + " are GTE's ntk by " + number_text(whole) +
                    " of base " + number_text(base) +
                    ": (b·s)^(−2r/d) / s^(2/d), as vLLM's type ntk has it, too"});
  }

  // Rotated once more, every pair turns twice as fast; no scheme makes pair 0 turn by more than 1.
  void try_twice(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    if (measured.front().pair != 0 || measured.front().frequency < 1.5) return;
    std::vector<Measured> once = measured;
    for (Measured& m : once) m.frequency /= 2, m.resolution /= 2;
    std::vector<FrequencyFit> halved = fit_frequencies(once, out_.rotary_dim);
    if (halved.empty() || halved.front().misfit > explains) return;
    fits = std::move(halved);
    out_.findings.push_back(
        {.code = "rotated_twice",
         .pair = 0,
         .expected = "1",
         .found = shown(measured.front().frequency, 6),
         .message = "every pair turns by twice the angle of this base: rotated once more, or by "
                    "positions that are doubled",
         .cure = "rotate once: a cache of rotated keys is not rotated again when it is read"});
  }

  // Each axis with frequencies of its own, from 1 on: the first pair of each is fast, so that where
  // it begins is seen.
  void try_restart(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    const std::int64_t pairs = out_.rotary_dim / 2, axes = std::ssize(out_.axis_pairs);
    if (axes < 2) return;
    const bool interleaved = out_.axis_layout == AxisLayout::interleaved;
    std::vector<std::vector<Measured>> of_axis(static_cast<std::size_t>(axes));
    std::vector<std::int64_t> begin(static_cast<std::size_t>(axes), pairs);
    for (const Measured& m : measured) {
      const std::int64_t axis = axis_of(m.pair);
      if (axis < 0) continue;
      const auto k = static_cast<std::size_t>(axis);
      begin[k] = std::min(begin[k], m.pair);
      of_axis[k].push_back(m);
      of_axis[k].back().pair = interleaved ? m.pair / axes : m.pair - begin[k];
    }
    std::optional<FrequencyFit> common;
    for (std::size_t k = 0; k < of_axis.size(); ++k) {
      if (of_axis[k].empty()) continue;  // it shows nothing
      std::int64_t end = pairs;
      for (const std::int64_t other : begin)
        if (other > begin[k]) end = std::min(end, other);
      const std::vector<FrequencyFit> own =
          fit_frequencies(of_axis[k], interleaved ? 2 * (pairs / axes) : 2 * (end - begin[k]));
      if (own.empty() || own.front().misfit > explains) return;
      if (common && common->base != own.front().base) return;
      if (!common || common->misfit < own.front().misfit) common = own.front();
    }
    if (!common) return;
    fits = {*common};
    out_.axes_restart = true;
  }

  // The second half of the pairs turns as the first, by the same position: what was to be another
  // axis's.
  void try_repeated(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    const std::int64_t half = out_.rotary_dim / 4;
    if (out_.rotary_dim % 4 != 0 || half < 2) return;
    std::vector<Measured> first;
    std::int64_t both = 0, alike = 0;
    for (const Measured& m : measured) {
      if (m.pair < half) {
        first.push_back(m);
        continue;
      }
      const auto twin = std::ranges::find(first, m.pair - half, &Measured::pair);
      if (twin == first.end() || axis_of(m.pair) != axis_of(twin->pair)) continue;
      ++both;
      alike +=
          std::abs(m.frequency - twin->frequency) <= 4 * (m.resolution + twin->resolution) ? 1 : 0;
    }
    if (both < 2 || alike < both) return;
    std::vector<FrequencyFit> own = fit_frequencies(first, 2 * half);
    if (own.empty() || own.front().misfit > explains) return;
    fits = std::move(own);
    out_.findings.push_back(
        {.code = "axis_repeated",
         .pair = half,
         .message = "pairs " + std::to_string(half) + " to " + std::to_string(2 * half - 1) +
                    " turn as those before them, by the same position: of the two axes of a "
                    "picture one turns both halves, and the other none",
         .cure = "turn the second half by the other axis's ids (width beside height); where both "
                 "axes had equal ids here, dump a picture that is not a column or a diagonal"});
  }

  std::int64_t axis_of(std::int64_t index) const {
    for (const IdentifiedPair& pair : out_.pairs)
      if (pair_index(out_, pair) == index) return pair.axis;
    return -1;
  }

  double usual_position() const {
    double square = 0;
    for (const std::int64_t p : in_.dump.positions.front())
      square += static_cast<double>(p) * static_cast<double>(p);
    return std::sqrt(square / static_cast<double>(in_.dump.tokens));
  }

  // How far the pair that is off most comes, of those that the dump shows.
  void tell_rounded_frequencies(bool narrow) {
    const FrequencyFit& fit = *out_.frequencies;
    const std::vector<double> made = frequencies_of(fit);
    std::int64_t worst = 0;
    double by = 0;
    for (const IdentifiedPair& one : out_.pairs) {
      const std::int64_t pair = pair_index(out_, one);
      if (pair < 0 || pair >= std::ssize(made)) continue;
      const auto exact = static_cast<float>(made[static_cast<std::size_t>(pair)]);
      const float kept = narrow ? bfloat16_to_float(float_to_bfloat16(exact))
                                : half_to_float(float_to_half(exact));
      const double off = std::abs(static_cast<double>(kept) - static_cast<double>(exact));
      if (off > by) worst = pair, by = off;
    }
    constexpr double shows = 0.1, far = 4096;  // radians, positions
    if (by * far < shows) return;
    out_.findings.push_back(
        {.code = "frequencies_rounded",
         .severity = Severity::warning,
         .pair = worst,
         .position = static_cast<std::int64_t>(std::ceil(shows / by)),
         .expected = "float32",
         .found = narrow ? "bfloat16" : "float16",
         .message = "inv_freq was rounded to " + std::string(narrow ? "bfloat16" : "float16") +
                    ", as model.half() and model.to() do to a buffer: pair " +
                    std::to_string(worst) + " is off by " + shown(by * far, 2) +
                    " rad at position 4,096, and by more beyond",
         .cure = "keep inv_freq in float32: compute it anew when the model has been converted"});
  }

  void tell_tf32() {
    constexpr std::int64_t whole = 2048;  // the last of consecutive integers
    out_.findings.push_back(
        {.code = "angles_rounded",
         .severity = Severity::warning,
         .position = whole / 8,
         .expected = "float32 or double",
         .found = "TF32",
         .message = "positions and frequencies were rounded to 11 binary digits, as a matrix "
                    "product in TF32 reads them: a fast pair is off by up to 0.12 rad beyond "
                    "position " +
                    grouped(whole / 8) + ", and beyond " + grouped(whole) +
                    " neighbours have one angle",
         .cure = "multiply element by element (positions[:, None] * inv_freq), or let no TF32 into "
                 "that product: torch.backends.cuda.matmul.allow_tf32 = False"});
  }

  // Angles that 16 bits cannot hold, where nothing else explains them.
  void tell_rounded() {
    if (out_.angles.size() != 1) return;
    const std::string& form = out_.angles.front();
    if (form == "tf32") return tell_tf32();
    const bool narrow = form.starts_with("bfloat16"), positions = form.ends_with("_positions");
    if (!narrow && !form.starts_with("float16")) return;
    // Rounded angles begin at no whole number, though the positions are right.
    if (!in_.repeated && !out_.offset) {
      out_.offset = 0;
      std::erase_if(out_.cannot_tell, [](const std::string& sentence) {
        return sentence.starts_with("offset: no whole number");
      });
    }
    if (form.ends_with("_frequencies")) return tell_rounded_frequencies(narrow);
    const std::string type = narrow ? "bfloat16" : "float16";
    const std::int64_t whole = narrow ? 256 : 2048;  // the last of consecutive integers
    out_.findings.push_back(
        {.code = "angles_rounded",
         .severity = Severity::warning,
         .position = positions ? whole + 1 : whole / 8,
         .expected = "float32 or double",
         .found = type,
         .message = positions
                        ? "positions were rounded to " + type + ": beyond " + grouped(whole) +
                              " neighbours have one angle, and look like one place"
                        : "angles were rounded to " + type +
                              " before their cosine and sine: a fast pair is off by up to 0.12 rad "
                              "beyond position " +
                              grouped(whole / 8) + ", and by up to 1 beyond " + grouped(whole),
         .cure = "form positions, frequencies and their product in float32, and round the cosines "
                 "and sines alone"});
  }

  // Frequencies of 16 bits, positions of 16 bits, their product, and all of it.
  void try_rounded(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    for (const DType kept : {DType::bf16, DType::f16}) {
      std::vector<FrequencyFit> rounded = fit_frequencies(measured, out_.rotary_dim, kept);
      if (rounded.empty() || rounded.front().misfit > explains ||
          2 * rounded.front().misfit > fits.front().misfit)
        continue;
      fits = std::move(rounded);
      return;
    }
    for (const auto& [kept, form] : {std::pair(DType::bf16, "bfloat16"), {DType::f16, "float16"}}) {
      // Positions that were rounded are of no base whose frequencies were.
      const double base = base_of(measured, out_.rotary_dim, 1, kept).value_or(fits.front().base);
      // Rounding bends what is measured: a base may be off in its last digits.
      const auto round = [](double number) {
        const double power = std::pow(10, std::floor(std::log10(number)) - 1);
        return std::round(number / power) * power;
      };
      const std::pair<double, Scaling> candidates[] = {
          {base, Unscaled{}},
          {round(base), Unscaled{}},
          {round(fits.front().base), fits.front().scaling}};
      for (const auto& [candidate, scaling] : candidates) {
        const FrequencyFit all{.base = candidate, .scaling = scaling, .kept = kept, .misfit = 1};
        const FrequencyFit exact{.base = candidate, .scaling = scaling, .misfit = 1};
        const bool of_all = forms(all) == std::vector<std::string>{form};
        const std::vector<std::string> seen = of_all ? std::vector<std::string>() : forms(exact);
        const bool of_parts = seen == std::vector<std::string>{"tf32"} ||
                              seen == std::vector<std::string>{form} ||
                              seen == std::vector{std::string(form) + "_positions"} ||
                              seen == std::vector{std::string(form) + "_products"};
        if (!of_all && !of_parts) continue;
        fits = {of_all ? all : exact};
        return;
      }
    }
  }

  // One pair that another rule made: the others are explained without it.
  void try_odd(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    if (measured.size() < 8 || out_.axis_layout != AxisLayout::one) return;
    std::optional<FrequencyFit> best;
    std::size_t odd = 0;
    for (std::size_t k = 0; k < measured.size(); ++k) {
      std::vector<Measured> rest = measured;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
      const auto base = base_of(rest, out_.rotary_dim, 1);
      if (!base) continue;
      double sum = 0;
      for (const Measured& m : rest) {
        const double off = (of_base(*base, m.pair) - m.frequency) / m.resolution;
        sum += off * off;
      }
      const double misfit = std::sqrt(sum / static_cast<double>(rest.size()));
      if (misfit > explains || (best && best->misfit <= misfit)) continue;
      best = FrequencyFit{.base = *base, .misfit = misfit};
      odd = k;
    }
    if (!best) return try_several_odd(measured, fits);
    fits = {*best};
    tell_odd(measured[odd], *best);
  }

  // A few pairs that other rules made: the base is that which most of the pairs have alone.
  void try_several_odd(const std::vector<Measured>& measured, std::vector<FrequencyFit>& fits) {
    constexpr double alike = 1e-3;
    const std::size_t most_odd = measured.size() / 6;
    std::vector<Measured> best;
    for (const Measured& one : measured) {
      if (one.pair < 2 || one.frequency <= 0) continue;
      const double base = std::pow(one.frequency, -static_cast<double>(out_.rotary_dim) /
                                                      (2 * static_cast<double>(one.pair)));
      std::vector<Measured> rest;
      for (const Measured& m : measured)
        if (std::abs(of_base(base, m.pair) / m.frequency - 1) < alike) rest.push_back(m);
      if (rest.size() > best.size()) best = std::move(rest);
    }
    const std::size_t odd = measured.size() - best.size();
    const auto base = base_of(best, out_.rotary_dim, 1);
    if (odd < 2 || odd > most_odd || !base) return try_odd_beside_scaling(measured, fits);
    double sum = 0;
    for (const Measured& m : best) {
      const double off = (of_base(*base, m.pair) - m.frequency) / m.resolution;
      sum += off * off;
    }
    const double misfit = std::sqrt(sum / static_cast<double>(best.size()));
    if (misfit > explains) return try_odd_beside_scaling(measured, fits);
    fits = {FrequencyFit{.base = *base, .misfit = misfit}};
    for (const Measured& m : measured)
      if (std::ranges::find(best, m.pair, &Measured::pair) == best.end()) tell_odd(m, fits.front());
    join_exchanged();
  }

  // Two pairs of which each has the other's frequency are one slip.
  void join_exchanged() {
    if (out_.findings.size() != 2) return;
    Finding &first = out_.findings.front(), &second = out_.findings.back();
    if (first.code != "odd_pair" || second.code != "odd_pair" || first.expected != second.found ||
        first.found != second.expected)
      return;
    first.message = "pairs " + std::to_string(first.pair.value_or(0)) + " and " +
                    std::to_string(second.pair.value_or(0)) +
                    " are exchanged: each rotates by the other's frequency";
    first.cure = "see in which order the frequencies are written";
    out_.findings.pop_back();
  }

  // A pair or two beside a scaling: what the best scaling explains least is left out.
  void try_odd_beside_scaling(const std::vector<Measured>& measured,
                              std::vector<FrequencyFit>& fits) {
    constexpr std::size_t most_odd = 2, least = 16;  // fewer are explained by chance
    if (measured.size() < least) return;
    std::vector<Measured> rest = measured, odd;
    std::vector<FrequencyFit> found = fits;
    while (odd.size() < most_odd) {
      const std::vector<double> meant = frequencies_of(found.front());
      if (meant.empty()) return;
      const auto off = [&](const Measured& m) {
        return std::abs(meant[static_cast<std::size_t>(m.pair)] - m.frequency) / m.resolution;
      };
      const auto worst = std::ranges::max_element(rest, {}, off);
      odd.push_back(*worst);
      rest.erase(worst);
      found = fit_frequencies(rest, out_.rotary_dim);
      if (found.empty()) return;
      if (found.front().misfit > explains) continue;
      fits = std::move(found);
      for (const Measured& m : odd) tell_odd(m, fits.front());
      return;
    }
  }

  void tell_odd(const Measured& m, const FrequencyFit& fit) {
    const std::vector<double> meant = frequencies_of(fit);
    if (meant.empty()) return;
    OddPair odd = odd_pair(m.pair, m.frequency, m.resolution, meant);
    const bool scaled = !std::holds_alternative<Unscaled>(fit.scaling);
    if (scaled && std::abs(of_base(fit.base, m.pair) - m.frequency) <= 4 * m.resolution)
      odd.message = "pair " + std::to_string(m.pair) +
                    " has the frequency of the base alone, and all others are scaled";
    out_.findings.push_back({.code = "odd_pair",
                             .severity = odd.slower ? Severity::warning : Severity::error,
                             .pair = m.pair,
                             .expected = shown(meant[static_cast<std::size_t>(m.pair)], 5),
                             .found = shown(m.frequency, 5),
                             .message = std::move(odd.message),
                             .cure = std::move(odd.cure)});
  }

  // Of every pair, radians a position; none where the fit is of no rotation that can be made.
  std::vector<double> frequencies_of(const FrequencyFit& fit) const {
    auto made = rope_frequencies<double>(
        Rope{.rope_theta = fit.base, .rotary_dim = out_.rotary_dim, .scaling = fit.scaling},
        {.head_dim = out_.rotary_dim});
    return made ? std::move(made->frequency) : std::vector<double>();
  }

  double of_base(double base, std::int64_t pair) const {
    return std::pow(base, -2 * static_cast<double>(pair) / static_cast<double>(out_.rotary_dim));
  }

  // In which arithmetic the angles were formed: of tokens evenly spread, and of pairs that turn.
  std::vector<std::string> forms(const FrequencyFit& fit) const {
    if (out_.axis_layout != AxisLayout::one) return {};
    constexpr std::int64_t most = 512;
    const std::int64_t taken = std::min(in_.dump.tokens, most);
    const auto token = [&](std::int64_t i) {
      return static_cast<std::size_t>(i * (in_.dump.tokens - 1) / (taken - 1));
    };
    std::vector<std::int64_t> positions;
    positions.reserve(static_cast<std::size_t>(taken));
    for (std::int64_t i = 0; i < taken; ++i)
      positions.push_back(in_.dump.positions.front()[token(i)] + in_.dump.origin +
                          out_.offset.value_or(0));
    std::vector<MeasuredAngles> measured;
    for (std::size_t n = 0; n < out_.pairs.size(); ++n) {
      MeasuredAngles pair{.pair = pair_index(out_, out_.pairs[n])};
      if (pair.pair >= out_.rotary_dim / 2) continue;
      for (std::int64_t i = 0; i < taken; ++i)
        pair.angle.push_back(static_cast<double>(out_.sign) * in_.angles[n][token(i)]);
      measured.push_back(std::move(pair));
    }
    return forms_of(fit, out_.rotary_dim, positions, in_.repeated, measured, in_.spread);
  }

  // Neighbours do not tell where a slice ends whose last pairs are too slow to be seen: of the
  // slices that may be meant, the one whose base people would write.
  std::vector<FrequencyFit> fitted(const std::vector<Measured>& measured) {
    std::vector<FrequencyFit> best = fit_frequencies(measured, out_.rotary_dim);
    const std::int64_t room = in_.dump.dim - out_.first_dim;
    if (out_.pairing != Pairing::interleaved || in_.seen_dim >= room || best.empty()) return best;
    std::size_t fewest =
        number_text(best.front().base).size() + 8;  // the slice that is seen is seldom all
    std::string others;
    for (const std::int64_t dim : {room, room * 3 / 4, room / 2, room / 4}) {
      if (dim % 2 != 0 || dim < in_.seen_dim) continue;
      std::vector<FrequencyFit> fits = fit_frequencies(measured, dim);
      if (fits.empty() ||
          (dim > in_.seen_dim && next_would_show(measured.back(), fits.front().base, dim)))
        continue;
      others += (others.empty() ? "" : ", ") + std::to_string(dim) + " with base " +
                shown(fits.front().base, 6);
      // Few digits, and a size that bases have.
      const double base = fits.front().base;
      const std::size_t length = significant_digits(base) + (base < 1e3 || base > 2e7 ? 2 : 0);
      if (length >= fewest) continue;
      fewest = length;
      out_.rotary_dim = dim;
      best = std::move(fits);
    }
    if (others.contains(','))
      say("rotary_dim: " + std::to_string(in_.seen_dim) +
          " channels rotate visibly, slower ones may follow: " + others);
    return best;
  }

  // Whether the pair after the last that is seen, were there one, would be seen too.
  bool next_would_show(const Measured& last, double base, std::int64_t dim) const {
    const double usual = usual_position();
    constexpr double most_factor = 64;  // it may be slowed by a scaling
    const auto pairs = static_cast<double>(in_.seen_dim - 2 * last.pair) / 2;
    const double angle =
        last.frequency * std::pow(base, -2 * pairs / static_cast<double>(dim)) * usual;
    // With one vector alone it may be nearly 0 in those channels.
    const double margin = in_.repeated && in_.dump.heads == 1 ? 16 : 2;
    return angle / most_factor > margin * least_change * in_.dump.noise;
  }

  const Measurement& in_;
  std::vector<double> largest_ = {};  // by channel; empty: not asked yet
  Identified& out_;
};

}  // namespace

std::int64_t pair_index(const Identified& found, const IdentifiedPair& pair) {
  const std::int64_t from = pair.a - found.first_dim;
  if (found.pairing == Pairing::interleaved) return from / 2;
  const std::int64_t block = found.rotary_dim / found.blocks;
  return from / block * (block / 2) + from % block;
}

void explain(const Measurement& measured, Identified& out) { Explanation(measured, out).run(); }

}  // namespace posenc::detail
