// Finds a family's row, and what has no row: the generic rules for families that are not known.
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/core/small_letters.h"
#include "src/model/families/rows.h"
#include "src/model/families/vision.h"

namespace posenc::detail {
namespace {

constexpr Family unknown{
    .reads_bidirectional = true,
    .rope = {.theta_keys = any_theta, .by_layer_type = true, .ratio_key = "rope_ratio"},
    .slice = {.partial_keys = any_partial, .reads_rotary_dim = true},
    .layers = {.types = true, .every_keys = any_every},
    .window = {.keys = any_window},
    .local = {.theta_keys = any_local_theta},
    .heads = {.kv_of_layers = "num_key_value_heads_per_layer"}};
constexpr Family tower{.read = read_vit};
constexpr Family unknown_with_alibi{.read = read_bloom};
constexpr Family unknown_with_table{.read = read_learned, .causal = false};
// What diffusers' transformers of channels by axis have in common.
constexpr Family unknown_with_axes{.read = read_diffusion,
                                   .sizes = {3072, 24, 24},
                                   .rope = {.theta = 10000, .theta_keys = "rope_theta theta"},
                                   .picture = {.keys = axes_of_pictures}};

const std::map<std::string_view, const Family*>& by_type() {
  static const auto types = [] {
    std::map<std::string_view, const Family*> all;
    for (const auto rows : {rows_alike(), rows_alternating(), rows_latent(), rows_added(),
                            rows_sound(), rows_diffusion(), rows_distances(), rows_remote(),
                            rows_without_attention(), rows_uncovered()})
      for (const Family& family : rows)
        for (const std::string_view type : split(family.types)) all.try_emplace(type, &family);
    return all;
  }();
  return types;
}

std::string spelling_of(std::string_view name) {
  std::string spelling = small_letters(name);
  std::erase(spelling, '_');
  return spelling;
}

}  // namespace

const Family* find_family(std::string_view model_type) {
  if (const auto found = by_type().find(model_type); found != by_type().end()) return found->second;
  return find_tower(model_type) ? &tower : nullptr;
}

std::string_view type_spelled_as(std::string_view name) {
  static const auto by_spelling = [] {
    std::unordered_map<std::string, std::string_view> all;
    for (const auto& [type, family] : by_type()) all.try_emplace(spelling_of(type), type);
    return all;
  }();
  const auto found = by_spelling.find(spelling_of(name));
  return found == by_spelling.end() ? "" : found->second;
}

const Family& unknown_family() { return unknown; }
const Family& unknown_family_with_alibi() { return unknown_with_alibi; }
const Family& unknown_family_with_table() { return unknown_with_table; }
const Family& unknown_family_with_axes() { return unknown_with_axes; }

namespace {

// How large a picture a diffusion transformer's grid serves: patches of latents, each of which
// covers 8 pixels a side. "": no such grid, or one whose file counts its rows (AuraFlow).
std::string reach_of_grid(const Section& config, const Family& family) {
  constexpr std::int64_t pixels_of_a_latent = 8, most_rows = 4096;
  const auto rows = config.integer("pos_embed_max_size", Range{.least = 1, .most = most_rows}),
             patch = config.integer("patch_size", Range{.least = 1, .most = 64});
  if (!rows || !patch || family.remark.starts_with("a learned table")) return {};
  const std::int64_t most = rows->value * patch->value * pixels_of_a_latent;
  return ": here " + std::to_string(rows->value) + " × " + std::to_string(rows->value) +
         " patches, pictures of up to " + std::to_string(most) + " pixels a side";
}

}  // namespace

void read_not_covered(const Section& config, const Family& family) {
  config.reading.refuse(config.where(config.has("model_type") ? "model_type" : "_class_name"),
                        "is known and not covered", "'" + config.reading.family + "'",
                        (family.remark.empty() ? "its positions are not one of the schemes"
                                               : std::string(family.remark)) +
                            reach_of_grid(config, family));
}

}  // namespace posenc::detail
