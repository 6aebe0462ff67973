// Scalings that a model's authors publish for texts longer than its file promises.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/model.h"

namespace posenc::detail {

struct Recipe {
  std::string_view families;  // model_type, words
  double base = 0;            // rope_theta of the file
  std::int64_t context = 0;   // that the file promises
  std::int64_t trained = 0;   // that the authors say training has shown
  double factor = 0;          // of YaRN
  std::string_view source;
  std::int64_t least_layers = 0;  // of smaller models nobody publishes it
};

// The recipe for a model as its file has it; null: none is known.
const Recipe* recipe_of(const Model& model);

// The recipe of `plain` by which layers of `extended` scale; null: by none.
const Recipe* recipe_between(const Model& plain, const Model& extended);

// Whether the second is the first with a scaling of the first's own length, and whether its length
// is that times the factor.
bool stretches(const Model& plain, const Model& extended);
bool promises_what_it_stretches(const Model& plain, const Model& extended);

// The recipe by which a file was extended, whatever it was before; null: by none.
const Recipe* recipe_followed_by(const Model& model);

// Whether a scaling is the recipe's.
bool follows(const Recipe& recipe, const Scaling& scaling);

// Llama 3.1 and later were released with base 500000, and with a scaling beyond 8,192 tokens:
// whether layers have the one without the other.
bool lacks_scaling_of_llama3(const Model& model, const LayerGroup& group);

}  // namespace posenc::detail
