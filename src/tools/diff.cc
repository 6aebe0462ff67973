// Where two models treat position differently: group by group of layers, by what their plans do
// rather than by how their files spell it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/engine_readings.h"
#include "src/tools/plan_diff.h"
#include "src/tools/recipes.h"

namespace posenc {
namespace {

using detail::grouped, detail::nearly;

FileFormat format_of(const Model& model) {
  return model.files.empty() ? FileFormat::config : model.files.front().format;  // bundled ones are
}

std::string scaling_or_none(const Rope& rope) {
  return std::holds_alternative<Unscaled>(rope.scaling) ? "none"
                                                        : detail::scaling_text(rope.scaling);
}

// Which pairs take which axis of pictures: "sections 16 24 24", "interleaved 24 20 20", "axes 1 2 1
// 2 0", "none".
std::string axes_text(const Rope& rope) {
  const bool listed = !rope.pair_axes.empty();
  const std::vector<std::int64_t>& numbers = listed ? rope.pair_axes : rope.mrope_section;
  if (numbers.empty()) return "none";
  std::string text = listed ? "axes" : rope.mrope_interleaved ? "interleaved" : "sections";
  for (const std::int64_t number : numbers) text += " " + std::to_string(number);
  return text;
}

// LongRoPE's list at a length, in words of the lists that `file` has.
std::string list_at(const LongRope& found, const LongRope& file, std::int64_t length) {
  const auto& list =
      length > found.original_max_position_embeddings ? found.long_factor : found.short_factor;
  return list == file.long_factor    ? "the long list"
         : list == file.short_factor ? "the short list"
                                     : detail::scaling_text(found);
}

// Whether one list stands for both that the first has: an engine chose it when it was started.
bool has_fixed_list(const LongRope* file, const LongRope* found) {
  return file && found && file->short_factor != file->long_factor &&
         found->short_factor == found->long_factor;
}

const LongRope* longrope_of(const LayerGroup& group) {
  const Rope* rope = detail::rope_of(group);
  return rope ? std::get_if<LongRope>(&rope->scaling) : nullptr;
}

class Differences {
 public:
  Differences(const Model& a, const Model& b, std::int64_t length, std::int64_t asked)
      : a_(a), b_(b), length_(length), asked_(asked) {}

  std::vector<Finding> run() {
    for (const Stack stack :
         {Stack::text, Stack::encoder, Stack::decoder, Stack::vision, Stack::audio}) {
      const std::int64_t count = detail::layers_of(a_, stack),
                         others = detail::layers_of(b_, stack);
      if (count != others)
        add({.code = "layers",
             .severity = Severity::note,
             .stack = stack,
             .expected = std::to_string(count),
             .found = std::to_string(others),
             .message = "the number of layers differs; those that both have are compared"});
      if (grouped_alike_)
        compare_in_order(stack);
      else
        compare_by_layer(stack, std::min(count, others));
    }
    contexts();
    // A cure that makes one model of another is none.
    if (!detail::could_be_one_model(a_, b_)) as_two_models();
    std::ranges::stable_sort(found_, {}, &Finding::severity);
    return std::move(found_);
  }

 private:
  // What an engine makes of a model has the model's own groups.
  static bool are_grouped_alike(const Model& a, const Model& b) {
    return std::ranges::equal(a.groups, b.groups, [](const LayerGroup& one, const LayerGroup& two) {
      return one.stack == two.stack && one.layers == two.layers;
    });
  }
  void compare_in_order(Stack stack) {
    for (std::size_t i = 0; i < a_.groups.size(); ++i) {
      if (a_.groups[i].stack != stack) continue;
      stack_ = stack, layers_ = &a_.groups[i].layers;
      compare(a_.groups[i], b_.groups[i]);
    }
  }
  void compare_by_layer(Stack stack, std::int64_t count) {
    std::map<std::pair<const LayerGroup*, const LayerGroup*>, std::vector<std::int64_t>> pairs;
    for (std::int64_t i = 0; i < count; ++i) {
      const LayerGroup *a = find_group(a_, i, stack), *b = find_group(b_, i, stack);
      if (a != nullptr && b != nullptr) pairs[{a, b}].push_back(i);
    }
    for (const auto& [groups, layers] : pairs) {
      stack_ = stack, layers_ = &layers;
      compare(*groups.first, *groups.second);
    }
  }

