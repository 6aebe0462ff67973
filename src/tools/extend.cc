// A plan for a longer context: each scaling compiled for the wanted length and compared with the
// rotation that training has shown, pair by pair. What is recommended follows from these numbers by
// rules that have names.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/least_base.h"
#include "src/tools/recipes.h"
#include "src/tools/unrotated.h"

namespace posenc {
namespace {

using detail::grouped, detail::layer_list, detail::shown;

constexpr double circle = 2 * std::numbers::pi;
constexpr std::int64_t furthest_length = std::int64_t{1} << 40;
// A length that is a whole multiple of another is reached but for rounding.
constexpr double beyond = 1 + 1e-6;

Rope& rope_of(LayerGroup& group) { return const_cast<Rope&>(*detail::rope_of(group)); }

LayerGroup with_rope(LayerGroup group, const Rope& rope) {
  rope_of(group) = rope;
  return group;
}

bool sees_beyond(const LayerGroup& group, std::int64_t length) {
  return !group.window || *group.window >= length;
}

// Radians per position of each pair; that of a pair for pictures is its fastest axis.
std::vector<double> frequencies_of(const Rotate& rotate) {
  std::vector<double> all(static_cast<std::size_t>(rotate.pairs()));
  for (std::size_t r = 0; r < all.size(); ++r)
    for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis)
      all[r] = std::max(all[r], std::abs(rotate.at(0, axis, static_cast<std::int64_t>(r))));
  return all;
}

double logit_factor(const Plan& plan) {
  return plan.rotate->amplitude * plan.rotate->amplitude * plan.logits.multiplier;
}

// The rotation that training is taken to have shown.
struct Shown {
  std::int64_t length = 0;    // tokens of its texts
  std::int64_t original = 0;  // before the file's scaling, whose factor counts from there
  bool scaled = false;        // by the file's own scaling
  std::string by = {};
  Plan plan = {};
  std::vector<double> frequencies = {};

  double angle(std::size_t r) const { return frequencies[r] * static_cast<double>(length); }
};

// A pair that stands still, or its frequencies one by one, are part of the model and no extension
// of it.
bool extends(const Scaling& scaling) {
  return !std::holds_alternative<Unscaled>(scaling) &&
         !std::holds_alternative<Proportional>(scaling) &&
         !std::holds_alternative<Explicit>(scaling);
}

Rope without_scaling(Rope rope) {
  if (extends(rope.scaling)) rope.scaling = Unscaled{};
  return rope;
}

Expected<Shown> shown_in_training(const Model& model, const LayerGroup& group,
                                  std::int64_t trained) {
  Shown out;
  const Rope& rope = *detail::rope_of(group);
  out.length = trained > 0 ? trained : model.context;
  if (out.length <= 0)
    return fail("extend", "needs the length that the model was trained for", model.name,
                "the file does not tell: say it with --trained");
  if (const auto* dynamic = std::get_if<DynamicNtk>(&rope.scaling); dynamic && trained == 0)
    out.length = dynamic->max_position_embeddings;
  const auto said = number_of(rope.scaling, "original_max_position_embeddings");
  out.original = said ? static_cast<std::int64_t>(*said) : out.length;
  if (const auto* linear = std::get_if<Linear>(&rope.scaling); linear && model.trained_context > 0)
    out.original = std::min(model.trained_context, out.length);
  out.scaled = extends(rope.scaling) && !std::holds_alternative<DynamicNtk>(rope.scaling) &&
               (out.length > out.original || std::holds_alternative<NtkAware>(rope.scaling));
  if (out.scaled)
    out.by = "the file's own " + std::string(info(rope.scaling).name) +
             " scaling is taken to have been trained";
  else if (extends(rope.scaling))
    out.by = "the file's " + std::string(info(rope.scaling).name) +
             " scaling is taken to be an addition that training has not seen, since the file "
             "promises no more than the trained length";
  else
    out.by = "without a scaling";
  if (!out.scaled) out.original = std::min(out.original, out.length);
  POSENC_TRY(plan,
             compile(out.scaled ? group : with_rope(group, without_scaling(rope)), out.length));
  out.plan = std::move(plan);
  out.frequencies = frequencies_of(*out.plan.rotate);
  return out;
}

// What an option does, beside what training has shown.
Expected<void> measure(const LayerGroup& group, const Shown& shown, std::int64_t to,
                       ContextOption& option) {
  const LayerGroup changed = with_rope(group, *option.rope);
  POSENC_TRY(plan, compile(changed, to));
  POSENC_TRY(short_plan, compile(changed, std::min(shown.length, to)));
  option.frequencies = frequencies_of(*plan.rotate);
  const std::vector<double> before = frequencies_of(*short_plan.rotate);
  option.rerotate = before != option.frequencies;
  option.amplitude = plan.rotate->amplitude;
  option.logits = logit_factor(plan) / logit_factor(shown.plan);
  double off = 0, earliest = static_cast<double>(furthest_length);
  for (std::size_t r = 0; r < option.frequencies.size(); ++r) {
    off = std::max(off, std::abs(before[r] - shown.frequencies[r]));
    const double now = option.frequencies[r] * static_cast<double>(to);
    if (shown.angle(r) >= circle || now <= shown.angle(r) * beyond) continue;
    option.unseen.push_back(static_cast<std::int64_t>(r));
    earliest = std::min(earliest, std::ceil(shown.angle(r) / option.frequencies[r]));
  }
  if (!option.unseen.empty()) option.unseen_from = static_cast<std::int64_t>(earliest);
  const auto nearer = [&](std::size_t r) {
    return option.frequencies[r] > 0 ? shown.frequencies[r] / option.frequencies[r] : 1;
  };
  option.fastest_pair = nearer(0);
  option.middle_pair = nearer(option.frequencies.size() / 2);
  if (off * static_cast<double>(shown.length) > angle_that_shows)
    option.short_texts_from =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(angle_that_shows / off)));
  return {};
}

