// posenc precision: what it costs a model that engines form their angles in float.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Rotations of a model that differ, each with all the layers that have it.
struct Rotation {
  const LayerGroup* group = nullptr;
  std::string layers;
  Plan plan;
  PhaseErrors errors;
};

std::string layers_text(const LayerGroup& group) {
  const std::size_t count = group.layers.size();
  return fmt::format("{} {}{}", count, count == 1 ? "layer" : "layers",
                     group.label.empty() ? "" : " of " + group.label);
}

Expected<std::vector<Rotation>> rotations(const Model& model, std::int64_t asked,
                                          std::optional<std::int64_t> layer) {
  std::vector<Rotation> found;
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack)) continue;  // patches do not stand far out
    if (layer && !std::binary_search(group.layers.begin(), group.layers.end(), *layer)) continue;
    POSENC_TRY(plan, compile(group, asked));
    if (!plan.rotate || group.schemes.empty() || !std::get_if<Rope>(&group.schemes.front()))
      continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Rotation& rotation) {
      return rotation.plan.rotate == plan.rotate && rotation.plan.valid == plan.valid;
    });
    if (same == found.end())
      found.push_back({&group, layers_text(group), std::move(plan), {}});
    else
      same->layers += ", " + layers_text(group);
  }
  if (found.empty())
    return fail("precision", "the model must turn queries and keys by RoPE",
                model.name + (layer ? ", layer " + std::to_string(*layer) : ""),
                "posenc explain " + model.name + " tells what it does");
  return found;
}

// What measuring them takes: ggml's angles are formed a row of pairs at a time.
double expected_seconds(const std::vector<Rotation>& found) {
  double seconds = 0;
  for (const Rotation& rotation : found)
    seconds += 0.4 + 1e-4 * static_cast<double>(rotation.plan.rotate->pairs());
  return seconds;
}

// --- the page ------------------------------------------------------------------------------------

std::string error_text(double error) { return fmt::format("{:.1e}", error); }

std::string row(std::string_view name, const std::vector<double>& errors) {
  std::string text = "  " + padded(name, 42);
  for (const double error : errors) text += fmt::format("{:>11}", error_text(error));
  return text + "\n";
}

std::string position_text(const EngineError& engine, const std::optional<std::int64_t>& position) {
  if (position) return grouped(*position);
  return engine.id == "exact" ? "never" : "not reached";
}

std::string column(std::string_view text) { return fmt::format("{:>16}", text); }

// A block of first positions, a column for each type of 16 bits or more.
std::string firsts(const PhaseErrors& errors) {
  std::string out;
  for (const EngineError& e : errors.engines) {
    if (!e.refused.empty()) continue;
    out += "  " + padded(e.name, 42);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const auto kept = std::ranges::find(e.kept, dtype, &KeptError::dtype);
      out += column(kept == e.kept.end() ? "–" : position_text(e, kept->shows));
    }
    out += "\n";
  }
  return out;
}

const EngineError& engine(const PhaseErrors& errors, std::string_view id) {
  return *std::find_if(errors.engines.begin(), errors.engines.end(),
                       [&](const EngineError& e) { return e.id == id; });
}

// What it means for the model, in the type its file names.
std::string meaning(const Model& model, const PhaseErrors& errors) {
  const bool half = model.dtype == "float16";
  const std::int64_t end = errors.marks.back();
  const bool has_context = model.context > 0 && model.context <= end;
  const std::int64_t used = has_context ? model.context : end;
  std::string text = fmt::format("{} tensors round a cosine by up to {} whatever the angle.",
                                 half ? "float16" : "bfloat16", half ? "2⁻¹²" : "2⁻⁹");
  const auto told = [&](std::string_view who, const EngineError& e) {
    const auto& beyond = half ? e.beyond_half : e.beyond_bfloat16;
    if (!e.refused.empty()) return fmt::format(" No {} angles: {}.", who, e.refused);
    if (!beyond) return fmt::format(" {}'s angles stay within that up to {}.", who, grouped(end));
    if (*beyond >= used)
      return fmt::format(" {}'s angles pass it at {}, beyond the {} of {}.", who, grouped(*beyond),
                         has_context ? "context" : "end", grouped(used));
    return fmt::format(" {}'s angles are off by more from position {} on, within the {} of {}.",
                       who, grouped(*beyond), has_context ? "context" : "length", grouped(used));
  };
  text += told("Hugging Face", engine(errors, "hf_float"));
  text += told("ggml", engine(errors, "ggml_float"));
  return text + " Angles in double never come near it.";
}