  // A longer promise needs a rotation that was made for it.
  void contexts() {
    const std::int64_t mine = a_.context, theirs = b_.context;
    if (mine <= 0 || theirs <= 0 || mine == theirs) return;
    const bool alike = std::ranges::all_of(
        found_, [](const Finding& one) { return one.severity == Severity::note; });
    const std::int64_t window = detail::widest_window(b_);
    const bool shown = window > 0 && window <= mine;
    const bool grew = theirs > mine && alike && rotates(b_) && !shown;
    if (asked_ > theirs && asked_ <= mine) {
      found_.push_back({.code = "context",
                        .severity = Severity::warning,
                        .position = theirs,
                        .expected = grouped(mine),
                        .found = grouped(theirs),
                        .message = "texts of " + grouped(asked_) +
                                   " tokens are more than the second has: they are refused or cut",
                        .cure = "give it " + std::to_string(asked_) +
                                " tokens (vLLM: --max-model-len " + std::to_string(asked_) + ")"});
      return;
    }
    if (detail::is_converters_context(b_)) {
      found_.push_back({.code = "context",
                        .severity = Severity::note,
                        .position = std::min(mine, theirs),
                        .expected = grouped(mine),
                        .found = grouped(theirs),
                        .message = "llama.cpp's converter writes " + grouped(theirs) +
                                   " into each file of " + b_.family +
                                   ", whatever the configuration promises"});
      return;
    }
    found_.push_back(
        {.code = "context",
         .severity = grew ? Severity::warning : Severity::note,
         .position = std::min(mine, theirs),
         .expected = grouped(mine),
         .found = grouped(theirs),
         .message =
             grew ? "the second promises " +
                        detail::shown(static_cast<double>(theirs) / static_cast<double>(mine), 3) +
                        " times the tokens and rotates as before: beyond " + grouped(mine) +
                        " are angles that the first was not trained on"
                  : "the two promise texts of different lengths",
         .cure = grew
                     ? "right where the model was trained further; else posenc extend MODEL --to " +
                           std::to_string(theirs) + " plans a scaling"
                     : ""});
  }

  static bool rotates(const Model& model) {
    return std::ranges::any_of(
        model.groups, [](const LayerGroup& group) { return detail::rope_of(group) != nullptr; });
  }

  void as_two_models() {
    bool told = false;
    const bool drafts = detail::is_draft_of(a_, b_);
    for (Finding& finding : found_) {
      told = told || !finding.cure.empty();
      finding.cure.clear();
      // A draft of its own few layers was trained with a rotation of its own.
      if (drafts && finding.severity == Severity::error) finding.severity = Severity::warning;
      if (finding.code != "context" || !drafts || b_.context >= a_.context) continue;
      finding.severity = Severity::error;
      finding.message = "the second has the layers of a draft: beyond " + grouped(b_.context) +
                        " tokens it drafts what is not taken, or the engine refuses longer texts";
      finding.cure = "for longer texts run without the draft, or with one that was trained for " +
                     grouped(a_.context);
    }
    if (told)
      found_.push_back(
          {.code = "two_models",
           .severity = Severity::note,
           .message = "layers or heads differ, so these are two models: each may be right, and "
                      "no cure makes one of the other"});
  }

  // What is said of several groups is said once, of all their layers.
  void add(Finding finding) {
    for (Finding& old : found_) {
      if (old.code != finding.code || old.stack != finding.stack ||
          old.message != finding.message || old.expected != finding.expected ||
          old.found != finding.found)
        continue;
      old.layers.insert(old.layers.end(), finding.layers.begin(), finding.layers.end());
      std::ranges::sort(old.layers);
      return;
    }
    found_.push_back(std::move(finding));
  }

  void differ(Finding finding) {
    finding.stack = stack_;
    finding.layers = *layers_;
    add(std::move(finding));
  }

  void size(const char* code, std::int64_t a, std::int64_t b) {
    if (a == b) return;
    differ({.code = code,
            .severity = Severity::note,
            .expected = std::to_string(a),
            .found = std::to_string(b),
            .message =
                "this changes no position; two models may differ in it, two files of one model "
                "may not"});
  }