// Two digits, upwards.
double rounded_up(double base) {
  const double unit = std::pow(10, std::floor(std::log10(base)) - 1);
  return std::ceil(base / unit) * unit;
}

class Extending {
 public:
  Extending(const Model& model, const LayerGroup& group, const Shown& shown,
            const ExtendOptions& asked, ContextPlan& out)
      : model_(model), group_(group), shown_(shown), asked_(asked), out_(out) {}

  void options() {
    const Rope rope = *detail::rope_of(group_), plain = without_scaling(rope);
    const double s = std::max(1.0, ratio(shown_.original));
    const std::int64_t L = shown_.original;
    add("as_is", rope);
    if (asked_.to <= shown_.length) return;  // nothing has to be stretched
    const bool fixed = std::holds_alternative<Proportional>(plain.scaling) ||
                       std::holds_alternative<Explicit>(plain.scaling);
    const auto scaled = [&](Scaling scaling) {
      Rope with = plain;
      with.scaling = std::move(scaling);
      return with;
    };
    if (const auto* proportional = std::get_if<Proportional>(&plain.scaling)) {
      Proportional slower = *proportional;
      slower.factor *= ratio(shown_.length);
      add("linear", scaled(slower));
    } else if (!fixed) {
      const auto* trained = shown_.scaled ? std::get_if<Linear>(&rope.scaling) : nullptr;
      add("linear", scaled(Linear{trained ? trained->factor * ratio(shown_.length) : s}));
    }
    if (fixed) {
      for (const char* name : {"ntk", "dynamic", "yarn", "longrope", "llama3"})
        refuse(name, "the frequencies are those of '" + std::string(info(plain.scaling).name) +
                         "', which it would replace");
    } else {
      add("ntk", scaled(NtkAware{s}));
      add("dynamic", scaled(DynamicNtk{s, L}));
      Yarn yarn{.factor = s, .original_max_position_embeddings = L};
      if (const auto* own = std::get_if<Yarn>(&rope.scaling)) {
        const double by = shown_.scaled && own->factor ? *own->factor * ratio(shown_.length) : s;
        yarn = *own;
        yarn.factor = std::max(by, 1.0);
      }
      add("yarn", scaled(yarn));
      longrope(rope);
      Llama3 llama3{.factor = s, .original_max_position_embeddings = L};
      if (const auto* own = std::get_if<Llama3>(&rope.scaling)) {
        llama3 = *own;
        llama3.factor = shown_.scaled ? own->factor * ratio(shown_.length) : s;
      }
      add("llama3", scaled(llama3));
    }
    larger_base(plain);
  }

