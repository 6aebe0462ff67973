// DeepSeek-V4: one key head, whose keys are the values too, so that both are rotated and the output
// is rotated back. Layers see the last tokens, and beside these entries that stand for several
// tokens each. Which rotation a layer has depends on whether it compresses, and the file says it by
// labels of its own ("main", "compress") or by keys beside one scaling.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

constexpr std::string_view sparse = "compressed_sparse_attention",
                           heavy = "heavily_compressed_attention", slides = "sliding_attention";

// A key of the whole file, or of one kind of layer.
void set(Json::Object& object, std::string_view key, Json value) {
  std::erase_if(object, [&](const JsonMember& member) { return member.key == key; });
  object.push_back({std::string(key), std::move(value)});
}

// The file in words that read_decoder() knows: layer_types, and rope_parameters by layer type.
class Rewritten {
 public:
  Rewritten(const Section& config, const Family& family) : config_(config), family_(family) {
    if (const Json::Object& members = config.members(); !members.empty()) whole_ = members;
    for (const std::string_view key : {"rope_scaling", "rope_parameters", "partial_rotary_factor",
                                       "qk_rope_head_dim", "layer_types"})
      std::erase_if(whole_, [&](const JsonMember& member) { return member.key == key; });
    write_layer_types();
    write_parameters();
    json_ = {std::move(whole_)};
  }
  const Json& json() const { return json_; }

 private:
  void write_layer_types() {
    Json::Array types;
    const auto count = config_.integer("num_hidden_layers", Range{.least = 1, .most = most_layers});
    const std::int64_t layers = count ? count->value : family_.sizes.layers;
    if (const Json* said = config_.raw("layer_types"); said && !said->is_null()) {
      return set(whole_, "layer_types", *said);
    }
    if (const auto ratios = config_.integers("compress_ratios", not_negative)) {
      config_.reading.spelled.emplace_back("layer_types", ratios->key);
      for (const std::int64_t ratio : ratios->value) {
        if (ratio != 0 && ratio != 4 && ratio != 128) {
          return config_.reading.refuse(ratios->key, "must be 0, 4 or 128 for each layer",
                                        std::to_string(ratio), "correct it");
        }
        if (std::ssize(types) < layers)
          types.push_back({std::string(ratio == 0 ? slides : ratio == 4 ? sparse : heavy)});
      }
    } else {
      config_.reading.spelled.emplace_back("layer_types", default_of());
      for (std::int64_t i = 0; i < layers; ++i)
        types.push_back({std::string(i < 2 || i % 2 == 0 ? heavy : sparse)});
    }
    set(whole_, "layer_types", {std::move(types)});
  }

  void write_parameters() {
    const Section old = config_.section("rope_scaling");
    const Section flat = old.members().empty() ? config_.section("rope_parameters") : old;
    const Section main = flat.section("main"), compress = flat.section("compress");
    Json::Object parameters;
    for (const std::string_view type : {slides, sparse, heavy}) {
      const bool plain = type == slides;
      const std::string path = "rope_parameters." + std::string(type);
      if (main && compress) {
        const Section& own = plain ? main : compress;
        config_.reading.spelled.emplace_back(path, own.path());
        parameters.push_back({std::string(type), {own.members()}});
        continue;
      }
      parameters.push_back({std::string(type), {entry(flat, plain, path)}});
    }
    set(whole_, "rope_parameters", {std::move(parameters)});
  }

  // Layers that slide have the plain base, the others a base of their own and the file's scaling,
  // whose attention factor nobody multiplies by unless the file says one.
  Json::Object entry(const Section& flat, bool plain, const std::string& path) {
    Json::Object entry;
    if (!plain && flat) entry = flat.members();
    const std::string_view base = plain ? "rope_theta" : "compress_rope_theta";
    const auto theta = config_.number(base, above_one);
    spell(path + ".rope_theta", base, theta.has_value());
    set(entry, "rope_theta", {theta ? theta->value : plain ? 10000.0 : 160000.0});
    const auto type = flat.word("rope_type type");
    if (!plain && type && type->value == "yarn" && !flat.has("attention_factor")) {
      config_.reading.spelled.emplace_back(path + ".attention_factor", default_of());
      set(entry, "attention_factor", {1.0});
    }
    const auto part = config_.number("partial_rotary_factor");
    const auto width = config_.integer("head_dim", at_least_one),
               rotated = config_.integer("qk_rope_head_dim", at_least_one);
    const double head_dim = static_cast<double>(width ? width->value : family_.sizes.head_dim);
    spell(path + ".partial_rotary_factor", part ? "partial_rotary_factor" : "qk_rope_head_dim",
          part || rotated);
    set(entry, "partial_rotary_factor",
        {part      ? part->value
         : rotated ? static_cast<double>(rotated->value) / head_dim
                   : family_.slice.partial});
    config_.reading.spelled.emplace_back(path, flat ? flat.path() : default_of());
    return entry;
  }

  void spell(std::string path, std::string_view key, bool said) {
    config_.reading.spelled.emplace_back(std::move(path), said ? config_.where(key) : default_of());
  }
  std::string default_of() const { return "default of " + config_.reading.family; }

  const Section& config_;
  const Family& family_;
  Json::Object whole_;
  Json json_;
};

// Tokens that one entry stands for.
std::int64_t rate_of(const Section& config, std::string_view type) {
  const bool is_sparse = type == sparse;
  const auto beside =
      config.integer(is_sparse ? "compress_rate_csa" : "compress_rate_hca", at_least_one);
  const auto inside = config.section("compress_rates").integer(type, at_least_one);
  return beside ? beside->value : inside ? inside->value : is_sparse ? 4 : 128;
}

}  // namespace

void read_deepseek_v4(const Section& config, const Family& family) {
  const Rewritten rewritten(config, family);
  if (config.reading.error) return;
  read_decoder(Section(config.reading, &rewritten.json(), config.path()), family);
  if (config.reading.error) return;
  // Nobody gave the factor that its layers do without.
  if (!config.section("rope_scaling").has("attention_factor") &&
      !config.section("rope_parameters").has("attention_factor compress"))
    std::erase_if(config.reading.model.warnings,
                  [](const Warning& each) { return each.code == "attention_factor_given"; });
  const auto& types = *rewritten.json().find("layer_types")->get<Json::Array>();
  for (LayerGroup& group : config.reading.model.groups) {
    const auto first = static_cast<std::size_t>(group.layers.at(0));
    const std::string& type = *types[first].get<std::string>();
    if (type == slides) continue;
    group.compressed = rate_of(config, type);
    for (CachePart& part : group.cache_beside) part.every = group.compressed;
    if (group.indexer) group.indexer->keys.every = group.compressed;
    group.cache_beside.insert(group.cache_beside.begin(),
                              {group.cache_elements, group.compressed, "entries"});
  }
}

}  // namespace posenc::detail