  void compare(const LayerGroup& a, const LayerGroup& b) {
    size("heads", a.geometry.heads, b.geometry.heads);
    size("kv_heads", a.geometry.kv_heads, b.geometry.kv_heads);
    masks(a, b);
    const std::size_t before = found_.size();
    attention(a, b);
    if (found_.size() == before) rows(a, b);
    indexers(a, b, found_.size() > before);
  }

  // Of vectors that are computed, and kept for so many positions as the file says (Whisper's sound).
  void rows(const LayerGroup& a, const LayerGroup& b) {
    const auto told = [](const LayerGroup& group) {
      const auto at = std::ranges::find(group.provenance, "rows", &Provenance::field);
      const bool computed = std::ranges::any_of(group.schemes, [](const Scheme& scheme) {
        return std::holds_alternative<Sinusoidal>(scheme);
      });
      return at == group.provenance.end() || !computed ? std::string() : at->value;
    };
    const std::string mine = told(a), theirs = told(b);
    if (mine.empty() || theirs.empty() || mine == theirs) return;
    differ({.code = "rows",
            .severity = Severity::warning,
            .expected = mine + " rows",
            .found = theirs + " rows",
            .message = "the table of these layers has other rows: input of another length is "
                       "refused, or stands where training has shown nothing",
            .cure = "the rows that the weights were trained with, and input of that length"});
  }

  void attention(const LayerGroup& a, const LayerGroup& b) {
    const std::string scheme = detail::scheme_text(a), other = detail::scheme_text(b);
    if (scheme != other) {
      differ({.code = "scheme",
              .position = 1,
              .expected = scheme.empty() ? "none" : scheme,
              .found = other.empty() ? "none" : other,
              .message = "position enters these layers in different ways",
              .cure = "compare which layers rotate: posenc explain shows both"});
      return;
    }
    // What is said alike compiles to one plan.
    if (a.schemes == b.schemes && a.geometry == b.geometry && a.logits == b.logits) return;
    // A scaling may hold back until a text is long, or until it is short.
    for (const std::int64_t length : {longest(a, b), std::int64_t{0}}) {
      const Expected<Plan> plan = compile(a, length), theirs = compile(b, length);
      if (!plan || !theirs) {
        uncompiled(plan, theirs, length);
        continue;
      }
      if (parts(a, *plan, b, *theirs, length)) break;
    }
  }

  // What picks the keys. Frequencies are the heads', so that where those differ it is said of them.
  void indexers(const LayerGroup& a, const LayerGroup& b, bool heads_differ) {
    if (a.picked != b.picked && a.picked && b.picked)
      differ({.code = "picked",
              .severity = Severity::warning,
              .expected = detail::picked_text(*a.picked),
              .found = detail::picked_text(*b.picked),
              .message = "a query sees other numbers of keys"});
    const auto own = indexer_group(a), theirs = indexer_group(b);
    if (own.has_value() != theirs.has_value())
      return differ(
          {.code = "indexer",
           .severity = format_of(a_) == format_of(b_) ? Severity::warning : Severity::note,
           .expected = own ? "picks keys" : "none",
           .found = theirs ? "picks keys" : "none",
           .message = "in one of them alone an indexer of the layer's own picks keys"});
    if (!own) return;
    size("indexer_dim", own->geometry.head_dim, theirs->geometry.head_dim);
    const Expected<Plan> plan = compile(*own, length_), other = compile(*theirs, length_);
    if (!plan || !other) return;
    if (plan->rotate.has_value() != other->rotate.has_value())
      return differ({.code = "indexer",
                     .expected = plan->rotate ? "a rotation" : "none",
                     .found = other->rotate ? "a rotation" : "none",
                     .message = "the indexer rotates in one of them alone, and picks other keys"});
    for (Finding& finding :
         detail::plan_differences(*plan, *other, own->geometry.head_dim, length_)) {
      const bool pairs = finding.code == "pairing";
      if (heads_differ && !pairs && finding.code != "rotary_dim") continue;
      if (pairs) allow_for_formats(finding);
      finding.code = pairs ? "indexer_pairing" : "indexer";
      finding.message = "of the indexer, which picks other keys by it: " + finding.message;
      differ(std::move(finding));
    }
  }

