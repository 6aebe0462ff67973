// What goes wrong with position in engines and files: where two models differ, or a model and what
// an engine makes of it, how far angles are off that engines form in float, and the cosines and
// sines that they store of them; and the random numbers that pictures are drawn of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/engines.h"
#include "posenc/model.h"
#include "posenc/position.h"
#include "posenc/positions.h"

namespace [[gnu::visibility("default")]] posenc {

namespace layout {
struct Judgement;  // of posenc/context_parallel.h
}

enum class Severity {
  error,    // the model's text changes
  warning,  // it may, by engine or length
  note,     // good to know: a size that changes no position, a convention of the format
};
constexpr std::string_view name(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

// What a tool found. docs/codes.md has every code.
struct Finding {
  std::string code = {};  // stable: "rope_theta"
  Severity severity = Severity::error;
  std::optional<Stack> stack = {};            // absent: of the model as a whole
  std::vector<std::int64_t> layers = {};      // ascending; empty: all
  std::optional<std::int64_t> pair = {};      // the one that is off most
  std::optional<std::int64_t> position = {};  // from here on it shows; absent: everywhere
  std::string expected = {}, found = {};      // the two values, as text
  std::string message = {}, cure = {};        // sentences
  std::vector<std::string> engines = {};      // that it holds for; empty: any
  std::optional<std::int64_t> line = {};      // of a log, from 1, that tells it
  bool operator==(const Finding&) const = default;
};
std::string to_json(const Finding& finding);
std::string to_json(std::span<const Finding> findings);  // an array
// Whether nothing was found that changes a text: all are notes.
bool only_notes(std::span<const Finding> findings);

// An angle that is off by more than this many radians begins to show.
inline constexpr double angle_that_shows = 0.1;

// Where two models treat position differently, the gravest first: a configuration and what became
// of it (a conversion, another release, a draft model, an adapter's base). Both are compiled as
// constructed and for `length`; 0: the longer of their contexts. Layers are compared in their
// order. Errors: a length of 0 or more is required.
Expected<std::vector<Finding>> differences(const Model& expected, const Model& found,
                                           std::int64_t length = 0);

// The same of two plans, whatever they were made of, by all their numbers, learned tables among
// them; rounding (Angles) and the lengths that they hold for are notes. length: positions to tell
// it for; 0: 8192. Errors: a negative length.
Expected<std::vector<Finding>> differences(const Plan& expected, const Plan& found,
                                           std::int64_t length = 0);

// The same of two position.json, group by group: what an engine says it computes, beside what the
// model's files ask. length: as above; 0: the longer of their contexts. Errors: a negative length.
Expected<std::vector<Finding>> differences(const PositionFile& expected, const PositionFile& found,
                                           std::int64_t length = 0);

// {"equal", "expected", "found", "findings"} (docs/json.md).
std::string differences_to_json(const Model& expected, const Model& found,
                                std::span<const Finding> findings);
// The same of a log, which has no name: {"equal", "expected", "findings"}.
std::string differences_to_json(const Model& expected, std::span<const Finding> findings);

// What an engine makes of a model, and where that differs from what the file says.
struct EngineDifferences {
  EngineReading reading = {};
  std::vector<Finding> findings = {};
};
std::string to_json(const EngineDifferences& differences);

// As differences() between a model and read_as(model, engine, length). An engine that refuses the
// file, or whose table ends before the length, is a finding too. Errors: theirs.
Expected<EngineDifferences> engine_differences(const Model& model, std::string_view engine,
                                               std::int64_t length = 0);

// Where two models come apart in one engine, such as a draft and its target: as differences()
// between what the engine makes of each. `reading` is that of `found`. Errors and findings: those
// of engine_differences() of one model.
Expected<EngineDifferences> engine_differences(const Model& expected, const Model& found,
                                               std::string_view engine, std::int64_t length = 0);

// Where an engine was told something else than a model's file says, read off the lines that it
// prints when it starts: llama.cpp's print_info, llama_context and keys of a GGUF, its converter's,
// vLLM's configuration and arguments, and warnings of transformers. The model with the told values
// put in is compared with the model by differences(); `line` is the line that tells. Other lines
// are passed over; a log that tells nothing is the finding log_unknown. Errors: more than
// largest_log bytes, a line above 1 MiB, a zero byte, and those of differences().
inline constexpr std::size_t largest_log = std::size_t{64} << 20;
Expected<std::vector<Finding>> log_differences(const Model& model, std::string_view log,
                                               std::int64_t length = 0);

// A model as an engine's command line starts it.
struct CommandReading {
  EngineReading reading = {};          // what the engine then computes
  std::int64_t length = 0;             // the context that the line asks for; 0: none
  std::vector<Finding> findings = {};  // what is off in the line itself
};

// Puts what a command line says into a model, and lets the engine's profile read it: llama.cpp's
// programs (--rope-scaling, --yarn-orig-ctx, --override-kv …), vLLM (--hf-overrides, and
// --rope-scaling and --rope-theta, which are gone since 0.11.1), SGLang
// (--json-model-override-args), LMDeploy, TensorRT-LLM (lengths alone) or Megatron-LM
// (--rotary-base …, which say all that there is), with quotes as a shell has them, or the flags
// alone. Flags that have nothing to do with position are passed over. Errors: more than 1 MiB, no
// engine that is known, a flag or key that is nearly one of those, a value that the flag does not
// take, what posenc has no scheme for.
// `version` is the engine's, where something else than the line tells it: "0.8.5".
Expected<CommandReading> read_command(const Model& model, std::string_view command,
                                      std::string_view version = {});

// Where what such a line makes of a model differs from what its file says: findings of the line,
// those of differences(), and the engine's notes. length 0: what the line asks for, else as there.
// Errors: those of both.
Expected<std::vector<Finding>> command_differences(const Model& model, std::string_view command,
                                                   std::int64_t length = 0,
                                                   std::string_view version = {});

// Where a base differs from what an adapter, or all of its weights, were trained with, as the YAML
// or TOML of the trainer tells (LLaMA-Factory's cutoff_len and rope_scaling, axolotl's sequence_len,
// TRL's max_length, at the start of a line; NeMo-RL's hf_config_overrides and kin wherever they
// stand). Expected is what the training had. Errors: more than 1 MiB, a length that is none, those
// of differences().
Expected<std::vector<Finding>> adapter_differences(const Model& base, std::string_view settings);

// A model as a trainer computes it.
struct TrainerReading {
  Model model = {};                    // with the scaling that the settings put in
  std::int64_t length = 0;             // tokens of the longest text; 0: they do not say
  std::vector<Finding> findings = {};  // what is off in the settings themselves
};

// Puts what a trainer's YAML, TOML or command line says about position into a model: verl's
// override_config, NeMo-RL's hf_config_overrides and kin, LLaMA-Factory's rope_scaling. Settings
// that say nothing of it leave the model as its file has it. Errors: those of
// adapter_differences().
Expected<TrainerReading> read_trainer(const Model& base, std::string_view settings);

// How grave lint() takes a warning of read_model() or explain(), by its code: the same wherever it
// is shown. What it does not know is a warning.
Severity severity_of(const Warning& warning);

// What lint() is asked for.
struct LintOptions {
  std::int64_t length = 0;  // that the model is to be run for; 0: its own context
  std::vector<std::string> engines =
      {};  // that it is for; empty: any, and what they do otherwise is a warning
};

// What deserves a look in a model's file, the gravest first: everything that read_model() and
// explain() warn of, by the same codes (docs/warnings.md), then what engines do otherwise, as
// "engine_" and a code of differences(), then what conversions lose. Errors: a length that the
// model cannot reach, no such engine.
Expected<std::vector<Finding>> lint(const Model& model, const LintOptions& options = {});

// What a way of sharing a text out does to a model (posenc/context_parallel.h), as findings: what
// breaks is an error, what depends on the engine a warning, what another layout does better a note.
// Codes are "cp_" and a Reason's; `found` is the layout.
std::vector<Finding> layout_findings(const layout::Judgement& judgement);

// A configuration's text with cures in it, and what was done: `expected` is what stood there,
// `found` what stands there now.
struct MendedConfig {
  std::string text = {};
  std::vector<Finding> mended = {};
};

// Mends what leaves no choice in the text of a config.json, and leaves every other byte as it is: a
// key's spelling (unknown_key), its new name (old_type), a zero that means nothing (zero_beta),
// betas that are exchanged (betas_reversed), a factor that follows from the lengths
// (factor_missing). A cure is kept only if the text, read again, has lost that warning and gained
// none, and, but for spelling and betas, rotates as before. Errors: those of read_config().
Expected<MendedConfig> mend(std::string_view config, std::string_view name = "config.json");

// What extend() is asked for.
struct ExtendOptions {
  std::int64_t to = 0;                       // tokens: the length that is wanted
  std::string_view engine = "transformers";  // whose words are wanted
  std::int64_t trained = 0;                  // tokens that training has shown; 0: as the file tells
  bool training = false;                     // the weights will be trained at that length
};

// One way to a longer context, and what it does to the rotation of the layers that see furthest.
// Angles of a pair are "unseen" where it had made no full turn in training and rotates further than
// it ever did.
struct ContextOption {
  std::string name =
      {};  // "as_is", "linear", "ntk", "dynamic", "yarn", "longrope", "llama3", "larger_base"
  std::string unavailable = {};  // why it cannot be had; then there is nothing below
  bool needs_training = false;   // makes no sense without
  std::optional<Rope> rope = {};
  std::vector<double> frequencies = {};   // [pair], radians per position, at the wanted length
  std::vector<std::int64_t> unseen = {};  // pairs
  std::optional<std::int64_t> unseen_from = {};  // the first distance at which one of them shows
  // How many times smaller the angle between neighbours is than in training, of the fastest pair
  // and of the middle one.
  double fastest_pair = 1, middle_pair = 1;
  double amplitude = 1;  // on cos and sin
  double logits = 1;     // rotated logits, times what they were in training
  // The first distance within the trained length at which an angle is 0.1 rad off what training
  // had; absent: none.
  std::optional<std::int64_t> short_texts_from = {};
  bool rerotate =
      false;  // the rotation depends on the length: keys cached before must be rotated again
};

// What a group of layers keeps at the wanted length.
struct CacheShare {
  Stack stack = Stack::text;
  std::vector<std::int64_t> layers = {};
  std::optional<std::int64_t> window = {};  // tokens
  std::int64_t bytes = 0;                   // with all tokens kept
  std::int64_t bytes_within_window = 0;     // with those alone that the window shows; else the same
};

// A plan for a longer context. Everything is computed from what the file says, nothing measured.
struct ContextPlan {
  std::int64_t to = 0, trained = 0;  // tokens; trained 0: nobody says, and it does not matter
  std::string trained_by = {};       // a sentence: which rotation training is taken to have shown
  std::string scheme = {};           // "rope", "learned", "alibi" …: how position enters
  std::vector<std::int64_t> layers =
      {};  // whose rotation the options are about; empty: none rotates
  std::vector<std::int64_t> untouched = {};  // layers that rotate otherwise and never see so far
  std::vector<double> turns = {};            // [pair] made in training
  double base = 0;                           // rope_theta
  // The least base, on a grid of 16 to the octave, with which a key that is like the query
  // outweighs others on average at each distance below the wanted length (2405.14591); absent: none
  // is needed, or the length is beyond what is searched.
  std::optional<double> least_base = {};
  std::vector<CacheShare> cache = {};
  std::vector<ContextOption> options = {};
  std::string recommended = {};                     // an option, or "longer_table"
  std::string rule = {}, reason = {}, source = {};  // its name, a sentence, an arXiv number or ""
  std::optional<Translation> said = {};             // the recommended option in the engine's words
  std::vector<std::string> engine = {};             // sentences: what that engine does besides
  std::vector<std::string> unknown = {};            // sentences: what only measuring tells
};
std::string to_json(const ContextPlan& plan);

// A plan to run a model at `to` tokens: every scaling that applies, with its consequences, and one
// that is recommended by a rule that is named (docs/extend.md). A model without rotation gets what
// holds for its scheme. Errors: `to` must be from 1 to 2^40, no such engine, a rotating model whose
// trained length nobody tells.
Expected<ContextPlan> extend(const Model& model, const ExtendOptions& options);

// Position ids as an engine has them, which may be anything: [axis][batch][seq].
struct PositionIds {
  std::vector<std::int64_t> ids = {};
  std::int64_t axes = 1, batch = 1, seq = 0;
};

// Where ids are not those that a rule gives (Positions::from_mask, packed, vision_positions …),
// with the slip that makes just these: padding that is counted, packing that is ignored, an offset
// lost in chunked prefill, axes exchanged. A finding for each kind of slip; its `position` is the
// first token that is off. Padding, where `keep` [batch][seq] is zero, may have any id. Errors:
// sizes that do not match; found ids of one axis are compared with any number.
Expected<std::vector<Finding>> check_positions(const PositionIds& found, const Positions& expected,
                                               std::span<const std::uint8_t> keep = {});

// Cosines and sines as an engine keeps them for tensors of a type.
struct KeptError {
  DType dtype = DType::f32;
  std::vector<double> error = {};  // [mark], largest of a cosine or sine
  // First position with an angle off by angle_that_shows, read off them; absent: none up to the
  // end.
  std::optional<std::int64_t> shows = {};
};

// What one engine is off, or one of the slips that are known.
struct EngineError {
  std::string_view id, name;
  std::string refused = {};        // why the engine cannot rotate so; then there is nothing below
  std::vector<double> phase = {};  // [mark], radians, largest of an angle
  std::vector<KeptError> kept = {};
  // First position with an angle off by more than the type rounds a cosine; absent: none up to the
  // end.
  std::optional<std::int64_t> beyond_half = {}, beyond_bfloat16 = {};
};

// Errors up to some lengths, the marks.
struct PhaseErrors {
  static constexpr std::int64_t window = 1024;
  // Each is measured in the `window` positions before it; of thousands of pairs in some of these.
  std::vector<std::int64_t> marks = {};
  std::vector<EngineError> engines = {};
};

inline constexpr double half_rounding = 0x1p-12,
                        bfloat16_rounding = 0x1p-9;  // of numbers from 1/2 to 1

// Up to which length errors are measured: what is asked, else 2^20, or where the plan ends.
std::int64_t phase_end(const Plan& plan, std::int64_t asked);
// 1,024, 4,096, ... below the end, and the end.
std::vector<std::int64_t> usual_marks(std::int64_t end);

// Of a group whose first scheme is RoPE, compiled for `asked` (0: as constructed), against long
// double. `tell` hears how much is done, 0 to 1. Errors: no RoPE, what compile() says.
Expected<PhaseErrors> phase_errors(const LayerGroup& group, std::int64_t asked,
                                   std::vector<std::int64_t> marks,
                                   const std::function<void(double)>& tell = {});

// Numbers first, first + 1, … of a sequence of standard normal ones. Number i depends on seed and i
// alone (splitmix64, then Box and Muller), on every machine, but for the last bits of log and cos:
// what `posenc plot` and the playground take for queries, keys and learned tables that nobody
// gives.
std::vector<double> normals(std::uint64_t seed, std::int64_t count, std::int64_t first = 0);

}  // namespace posenc