std::string page(const Model& model, const std::vector<Rotation>& found, const Terminal& term) {
  std::string out;
  for (const Rotation& rotation : found) {
    const PhaseErrors& errors = rotation.errors;
    const Rope& rope = std::get<Rope>(rotation.group->schemes.front());
    out += fmt::format(
        "{}{}: {}, base {}{}, {} of {} channels rotate\n\n", out.empty() ? "" : "\n",
        term.bold(model.name), rotation.layers, grouped(std::llround(rope.rope_theta)),
        info(rope.scaling).name == "default" ? ""
                                             : ", scaling " + std::string(info(rope.scaling).name),
        rotation.plan.rotate->slice.rotary_dim, rotation.group->geometry.head_dim);
    std::string head = padded("", 44);
    for (const std::int64_t mark : errors.marks) head += fmt::format("{:>11}", grouped(mark));
    const auto title = [&](const std::string& text) { out += term.bold(text) + "\n"; };
    title("largest error of an angle (radians), by position");
    out += term.dim(head) + "\n";
    for (const EngineError& e : errors.engines)
      out += e.refused.empty() ? row(e.name, e.phase) : "  " + padded(e.name, 42) + "          –\n";
    out += "\n";
    title("largest error of a cosine or sine, in the type they are kept in");
    out += term.dim(head) + "\n";
    for (const EngineError& e : errors.engines)
      for (const KeptError& kept : e.kept)
        out += row(fmt::format("{}, {}", e.name, name(kept.dtype)), kept.error);
    out += "\n";
    title("first position with an angle off by more than 16 bits round a cosine");
    out += term.dim(padded("", 44) + column("float16, 2⁻¹²") + column("bfloat16, 2⁻⁹")) + "\n";
    for (const EngineError& e : errors.engines)
      if (e.refused.empty())
        out += "  " + padded(e.name, 42) + column(position_text(e, e.beyond_half)) +
               column(position_text(e, e.beyond_bfloat16)) + "\n";
    out += "\n";
    title("first position with an angle off by 0.1 radian, by the type of cosines and sines");
    out += term.dim(padded("", 44) + column("float32") + column("float16") + column("bfloat16")) +
           "\n";
    out += firsts(errors);
    out += "\n" + wrapped(meaning(model, errors), 0, 0) + "\n";
    if (rotation.plan.valid)
      out += wrapped(fmt::format("The frequencies depend on the length; these hold {}. --at LENGTH "
                                 "compiles for another.",
                                 rotation.plan.valid->to == std::numeric_limits<std::int64_t>::max()
                                     ? "from " + grouped(rotation.plan.valid->from) + " on"
                                     : "up to " + grouped(rotation.plan.valid->to)),
                     0, 0) +
             "\n";
  }
  return out;
}

// --- JSON ----------------------------------------------------------------------------------------

std::string list(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string or_null(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

std::string json(const Model& model, const std::vector<Rotation>& found) {
  std::string groups;
  for (const Rotation& rotation : found) {
    std::string engines;
    for (const EngineError& e : rotation.errors.engines) {
      std::string kept, shows;
      for (const KeptError& k : e.kept) {
        const std::string key = (kept.empty() ? "" : ",") + json_string(name(k.dtype)) + ":";
        kept += key + json_numbers(k.error);
        shows += key + or_null(k.shows);
      }
      engines += fmt::format(
          "{}{{\"angles\":{},\"refused\":{},\"phase\":{},\"cosine\":{{{}}},"
          "\"beyond\":{{\"float16\":{},\"bfloat16\":{}}},\"shows\":{{{}}}}}",
          engines.empty() ? "" : ",", json_string(e.id),
          e.refused.empty() ? "null" : json_string(e.refused), json_numbers(e.phase), kept,
          or_null(e.beyond_half), or_null(e.beyond_bfloat16), shows);
    }
    groups += fmt::format("{}{{\"stack\":{},\"layers\":{},\"positions\":{},\"engines\":[{}]}}",
                          groups.empty() ? "" : ",", json_string(name(rotation.group->stack)),
                          list(rotation.group->layers), list(rotation.errors.marks), engines);
  }
  return fmt::format("{{\"model\":{},\"context\":{},\"groups\":[{}]}}", json_string(model.name),
                     model.context > 0 ? std::to_string(model.context) : "null", groups);
}

Run define_precision(CLI::App& app) {
  struct Options {
    std::string model;
    std::int64_t at = 0;
    std::optional<std::int64_t> layer;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model,
                 "A config.json, params.json or .gguf file, the model's folder, or a bundled name "
                 "(posenc models)")
      ->type_name("MODEL")
      ->required();
  app.add_option(
         "--at,--length", options->at,
         "Compile for this length and measure up to it, at most 2^24; default: the model as "
         "constructed, up to 1,048,576")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--layer", options->layer, "Only what holds for this layer");
  app.add_flag("--json", options->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "Each engine forms its angles in its own way; what is off there no cosine makes good again.\n"
      "Errors are the largest of the 1024 positions before each column's, over all pairs, against\n"
      "long double; of thousands of pairs some of these positions are looked at. Engines keep\n"
      "cosines in float32, Hugging Face and vLLM in the tensor's own type. The three last lines\n"
      "are slips that programs have made (docs/rope.md).\n\n"
      "Examples:\n"
      "  posenc precision llama-3.1-8b\n"
      "  posenc precision phi-3.5-mini --at 131072\n"
      "  posenc precision gemma-3-4b --layer 5 --json | jq '.groups[0].engines[1].beyond'");
  return [options, &app]() -> Expected<int> {
    if (options->at > float_positions)
      return fail("--at",
                  "must be at most 2^24 = 16777216, where a float no longer holds positions",
                  std::to_string(options->at), "from there on only exact angles are left");
    POSENC_TRY(model, named_model(options->model));
    POSENC_TRY(found, rotations(model, options->at, options->layer));
    {
      const double seconds = expected_seconds(found);
      if (seconds > 1)
        fmt::print(stderr, "precision: {} {}, about {}\n", found.size(),
                   found.size() == 1 ? "rotation" : "rotations", time_text(seconds));
      Progress progress("precision", found.size());
      for (Rotation& rotation : found) {
        const auto at = static_cast<std::size_t>(&rotation - found.data());
        POSENC_TRY(errors, phase_errors(*rotation.group, options->at,
                                        usual_marks(phase_end(rotation.plan, options->at)),
                                        [&](double done) {
                                          progress.tell(at, fmt::format("{:.0f}%", 100 * done));
                                        }));
        rotation.errors = std::move(errors);
      }
    }
    if (options->json)
      write_out("{}\n", json(model, found));
    else
      write_out("{}", page(model, found, terminal(no_color(app))));
    return 0;
  };
}

}  // namespace

extern const Command precision_command{
    "precision", "what angles formed in float cost a model, by engine and position",
    define_precision};

}  // namespace posenc::cli