  // Longer texts than an engine serves do not reach the list that it has.
  std::int64_t longest(const LayerGroup& a, const LayerGroup& b) const {
    const bool refuses = b_.context > 0 && b_.context < length_;
    return refuses && has_fixed_list(longrope_of(a), longrope_of(b)) ? b_.context : length_;
  }

  void masks(const LayerGroup& a, const LayerGroup& b) {
    const Model& longer = a_.context >= b_.context ? a_ : b_;
    const std::string window = detail::window_text(longer, a),
                      other = detail::window_text(longer, b);
    if (window != other) {
      const std::int64_t least = std::min(window == "none" ? *b.window : *a.window,
                                          other == "none" ? *a.window : *b.window);
      differ({.code = "window",
              .position = least,
              .expected = window,
              .found = other,
              .message = "tokens further back than " + grouped(least) + " are seen by one alone",
              .cure = "set sliding_window and which layers slide as the first model has them"});
    }
    if (window != "none" && a.chunked != b.chunked)
      differ({.code = "chunked",
              .position = a.window,
              .expected = a.chunked ? "a chunk" : "a window",
              .found = b.chunked ? "a chunk" : "a window",
              .message = "a chunk begins anew at each multiple of its length, a window slides"});
    if (a.causal != b.causal)
      differ({.code = "causal",
              .expected = a.causal ? "causal" : "both ways",
              .found = b.causal ? "causal" : "both ways",
              .message = "one model hides what comes later, the other does not"});
  }

  void uncompiled(const Expected<Plan>& plan, const Expected<Plan>& theirs, std::int64_t length) {
    if (!plan && !theirs) return;
    // Which of two learned tables is longer is told where they are compared.
    if (!plan && plan.error().where == "learned" && length > a_.context && a_.context > 0) return;
    const std::string why = (plan ? theirs : plan).error().message();
    const std::string for_length =
        length == 0 ? "as constructed" : "for " + grouped(length) + " positions";
    differ({.code = "out_of_reach",
            .position = length > 0 ? std::optional(length) : std::nullopt,
            .expected = plan ? "reached" : "refused",
            .found = theirs ? "reached" : "refused",
            .message = "one of them cannot be built " + for_length + ": " + why});
  }

  // Whether a difference was found. Of length 0, where long texts agree: that of short ones.
  bool parts(const LayerGroup& a, const Plan& plan, const LayerGroup& b, const Plan& theirs,
             std::int64_t length) {
    std::int64_t told_for = length;
    if (length == 0)
      for (const Plan* each : {&plan, &theirs})
        if (each->valid && (told_for == 0 || each->valid->to < told_for))
          told_for = each->valid->to;
    if (told_for <= 0 || told_for == std::numeric_limits<std::int64_t>::max()) told_for = length_;
    std::vector<Finding> found =
        detail::plan_differences(plan, theirs, a.geometry.head_dim, told_for);
    // No query of so short a text is scaled yet.
    if (asked_ > 0)
      std::erase_if(found, [&](const Finding& one) {
        return one.code == "logits" && one.position && *one.position >= asked_;
      });
    if (length > 0) join_scaling(a, plan, b, length, found);
    for (Finding& finding : found) {
      if (finding.code == "pairing") allow_for_formats(finding);
      if (length == 0)
        short_texts(a, b, told_for, std::move(finding));
      else if (finding.code == "frequency")
        frequencies(a, b, length, std::move(finding));
      else if (finding.code == "rotary_dim")
        channels(a, b, std::move(finding));
      else
        differ(std::move(finding));
    }
    return !found.empty();
  }

