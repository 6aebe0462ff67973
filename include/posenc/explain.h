// What a model does about position, as a value: the command, the C ABI and the browser print it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/content.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

// What explain() is asked for.
struct Ask {
  std::int64_t at = 0;  // length to explain for (positions 0 to at - 1); 0: as constructed
  std::optional<std::int64_t> layer;  // only the groups that hold this layer
};

// One rotating pair of a group.
struct PairFact {
  std::int64_t pair = 0;
  std::int64_t axis = 0;     // which position row it takes
  double frequency = 0;      // radians per position
  double unscaled = 0;       // before the scaling
  double wavelength = 0;     // positions for a full turn; infinite for frequency 0
  double turns_trained = 0;  // turns within the trained context
  double turns_asked = 0;    // turns within the asked length, or else the model's context
};

// Neighbouring pairs that the scaling treats alike: "untouched", "÷8", "÷1.1 to ÷7.3", "still".
struct Band {
  std::int64_t first = 0, last = 0;  // pairs, both ends included
  std::string effect;
};

// A scheme's or a scaling's formula with the numbers that hold here.
struct FormulaLine {
  std::string name;  // "yarn"
  std::string text;  // "... cos, sin × 1.3466"
  bool operator==(const FormulaLine&) const = default;
};

// What a group of layers does about position, in words and numbers.
struct GroupExplanation {
  std::size_t group = 0;  // index into model.groups
  Plan plan;
  std::optional<Plan> indexer;     // of the indexer that picks its keys
  std::string heading;             // "layers 0-31 of text: RoPE, halves, Llama-3 scaling ×8"
  std::vector<std::string> words;  // plain sentences, the most important first
  std::vector<FormulaLine> formulas;
  std::vector<PairFact> pairs;  // empty when nothing rotates; head 0 where heads differ
  std::vector<Band> bands;      // what the scaling does to the pairs; empty without one
  std::string amplitude_note;   // where cos and sin's factor and the logits' scale act
  std::int64_t cache_bytes_per_token =
      0;  // all layers of the group, in the model's dtype (2 if unsaid)
  std::int64_t cache_bytes =
      0;  // of the length asked, or else the model's context; 0: neither is known
};

// What a model does about position: as a whole, group by group, and what deserves a warning.
struct Explanation {
  Model model;
  std::int64_t asked = 0;          // length explained for; 0: as constructed
  std::vector<std::string> words;  // about the model as a whole
  std::vector<GroupExplanation> groups;
  std::int64_t cache_bytes_per_token = 0;  // of all groups
  std::int64_t cache_bytes = 0;            // of all groups
  std::vector<Warning> warnings;           // the model's and those of the length asked
};

// Errors: a length the model cannot reach, a layer it does not have.
Expected<Explanation> explain(Model model, const Ask& ask = {});

// The documented JSON (docs/json.md), numbers in shortest round-trip form.
std::string to_json(const Explanation& explanation);
std::string to_json(const Plan& plan);
std::string to_json(const Scheme& scheme);
std::string to_json(const ContentScheme& scheme);  // without its tables

// What to_json(plan) writes, read back; a key left out or null has the member's default. Learned
// tables come back absent. A key that this posenc does not know, of a later one, is named in
// Plan::unknown, and whoever computes refuses the plan. Errors: not JSON, a value of another type,
// a plan that checked() refuses (head_dim 0: not known).
Expected<Plan> read_plan(std::string_view text, std::int64_t head_dim = 0);

// What to_json(scheme) writes, read back; a field left out has its default. Errors: not JSON, no
// such type or field, a value of another kind or out of range, a required field left out.
Expected<Scheme> read_scheme(std::string_view text);
Expected<ContentScheme> read_content_scheme(std::string_view text);

// Every scheme, scaling and content scheme with its fields: by their lists, and in one array, each
// with its "kind", features of plans and the rooms that take them behind (features.h).
std::string schemes_to_json();
std::string scheme_list_to_json();
// What bundled_models() or published_models() lists, as an array.
std::string models_to_json(std::span<const BundledModel> models);

}  // namespace posenc
