// Pictures and videos beyond training, axis by axis: each scaling compiled for the wanted size and
// compared with the rotation of the trained one. What is recommended follows by rules that have
// names.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "posenc/pictures.h"
#include "src/core/try.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/text/number.h"
#include "src/tools/extend_table.h"

namespace posenc {
namespace {

using detail::grouped, detail::shown;

constexpr double whole_turn = 2 * std::numbers::pi;
constexpr std::int64_t most_pixels = std::int64_t{1} << 20;
constexpr double rounding = 1 + 1e-6;

constexpr std::string_view of_diffusers = "the default of its pipeline in diffusers";

// How a family makes tokens of pixels, and the size that stands for those of its training.
struct PictureFamily {
  std::string_view classes;  // _class_name, words
  std::int64_t pixels = 16;  // of a token's side
  std::int64_t frames = 0;   // of a frame of the latents, beside the first; 0: no videos
  std::int64_t merged = 1;   // frames of the latents of a token: patch_size_t of the file
  std::int64_t latents = 0;  // in_channels of the file where another VAE tells sizes apart; 0: any
  PictureSize trained = {1, 1024, 1024};
  std::string_view by = of_diffusers;
  std::string_view dype = {};  // model_type of ComfyUI-DyPE's node; "": it does not take it
  bool fits = false;  // its pipeline stretches rows and columns into the trained size itself
  std::int64_t riflex_pair = 0;       // that RIFLEx or its users name, from 1; 0: none is published
  std::string_view riflex_node = {};  // ComfyUI's that takes it; "": none is known
};

constexpr PictureFamily picture_families[] = {
    {.classes = "FluxTransformer2DModel", .dype = "flux"},
    {.classes = "Flux2Transformer2DModel ChromaTransformer2DModel LongCatImageTransformer2DModel "
                "BriaTransformer2DModel OvisImageTransformer2DModel Lumina2Transformer2DModel "
                "HiDreamImageTransformer2DModel BriaFiboTransformer2DModel "
                "Krea2Transformer2DModel"},
    {.classes = "QwenImageTransformer2DModel",
     .trained = {1, 1328, 1328},
     .by = "what ComfyUI-DyPE takes for it",
     .dype = "qwen"},
    {.classes = "ZImageTransformer2DModel", .dype = "zimage"},
    {.classes = "CogView4Transformer2DModel", .fits = true},
    {.classes = "HunyuanImageTransformer2DModel", .pixels = 32, .trained = {1, 2048, 2048}},
    {.classes = "HunyuanVideoTransformer3DModel",
     .frames = 4,
     .trained = {129, 720, 1280},
     .riflex_pair = 4,
     .riflex_node = "HunyuanVideoWrapper"},
    {.classes = "MotifVideoTransformer3DModel", .frames = 4, .trained = {121, 736, 1280}},
    {.classes = "Kandinsky5Transformer3DModel", .frames = 4, .trained = {121, 512, 768}},
    {.classes = "HunyuanVideo15Transformer3DModel", .frames = 4, .trained = {121, 480, 848}},
    // 2.2's model of 5B: its VAE shrinks a side by 16.
    {.classes = "WanTransformer3DModel WanVACETransformer3DModel WanModel",
     .pixels = 32,
     .frames = 4,
     .latents = 48,
     .trained = {121, 704, 1280},
     .by = "what Wan 2.2's own code takes for it",
     .riflex_node = "WanVideoWrapper"},
    {.classes = "WanTransformer3DModel WanVACETransformer3DModel WanModel",
     .frames = 4,
     .trained = {81, 480, 832},
     .riflex_pair = 6,
     .riflex_node = "WanVideoWrapper"},
    {.classes = "CogVideoXTransformer3DModel",
     .frames = 4,
     .trained = {49, 480, 720},
     .fits = true,
     .riflex_pair = 2},
    // 1.5, whose pipeline counts rows and columns as they are.
    {.classes = "CogVideoXTransformer3DModel",
     .frames = 4,
     .merged = 2,
     .trained = {81, 768, 1360},
     .by = "the default of its model card"},
    {.classes = "SkyReelsV2Transformer3DModel", .frames = 4, .trained = {97, 544, 960}},
};

// A number that the file says of how tokens are made; `usual` where it says none.
std::int64_t said_of_tokens(const Model& model, std::string_view field, std::int64_t usual) {
  for (const LayerGroup& group : model.groups)
    for (const Provenance& one : group.provenance)
      if (one.field == field) usual = detail::whole_number(one.value).value_or(usual);
  return usual;
}

const PictureFamily* picture_family(const Model& model) {
  const std::int64_t merged = said_of_tokens(model, "patch_size_t", 1),
                     latents = said_of_tokens(model, "in_channels", 0);
  const auto* at = std::ranges::find_if(picture_families, [&](const PictureFamily& family) {
    return detail::contains_word(family.classes, model.family) && family.merged == merged &&
           (family.latents == 0 || family.latents == latents);
  });
  return at == std::end(picture_families) ? nullptr : at;
}

const Axial* axial_of(const Model& model) {
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const auto* axial = std::get_if<Axial>(&scheme); axial && !axial->axes_dim.empty())
        return axial;
  return nullptr;
}

std::string size_text(const PictureSize& size) {
  const std::string sides = std::to_string(size.height) + "×" + std::to_string(size.width);
  return size.frames > 1 ? std::to_string(size.frames) + " frames of " + sides : sides;
}

// As a flag of the command takes it.
std::string flag_text(const FieldValue& value) {
  struct {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::string& word) const { return word; }
    std::string operator()(const std::vector<double>& list) const {
      std::string text;
      for (const double x : list) text += (text.empty() ? "" : ",") + number_text(x);
      return text;
    }
  } constexpr text;
  return std::visit(text, value);
}