  // The factor on cos and sin, or on the logits, that a scaling brings with it is part of what
  // differs by that scaling.
  void join_scaling(const LayerGroup& a, const Plan& plan, const LayerGroup& b, std::int64_t length,
                    std::vector<Finding>& found) const {
    const Rope* rope = detail::rope_of(a);
    const auto scaling = std::ranges::find(found, "frequency", &Finding::code);
    LayerGroup same = b;
    Rope* theirs = nullptr;
    for (Scheme& scheme : same.schemes)
      if (!theirs) theirs = std::get_if<Rope>(&scheme);
    if (scaling == found.end() || !rope || !theirs ||
        scaling_or_none(*rope) == scaling_or_none(*theirs))
      return;
    theirs->scaling = rope->scaling;
    const Expected<Plan> mended = compile(same, length);
    if (!mended || !mended->rotate || !plan.rotate) return;
    const bool amplitude = nearly(mended->rotate->amplitude, plan.rotate->amplitude),
               logits = nearly(mended->logits.multiplier, plan.logits.multiplier) &&
                        nearly(mended->logits.softcap, plan.logits.softcap) &&
                        detail::same_temperature(mended->logits, plan.logits);
    const auto is_part = [&](const Finding& one) {
      return one.severity != Severity::note &&
             ((one.code == "amplitude" && amplitude) || (one.code == "logits" && logits));
    };
    std::string parts;
    for (const Finding& one : found)
      if (is_part(one))
        parts += std::string("; ") + (one.code == "logits" ? "logits" : "cos and sin") + " go " +
                 one.expected + " → " + one.found + " at any length, which is part of this scaling";
    if (parts.empty()) return;
    constexpr std::string_view nothing = "nothing shows before";
    if (const std::size_t at = scaling->message.find(nothing); at != std::string::npos)
      scaling->message.replace(at, nothing.size(), "no angle shows before");
    scaling->message += parts;
    scaling->position.reset();
    std::erase_if(found, is_part);
  }

  // What texts lose that are shorter than those that were compared, and agree.
  void short_texts(const LayerGroup& a, const LayerGroup& b, std::int64_t length, Finding finding) {
    const std::string texts = "texts of up to " + grouped(length) + " tokens";
    if (finding.severity == Severity::error) finding.severity = Severity::warning;
    if (finding.code != "frequency") {
      // A longer table has the rows of the shorter one too.
      if (!finding.message.starts_with("rows from"))
        finding.message = texts + " differ: " + finding.message;
      return differ(std::move(finding));
    }
    const Rope *rope = detail::rope_of(a), *theirs = detail::rope_of(b);
    finding.code = "short_texts";
    finding.position = 1;  // what follows is right in texts that are long enough
    finding.message = texts + " lose, longer ones do not: " + finding.message;
    if (const LongRope *file = longrope_of(a), *other = longrope_of(b); file && other) {
      finding.expected = list_at(*file, *file, length);
      finding.found = list_at(*other, *file, length);
    } else if (rope && theirs) {
      finding.expected = scaling_or_none(*rope);
      finding.found = scaling_or_none(*theirs);
    }
    differ(std::move(finding));
  }

  // Only files of one kind must agree in it: converters give the rows of q and k the order that
  // their format wants.
  void allow_for_formats(Finding& pairing) const {
    if (format_of(a_) == format_of(b_)) return;
    pairing.severity = Severity::note;
    pairing.message =
        "each format has its convention: right where the rows of q and k were permuted with it";
    pairing.cure.clear();
  }

  // Where other channels rotate, no pair can be compared with another: the base and the scaling are
  // told by what the files say.
  void channels(const LayerGroup& a, const LayerGroup& b, Finding finding) {
    const Rope *rope = detail::rope_of(a), *theirs = detail::rope_of(b);
    const bool other_width = a.geometry.head_dim != b.geometry.head_dim;
    if (other_width)
      size("head_dim", a.geometry.head_dim, b.geometry.head_dim);
    else
      differ(std::move(finding));
    if (rope == nullptr || theirs == nullptr) return;
    if (other_width && rope->mrope_section.size() != theirs->mrope_section.size())
      differ({.code = "mrope",
              .severity = Severity::warning,
              .expected = axes_of(*rope),
              .found = axes_of(*theirs),
              .message = std::string(detail::axes_not_seen)});
    const std::string beside = other_width ? "" : " beside the channels that rotate";
    if (!nearly(rope->rope_theta, theirs->rope_theta))
      differ({.code = "rope_theta",
              .position = 1,
              .expected = number_text(rope->rope_theta),
              .found = number_text(theirs->rope_theta),
              .message = "the base differs" + beside,
              .cure = cure_of_base(*rope)});
    const std::string scaling = scaling_or_none(*rope), their_scaling = scaling_or_none(*theirs);
    if (scaling == their_scaling) return;
    differ({.code = "rope_scaling",
            .position = 1,
            .expected = scaling,
            .found = their_scaling,
            .message = "the scaling differs" + beside,
            .cure = cure_of_scaling(*rope, *theirs)});
  }