  void recommend() {
    if (asked_.to <= shown_.length)
      return choose("as_is", "within_context",
                    "the model is made for " + grouped(shown_.length) + " tokens", "");
    if (const ContextOption* as_is = find("as_is"); as_is && as_is->unseen.empty())
      return choose("as_is", "nothing_unseen",
                    "no pair of channels meets an angle that training has not shown", "2306.15595");
    if (asked_.training && find("larger_base"))
      return choose("larger_base", "base_bound",
                    "training shows the new angles itself, so nothing has to be squeezed: the base "
                    "alone must be large enough for the length",
                    "2405.14591");
    const Scaling& own = detail::rope_of(group_)->scaling;
    if (shown_.scaled && std::holds_alternative<LongRope>(own))
      return choose("longrope", "needs_factors",
                    "the weights know a divisor for each pair, found by search for this length: a "
                    "longer one needs another search, and training",
                    "2402.13753");
    if (shown_.scaled) {
      const std::string kind(info(own).name);
      if (const ContextOption* same = find(kind); same && same->unseen.empty())
        if (take(kind, "same_scaling",
                 "the weights know this scaling: what it leaves alone stays as it was", paper(own)))
          return;
    }
    if (take("yarn", "yarn",
             "it leaves the fast pairs alone, keeps the slow ones within the angles that training "
             "has shown, and sharpens the logits, since more keys compete",
             "2309.00071"))
      return;
    if (take("llama3", "by_parts",
             "it leaves the fast pairs alone and keeps the slow ones within the angles that "
             "training has shown",
             "2407.21783"))
      return;
    if (take("linear", "interpolation",
             "it keeps every pair within the angles that training has shown", "2306.15595"))
      return;
    choose("as_is", "none_fits", "no scaling keeps every pair within the angles of training", "");
  }

 private:
  double ratio(std::int64_t from) const {
    return static_cast<double>(asked_.to) / static_cast<double>(from);
  }

  static std::string paper(const Scaling& scaling) {
    return std::visit([](const auto& one) { return std::string(one.paper); }, scaling);
  }

  void add(std::string name, Rope rope, bool needs_training = false) {
    ContextOption option{.name = std::move(name), .needs_training = needs_training};
    option.rope = std::move(rope);
    if (const auto measured = measure(group_, shown_, asked_.to, option); !measured)
      option = {.name = option.name, .unavailable = measured.error().message()};
    out_.options.push_back(std::move(option));
  }

  void refuse(std::string name, std::string why) {
    out_.options.push_back({.name = std::move(name), .unavailable = std::move(why)});
  }

  void longrope(const Rope& rope) {
    if (const auto* own = std::get_if<LongRope>(&rope.scaling);
        own && asked_.to <= own->max_position_embeddings.value_or(model_.context))
      add("longrope", rope);
    else
      refuse("longrope", "needs a trained divisor for each pair, which a search finds");
  }

  void larger_base(const Rope& plain) {
    const std::int64_t pairs = std::ssize(shown_.frequencies);
    if (std::holds_alternative<Explicit>(plain.scaling) || pairs < 2)
      return refuse("larger_base", "the frequencies do not follow from a base");
    // The base that keeps the slowest pair within what training has shown, or more where the length
    // asks for it.
    const double exponent = static_cast<double>(pairs) / static_cast<double>(pairs - 1);
    const double kept =
        plain.rope_theta * std::pow(std::max(1.0, ratio(shown_.original)), exponent);
    Rope larger = plain;
    larger.rope_theta = rounded_up(std::max(kept, out_.least_base.value_or(0)));
    add("larger_base", larger, true);
  }

