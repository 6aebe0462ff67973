// What was identified beside what the model's own plan rotates by.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/features.h"
#include "posenc/identify.h"
#include "src/core/pair_frequencies.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/identify/axes.h"
#include "src/identify/beside.h"
#include "src/identify/dump.h"
#include "src/identify/explain.h"

namespace posenc {
namespace {

using detail::frequencies_of, detail::shown;

// What a plan's frequencies would be, had some slip been made.
using Slip = std::function<double(double frequency, std::int64_t pair)>;

class BesideModel {
 public:
  BesideModel(const Identified& found, const Model& model, const LayerGroup& group,
              const Rotate& rotate, bool indexer)
      : found_(found),
        model_(model),
        group_(group),
        rotate_(rotate),
        indexer_(indexer),
        expected_(frequencies_of(rotate)) {}

  std::vector<Finding> run() && {
    if (indexer_ && found_.pairing != rotate_.slice.pairing) {
      add("indexer_pairing", name(rotate_.slice.pairing), name(found_.pairing),
          "the indexer pairs channels in its own way, which need not be that of the heads",
          rotate_.slice.pairing == Pairing::interleaved
              ? "rotate neighbours, channels 2r and 2r + 1, in the indexer "
                "(indexer_rope_interleave, ROPE_TYPE_NORM)"
              : "rotate halves, channels r and r + d/2, in the indexer");
      return std::move(findings_);
    }
    if (found_.pairing != rotate_.slice.pairing) {
      add("pairing", name(rotate_.slice.pairing), name(found_.pairing),
          "other channels make a pair; weights of a GGUF and of Hugging Face are permuted for "
          "theirs",
          "take the pairing that the weights were converted for");
      return std::move(findings_);
    }
    slice();
    // Which pair of the model's a measured one is, where the slices are cut alike.
    if (findings_.empty()) {
      frequencies();
      axes();
    }
    // Without the scaling there is none of its amplitude.
    if (findings_.empty() || findings_.back().code != "indexer") amplitude();
    return std::move(findings_);
  }

 private:
  void add(std::string code, std::string_view expected, std::string_view found, std::string message,
           std::string cure) {
    findings_.push_back({.code = std::move(code),
                         .layers = group_.layers,
                         .expected = std::string(expected),
                         .found = std::string(found),
                         .message = std::move(message),
                         .cure = std::move(cure)});
  }

  // Slow pairs are not seen, so that a shorter slice of neighbours may be the whole one.
  void slice() {
    const bool shorter = found_.pairing == Pairing::interleaved && found_.blocks == 1 &&
                         found_.rotary_dim < rotate_.slice.rotary_dim;
    if (found_.first_dim == rotate_.slice.first_dim && found_.blocks == rotate_.slice.blocks &&
        (found_.rotary_dim == rotate_.slice.rotary_dim || shorter))
      return;
    const auto words = [](std::int64_t dim, std::int64_t first) {
      return std::to_string(dim) + " channels from " + std::to_string(first) + " on";
    };
    add("rotary_dim", words(rotate_.slice.rotary_dim, rotate_.slice.first_dim),
        words(found_.rotary_dim, found_.first_dim),
        "other channels rotate than the model's" +
            std::string(indexer_ ? " indexer has for it, which is not what its heads have" : ""),
        "rotate " + words(rotate_.slice.rotary_dim, rotate_.slice.first_dim) +
            (indexer_ ? " of the indexer's queries and keys" : ", as the file tells"));
  }

  // Whether the measured frequencies are those that `slip` makes, each as well as it is known.
  bool explains(const Slip& slip) const {
    std::int64_t told = 0;
    for (const IdentifiedPair& pair : found_.pairs) {
      const std::int64_t r = detail::pair_index(found_, pair);
      if (r >= std::ssize(expected_)) return false;
      const double meant = slip(expected_[static_cast<std::size_t>(r)], r);
      if (std::abs(pair.frequency - meant) > 6 * pair.resolution + 1e-6 * std::abs(meant))
        return false;
      told += std::abs(meant) > 4 * pair.resolution ? 1 : 0;
    }
    return told >= 2;
  }