class Picture {
 public:
  Picture(const Axial& axial, const PictureFamily& family, PicturePlan& out)
      : axial_(axial), family_(family), out_(out) {}

  Expected<void> axes() {
    // Two axes are height and width; of more the first is time, or a text's or picture's number.
    const std::int64_t first = std::ssize(axial_.axes_dim) == 2 ? 0 : 1;
    const auto tokens = [&](std::int64_t pixels) {
      return (pixels + family_.pixels - 1) / family_.pixels;
    };
    if (family_.frames > 0 && first == 1) {
      const auto frames = [&](std::int64_t n) {
        return ((n - 1) / family_.frames + family_.merged) / family_.merged;
      };
      POSENC_CHECK(axis("time", 0, frames(out_.trained.frames), frames(out_.to.frames)));
    }
    const PictureSize& wanted = family_.fits ? out_.trained : out_.to;
    POSENC_CHECK(axis("height", first, tokens(out_.trained.height), tokens(wanted.height)));
    return axis("width", first + 1, tokens(out_.trained.width), tokens(wanted.width));
  }

  void options() {
    add("as_is", NoAxisScaling{});
    if (!grows()) return;
    const std::vector<double> own = by_axis([](const PictureAxis& one) { return one.factor; });
    const double widest = widest_side();
    const std::vector<double> alike =
        by_axis([&](const PictureAxis& one) { return one.name == "time" ? one.factor : widest; });
    const std::vector<double> sides =
        by_axis([&](const PictureAxis& one) { return one.name == "time" ? 1 : widest; });
    const std::vector<double> own_sides =
        by_axis([&](const PictureAxis& one) { return one.name == "time" ? 1 : one.factor; });
    std::vector<double> length(axial_.axes_dim.size(), 0);
    for (const PictureAxis& one : out_.axes)
      if (one.name != "time")
        length[static_cast<std::size_t>(one.axis)] = static_cast<double>(one.trained);
    add("linear", AxisLinear{own});
    add("ntk", AxisNtk{.axis_factor = alike});
    if (widest > 1) {
      const double longest = std::ranges::max(length);
      std::vector<double> square = length;
      for (double& l : square) l = l > 0 ? longest : 0;
      add("yarn", AxisYarn{.axis_factor = sides, .axis_length = square});
      add("vision_yarn", VisionYarn{.axis_factor = own_sides, .axis_length = length});
    }
    const PictureAxis& time = out_.axes.front();
    if (time.name == "time" && time.factor > 1)
      add("riflex", Riflex{.pair = riflex_pair(time), .length = time.wanted, .axis = time.axis});
  }

