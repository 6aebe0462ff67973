// Diffusion transformers, as diffusers writes their transformer/config.json: text tokens and
// patches of a picture or a video in one sequence, whose ids have several axes; each axis rotates
// channels of its own, pairing neighbours.
#include <charconv>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

std::vector<std::int64_t> numbers_in(std::string_view words) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : split(words)) {
    int number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

ModelDims read_sizes(const Section& config, const Sizes& usual, ProvenanceList& notes) {
  ModelDims dims;
  dims.layers = config.size(notes, "layers", "num_layers n_layers", usual.layers, most_layers);
  if (usual.single_layers > 0) {
    dims.layers +=
        config.size(notes, "single_layers", "num_single_layers", usual.single_layers, most_layers);
  }
  dims.heads =
      config.size(notes, "heads", "num_attention_heads n_heads num_heads", usual.heads, most_heads);
  dims.kv_heads = config.size(notes, "kv_heads", "num_kv_heads n_kv_heads",
                              usual.kv_heads > 0 ? usual.kv_heads : dims.heads, most_heads);
  if (usual.head_dim > 0) {
    dims.head_dim =
        config.size(notes, "head_dim", "attention_head_dim", usual.head_dim, most_head_dim);
    dims.width = dims.heads * dims.head_dim;
  } else {
    dims.width = config.size(notes, "width", "hidden_size dim", usual.width, most_width);
    if (!config.reading.error) dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
  }
  dims.value_dim = dims.head_dim;
  return dims;
}

}  // namespace

void read_diffusion(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  const ModelDims dims = read_sizes(config, family.sizes, notes);
  if (reading.error) return;
  const std::string of_family = "default of " + reading.family;

  Axial axial{.rope_theta = family.rope.theta, .pairing = Pairing::interleaved};
  const auto theta = config.number(family.rope.theta_keys, above_one);
  if (theta) axial.rope_theta = theta->value;
  note(notes, "rope_theta", number_text(axial.rope_theta), theta ? Origin::file : Origin::family,
       theta ? theta->key : of_family);

  const auto said = config.integers(family.axes.keys, Range{.least = 2});
  Origin origin = said ? Origin::file : Origin::family;
  std::string detail = said ? said->key : of_family;
  if (said) {
    axial.axes_dim = said->value;
  } else if (!family.axes.dims.empty()) {
    axial.axes_dim = numbers_in(family.axes.dims);
  } else {
    const std::int64_t third = 2 * (dims.head_dim / 6);
    axial.axes_dim = {dims.head_dim - 2 * third, third, third};
    origin = Origin::derived;
    detail = "2·⌊head_dim/6⌋ for height and width, the rest for time";
  }
  std::string list;
  for (const std::int64_t dim : axial.axes_dim)
    list += (list.empty() ? "" : ", ") + std::to_string(dim);
  note(notes, "axes_dim", "[" + list + "]", origin, detail);
  note(notes, "pairing", name(axial.pairing), Origin::family, "rule of " + reading.family);

  LayerGroup group = uniform_group(Stack::vision, dims, false, std::move(notes));
  group.schemes = {std::move(axial)};
  if (!family.remark.empty())
    reading.warn("family_remark", reading.family + ": " + std::string(family.remark));
  add_group(reading, std::move(group), 0);
}

}  // namespace posenc::detail
