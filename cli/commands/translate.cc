// posenc translate: a model's rotation in an engine's own words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/command_text.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/npy.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/terminal.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

std::string engine_list() {
  std::string text;
  for (const Engine& engine : engines()) {
    const std::string name(engine.name);
    if (text.contains(name)) continue;
    text += (text.empty() ? "" : ", ") + name;
  }
  return text + ", lmstudio, koboldcpp, tabbyapi";
}

std::string translation_page(const Model& model, const Translation& translation,
                             const Terminal& term) {
  const Engine& engine = translation.engine;
  std::string out = fmt::format(
      "{}  {}\n\n{}\n\n", term.bold(model.name),
      term.dim(fmt::format("for {} {}{}", engine.title, engine.version,
                           translation.target.starts_with("{\"rope_") ? ", in config.json" : "")),
      translation.target);
  constexpr std::size_t margin = 14;
  // Where the engine computes the very same, a note says what must be in its file for that.
  const bool same =
      translation.largest_angle_difference == 0 && translation.amplitude_difference == 0;
  for (const EngineNote& note : translation.notes) {
    const bool agrees = same && note.kind == EngineNote::Kind::approximated;
    out += term.yellow(padded(agrees ? "besides" : name(note.kind), margin)) +
           wrapped(note.what, margin, margin) + "\n";
  }
  // ONNX takes the rotation itself, as tables: no profile reads it back.
  if (!translation.largest_angle_difference || engine.name == "onnx") return out;
  const auto difference = [](double x) {
    return x == 0 ? std::string("0") : fmt::format("{:.3g}", x);
  };
  return out + term.dim(padded("read back", margin)) +
         wrapped(
             fmt::format("by the profile of {}: angles within {} rad up to position {}, cos and "
                         "sin's factor within {}",
                         engine.title, difference(*translation.largest_angle_difference),
                         translation.length - 1, difference(*translation.amplitude_difference)),
             margin, margin) +
         "\n";
}

// What a command line makes of the model; nothing can be said of one that the engine refuses.
Expected<CommandReading> started(const Model& model, const std::string& command) {
  POSENC_TRY(text, command_text(command));
  Expected<CommandReading> read = read_command(model, text);
  if (read && !read->reading.refused.empty())
    return fail("command", "the engine must run the model", read->reading.refused,
                "posenc diff MODEL --engines all tells which engine does");
  return read;
}

// Cosines or sines of a rotation, [row][pair].
Expected<void> write_table(const OnnxRotation& one, NpyType type, double (*wave)(double),
                           const std::string& path) {
  const std::int64_t pairs = one.plan.rotate->pairs();
  POSENC_TRY(array, make_array(type, {one.rows, pairs}));
  POSENC_TRY(table, tensor_of(array, "", path));
  constexpr std::int64_t at_once = 4096;
  std::vector<double> angles(static_cast<std::size_t>(std::min(at_once, one.rows) * pairs));
  for (std::int64_t begin = 0; begin < one.rows; begin += at_once) {
    const std::int64_t count = std::min(at_once, one.rows - begin);
    POSENC_CHECK(rotation_angles(one.plan, Positions::range(begin, count),
                                 Tensor::dense(angles.data(), {1, 1, count, pairs})));
    for (std::int64_t i = 0; i < count * pairs; ++i)
      table.set(begin * pairs + i,
                one.plan.rotate->amplitude * wave(angles[static_cast<std::size_t>(i)]));
  }
  return write_array(path, array);
}

// cos_cache.npy and sin_cache.npy; a number stands in their names where there are several.
Expected<void> write_tables(const Model& model, const Translation& made, const std::string& folder,
                            std::string_view dtype) {
  POSENC_TRY(type, type_named(dtype));
  POSENC_TRY(all, onnx_rotations(model, made.length));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return fail("--tables", "must be a folder that can be made", folder);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string tail = (all.size() > 1 ? fmt::format("_{}", i) : "") + ".npy";
    for (const auto& [name, wave] :
         {std::pair<const char*, double (*)(double)>{"cos", std::cos}, {"sin", std::sin}})
      POSENC_CHECK(write_table(all[i], type, wave, folder + "/" + name + "_cache" + tail));
  }
  return {};
}

