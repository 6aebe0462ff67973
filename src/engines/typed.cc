// Ollama's Modelfile, LM Studio's settings, koboldcpp's flags and tabbyAPI's config.yml: each has
// words for a context, some for a base and a linear scale, none for YaRN, which must stand in the
// file.
#include "src/engines/typed.h"

#include <algorithm>
#include <string>
#include <variant>

#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/scalings/scaling.h"

namespace posenc::detail {
namespace {

using Kind = EngineNote::Kind;

// Whether a scaling has to come with the file: it is neither none nor linear.
bool is_of_the_file(const Rope& rope) {
  return !std::holds_alternative<Unscaled>(rope.scaling) &&
         !std::holds_alternative<Linear>(rope.scaling);
}

constexpr std::string_view koboldcpp = "koboldcpp";

void say_in_file(const Rope& rope, std::string_view program, std::vector<EngineNote>& notes) {
  // llama.cpp's own words for it have said so already.
  const bool told = std::ranges::any_of(
      notes, [](const EngineNote& note) { return note.what.contains(" has no flags"); });
  if (is_of_the_file(rope) && !told)
    notes.push_back({Kind::approximated,
                     std::string(program) + " has no word for " +
                         std::string(info(rope.scaling).name) +
                         ": the GGUF itself must have it (posenc translate MODEL --to gguf)"});
}

std::string modelfile(const Rope& rope, std::int64_t tokens, std::vector<EngineNote>& notes) {
  if (!std::holds_alternative<Unscaled>(rope.scaling))
    notes.push_back(
        {Kind::approximated, "Ollama has no parameter for a scaling: the GGUF itself must have " +
                                 std::string(info(rope.scaling).name) +
                                 " (posenc translate MODEL --to gguf)"});
  return "FROM ./model.gguf\nPARAMETER num_ctx " + std::to_string(tokens);
}

std::string settings(const Rope& rope, std::int64_t tokens, std::vector<EngineNote>& notes) {
  say_in_file(rope, "LM Studio", notes);
  std::string text = "Context Length         " + std::to_string(tokens);
  if (const auto* linear = std::get_if<Linear>(&rope.scaling))
    text += "\nRoPE Frequency Base    " + number_text(rope.rope_theta) +
            "\nRoPE Frequency Scale   " + number_text(1 / linear->factor);
  return text;
}

std::string flags(const Rope& rope, std::int64_t tokens, std::vector<EngineNote>& notes) {
  say_in_file(rope, koboldcpp, notes);
  const auto* linear = std::get_if<Linear>(&rope.scaling);
  // Without --ropeconfig it stretches the base by itself where the context is beyond the file's.
  const bool plain = std::holds_alternative<Unscaled>(rope.scaling);
  std::string text = "koboldcpp --model model.gguf --contextsize " + std::to_string(tokens);
  if (linear || plain)
    text += " --ropeconfig " + number_text(linear ? 1 / linear->factor : 1) + " " +
            number_text(rope.rope_theta);
  return text;
}

std::string config_yml(const Rope& rope, std::int64_t tokens, std::vector<EngineNote>& notes) {
  if (!std::holds_alternative<Unscaled>(rope.scaling))
    notes.push_back({Kind::approximated,
                     "tabbyAPI reads rope_scale and rope_alpha with exllamav2 alone: config.json "
                     "must have " +
                         std::string(info(rope.scaling).name) +
                         " (posenc translate MODEL --to exllamav3)"});
  return "model:\n  max_seq_len: " + std::to_string(tokens);
}

constexpr TypedTarget targets[] = {
    // The GGUF that it names is llama.cpp's converter's, and no config.json is read any more.
    {{"ollama", "", "Ollama", "01cf744", "a Modelfile"}, "llama.cpp", modelfile},
    {{"lmstudio", "lm-studio lms", "LM Studio", "0.3", "settings of a model"},
     "llama.cpp",
     settings},
    {{koboldcpp, "kobold", koboldcpp, "1.100", "flags"}, "llama.cpp", flags},
    {{"tabbyapi", "tabby", "tabbyAPI", "exllamav3", "config.yml"}, "exllamav3", config_yml},
};

const Rope* rope_of_far_layers(const Model& model) {
  const Rope* found = nullptr;
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const Rope* rope = std::get_if<Rope>(&scheme);
          rope && group.stack == Stack::text && (!found || !group.window))
        found = rope;
  return found;
}

}  // namespace

std::span<const TypedTarget> typed_targets() { return targets; }

const TypedTarget* find_typed(std::string_view name) {
  const auto* at = std::ranges::find_if(targets, [&](const TypedTarget& one) {
    return one.program.name == name || contains_word(one.program.aliases, name);
  });
  return at == std::end(targets) ? nullptr : at;
}

void type_in(const TypedTarget& target, const Model& model, Translation& out) {
  const Rope* rope = rope_of_far_layers(model);
  if (!rope) return;
  const auto* linear = std::get_if<Linear>(&rope->scaling);
  const std::int64_t made_for = std::max(
      {model.context, reach(model),
       linear
           ? static_cast<std::int64_t>(static_cast<double>(model.trained_context) * linear->factor)
           : 0});
  std::int64_t tokens = out.length;
  const bool is_beyond = made_for > 0 && tokens > made_for;
  out.engine = target.program;
  out.is_json = false;
  if (is_beyond && target.program.name == koboldcpp &&
      std::holds_alternative<Unscaled>(rope->scaling)) {
    // --ropeconfig would switch that off.
    out.notes.push_back({Kind::approximated,
                         grouped(tokens) + " tokens are beyond the " + grouped(made_for) +
                             " that the file is made for: koboldcpp raises the base by itself "
                             "(NTK-aware), as no --ropeconfig is given; text loses a little with "
                             "it, and more beyond twice the length"});
    out.target = "koboldcpp --model model.gguf --contextsize " + std::to_string(tokens);
    out.largest_angle_difference = out.amplitude_difference = std::nullopt;  // of another base
    return;
  }
  if (is_beyond) {
    const std::string title(target.program.title);
    const std::string why =
        target.program.name == "tabbyapi"
            ? ", and no word of " + title +
                  " scales weights of EXL3 (those of EXL2 scale by rope_alpha): "
        : target.program.name == "ollama"
            ? ", and no word of " + title + " scales it: "
            : ". What " + title +
                  " has for that, a base or a linear scale, this model was not trained with: ";
    out.notes.push_back({Kind::lost, grouped(tokens) + " tokens are beyond the " +
                                         grouped(made_for) + " that the file is made for" + why +
                                         "posenc extend MODEL --to " + std::to_string(tokens) +
                                         " plans a scaling for the file"});
    out.length = tokens = made_for;
  }
  if (target.program.name == "ollama" && model.context > 0 && tokens > model.context)
    out.notes.push_back({Kind::approximated,
                         "Ollama caps num_ctx at the GGUF's context_length, which the converter "
                         "takes from max_position_embeddings, " +
                             grouped(model.context) + " here: write " + std::to_string(made_for) +
                             " there before the file is converted"});
  out.target = target.spell(*rope, tokens, out.notes);
}

}  // namespace posenc::detail