  void recommend() {
    const bool longer = out_.axes.front().name == "time" && out_.axes.front().factor > 1,
               larger = widest_side() > 1;
    if (!longer && !larger)
      return choose("as_is", "within_training", "training has shown positions as far on every axis",
                    "");
    if (!larger) {
      const PictureAxis& time = out_.axes.front();
      if (time.repeats.empty())
        return choose("as_is", "nothing_repeats",
                      "no pair comes round within the wanted frames that did not in training",
                      "2502.15894");
      return choose("riflex", "repeats",
                    "the pair that comes round behind the trained frames makes a video begin anew; "
                    "slowed to 0.9 turns in the wanted ones it cannot, and the others stay",
                    "2502.15894");
    }
    choose("vision_yarn", longer ? "larger_and_longer" : "larger",
           std::string("slow pairs, which say where in the picture a patch stands, are kept within "
                       "the angles of training, all but those that stand under unseen; fast ones, "
                       "which draw details, stay as they are. Its strength falls with the noise, "
                       "step by step (timestep), which linear and yarn without steps do not") +
               (longer ? "; it leaves time alone: for frames beyond those of training see riflex"
                       : ""),
           "2510.20766");
  }

  void say() {
    const PictureOption& option = *find(out_.recommended);
    out_.said.push_back({"posenc rotate and posenc attend", fields_of(option)});
    if (family_.fits)
      out_.said.push_back({"height and width",
                           "its pipeline stretches rows and columns into the trained size, so that "
                           "no angle of theirs is new"});
    if (const auto* vision = std::get_if<VisionYarn>(&option.scaling)) {
      if (!family_.dype.empty())
        out_.said.push_back(
            {"ComfyUI-DyPE", "width " + std::to_string(out_.to.width) + ", height " +
                                 std::to_string(out_.to.height) + ", model_type " +
                                 std::string(family_.dype) + ", base_resolution " +
                                 std::to_string(std::max(out_.trained.height, out_.trained.width)) +
                                 ", method vision_yarn, dype_scale " + shown(vision->step_scale) +
                                 ", dype_exponent " + shown(vision->step_exponent)});
      scale_rope();
    }
    if (const auto* riflex = std::get_if<Riflex>(&option.scaling)) {
      if (!family_.riflex_node.empty())
        out_.said.push_back({std::string(family_.riflex_node),
                             "riflex_freq_index " + std::to_string(riflex->pair)});
      out_.said.push_back(
          {"diffusers", "no argument: of the time axis set freqs[" +
                            std::to_string(riflex->pair - 1) + "] to " +
                            shown(0.9 * whole_turn / static_cast<double>(riflex->length)) +
                            " in get_1d_rotary_pos_embed, as RIFLEx's own code does"});
    }
  }

  void unknown() {
    if (!grows()) return;
    out_.unknown.push_back(
        "what the picture looks like: render it once with and once without the scaling, with one "
        "seed");
    const PictureAxis& time = out_.axes.front();
    if (out_.recommended == "riflex" && riflex_pair(time) != time.turning + 1)
      out_.unknown.push_back(
          "which pair: the method's users name " + std::to_string(riflex_pair(time)) +
          " for this family; by its period pair " + std::to_string(time.turning + 1) +
          " is the first that comes round: try both");
    if (widest_side() > 4)
      out_.unknown.push_back(
          "whether any scaling holds for sides of more than 4 times the trained ones");
  }

 private:
  Expected<void> axis(std::string name, std::int64_t index, std::int64_t trained,
                      std::int64_t wanted) {
    if (index >= std::ssize(axial_.axes_dim))
      return fail("extend", "needs an axis for the " + name + " of a picture",
                  std::to_string(axial_.axes_dim.size()) + " axes", "give a model for pictures");
    PictureAxis one{.name = std::move(name), .axis = index, .trained = trained, .wanted = wanted};
    one.factor = std::max(1.0, static_cast<double>(wanted) / static_cast<double>(trained));
    POSENC_TRY(plan, compiled(NoAxisScaling{}));
    const std::vector<double> frequency = pairs_of(plan, index).frequency;
    one.pairs = std::ssize(frequency);
    for (std::int64_t r = 0; r < one.pairs; ++r) {
      const double turn = whole_turn / frequency[static_cast<std::size_t>(r)];
      if (turn <= static_cast<double>(trained))
        ++one.turning;
      else if (turn < static_cast<double>(wanted))
        one.repeats.push_back(r);
    }
    out_.axes.push_back(std::move(one));
    return {};
  }