  // Pairs that the file gives a frequency, far above what is resolved, and that do not turn.
  bool stand_still() {
    double finest = std::numeric_limits<double>::infinity();
    std::vector<bool> turns(expected_.size());
    for (const IdentifiedPair& pair : found_.pairs) {
      const std::int64_t r = detail::pair_index(found_, pair);
      if (r >= std::ssize(expected_)) return false;
      turns[static_cast<std::size_t>(r)] = true;
      finest = std::min(finest, pair.resolution);
    }
    constexpr double far = 1000;
    std::vector<std::int64_t> still;
    for (std::size_t r = 0; r < expected_.size(); ++r)
      if (!turns[r] && std::abs(expected_[r]) > far * finest)
        still.push_back(static_cast<std::int64_t>(r));
    if (still.empty() || found_.pairs.empty() || 2 * still.size() > expected_.size()) return false;
    add("frequency", "the model's", "pairs " + detail::layer_list(still) + " stand still",
        "these pairs have a frequency of 0, and the model rotates all " +
            std::to_string(expected_.size()) + " pairs: far distances are lost",
        "make frequencies for the whole of rotary_dim (print inv_freq: its end is 0)");
    return true;
  }

  void frequencies() {
    if (std::ranges::find(found_.findings, "frequencies_unordered", &Finding::code) !=
        found_.findings.end())
      return;
    if (found_.rotary_dim == rotate_.slice.rotary_dim && rotate_.frequencies.axes == 1 &&
        stand_still())
      return;
    if (explains([](double f, std::int64_t) { return f; })) return;
    if (explains([](double f, std::int64_t) { return 2 * f; }))
      return add(
          "rotated_twice", "", "×2",
          "every pair turns by twice the model's angle: rotated twice, or positions "
          "multiplied by 2 (a linear factor of 0.5)",
          "rotate once, by the positions as they are: a cache of rotated keys is not rotated "
          "again when it is read");
    if (explains([](double f, std::int64_t) { return -f; }))
      return add("backwards", "", "×−1", "every pair turns the other way",
                 "exchange the sign of the sines");
    // Angles of 16 bits bend the frequencies that are measured: what is said of them says all.
    const bool same_fit = fit_is_the_models();
    if (same_fit && says("angles_rounded")) return;
    for (const DType kept : {DType::bf16, DType::f16})
      if (explains([&](double f, std::int64_t) { return detail::kept_as(kept, f); }))
        return add("frequencies_rounded", "float32", name(kept),
                   "the model's frequencies were rounded to " + std::string(name(kept)),
                   "keep the buffer inv_freq in float32 when the weights are cast");
    if (other_layers() || other_denominator() || in_steps()) return;
    if (same_fit) return single_pairs();
    const bool same_base =
        found_.frequencies && rope() && found_.frequencies->base == rope()->rope_theta;
    if (indexer_ && same_base && std::holds_alternative<Unscaled>(found_.frequencies->scaling))
      return unscaled_indexer();
    std::string expected = rope() ? words(rope()->rope_theta, rope()->scaling) : "",
                found = found_.frequencies
                            ? words(found_.frequencies->base, found_.frequencies->scaling)
                            : "";
    if (expected == found && rope() && found_.frequencies) {
      expected += fields(rope()->scaling);
      found += fields(found_.frequencies->scaling);
    }
    add(same_base ? "rope_scaling" : "rope_theta", expected, found,
        same_base ? "the base is the model's, the scaling is not"
                  : "the frequencies are not the model's",
        "compare what the engine was told with the file: posenc diff");
  }

  bool says(std::string_view code) const {
    return std::ranges::find(found_.findings, code, &Finding::code) != found_.findings.end();
  }

  // Whether the base and the scaling that were named make the model's frequencies.
  bool fit_is_the_models() const {
    if (!found_.frequencies) return false;
    const std::int64_t dim = rotate_.slice.rotary_dim;
    const auto made = rope_frequencies<double>({.rope_theta = found_.frequencies->base,
                                                .rotary_dim = dim,
                                                .scaling = found_.frequencies->scaling},
                                               {.head_dim = dim});
    return made && std::ranges::equal(made->frequency, expected_, [](double a, double b) {
             return std::abs(a - b) <= 1e-6 * std::abs(b);
           });
  }