Run define_translate(CLI::App& app) {
  struct TranslateFlags {
    std::string model, engine, command, tables, dtype = "float32";
    std::int64_t at = 0;
    bool json = false;
  };
  auto flags = std::make_shared<TranslateFlags>();
  app.add_option("SRC", flags->model,
                 "A config.json, params.json or .gguf file, - for standard input, a folder, or a "
                 "bundled name")
      ->type_name("MODEL")
      ->required();
  app.add_option("--to", flags->engine,
                 "The engine: " + engine_list() + "; or a format: gguf, params.json, onnx")
      ->type_name("ENGINE")
      ->required();
  app.add_option("--command", flags->command,
                 "What this command line of an engine makes of SRC; or a file of it")
      ->type_name("TEXT");
  app.add_option("--at,--length", flags->at,
                 "The context to start it for (131072, 128k); default: the model's")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--tables", flags->tables,
                 "With --to onnx: a folder for the tables, cos_cache.npy and sin_cache.npy")
      ->type_name("DIR");
  app.add_option("--dtype", flags->dtype, "Of the tables: float32, float16, bfloat16 (as uint16)")
      ->default_str("float32");
  app.add_flag("--json", flags->json)->description("{\"target\", \"notes\", …} (docs/json.md)");
  app.footer(
      "The target is complete: engines replace what they are told as a whole. It is read back by "
      "the engine's profile, and "
      "the largest differences are printed. Exit code 1: something is lost, or an angle is off by "
      "more than 0.1 rad.\n\n"
      "Examples:\n"
      "  posenc translate qwen2.5-7b-yarn4 --to vllm --at 128k\n"
      "  posenc translate llama-3.1-8b-Q4_K_M.gguf --to transformers\n"
      "  posenc translate config.json --to gguf --json | jq .target\n"
      "  posenc translate config.json --to llama.cpp --json | jq -r .target\n"
      "  posenc translate llama-3.1-8b --to onnx --at 8192 --tables tables\n"
      "  posenc translate qwen3-8b --command 'llama-server --rope-scale 4 -c 128k …' --to vllm");
  return [flags, &app]() -> Expected<int> {
    Expected<Model> model = named_model(flags->model);
    if (!model) return std::unexpected(model.error());
    std::vector<Finding> findings;
    std::int64_t length = flags->at;
    if (!flags->command.empty()) {
      POSENC_TRY(read, started(*model, flags->command));
      findings = std::move(read.findings);
      model = std::move(read.reading.model);
      if (length == 0) length = read.length;
    }
    POSENC_TRY(made, translate(*model, flags->engine, length));
    if (!flags->tables.empty()) {
      if (flags->engine != "onnx")
        return fail("--tables", "goes with --to onnx", flags->engine, "drop --tables");
      POSENC_CHECK(write_tables(*model, made, flags->tables, flags->dtype));
    }
    const Terminal term = terminal(no_color(app));
    if (flags->json) {
      std::string json = to_json(made);
      if (!flags->command.empty())
        json.replace(json.size() - 1, 1, ",\"findings\":" + to_json(findings) + "}");
      write_out("{}\n", json);
    } else {
      write_out("{}", translation_page(*model, made, term));
      if (!findings.empty())
        write_out("\nof the command line\n{}", findings_page(findings, term, ""));
    }
    const bool lost = std::ranges::any_of(
        made.notes, [](const EngineNote& note) { return note.kind == EngineNote::Kind::lost; });
    const bool faithful = !lost && only_notes(findings) && made.largest_angle_difference &&
                          *made.largest_angle_difference <= angle_that_shows &&
                          *made.amplitude_difference < 1e-6;
    return faithful ? 0 : 1;
  };
}

}  // namespace

extern const Command translate_command{"translate", "a model's rotation in an engine's own words",
                                       define_translate};

}  // namespace posenc::cli