  // With a scaling, for heads that all axes fill. Errors: NTK of an axis of one pair.
  Expected<Plan> compiled(const AxisScaling& scaling) const {
    Axial axial = axial_;
    axial.axis_scaling = scaling;
    std::int64_t channels = 0;
    for (const std::int64_t dim : axial.axes_dim) channels += dim;
    return compile(Scheme{std::move(axial)}, {.head_dim = channels});
  }

  // The pairs of an axis: radians per position, and what multiplies cos and sin.
  struct Pairs {
    std::vector<double> frequency = {};
    double magnitude = 1;
  };
  Pairs pairs_of(const Plan& plan, std::int64_t axis) const {
    std::int64_t first = 0;
    for (std::int64_t a = 0; a < axis; ++a)
      first += axial_.axes_dim[static_cast<std::size_t>(a)] / 2;
    const std::int64_t count = axial_.axes_dim[static_cast<std::size_t>(axis)] / 2;
    Pairs pairs{.magnitude = plan.rotate->amplitude};
    for (std::int64_t r = first; r < first + count; ++r)
      pairs.frequency.push_back(plan.rotate->at(0, axis, r));
    if (!plan.rotate->magnitudes().empty())
      pairs.magnitude *= plan.rotate->magnitudes()[static_cast<std::size_t>(first)];
    return pairs;
  }

  bool grows() const {
    return std::ranges::any_of(out_.axes, [](const PictureAxis& one) { return one.factor > 1; });
  }
  double widest_side() const {
    double widest = 1;
    for (const PictureAxis& one : out_.axes)
      if (one.name != "time") widest = std::max(widest, one.factor);
    return widest;
  }
  std::vector<double> by_axis(auto&& of) const {
    std::vector<double> all(axial_.axes_dim.size(), 1);
    for (const PictureAxis& one : out_.axes) all[static_cast<std::size_t>(one.axis)] = of(one);
    return all;
  }

  // The published one, else the first pair that made no full turn in training.
  std::int64_t riflex_pair(const PictureAxis& time) const {
    if (family_.riflex_pair > 0) return family_.riflex_pair;
    return std::min(time.turning + 1, time.pairs);
  }

  void add(std::string name, AxisScaling scaling) {
    PictureOption option{.name = std::move(name), .scaling = std::move(scaling)};
    const Expected<Plan> plain = compiled(NoAxisScaling{}), plan = compiled(option.scaling);
    if (!plan) return;
    double most = 0;
    for (const PictureAxis& one : out_.axes) {
      const Pairs before = pairs_of(*plain, one.axis), after = pairs_of(*plan, one.axis);
      option.frequencies.push_back(after.frequency);
      std::vector<std::int64_t>& unseen = option.unseen.emplace_back();
      for (std::int64_t r = one.turning; r < one.pairs; ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (after.frequency[at] * static_cast<double>(one.wanted) >
            before.frequency[at] * static_cast<double>(one.trained) * rounding)
          unseen.push_back(r);
      }
      option.magnitude = std::max(option.magnitude, after.magnitude);
      if (one.factor <= most) continue;
      most = one.factor;
      option.fastest_pair = before.frequency.front() / after.frequency.front();
      const std::size_t middle = before.frequency.size() / 2;
      option.middle_pair = before.frequency[middle] / after.frequency[middle];
    }
    out_.options.push_back(std::move(option));
  }

  const PictureOption* find(std::string_view name) const {
    const auto at = std::ranges::find(out_.options, name, &PictureOption::name);
    return at == out_.options.end() ? nullptr : &*at;
  }

  void choose(std::string name, std::string rule, std::string reason, std::string source) {
    out_.recommended = std::move(name);
    out_.rule = std::move(rule);
    out_.reason = std::move(reason);
    out_.source = std::move(source);
  }

