// What inference engines make of a model's file. Each reads it in its own way: keys that one
// multiplies by another ignores, defaults differ, a scaling that grows with the text is computed
// once for all. A profile says what one version of an engine does, and was read in the file that it
// names, or recorded by running it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

// A profile: an engine of one version.
struct Engine {
  std::string_view name;        // "vllm"
  std::string_view aliases;     // "" or names separated by spaces
  std::string_view title;       // "vLLM"
  std::string_view version;     // that the profile is of: "0.33.0"
  std::string_view source;      // file of the engine that does it
  std::string_view since = {};  // the first version that reads so, "" where nobody has looked
  bool ended = false;  // asked about by name alone: no version follows, or it knows few scalings
};
// Every profile, engine by engine, the newest version first.
std::vector<Engine> engines();
std::string engines_to_json();  // an array: {"name", "title", "version", "source"}

// "vllm" is the newest profile of the engine, "transformers@4" the newest of version 4, and
// "transformers@5.12" the one that holds for 5.12, or else the nearest. Errors: no such engine,
// what is no version.
Expected<Engine> find_engine(std::string_view name);

// A range of released versions that is known to read some models' position wrongly.
struct VersionFault {
  std::string_view engine;       // "vllm"
  std::string_view from, below;  // "0.11.0" has it, and "0.22.0" no longer
  std::string_view what, cure;
  std::string_view report;  // "vllm-project/vllm#43770"
  bool slight = false;      // log-probabilities show it, text hardly
};
// The faults of a version ("vllm@0.19.1") that concern a model; none where no version is named.
std::vector<VersionFault> version_faults(const Model& model, std::string_view engine);
// The first release ("4.51.0") of transformers, vLLM or SGLang that has a class for a type of model;
// "": not known, or all that were looked at (transformers 4.38, vLLM 0.4, SGLang 0.3 and later).
std::string_view first_version(std::string_view engine, std::string_view type);
// Whether a version is before another: "0.9.1" before "0.11.0"; false where one is no version.
bool is_before(std::string_view version, std::string_view other);

// What an engine does otherwise than the file says.
struct EngineNote {
  enum class Kind {
    lost,          // the file says it, the engine does not do it
    approximated,  // it does something near
    defaulted,     // the file does not say it, and the engine has a default of its own
    // chosen once for all lengths where the file's scaling depends on the length of the text
    fixed,
    rounded,  // kept with fewer digits
  };
  Kind kind = Kind::lost;
  std::string what = {};  // a sentence
  bool operator==(const EngineNote&) const = default;
};
constexpr std::string_view name(EngineNote::Kind kind) {
  constexpr std::string_view names[] = {"lost", "approximated", "defaulted", "fixed", "rounded"};
  return names[static_cast<std::size_t>(kind)];
}

// A model as an engine runs it.
struct EngineReading {
  Engine engine = {};
  // The version that was asked for, where the profile of another holds for it: 5.15.0 of 5.16.0.
  std::string asked_version = {};
  Model model = {};  // what it computes, pairs of channels as the file's own weights have them
  std::string refused = {};  // why it does not run the file; `model` is then as given
  bool reads_format = true;  // false: it reads no file of this kind, and is refused for that
  // false: this version has no class for the model's family; `model` is what its other classes
  // would compute, as a later version may. True where nobody has looked.
  bool has_class = true;
  std::vector<EngineNote> notes = {};
  // Rows of the table of cosines and sines that it makes beforehand: later positions have none.
  std::optional<std::int64_t> table_rows = {};

  // As it was asked for, or the profile's.
  std::string_view version() const {
    return asked_version.empty() ? engine.version : std::string_view(asked_version);
  }
};

// `length` is the context that the engine is started for; 0: the model's own. Positions that are
// not rotary are taken as the file has them. Errors: a length of 0 or more is required, and an
// engine that there is.
Expected<EngineReading> read_as(const Model& model, std::string_view engine,
                                std::int64_t length = 0);
// The same over an older reading, whose memory it takes: for many engines, one after another.
Expected<void> read_as(const Model& model, std::string_view engine, std::int64_t length,
                       EngineReading& out);

// A model's rotation in an engine's own words.
struct Translation {
  Engine engine = {};
  std::string target =
      {};  // keys of a configuration as JSON, or a command line; "" where nothing has to be said
  bool is_json = false;
  std::vector<EngineNote> notes = {};
  std::int64_t length = 0;  // that it was compared for
  // What the engine makes of the target, beside the model: the largest difference of an angle at
  // positions up to length − 1 (radians) and of the factor on cos and sin.
  // Absent: the engine refuses it all the same, and a note says why.
  std::optional<double> largest_angle_difference = {}, amplitude_difference = {};
};
std::string to_json(const Translation& translation);

// For text layers that rotate. The target is complete: engines replace what they are told as a
// whole, so that keys which stay as they were are in it too. It is then read back by the engine's
// profile, and compared with the model for `length` (0: its context). "ollama", "lmstudio",
// "koboldcpp" and "tabbyapi" are programs of people: the target is what one types, and a note says
// what no word of theirs can. "gguf" and "params.json" are formats: the profiles of llama.cpp and
// vLLM read them. "onnx" is ONNX's operators, whose tables onnx_rotations() describes. Errors: no
// rotation, no such engine, what compile() says for that length.
Expected<Translation> translate(const Model& model, std::string_view engine,
                                std::int64_t length = 0);

// A rotation of text layers as ONNX's RotaryEmbedding and GroupQueryAttention take it: tables
// [row][pair] of the cosines and sines of plan.rotate at positions 0 to rows − 1, times its
// amplitude.
struct OnnxRotation {
  const LayerGroup* group = nullptr;  // of the model: the first that rotates so
  std::vector<std::int64_t> layers = {};
  Plan plan = {};
  std::int64_t rows = 0;
};
// Each rotation once; none where no layer rotates. Errors: a length below 1, those of compile().
Expected<std::vector<OnnxRotation>> onnx_rotations(const Model& model, std::int64_t length);

}  // namespace posenc
