#include "evidence/lab/endpoint/hypotheses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "posenc/schemes.h"

namespace posenc::lab {
namespace {

using RopeChange = std::function<void(Rope&)>;

// Whether there was anything to change.
bool change_ropes(Model& model, const RopeChange& change) {
  bool found = false;
  for (LayerGroup& group : model.groups)
    for (Scheme& scheme : group.schemes)
      if (auto* rope = std::get_if<Rope>(&scheme); rope != nullptr && group.stack == Stack::text) {
        change(*rope);
        found = true;
      }
  return found;
}

bool any_rope(const Model& model, const std::function<bool(const Rope&)>& asked) {
  return std::ranges::any_of(model.groups, [&](const LayerGroup& group) {
    return std::ranges::any_of(group.schemes, [&](const Scheme& scheme) {
      const auto* rope = std::get_if<Rope>(&scheme);
      return rope != nullptr && asked(*rope);
    });
  });
}

std::int64_t trained(const Model& model) {
  constexpr std::int64_t usual = 8192;
  return model.trained_context > 0 ? model.trained_context
         : model.context > 0       ? model.context
                                   : usual;
}

// The gravest difference between the file and what the server would run, as `posenc diff` tells it.
Finding finding_of(const Model& model, const Model& found, std::int64_t length) {
  const Expected<std::vector<Finding>> all = differences(model, found, length);
  if (all)
    for (const Finding& one : *all)
      if (one.severity != Severity::note) return one;
  return {};
}

Finding slip(std::string code, std::string message, std::string cure,
             std::optional<std::int64_t> position = {}) {
  return {.code = std::move(code),
          .severity = Severity::error,
          .position = position,
          .message = std::move(message),
          .cure = std::move(cure)};
}

class List {
 public:
  List(const Model& model, std::int64_t length) : model_(model), length_(length) {}

  void add(ServerHypothesis made) {
    if (made.finding.code.empty() && !made.id.starts_with("file")) return;  // nothing differs
    // A factor that the file has itself is no other hypothesis.
    for (const ServerHypothesis& one : all_)
      if (one.id == made.id) return;
    all_.push_back(std::move(made));
  }
  void changed(std::string id, std::string title, const std::function<bool(Model&)>& change,
               std::int64_t shows_from = 0, Finding otherwise = {}) {
    ServerHypothesis made{
        .id = std::move(id), .title = std::move(title), .model = model_, .shows_from = shows_from};
    if (!change(made.model)) return;
    made.finding = finding_of(model_, made.model, length_);
    if (made.finding.code.empty()) made.finding = std::move(otherwise);
    add(std::move(made));
  }
  void of_family(std::string_view family, double number) {
    if (auto made = hypothesis_with(model_, family, number, length_)) add(std::move(*made));
  }
  void placed(std::string id, std::string title, Placement placement, Finding finding) {
    add({.id = std::move(id),
         .title = std::move(title),
         .model = model_,
         .placement = placement,
         .shows_from = placement.restart,
         .finding = std::move(finding)});
  }
  std::vector<ServerHypothesis> take() { return std::move(all_); }