  const ContextOption* find(std::string_view name) const {
    const auto at = std::ranges::find(out_.options, name, &ContextOption::name);
    return at == out_.options.end() || !at->unavailable.empty() ? nullptr : &*at;
  }

  void choose(std::string name, std::string rule, std::string reason, std::string source) {
    const ContextOption* option = find(name);
    if (option && !out_.said) {
      const Expected<Translation> said = translate(extended(*option), asked_.engine, asked_.to);
      if (said)
        out_.said = *said;
      else
        out_.engine.push_back(said.error().message());
    }
    out_.recommended = std::move(name);
    out_.rule = std::move(rule);
    out_.reason = std::move(reason);
    out_.source = std::move(source);
  }

  // Chooses an option that leaves nothing unseen and that the engine runs as it is meant.
  bool take(const std::string& name, const char* rule, const char* reason, std::string source) {
    const ContextOption* option = find(name);
    if (!option || !option->unseen.empty()) return false;
    Expected<Translation> said = translate(extended(*option), asked_.engine, asked_.to);
    const bool faithful = !said || (said->largest_angle_difference &&
                                    *said->largest_angle_difference <= angle_that_shows &&
                                    *said->amplitude_difference < 1e-6);
    if (!faithful) {
      std::string why = "it makes something else of its own words";
      for (const EngineNote& note : said->notes)
        if (note.kind != EngineNote::Kind::rounded) why = note.what;
      out_.engine.push_back(name + " cannot be had there: " + why);
      return false;
    }
    choose(name, rule, reason, std::move(source));
    return true;
  }

  // The model with an option: all layers that rotate alike have it, since files say a rotation
  // once.
  Model extended(const ContextOption& option) const {
    Model model = model_;
    const Rope own = *detail::rope_of(group_);
    for (LayerGroup& group : model.groups)
      if (const Rope* rope = detail::rope_of(group); rope && *rope == own)
        rope_of(group) = *option.rope;
    if (option.name != "dynamic") model.context = std::max(model.context, asked_.to);
    return model;
  }

  const Model& model_;
  const LayerGroup& group_;
  const Shown& shown_;
  const ExtendOptions& asked_;
  ContextPlan& out_;
};

// Of the layers that rotate those that see furthest: their rotation decides.
const LayerGroup* deciding(const Model& model, std::int64_t to) {
  const LayerGroup* found = nullptr;
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack) || !detail::rope_of(group)) continue;
    if (!found || (!sees_beyond(*found, to) && sees_beyond(group, to))) found = &group;
  }
  return found;
}

void add_cache(const Explanation& explanation, std::int64_t to, ContextPlan& out) {
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& group = explanation.model.groups[facts.group];
    if (is_tower(group.stack) || facts.cache_bytes_per_token == 0) continue;
    LayerGroup whole = group;
    whole.window.reset();
    out.cache.push_back({group.stack, group.layers, group.window,
                         cached_bytes(explanation.model, whole, to),
                         cached_bytes(explanation.model, group, to)});
  }
}

void add_remarks(const Model& model, const ExtendOptions& asked, const Shown& shown,
                 ContextPlan& out) {
  if (!out.said) return;
  const std::string_view engine = out.said->engine.name;
  const ContextOption* option = nullptr;
  for (const ContextOption& one : out.options)
    if (one.name == out.recommended) option = &one;
  if (engine == "llama.cpp" && asked.to > model.context && out.recommended != "yarn")
    out.engine.push_back(
        "llama-server caps the context at the file's own; of the flags only YaRN's lift that");
  if (engine == "vllm" && asked.to > model.context && model.family.starts_with("gemma3"))
    out.engine.push_back(
        "vLLM takes the length of Gemma 3's file as it stands, whatever the factor: "
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 before the line");
  if (option && option->short_texts_from && !option->rerotate && out.recommended != "as_is")
    out.engine.push_back("the scaling is the same at every length: texts within the trained " +
                         grouped(shown.length) + " tokens are rotated by it too");
}

void add_unknown(const Shown& shown, std::int64_t to, ContextPlan& out) {
  if (to <= shown.length) return;
  out.unknown.push_back(
      "how much worse the text gets: measure perplexity and retrieval at this length, and short "
      "texts as well");
  if (shown.scaled)
    out.unknown.push_back(
        "whether the weights were trained with the file's scaling, and how long "
        "the texts were");
  const double more = static_cast<double>(to) / static_cast<double>(shown.length);
  out.unknown.push_back("what it costs that attention spreads over " + detail::shown(more, 3) +
                        " times as many keys");
}

}  // namespace

