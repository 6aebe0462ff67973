// Diffusion transformers, as diffusers writes their transformer/config.json: text tokens and
// patches of a picture or a video in one sequence, whose ids have several axes; each axis rotates
// channels of its own, most of them pairing neighbours.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {

std::vector<std::int64_t> numbers_in(std::string_view words) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : split(words)) {
    int number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

namespace {

// Where a row names no heads, each is as wide as the channels of its axes.
ModelDims read_sizes(const Section& config, const Sizes& usual, std::int64_t rotated,
                     ProvenanceList& notes) {
  ModelDims dims;
  dims.layers = config.size(notes, "layers",
                            "num_layers n_layers depth num_visual_blocks "
                            "num_hidden_layers dit_depth",
                            usual.layers, most_layers);
  if (usual.single_layers > 0) {
    dims.layers +=
        config.size(notes, "single_layers", "num_single_layers", usual.single_layers, most_layers);
  }
  if (usual.heads == 0) {
    dims.width = config.size(notes, "width", "model_dim", usual.width, most_width);
    dims.value_dim = dims.head_dim = rotated;
    dims.kv_heads = dims.heads = std::max<std::int64_t>(dims.width / rotated, 1);
    return dims;
  }
  dims.heads = config.size(notes, "heads", "num_attention_heads n_heads num_heads dit_heads",
                           usual.heads, most_heads);
  dims.kv_heads = config.size(notes, "kv_heads", "num_kv_heads n_kv_heads num_key_value_heads",
                              usual.kv_heads > 0 ? usual.kv_heads : dims.heads, most_heads);
  if (usual.head_dim > 0) {
    dims.head_dim = config.size(notes, "head_dim", "attention_head_dim head_dim", usual.head_dim,
                                most_head_dim);
    dims.width = dims.heads * dims.head_dim;
  } else {
    dims.width =
        config.size(notes, "width", "hidden_size dim embed_dim dit_dim", usual.width, most_width);
    if (!config.reading.error) dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
  }
  dims.value_dim = dims.head_dim;
  return dims;
}

template <class T>
std::string listed(const std::vector<T>& numbers) {
  std::string list;
  for (const T each : numbers)
    list += (list.empty() ? "" : ", ") + number_text(static_cast<double>(each));
  return "[" + list + "]";
}

// The channels of each axis, as far as the file or the row says them; else those of a head that is
// `head_dim` wide.
struct Dealt {
  std::vector<std::int64_t> dims = {};
  Origin origin = Origin::family;
  std::string detail = {};
};
Dealt said_dims(const Section& config, const FamilyPicture& picture, const std::string& usual) {
  if (picture.each > 0) {
    const auto each = config.integer(picture.each_keys, Range{.least = 1, .most = most_head_dim});
    return {std::vector<std::int64_t>(3, 2 * (each ? each->value : picture.each)),
            each ? Origin::file : Origin::family, each ? each->key : usual};
  }
  if (auto said = config.integers(picture.keys, Range{.least = 2})) {
    if (said->value.empty())
      config.reading.refuse(said->key, "must be the channels of each axis", "none",
                            "correct the file");
    return {std::move(said->value), Origin::file, std::move(said->key)};
  }
  return {numbers_in(picture.dims), Origin::family, usual};
}
Dealt dims_of_head(const FamilyPicture& picture, std::int64_t head_dim) {
  if (picture.eighths.empty()) {
    const std::int64_t third = 2 * (head_dim / 6);
    return {{head_dim - 2 * third, third, third},
            Origin::derived,
            "2·⌊head_dim/6⌋ for height and width, the rest for time"};
  }
  Dealt dealt{.origin = Origin::derived, .detail = "eighths of head_dim"};
  for (const std::int64_t eighths : numbers_in(picture.eighths))
    dealt.dims.push_back(head_dim * eighths / 8);
  return dealt;
}

// One number an axis: the file's or the row's; none where neither says them.
std::vector<double> numbers_of_axes(const Section& config, std::string_view keys,
                                    std::string_view usual, std::size_t axes) {
  if (keys.empty()) return {};
  const auto said = config.numbers(keys, positive);
  std::vector<double> numbers;
  if (said) numbers = said->value;
  for (const std::int64_t each : said ? std::vector<std::int64_t>{} : numbers_in(usual))
    numbers.push_back(static_cast<double>(each));
  if (numbers.size() != axes && !config.reading.error)
    config.reading.refuse(said ? said->key : std::string(keys), "must be one number an axis",
                          std::to_string(numbers.size()), "give " + std::to_string(axes));
  return numbers;
}

// One axis, as of a text: the rows' one number of eighths of a head, or the key rotary_dim.
std::optional<Rope> rope_of_one_axis(const Section& config, const Family& family,
                                     std::int64_t head_dim) {
  const std::vector<std::int64_t> eighths = numbers_in(family.picture.eighths);
  if (family.slice.rotary_dim == 0 && eighths.size() != 1) return std::nullopt;
  Rope rope{.rotary_dim = eighths.empty() ? family.slice.rotary_dim : head_dim * eighths[0] / 8};
  if (!family.slice.reads_rotary_dim) return rope;
  if (const auto said = config.integer("rotary_dim", Range{.least = 2, .most = most_head_dim}))
    rope.rotary_dim = said->value;
  return rope;
}

// Axes that take pairs in turns, as of texts with pictures (Qwen3-VL): time has those that are left.
std::optional<Rope> rope_by_sections(const Section& config, const Family& family,
                                     std::int64_t head_dim) {
  if (family.axes.sections.empty()) return std::nullopt;
  const auto said = config.integers(family.picture.keys, Range{.least = 1, .most = most_head_dim});
  Rope rope{.mrope_section = said ? said->value : numbers_in(family.axes.sections),
            .mrope_interleaved = true};
  std::int64_t others = 0;
  for (std::size_t a = 1; a < rope.mrope_section.size(); ++a) others += rope.mrope_section[a];
  if (!rope.mrope_section.empty())
    rope.mrope_section[0] = std::max(head_dim / 2 - others, rope.mrope_section[0]);
  return rope;
}

void stretch_and_divide(const Section& config, const FamilyPicture& picture, Axial& axial,
                        ProvenanceList& notes) {
  const std::size_t axes = axial.axes_dim.size();
  const std::vector<double> stretch =
      numbers_of_axes(config, picture.stretch_keys, picture.stretch, axes);
  const std::vector<double> divisors =
      numbers_of_axes(config, picture.divisor_keys, picture.divisors, axes);
  if (config.reading.error) return;
  for (std::size_t a = 0; a < stretch.size(); ++a) {
    const auto dim = static_cast<double>(axial.axes_dim[a]);
    axial.axis_theta.push_back(axial.rope_theta *
                               (dim > 2 ? std::pow(stretch[a], dim / (dim - 2)) : 1));
  }
  for (const double divisor : divisors) axial.position_scale.push_back(1 / divisor);
  const std::string of_family = "default of " + config.reading.family;
  const auto tell = [&](std::string_view keys, std::string_view field,
                        const std::vector<double>& numbers) {
    if (numbers.empty()) return;
    const bool said = config.has(keys);
    note(notes, field, listed(numbers), said ? Origin::file : Origin::family,
         said ? config.where(keys) : of_family);
  };
  tell(picture.stretch_keys, picture.stretch_keys, stretch);
  tell(picture.divisor_keys, picture.divisor_keys, divisors);
}

}  // namespace

void read_diffusion(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  const FamilyPicture& picture = family.picture;
  if (!picture.only_with.empty() && !config.flag(picture.only_with).value_or(Found<bool>{}).value) {
    reading.refuse(config.where(picture.only_with), "must be true", "false",
                   "sinusoids by axis (the scheme sinusoidal) are added once instead");
    return;
  }
  ProvenanceList notes;
  const std::string of_family = "default of " + reading.family;
  Dealt dealt = family.axes.sections.empty() ? said_dims(config, picture, of_family) : Dealt{};
  if (reading.error) return;
  std::int64_t rotated = 0;
  for (const std::int64_t dim : dealt.dims) rotated += std::min(dim, most_head_dim);
  const ModelDims dims = read_sizes(config, family.sizes, rotated, notes);
  if (reading.error) return;

  const bool in_turns = family.axes.alternating > 0;
  auto rope = rope_by_sections(config, family, dims.head_dim);
  if (!rope) rope = rope_of_one_axis(config, family, dims.head_dim);
  if (reading.error) return;
  Axial axial{.rope_theta = family.rope.theta,
              .pairing = picture.halves ? Pairing::halves : Pairing::interleaved,
              .tiled = picture.tiled};
  const auto theta = config.number(family.rope.theta_keys, above_one);
  if (theta) axial.rope_theta = theta->value;
  note(notes, "rope_theta", number_text(axial.rope_theta), theta ? Origin::file : Origin::family,
       theta ? theta->key : of_family);
  // CogVideoX 1.5's, by which one token is of several frames, and its pipeline another.
  if (const Json* merged = config.raw("patch_size_t"); merged && !merged->is_null())
    note(notes, "patch_size_t", merged->text(), Origin::file, "patch_size_t");
  if (picture.latents > 0)
    if (const auto said = config.integer("in_channels in_dim", Range{.least = 1, .most = 65536});
        said && said->value == picture.latents)
      note(notes, "in_channels", std::to_string(said->value), Origin::file, said->key);

  if (rope) {
    rope->rope_theta = axial.rope_theta;
    rope->pairing = axial.pairing;
    const bool sections = !rope->mrope_section.empty(), said = config.has(picture.keys);
    if (sections)
      note(notes, "mrope_section", listed(rope->mrope_section),
           said ? Origin::file : Origin::family, said ? config.where(picture.keys) : of_family);
    else if (const bool own = family.slice.reads_rotary_dim && config.has("rotary_dim");
             *rope->rotary_dim != dims.head_dim)
      note(notes, "rotary_dim", std::to_string(*rope->rotary_dim),
           own ? Origin::file : Origin::family, own ? "rotary_dim" : of_family);
  } else if (in_turns) {
    axial.order = AxisOrder::height_width;
    axial.frequencies = AxisFrequencies::in_turns;
  } else {
    if (dealt.dims.empty()) dealt = dims_of_head(picture, dims.head_dim);
    if (const std::int64_t third = dims.head_dim / 3;
        dealt.origin == Origin::derived && picture.eighths.empty() && third % 2 != 0)
      reading.warn("family_remark",
                   "a third of head_dim, " + std::to_string(third) +
                       ", is odd: classes of diffusers before November 2025 (ChronoEdit's to this "
                       "day) make angles for " +
                       listed(dealt.dims) +
                       " channels and cut them by thirds, so that pairs get "
                       "other axes' angles (diffusers#12538)");
    axial.axes_dim = dealt.dims;
    note(notes, "axes_dim", listed(axial.axes_dim), dealt.origin, dealt.detail);
    stretch_and_divide(config, picture, axial, notes);
    if (reading.error) return;
  }
  note(notes, "pairing", name(axial.pairing), Origin::family, "rule of " + reading.family);

  const bool sound = rope && rope->mrope_section.empty();
  LayerGroup group =
      uniform_group(sound ? Stack::audio : Stack::vision, dims, false, std::move(notes));
  if (rope)
    group.schemes = {*std::move(rope)};
  else
    group.schemes = {std::move(axial)};
  if (!family.remark.empty())
    reading.warn("family_remark", reading.family + ": " + std::string(family.remark));
  add_group(reading, std::move(group), 0);
}

}  // namespace posenc::detail