 private:
  const Model& model_;
  std::int64_t length_;
  std::vector<ServerHypothesis> all_;
};

void add_rotations(List& list, const Model& model) {
  list.changed("none", "no rotation at all", [](Model& changed) {
    bool found = false;
    for (LayerGroup& group : changed.groups)
      found |= std::erase_if(group.schemes, [](const Scheme& scheme) {
                 return std::holds_alternative<Rope>(scheme);
               }) > 0;
    return found;
  });
  if (any_rope(model, [](const Rope& rope) {
        return !std::holds_alternative<Unscaled>(rope.scaling) || !rope.frequency_factors.empty();
      }))
    list.changed("unscaled", "the file's scaling is lost", [](Model& changed) {
      return change_ropes(changed, [](Rope& rope) {
        rope.scaling = Unscaled{};
        rope.frequency_factors.clear();
      });
    });
  if (any_rope(model, [](const Rope& rope) {
        return std::holds_alternative<Yarn>(rope.scaling) ||
               std::holds_alternative<LongRope>(rope.scaling);
      }))
    list.changed("factor_dropped", "the scaling's factor on cos and sin is dropped",
                 [](Model& changed) {
                   return change_ropes(changed, [](Rope& rope) {
                     if (auto* yarn = std::get_if<Yarn>(&rope.scaling)) yarn->attention_factor = 1;
                     if (auto* longrope = std::get_if<LongRope>(&rope.scaling))
                       longrope->attention_factor = 1;
                   });
                 });
  list.changed("pairing", "pairs of other channels", [](Model& changed) {
    return change_ropes(changed, [](Rope& rope) {
      rope.pairing = rope.pairing == Pairing::halves ? Pairing::interleaved : Pairing::halves;
    });
  });
  // Weights of Hugging Face's order, and a rotation that is not for them.
  if (any_rope(model, [](const Rope& rope) { return rope.pairing == Pairing::interleaved; })) {
    const std::string what = "channels in the order of Hugging Face's file";
    list.add(
        {.id = "pairing_hf",
         .title = "neighbours are paired, of " + what,
         .model = model,
         .other_order = true,
         .finding = slip("pairing", "channels (2r, 2r + 1) rotate where (r, r + head_dim/2) should",
                         "rotate halves (vLLM's is_neox_style), or permute the rows of q and "
                         "k as converters to GGUF do")});
    ServerHypothesis half{
        .id = "half_head_hf",
        .title = "half of each head rotates, of " + what,
        .model = model,
        .other_order = true,
        .finding = slip("rotary_dim", "half of each head's channels rotate, not all",
                        "write the file's partial_rotary_factor, 1 where it has none")};
    change_ropes(half.model, [](Rope& rope) {
      rope.partial_rotary_factor *= 0.5;
      if (rope.rotary_dim) *rope.rotary_dim /= 2;
      rope.pairing = Pairing::halves;
    });
    list.add(std::move(half));
  }
  list.changed("reversed", "every pair rotates the other way", [](Model& changed) {
    return change_ropes(changed, [](Rope& rope) { rope.reversed = !rope.reversed; });
  });
  list.changed("half_head", "half of each head rotates", [](Model& changed) {
    return change_ropes(changed, [](Rope& rope) {
      rope.partial_rotary_factor *= 0.5;
      if (rope.rotary_dim) *rope.rotary_dim /= 2;
    });
  });
}

void add_scalings(List& list, const Model& model) {
  for (const double factor : {2.0, 4.0, 8.0, 16.0}) list.of_family("linear", factor);
  for (const double factor : {2.0, 4.0, 8.0, 16.0, 32.0}) list.of_family("yarn", factor);
  for (const double factor : {2.0, 4.0, 8.0, 32.0}) list.of_family("yarn_flat", factor);
  for (const double factor : {8.0, 32.0})
    list.changed("llama3:" + number_text(factor), "Llama 3's scaling by " + number_text(factor),
                 [&](Model& changed) {
                   return change_ropes(changed, [&](Rope& rope) {
                     rope.scaling = Llama3{.factor = factor,
                                           .original_max_position_embeddings = trained(model)};
                   });
                 });
  // Defaults of engines and of well-known models.
  for (const double theta : {1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7}) list.of_family("theta", theta);
  for (const double amplitude : {1.1386, 1.2079}) list.of_family("amplitude", amplitude);
}

void add_windows(List& list, const Model& model, std::int64_t length) {
  const auto windowed = [&](std::int64_t window) {
    return [window](Model& changed) {
      bool found = false;
      for (LayerGroup& group : changed.groups) {
        if (group.stack != Stack::text || group.mixer != Mixer::attention) continue;
        const auto wanted = window > 0 ? std::optional(window) : std::nullopt;
        found |= group.window != wanted;
        group.window = wanted;
      }
      return found;
    };
  };
  const bool has = std::ranges::any_of(
      model.groups, [](const LayerGroup& group) { return group.window.has_value(); });
  if (has)
    list.changed("window_lost", "the window is lost: all layers see all of a text", windowed(0));
  for (const std::int64_t window : {128, 256, 512, 1024, 2048, 4096})
    if (window < length)
      list.changed(
          "window:" + std::to_string(window),
          "all layers see the last " + std::to_string(window) + " tokens alone", windowed(window),
          has ? 0 : window,
          slip("window",
               "layers see " + std::to_string(window) + " tokens where the file has no window",
               "start the server without a window (sliding_window null)", window));
}

void add_placements(List& list, std::int64_t length) {
  for (const std::int64_t chunk : {64, 128, 256, 512, 1024, 2048})
    if (chunk < length)
      list.placed("restart:" + std::to_string(chunk),
                  "positions begin at 0 in every chunk of " + std::to_string(chunk),
                  {.restart = chunk},
                  slip("offset_lost",
                       "each chunk of " + std::to_string(chunk) +
                           " tokens is counted from 0 behind what the cache holds",
                       "add the number of cached tokens to the ids of a chunk", chunk));
  for (const std::int64_t by : {-1, 1, 2})
    list.placed("behind:" + std::to_string(by),
                "tokens behind the prompt are off by " + std::to_string(by), {.behind = by},
                slip("offset",
                     "the ids of generated tokens are off by " + std::to_string(by) +
                         ", counted from the prompt's end",
                     "the first generated token stands where the prompt ends"));
  for (const std::int64_t to : {8, 16, 32, 64, 128, 256, 512})
    list.placed("padding:" + std::to_string(to),
                "ids go on behind a prompt that is padded to a multiple of " + std::to_string(to),
                {.pad_to = to},
                slip("padding_counted",
                     "generated tokens are counted behind the padding of a prompt that fills "
                     "blocks of " +
                         std::to_string(to),
                     "count the tokens that the mask keeps"));
  for (const std::int64_t by : {-2, -1, 1, 2})
    list.placed("keys:" + std::to_string(by),
                "cached keys stand " + std::to_string(std::abs(by)) +
                    (by < 0 ? " before" : " behind") + " their places",
                {.keys = by},
                slip("positions_shifted",
                     "keys of the cache are rotated to places off by " + std::to_string(by),
                     "rotate cached keys on by what their tokens moved (posenc rekey)"));
}

double gap(double a, double b) {
  const double apart = std::abs(std::remainder(a - b, 2 * std::numbers::pi));
  return apart;
}

std::optional<Rotate> rotation_of(const LayerGroup& group, std::int64_t length) {
  const Expected<Plan> plan = compile(group, length);
  return plan ? plan->rotate : std::nullopt;
}

}  // namespace

std::int64_t Placement::at(std::int64_t token, std::int64_t prompt) const {
  std::int64_t place = restart > 0 ? token % restart : token;
  if (token >= prompt) {
    place += behind;
    if (pad_to > 0) place += (pad_to - prompt % pad_to) % pad_to;
  }
  return std::max<std::int64_t>(place, 0);
}

std::optional<ServerHypothesis> hypothesis_with(const Model& model, std::string_view family,
                                                double number, std::int64_t length) {
  if (!std::isfinite(number) || number <= 0) return std::nullopt;
  ServerHypothesis made{.family = std::string(family), .number = number, .model = model};
  const std::string text = number_text(number);
  RopeChange change;
  if (family == "linear") {
    made.title = "positions divided by " + text + " (linear)";
    change = [&](Rope& rope) { rope.scaling = Linear{.factor = number}; };
  } else if (family == "yarn" || family == "yarn_flat") {
    if (number < 1) return std::nullopt;
    made.title =
        "YaRN by " + text + (family == "yarn" ? "" : ", without its factor on cos and sin");
    change = [&](Rope& rope) {
      Yarn yarn{.factor = number, .original_max_position_embeddings = trained(model)};
      if (family == "yarn_flat") yarn.attention_factor = 1;
      rope.scaling = yarn;
    };
  } else if (family == "theta") {
    if (number <= 1) return std::nullopt;
    made.title = "base " + text;
    change = [&](Rope& rope) { rope.rope_theta = number; };
  } else if (family == "amplitude") {
    made.title = "cos and sin multiplied by " + text;
    // As a scaling whose frequencies are the unscaled ones.
    change = [&](Rope& rope) {
      rope.scaling = Yarn{.factor = 1,
                          .original_max_position_embeddings = trained(model),
                          .attention_factor = number};
    };
  } else {
    return std::nullopt;
  }
  made.id = made.family + ":" + text;
  if (!change_ropes(made.model, change)) return std::nullopt;
  made.finding = finding_of(model, made.model, length);
  if (made.finding.code.empty()) return std::nullopt;
  return made;
}

std::vector<ServerHypothesis> hypotheses_of(const Model& model, std::int64_t length) {
  List list(model, length);
  list.add({.id = "file", .title = "what the file says", .model = model});
  add_rotations(list, model);
  add_scalings(list, model);
  add_windows(list, model, length);
  add_placements(list, length);
  for (const auto& [id, rounding, what] :
       {std::tuple{"half_angles", Rounding::half, "float16"},
        std::tuple{"bfloat16_angles", Rounding::bfloat16, "bfloat16"}})
    list.add({.id = id,
              .title = std::string("angles are rounded to ") + what,
              .model = model,
              .rounding = rounding,
              .finding = slip("angles",
                              std::string("positions times frequencies are formed in ") + what +
                                  ", which takes neighbours for one place",
                              "form them in float32, whatever the model computes in")});
  return list.take();
}

std::int64_t pairs_apart(const ServerHypothesis& a, const ServerHypothesis& b,
                         std::int64_t distance, std::int64_t length) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < std::min(a.model.groups.size(), b.model.groups.size()); ++i) {
    const LayerGroup &left = a.model.groups[i], &right = b.model.groups[i];
    const std::optional<Rotate> first = rotation_of(left, length),
                                second = rotation_of(right, length);
    const std::int64_t pairs = first ? first->pairs() : second ? second->pairs() : 0;
    const auto sees = [&](const LayerGroup& group) {
      return !group.window || distance < *group.window;
    };
    if (sees(left) != sees(right) || a.other_order != b.other_order ||
        first.has_value() != second.has_value() ||
        (first &&
         (first->slice.pairing != second->slice.pairing || first->pairs() != second->pairs()))) {
      most = std::max(most, pairs);
      continue;
    }
    if (!first) continue;
    // Placements: a text of this length with the query at its end, behind the prompt.
    const auto between = [&](const Placement& placement, Rounding rounding) {
      const std::int64_t query = distance + 32, key = 32;
      const double apart = static_cast<double>(placement.at(query, query) -
                                               placement.at(key, query) - placement.keys);
      return std::pair{apart, rounding};
    };
    const auto [here, rounded_here] = between(a.placement, a.rounding);
    const auto [there, rounded_there] = between(b.placement, b.rounding);
    // A number of so many bits is off by up to half of its last.
    const auto off = [&](Rounding rounding, double angle) {
      return rounding == Rounding::none       ? 0.0
             : rounding == Rounding::bfloat16 ? std::abs(angle) / 256
                                              : std::abs(angle) / 2048;
    };
    std::int64_t apart = 0;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto at = static_cast<std::size_t>(pair);
      const double one = here * first->frequencies.radians[at],
                   other = there * second->frequencies.radians[at];
      apart += gap(one, other) + off(rounded_here, one) + off(rounded_there, other) >= 0.5;
    }
    if (std::abs(first->amplitude - second->amplitude) > 0.02) apart = std::max(apart, pairs / 4);
    most = std::max(most, apart);
  }
  return most;
}

}  // namespace posenc::lab