  static std::string axes_of(const Rope& rope) {
    const std::size_t axes = std::max<std::size_t>(rope.mrope_section.size(), 1);
    return axes == 1 ? "1 axis" : std::to_string(axes) + " axes";
  }

  static std::string cure_of_base(const Rope& rope) {
    const std::string base = number_text(rope.rope_theta);
    return "write rope_theta " + base + " (GGUF: rope.freq_base, llama.cpp: --rope-freq-base " +
           base + ")";
  }

  // Between two configurations: a conversion leaves the base as it is.
  bool is_trained_longer(const Rope& rope, const Rope& theirs) const {
    constexpr double least = 1.5;
    return theirs.rope_theta > rope.rope_theta && a_.context > 0 &&
           static_cast<double>(b_.context) >= least * static_cast<double>(a_.context) &&
           format_of(a_) == FileFormat::config && format_of(b_) == FileFormat::config;
  }
  // A base that was raised together with the promise is what training on longer texts leaves.
  Finding of_longer_training(Finding finding) const {
    finding.severity = Severity::warning;
    finding.position.reset();
    finding.message =
        "the base was raised with the promised length (" + grouped(a_.context) + " → " +
        grouped(b_.context) +
        " tokens), as training on longer texts does; with the weights of the first, " +
        finding.message;
    finding.cure = "right where the second was trained further with it, as its card says; else " +
                   finding.cure;
    return finding;
  }

  // In the words of the files, where these tell why the frequencies differ.
  void frequencies(const LayerGroup& a, const LayerGroup& b, std::int64_t length, Finding finding) {
    const Rope *rope = detail::rope_of(a), *theirs = detail::rope_of(b);
    if (rope == nullptr || theirs == nullptr) {
      differ(std::move(finding));
      return;
    }
    const std::string scaling = scaling_or_none(*rope), their_scaling = scaling_or_none(*theirs);
    if (!nearly(rope->rope_theta, theirs->rope_theta)) {
      finding.code = "rope_theta";
      finding.expected = number_text(rope->rope_theta);
      finding.found = number_text(theirs->rope_theta);
      finding.cure = cure_of_base(*rope);
      differ(is_trained_longer(*rope, *theirs) ? of_longer_training(finding) : finding);
      if (scaling == their_scaling) return;
      finding.message = "the scaling differs beside the base";
    }
    if (const std::string axes = axes_text(*rope), their_axes = axes_text(*theirs);
        axes != their_axes && scaling == their_scaling) {
      finding.code = "mrope";
      finding.expected = axes;
      finding.found = their_axes;
      finding.cure = "write mrope_section and mrope_interleaved as the first model has them";
      differ(std::move(finding));
      return;
    }
    finding.code = scaling == their_scaling ? "rope_factors" : "rope_scaling";
    finding.expected = scaling;
    finding.found = their_scaling;
    if (const LongRope *file = longrope_of(a), *other = longrope_of(b);
        has_fixed_list(file, other)) {
      finding.expected = list_at(*file, *file, length);
      finding.found = list_at(*other, *file, length);
    }
    finding.cure = cure_of_scaling(*rope, *theirs);
    if (detail::promises_what_it_stretches(a_, b_)) {
      finding.severity = Severity::warning;
      finding.cure = "right where the context was meant to grow, as " + grouped(b_.context) +
                     " tokens in place of " + grouped(a_.context) + " say";
    }
    if (differ_by_rounding(*rope, *theirs)) {
      finding.severity = Severity::warning;
      finding.expected = rounding_text(*rope);
      finding.found = rounding_text(*theirs);
      finding.message += "; engines of both kinds are in everyday use";
      finding.cure = "write truncate into rope_scaling as the first model has it";
    }
    differ(std::move(finding));
  }