  // ComfyUI's own node says a linear scaling: positions are i·scale + shift.
  void scale_rope() {
    std::string text;
    for (const auto& [axis, word] : {std::pair{"height", "y"}, {"width", "x"}, {"time", "t"}})
      for (const PictureAxis& one : out_.axes)
        if (one.name == axis)
          text +=
              std::string(text.empty() ? "" : ", ") + "scale_" + word + " " + shown(1 / one.factor);
    out_.said.push_back(
        {"ComfyUI's ScaleROPE", text + " (linear, where DyPE cannot be had: softer detail)"});
  }

  // As posenc's own commands take it.
  std::string fields_of(const PictureOption& option) const {
    Axial axial = axial_;
    axial.axis_scaling = option.scaling;
    std::string text = "--scheme axial";
    for (const auto& [name, value] : settings(Scheme{axial})) {
      const FieldInfo* const field = find_field(info(Scheme{axial}), name);
      if (!field || value == field->default_value) continue;
      text += " --" + std::string(name) + " " + flag_text(value);
    }
    return text;
  }

  const Axial& axial_;
  const PictureFamily& family_;
  PicturePlan& out_;
};

}  // namespace

Expected<PictureSize> picture_size(std::string_view text) {
  const auto wrong = [&] {
    return fail("--to", "must be HEIGHTxWIDTH or FRAMESxHEIGHTxWIDTH in pixels, 1 to 2^20 each",
                text, "write 4096x4096, or 161x720x1280");
  };
  std::vector<std::int64_t> sides;
  for (std::string_view rest = text;;) {
    std::int64_t side = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), side);
    if (error != std::errc() || side < 1 || side > most_pixels) return wrong();
    sides.push_back(side);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) break;
    constexpr std::string_view times = "×";
    if (rest.starts_with(times))
      rest.remove_prefix(times.size());
    else if (rest.starts_with('x') || rest.starts_with('X'))
      rest.remove_prefix(1);
    else
      return wrong();
  }
  if (sides.size() < 2 || sides.size() > 3) return wrong();
  const std::size_t first = sides.size() - 2;
  return PictureSize{first == 1 ? sides[0] : 1, sides[first], sides[first + 1]};
}

std::optional<PictureSize> trained_size(const Model& model) {
  const PictureFamily* const family = picture_family(model);
  if (!family) return std::nullopt;
  return family->trained;
}

Expected<PicturePlan> extend_picture(const Model& model, const PictureOptions& options) {
  const Axial* const axial = axial_of(model);
  if (!axial)
    if (auto stretched = detail::extend_table(model, options)) return *std::move(stretched);
  const bool encodes =
      !model.groups.empty() && std::ranges::all_of(model.groups, [](const LayerGroup& group) {
        return is_tower(group.stack);
      });
  if (!axial)
    return fail("extend", "a size in pixels is for diffusion transformers with axial positions",
                model.family.empty() ? model.name : model.family,
                encodes
                    ? "of an encoder of pictures posenc explain says how its patches are placed "
                      "(coordinates that are normalised have no end), and posenc resample "
                      "stretches a learned table"
                    : "give --to in tokens, or a transformer/config.json of diffusers");
  const PictureFamily* const family = picture_family(model);
  if (!family)
    return fail("extend", "needs a family whose pixels per token are known", model.family,
                "docs/extend.md names them");
  PicturePlan out{.to = options.to};
  const bool said = options.trained.height > 0;
  out.trained = said ? options.trained : family->trained;
  if (said && options.trained.frames == 1) out.trained.frames = family->trained.frames;
  out.trained_by = said ? "as --trained says" : std::string(family->by);
  if (out.to.frames > 1 && family->frames == 0)
    return fail("extend", "a model of pictures has no frames", size_text(out.to),
                "leave the frames out: --to " + std::to_string(out.to.height) + "x" +
                    std::to_string(out.to.width));
  // A size without frames is of a video as long as those of training.
  if (out.to.frames == 1) out.to.frames = family->trained.frames;
  Picture picture(*axial, *family, out);
  POSENC_CHECK(picture.axes());
  picture.options();
  picture.recommend();
  picture.say();
  picture.unknown();
  return out;
}

}  // namespace posenc