  // Base and scaling are the model's, and some pairs have other frequencies all the same. RIFLEx is
  // of videos: a pair of a text's tokens that is slower was computed wrongly.
  void single_pairs() {
    for (Finding odd : found_.findings) {
      if (odd.code != "odd_pair") continue;
      odd.layers = group_.layers;
      if (odd.severity == Severity::warning && rotate_.frequencies.axes == 1) {
        odd.severity = Severity::error;
        odd.message = "pair " + std::to_string(odd.pair.value_or(0)) +
                      " rotates slower than the model's base gives it, all others by their own "
                      "frequencies: no scaling of a text's positions slows one pair";
        odd.cure = "compute its frequency anew: " + odd.expected + " radians a position";
      }
      findings_.push_back(std::move(odd));
    }
    if (!findings_.empty()) return;
    std::vector<std::int64_t> off;
    for (const IdentifiedPair& pair : found_.pairs) {
      const std::int64_t r = detail::pair_index(found_, pair);
      if (r >= std::ssize(expected_)) continue;
      const double meant = expected_[static_cast<std::size_t>(r)];
      if (std::abs(pair.frequency - meant) > 6 * pair.resolution + 1e-6 * std::abs(meant))
        off.push_back(r);
    }
    add("frequency", "the model's",
        "pairs " + detail::layer_list(off) + " of " + std::to_string(expected_.size()) + " differ",
        "the nearest base and scaling are the model's, and do not explain these pairs",
        "print inv_freq, and give it to posenc doctor beside the model");
  }

  // DeepSeek's own code scales neither heads nor indexer where it is started for no more than the
  // trained length, so that a dump of it says nothing of longer texts.
  void unscaled_indexer() {
    const std::string trained = model_.trained_context > 0
                                    ? std::to_string(model_.trained_context) + " tokens"
                                    : std::string("the trained length");
    add("indexer", words(rope()->rope_theta, rope()->scaling),
        words(found_.frequencies->base, found_.frequencies->scaling),
        "a tensor of the indexer: its first " + std::to_string(found_.rotary_dim) +
            " channels rotate in " + std::string(name(found_.pairing)) +
            ", as they should, without the file's scaling: right where the engine was started for "
            "no more than " +
            trained,
        "beyond that the indexer is scaled as the heads are");
    findings_.back().severity = Severity::note;
  }

  bool other_layers() {
    for (const LayerGroup& group : model_.groups) {
      if (&group == &group_ || group.stack != group_.stack) continue;
      const auto plan = compile(group);
      if (!plan || !plan->rotate || plan->rotate->pairs() != rotate_.pairs()) continue;
      const std::vector<double> theirs = frequencies_of(*plan->rotate);
      if (!explains([&](double, std::int64_t r) { return theirs[static_cast<std::size_t>(r)]; }))
        continue;
      add("other_layers", "", "those of layers " + detail::layer_list(group.layers),
          "these layers are rotated as another kind of layer is",
          "choose base and scaling by the kind of the layer");
      return true;
    }
    return false;
  }

  // Runs of pairs that are each a multiple of base^(−2r/d), as of a scaling without its ramp.
  bool in_steps() {
    if (!rope() || !says_nothing_explains()) return false;
    constexpr double alike = 0.01;
    constexpr std::size_t most = 4;
    struct Step {
      std::int64_t first, last;
      double factor;
    };
    std::vector<Step> steps;
    for (const IdentifiedPair& pair : found_.pairs) {
      const std::int64_t r = detail::pair_index(found_, pair);
      const double plain =
          std::pow(rope()->rope_theta,
                   -2 * static_cast<double>(r) / static_cast<double>(rotate_.slice.rotary_dim));
      const double factor = pair.frequency / plain;
      if (!steps.empty() && std::abs(factor / steps.back().factor - 1) < alike)
        steps.back().last = r;
      else
        steps.push_back({r, r, factor});
      if (steps.size() > most) return false;
    }
    if (steps.size() < 2) return false;
    std::string told;
    for (const Step& step : steps) {
      told += (told.empty() ? "pairs " : ", ") + std::to_string(step.first) + "–" +
              std::to_string(step.last) + " ×" + shown(step.factor);
    }
    add("rope_scaling", words(rope()->rope_theta, rope()->scaling), told,
        "runs of pairs are slowed by one factor each, in steps: a scaling whose ramp between fast "
        "and slow pairs is missing",
        "compute the ramp as well (posenc explain MODEL --pairs prints each frequency)");
    return true;
  }
  bool says_nothing_explains() const {
    return std::ranges::any_of(found_.cannot_tell, [](const std::string& one) {
      return one.contains("none that is known explains");
    });
  }

