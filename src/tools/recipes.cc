#include "src/tools/recipes.h"

#include <algorithm>

#include "posenc/fields.h"
#include "src/core/words.h"
#include "src/model/compare.h"

namespace posenc::detail {
namespace {

constexpr std::int64_t K = 1024;

// Qwen 3's files promise 40,960 tokens: 32,768 that were trained, and 8,192 for the answer.
constexpr Recipe recipes[] = {
    {"qwen3 qwen3_moe", 1e6, 40 * K, 32 * K, 4, "the model cards of Qwen 3", 36},
    {"qwen3 qwen3_moe", 1e6, 128 * K, 32 * K, 4, "the model cards of Qwen 3", 36},
    {"qwen3 qwen3_moe", 5e6, 256 * K, 256 * K, 4, "the model cards of Qwen 3 2507"},
    {"qwen3 qwen3_moe", 1e7, 256 * K, 256 * K, 4, "the model cards of Qwen 3 2507 and Coder"},
    {"qwen2", 1e6, 32 * K, 32 * K, 4, "the model cards of Qwen 2.5"},
    {"qwen2", 1e6, 128 * K, 32 * K, 4, "the model cards of Qwen 2.5"},
    {"qwen2", 1e6, 40 * K, 32 * K, 4, "the model card of QwQ 32B"},
    {"qwen3_next", 1e7, 256 * K, 256 * K, 4, "the model cards of Qwen 3 Next"},
    {"qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text", 1e7, 256 * K, 256 * K, 4,
     "the model cards of Qwen 3.5"},
    {"smollm3", 5e6, 64 * K, 64 * K, 2, "the model cards of SmolLM3"},
    {"qwen2_5_vl qwen2_vl", 1e6, 32 * K, 32 * K, 4, "the model cards of Qwen 2.5 VL"},
};

bool is_of(const Recipe& recipe, const Model& model, const Rope& rope) {
  return recipe.base == rope.rope_theta && contains_word(recipe.families, model.family) &&
         layers_of(model, Stack::text) >= recipe.least_layers;
}

}  // namespace

const Recipe* recipe_of(const Model& model) {
  const Rope* rope = rope_of_text(model);
  if (!rope) return nullptr;
  const auto* at = std::ranges::find_if(recipes, [&](const Recipe& recipe) {
    return recipe.context == model.context && is_of(recipe, model, *rope);
  });
  return at == std::end(recipes) ? nullptr : at;
}

const Recipe* recipe_between(const Model& plain, const Model& extended) {
  const Recipe* recipe = recipe_of(plain);
  const bool scales = recipe && std::ranges::any_of(extended.groups, [&](const LayerGroup& group) {
                        const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
                        return rope && follows(*recipe, rope->scaling);
                      });
  return scales ? recipe : nullptr;
}

bool stretches(const Model& plain, const Model& extended) {
  const Rope *own = rope_of_text(plain), *other = rope_of_text(extended);
  if (!own || !other || plain.family != extended.family || own->rope_theta != other->rope_theta ||
      !std::holds_alternative<Unscaled>(own->scaling))
    return false;
  const auto factor = number_of(other->scaling, "factor"),
             original = number_of(other->scaling, "original_max_position_embeddings");
  return factor && *factor > 1 && plain.context > 0 &&
         original.value_or(static_cast<double>(plain.context)) ==
             static_cast<double>(plain.context);
}

bool promises_what_it_stretches(const Model& plain, const Model& extended) {
  const Rope* rope = stretches(plain, extended) ? rope_of_text(extended) : nullptr;
  return rope && static_cast<double>(extended.context) ==
                     *number_of(rope->scaling, "factor") * static_cast<double>(plain.context);
}

const Recipe* recipe_followed_by(const Model& model) {
  const Rope* rope = rope_of_text(model);
  if (!rope) return nullptr;
  const auto* at = std::ranges::find_if(recipes, [&](const Recipe& recipe) {
    return is_of(recipe, model, *rope) && follows(recipe, rope->scaling);
  });
  return at == std::end(recipes) ? nullptr : at;
}

bool follows(const Recipe& recipe, const Scaling& scaling) {
  const auto* yarn = std::get_if<Yarn>(&scaling);
  return yarn && yarn->factor && *yarn->factor > 1 && *yarn->factor <= recipe.factor &&
         yarn->original_max_position_embeddings == recipe.trained;
}

bool lacks_scaling_of_llama3(const Model& model, const LayerGroup& group) {
  constexpr double base = 500000;
  const Rope* rope = rope_of(group);
  return model.family == "llama" && model.context > 8 * K && rope && rope->rope_theta == base &&
         rope->frequency_factors.empty() && std::holds_alternative<Unscaled>(rope->scaling);
}

}  // namespace posenc::detail