  // YaRN's ramp ends at whole pairs, or between two.
  static bool differ_by_rounding(const Rope& rope, const Rope& theirs) {
    const auto *yarn = std::get_if<Yarn>(&rope.scaling),
               *other = std::get_if<Yarn>(&theirs.scaling);
    if (!yarn || !other || yarn->truncate == other->truncate) return false;
    Yarn alike = *other;
    alike.truncate = yarn->truncate;
    return alike == *yarn;
  }
  static std::string rounding_text(const Rope& rope) {
    return std::get<Yarn>(rope.scaling).truncate ? "truncate true" : "truncate false";
  }

  std::string cure_of_scaling(const Rope& rope, const Rope& theirs) const {
    const bool lost = std::holds_alternative<Unscaled>(theirs.scaling);
    if (lost && format_of(b_) == FileFormat::gguf)
      return "the conversion lost the scaling: convert again, so that the file has "
             "rope_freqs.weight or the rope.scaling keys";
    if (lost && format_of(b_) == FileFormat::params)
      return "\"use_scaled_rope\": true in params.json, where these are the weights of Llama 3.1 "
             "or later; those of Llama 3 have none, and are made for 8,192 tokens";
    if (lost) return "the scaling was lost: write rope_scaling as the first model has it";
    if (std::holds_alternative<Unscaled>(rope.scaling))
      return "right where the context was meant to grow; else drop rope_scaling";
    return "write rope_scaling as the first model has it";
  }