  // base^(−2r/D) with another D than the model's.
  bool other_denominator() {
    if (!rope() || rope()->rope_theta <= 1) return false;
    const double base = rope()->rope_theta;
    double weights = 0, sum = 0;
    for (const IdentifiedPair& pair : found_.pairs) {
      const auto r = static_cast<double>(detail::pair_index(found_, pair));
      if (r < 1 || pair.frequency < 4 * pair.resolution) continue;
      const double weight = r * pair.frequency / pair.resolution;
      weights += weight * weight;
      sum += weight * weight * -std::log(pair.frequency) / (2 * r * std::log(base));
    }
    if (sum <= 0) return false;
    const double dim = std::round(weights / sum);
    if (dim == static_cast<double>(rotate_.slice.rotary_dim) ||
        !explains([&](double, std::int64_t r) {
          return std::pow(base, -2 * static_cast<double>(r) / dim);
        }))
      return false;
    add("denominator", "", shown(dim),
        "the exponents of base " + number_text(base) + " are divided by " + shown(dim) +
            ", and the model's are not",
        "divide by the channels that the scheme counts: all of the head for proportional");
    return true;
  }

  // Of several axes the one that a pair of the model depends on.
  std::int64_t axis_of(std::int64_t pair) const {
    std::int64_t axis = 0;
    while (axis < rotate_.frequencies.axes - 1 && rotate_.at(0, axis, pair) == 0) ++axis;
    return axis;
  }

  void axes() {
    if (std::ssize(found_.axis_pairs) != rotate_.frequencies.axes || rotate_.frequencies.axes < 2)
      return;
    Identified model{.pairing = found_.pairing,
                     .first_dim = found_.first_dim,
                     .rotary_dim = found_.rotary_dim,
                     .blocks = found_.blocks};
    bool alike = true;
    for (IdentifiedPair pair : found_.pairs) {
      const std::int64_t r = detail::pair_index(found_, pair);
      if (pair.axis < 0 || r >= rotate_.pairs()) continue;
      alike &= pair.axis == axis_of(r);
      pair.axis = axis_of(r);
      model.pairs.push_back(pair);
    }
    if (alike) return;
    detail::share_axes(rotate_.frequencies.axes, model);
    add("mrope", detail::axes_text(model), detail::axes_text(found_),
        "pairs depend on another axis than the model's",
        "share the pairs out as mrope_section and mrope_interleaved of the file tell");
  }

  void amplitude() {
    if (!found_.amplitude || std::abs(*found_.amplitude - rotate_.amplitude) < 0.005) return;
    add("amplitude", "×" + shown(rotate_.amplitude), "×" + shown(*found_.amplitude),
        "cosines and sines are multiplied by another factor",
        "YaRN's attention factor stands on both sides, or in the logits' scale");
  }

  const Rope* rope() const {
    for (const Scheme& scheme : group_.schemes)
      if (const auto* one = std::get_if<Rope>(&scheme)) return one;
    return nullptr;
  }

  static std::string words(double base, const Scaling& scaling) {
    return "base " + number_text(base) + ", scaling " + std::string(info(scaling).name);
  }

  // " factor 8 original_max_position_embeddings 8192"
  static std::string fields(const Scaling& scaling) {
    std::string text;
    for (const FieldSetting& setting : settings(scaling)) {
      if (const auto* x = std::get_if<double>(&setting.value))
        text += " " + std::string(setting.name) + " " + number_text(*x);
      if (const auto* i = std::get_if<std::int64_t>(&setting.value))
        text += " " + std::string(setting.name) + " " + std::to_string(*i);
    }
    return text;
  }