Expected<ContextPlan> extend(const Model& model, const ExtendOptions& options) {
  if (options.to < 1 || options.to > furthest_length)
    return fail("extend", "the length must be from 1 to 2^40", std::to_string(options.to),
                "give the tokens that are wanted: 131072 or 128k");
  if (options.trained < 0 || options.trained > furthest_length)
    return fail("extend", "the trained length must be from 0 to 2^40",
                std::to_string(options.trained));
  if (model.groups.empty()) return fail("extend", "needs a model with layers", model.name);
  POSENC_CHECK(find_engine(options.engine));
  POSENC_TRY(explanation, explain(model));
  ContextPlan out{.to = options.to};
  add_cache(explanation, options.to, out);

  const LayerGroup* group = deciding(model, options.to);
  const LayerGroup& first = group ? *group : model.groups.front();
  out.scheme = detail::scheme_text(first);
  if (const auto holds = detail::by_scheme(model, options.to, explanation.groups.front().plan);
      holds && (!group || holds->rule == "rows")) {
    out.trained = options.trained > 0 ? options.trained : model.context;
    out.recommended = holds->recommended;
    out.rule = holds->rule;
    out.reason = holds->reason;
    out.source = holds->source;
    out.unknown.push_back("what attention over more keys than in training costs");
    return out;
  }
  // What the authors say was trained counts before what the file promises.
  const detail::Recipe* recipe = options.trained == 0 ? detail::recipe_of(model) : nullptr;
  const bool own = recipe && !extends(detail::rope_of(*group)->scaling);
  POSENC_TRY(shown, shown_in_training(model, *group, own ? recipe->trained : options.trained));
  if (own)
    shown.by +=
        ": " + grouped(recipe->trained) + " tokens, as " + std::string(recipe->source) + " say";
  const Rope& rope = *detail::rope_of(*group);
  out.trained = shown.length;
  out.trained_by = shown.by;
  out.base = rope.rope_theta;
  for (std::size_t r = 0; r < shown.frequencies.size(); ++r)
    out.turns.push_back(shown.angle(r) / circle);
  for (const LayerGroup& one : model.groups) {
    if (one.stack != group->stack) continue;
    const Rope* theirs = detail::rope_of(one);
    auto& list = theirs && *theirs == rope ? out.layers : out.untouched;
    list.insert(list.end(), one.layers.begin(), one.layers.end());
  }
  std::ranges::sort(out.layers);
  std::ranges::sort(out.untouched);
  if (group->window && *group->window <= shown.length) {
    out.recommended = "as_is";
    out.rule = "windows";
    out.reason = "no layer that rotates sees further back than " + grouped(*group->window) +
                 " tokens, and training has shown that";
    add_unknown(shown, options.to, out);
    return out;
  }
  const auto* proportional = std::get_if<Proportional>(&rope.scaling);
  out.least_base = detail::least_base(
      {.pairs = std::ssize(shown.frequencies),
       .rotating = proportional ? std::llround(proportional->partial_rotary_factor *
                                               static_cast<double>(shown.frequencies.size()))
                                : std::ssize(shown.frequencies),
       .channels = group->geometry.head_dim},
      options.to);
  Extending extending(model, *group, shown, options, out);
  extending.options();
  extending.recommend();
  add_remarks(model, options, shown, out);
  add_unknown(shown, options.to, out);
  return out;
}

}  // namespace posenc