  const Model &a_, &b_;
  const std::int64_t length_, asked_;  // told for; 0: nobody asked for a length
  const bool grouped_alike_ = are_grouped_alike(a_, b_);
  Stack stack_ = Stack::text;
  const std::vector<std::int64_t>* layers_ = nullptr;
  std::vector<Finding> found_;
};

}  // namespace

Expected<std::vector<Finding>> differences(const Model& expected, const Model& found,
                                           std::int64_t length) {
  if (length < 0) return fail("diff", "length must be 0 or more", std::to_string(length));
  const std::int64_t longer = std::max(expected.context, found.context);
  // Where neither file says how long its text may be.
  const std::int64_t asked = length > 0 ? length : longer > 0 ? longer : detail::usual_length;
  return Differences(expected, found, asked, length).run();
}

namespace {

// "transformers", or with its version where a newer one has a profile too.
std::string name_with_version(const EngineReading& reading) {
  const Expected<Engine> newest = find_engine(reading.engine.name);
  const bool is_newest = newest && newest->version == reading.version();
  return std::string(reading.engine.name) + (is_newest ? "" : "@" + std::string(reading.version()));
}

// Of what an engine makes of a model, beside `expected`, whose readings are known by `seen`.
Expected<void> find_differences(EngineDifferences& out, const Model& expected, std::int64_t length,
                                detail::EngineReadings& seen) {
  out.findings.clear();
  const std::int64_t asked = length > 0 ? length : expected.context;
  if (!out.reading.refused.empty()) {
    out.findings.push_back({.code = "refused",
                            .message = out.reading.refused,
                            .cure = "choose another engine, or a file that says it otherwise"});
  } else if (!expected.known_family || expected.own_code) {
    const std::string title(out.reading.engine.title);
    const std::string why = expected.known_family
                                ? "the code of " + expected.family +
                                      " stands beside its weights, and posenc has not read " +
                                      title + "'s copy of it"
                                : "posenc does not know the family " + expected.family +
                                      ", so what " + title + " makes of it is not known";
    out.findings.push_back({.code = "not_known",
                            .severity = Severity::note,
                            .message = why,
                            .cure = "compare with tensors of the engine: posenc identify --how " +
                                    std::string(out.reading.engine.name)});
  } else if (out.reading.has_class) {
    POSENC_TRY(found, seen.differences_from(out.reading.model, length));
    out.findings = std::move(found);
    if (const auto rows = out.reading.table_rows; rows && *rows < asked)
      out.findings.push_back({.code = "table_end",
                              .position = rows,
                              .expected = grouped(asked) + " positions",
                              .found = grouped(*rows) + " rows",
                              .message =
                                  "its table of cosines and sines ends there: later positions read "
                                  "other memory, or stop the engine",
                              .cure = "start it for " + grouped(*rows) +
                                      " tokens, or with a file whose context reaches further"});
  }
  std::ranges::stable_sort(out.findings, {}, &Finding::severity);
  if (!out.reading.has_class && out.reading.refused.empty())
    out.findings.push_back({.code = "no_class",
                            .severity = Severity::note,
                            .message = std::string(out.reading.engine.title) + " " +
                                       std::string(out.reading.engine.version) +
                                       " has no class for the family " + expected.family +
                                       ", and does not run it by code of its own",
                            .cure = "choose another engine, or a version of it that has one"});
  // The cures of two files do not help where the engine is what differs.
  for (Finding& finding : out.findings) {
    if (finding.code == "context" && finding.severity == Severity::note &&
        out.reading.model.context < expected.context)
      finding.message = "it serves fewer tokens than the file is made for, unless it is told to";
    finding.engines = {name_with_version(out.reading)};
    constexpr std::string_view of_engines[] = {"refused", "table_end", "not_known", "no_class"};
    if (std::ranges::find(of_engines, finding.code) == std::end(of_engines)) finding.cure.clear();
  }
  return {};
}

}  // namespace

Expected<std::vector<Finding>> detail::EngineReadings::differences_from(const Model& reading,
                                                                        std::int64_t length) {
  const auto alike = [](const LayerGroup& one, const LayerGroup& two) {
    return one.schemes == two.schemes && one.logits == two.logits;
  };
  for (const Seen& seen : seen_)
    if (seen.context == reading.context && seen.length == length &&
        std::ranges::equal(seen.groups, reading.groups, alike))
      return seen.findings;
  POSENC_TRY(findings, differences(model_, reading, length));
  seen_.push_back({reading.groups, reading.context, length, findings});
  return findings;
}

Expected<EngineDifferences*> detail::EngineReadings::read_by(std::string_view engine) {
  POSENC_CHECK(read_as(model_, engine, length_, now_.reading));
  POSENC_CHECK(find_differences(now_, model_, length_, *this));
  // Short texts have their own list again, where the engine is started for no longer ones.
  for (Finding& finding : now_.findings) {
    const LongRope* file = nullptr;
    for (const LayerGroup& group : model_.groups)
      if (!file) file = longrope_of(group);
    if (finding.code != "short_texts" || !file) continue;
    const std::int64_t trained = file->original_max_position_embeddings;
    POSENC_TRY(shorter, read_as(model_, engine, trained));
    POSENC_TRY(left, differences_from(shorter.model, trained));
    if (std::ranges::none_of(left, [](const Finding& one) { return one.code == "rope_factors"; }))
      finding.cure = "start it for " + std::to_string(trained) + " tokens where no text is longer";
  }
  return &now_;
}

Expected<EngineDifferences> engine_differences(const Model& model, std::string_view engine,
                                               std::int64_t length) {
  detail::EngineReadings readings(model, length);
  POSENC_TRY(read, readings.read_by(engine));
  EngineDifferences out = std::move(*read);
  // A version alone ("4") is the newest of its kind.
  const std::string version(engine.substr(std::min(engine.find('@'), engine.size() - 1) + 1));
  if (version.contains('.') || version.starts_with('b'))
    for (const VersionFault& fault : version_faults(model, engine))
      out.findings.insert(out.findings.begin(), detail::finding_of(fault, version));
  return out;
}

Expected<EngineDifferences> engine_differences(const Model& expected, const Model& found,
                                               std::string_view engine, std::int64_t length) {
  POSENC_TRY(meant, read_as(expected, engine, length));
  POSENC_TRY(reading, read_as(found, engine, length));
  if (!meant.refused.empty() && reading.refused.empty()) {
    reading.refused = expected.name + ": " + meant.refused;
  } else if (!reading.refused.empty()) {
    reading.refused = found.name + ": " + reading.refused;
  }
  detail::EngineReadings readings(meant.model, length);
  EngineDifferences out{std::move(reading)};
  POSENC_CHECK(find_differences(out, meant.model, length, readings));
  return out;
}

}  // namespace posenc