  const Identified& found_;
  const Model& model_;
  const LayerGroup& group_;
  const Rotate& rotate_;
  const bool indexer_;
  const std::vector<double> expected_;
  std::vector<Finding> findings_;
};

// Whether a dump is as wide as the indexer's heads, and as no tensor of the group's: whole heads,
// or the channels that rotate, which latent attention has apart.
bool fits_alone(const LayerGroup& indexer, const LayerGroup& group, const Identified& found) {
  if (found.dim != indexer.geometry.head_dim || found.dim == group.geometry.head_dim) return false;
  const Expected<Plan> plan = compile(group);
  return !plan || !plan->rotate || plan->rotate->slice.rotary_dim != found.dim;
}

}  // namespace

const LayerGroup* detail::group_of(const Model& model, std::int64_t layer) {
  for (const Stack stack : {Stack::text, Stack::decoder, Stack::encoder, Stack::vision})
    if (std::ranges::find(model.groups, stack, &LayerGroup::stack) != model.groups.end())
      return find_group(model, std::max<std::int64_t>(layer, 0), stack);
  return nullptr;
}

std::vector<Finding> detail::beside_plan(const Identified& found, const Model& model,
                                         const LayerGroup& group, const Rotate& rotate,
                                         bool indexer) {
  return BesideModel(found, model, group, rotate, indexer).run();
}

void add_beside(std::vector<Finding> beside, Identified& found) {
  for (Finding& finding : beside) {
    const auto said = std::ranges::find_if(found.findings, [&](const Finding& one) {
      return one.code == finding.code && (one.code != "odd_pair" || one.pair == finding.pair);
    });
    if (said == found.findings.end())
      found.findings.push_back(std::move(finding));
    else if (finding.code == "odd_pair")
      *said = std::move(finding);
  }
}

Expected<std::vector<Finding>> beside_model(const Identified& found, const Model& model,
                                            std::int64_t layer, std::int64_t length,
                                            DumpedPart part) {
  if (found.verdict != Rotated::rotation && found.verdict != Rotated::no_rotation)
    return std::vector<Finding>{};
  const LayerGroup* group = detail::group_of(model, layer);
  if (!group)
    return fail("identify", "the model has a layer of that number", std::to_string(layer));
  std::optional<LayerGroup> own = indexer_group(*group);
  if (part == DumpedPart::indexer && !own)
    return fail("identify", "the layer must have an indexer", std::to_string(layer),
                "posenc explain tells which layers have one");
  const bool indexer = own && (part == DumpedPart::indexer ||
                               (part == DumpedPart::by_width && fits_alone(*own, *group, found)));
  if (indexer) group = &*own;
  const Expected<Plan> plan = compile(*group, length);
  if (!plan) return std::unexpected(plan.error());
  POSENC_CHECK(check_takes(rooms::identify, *plan));
  const bool rotates = found.verdict == Rotated::rotation;
  std::vector<Finding> findings;
  if (rotates != plan->rotate.has_value())
    findings.push_back(
        {.code = "scheme",
         .layers = group->layers,
         .expected = plan->rotate ? "a rotation" : "none",
         .found = rotates ? "a rotation" : "none",
         .message = rotates ? "the model does not rotate in these layers" : "nothing rotates here",
         .cure = "which layers rotate the file tells: posenc explain"});
  else if (rotates) {
    // Latent attention keeps the channels that rotate apart, as caches do.
    Rotate rotate = *plan->rotate;
    const std::int64_t first = rotate.slice.first_dim;
    const bool alone = first > 0 && found.dim == rotate.slice.rotary_dim;
    if (alone) rotate.slice.first_dim = 0;
    findings = detail::beside_plan(found, model, *group, rotate, indexer);
    if (alone)
      findings.push_back({.code = "rotated_part",
                          .severity = Severity::note,
                          .layers = group->layers,
                          .message = "by its " + std::to_string(found.dim) +
                                     " channels the part of a head that rotates, alone: channels " +
                                     std::to_string(first) + " to " +
                                     std::to_string(first + found.dim - 1) +
                                     " of the model's heads"});
  }
  if (indexer && part == DumpedPart::by_width && findings.empty())
    findings.push_back({.code = "indexer",
                        .severity = Severity::note,
                        .layers = group->layers,
                        .message = "by its " + std::to_string(found.dim) +
                                   " channels a tensor of the indexer, and as that it is right"});
  return findings;
}

}  // namespace posenc
