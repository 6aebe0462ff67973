// posenc identify: which convention an engine rotated by, from tensors that it showed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/dump.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "cli/pages/identify_how.h"
#include "cli/pages/identify_page.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "posenc/files.h"
#include "posenc/identify.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct IdentifyOptions {
  std::string after, before, tensor, before_tensor, positions, cos, sin, table, dtype, model, how,
      part = "by_width";
  std::int64_t heads = 0, layer = -1;  // −1: nobody says
  bool repeated = false, values = false, json = false;
};

Expected<int> say_layers(const std::vector<IdentifiedLayer>& layers, bool json,
                         const Terminal& term) {
  if (layers.size() == 1)
    write_out("{}{}",
              json ? to_json(layers.front().found) : identified_page(layers.front().found, term),
              json ? "\n" : "");
  else
    write_out("{}{}", json ? to_json(std::span(layers)) : identified_page(layers, term),
              json ? "\n" : "");
  const bool good = std::ranges::all_of(layers, [](const IdentifiedLayer& layer) {
    return layer.found.verdict == Rotated::rotation && only_notes(layer.found.findings);
  });
  return good ? 0 : 1;
}

// What llama-eval-callback printed: text, which no tensor file is.
Expected<std::optional<std::vector<IdentifiedLayer>>> printed_layers(const std::string& path) {
  if (path == "-" || !array_name(path).tensor.empty()) return std::nullopt;
  POSENC_TRY(file, MappedFile::open(path));
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const std::string_view start = text.substr(0, 1 << 20);  // a header comes soon
      !start.contains(" = (f32) ") && !start.contains(" = (f16) "))
    return std::nullopt;
  POSENC_TRY(printed, read_eval_callback(text, path));
  std::vector<IdentifiedLayer> layers;
  for (const PrintedRotation& rotation : printed) {
    POSENC_TRY(found, identify(rotation));
    layers.push_back({printable(rotation.name), std::move(found)});
  }
  return layers;
}

Expected<Positions> positions_of(const IdentifyOptions& options, const DumpedLayer& layer,
                                 const Tensor& after) {
  if (!options.positions.empty()) return positions(options.positions);
  if (layer.positions) return *layer.positions;
  return Positions::range(
      0, after.rank >= 2 ? after.shape[static_cast<std::size_t>(after.rank - 2)] : 0);
}

// A rotation that the model does not have, or not in its values.
Expected<void> compare(const IdentifyOptions& options, const std::optional<Model>& model,
                       std::int64_t layer, Identified& found) {
  if (model) {
    const DumpedPart part = options.part == "attention" ? DumpedPart::attention
                            : options.part == "indexer" ? DumpedPart::indexer
                                                        : DumpedPart::by_width;
    POSENC_TRY(findings, beside_model(found, *model, layer, 0, part));
    add_beside(std::move(findings), found);
  }
  if (options.values && found.verdict == Rotated::rotation)
    found.findings.push_back({.code = "values",
                              .expected = "no rotation",
                              .found = "rotation",
                              .message = "values are rotated, which hardly any model asks for",
                              .cure = "rotate queries and keys alone, or rotate the output back"});
  return {};
}

Expected<std::vector<IdentifiedLayer>> dumped_layers(const IdentifyOptions& options) {
  DumpFlags flags{options.tensor, options.heads};
  std::optional<Model> model;
  if (!options.model.empty()) {
    POSENC_TRY(named, named_model(options.model));
    model = std::move(named);
    // Rows of a state file hold all heads; other dumps have them as an axis.
    flags.heads_of_states = model->groups.front().geometry.kv_heads;
  }
  POSENC_TRY(after, read_dump(options.after, flags));
  std::optional<Dump> before;
  if (!options.before.empty()) {
    flags.tensor = options.before_tensor.empty() ? options.tensor : options.before_tensor;
    POSENC_TRY(read, read_dump(options.before, flags));
    before = std::move(read);
    if (before->layers.size() != after.layers.size())
      return fail(
          "--before", "has a tensor for each of --after",
          std::to_string(before->layers.size()) + " and " + std::to_string(after.layers.size()),
          "name them by --tensor and --before_tensor");
  }
  std::vector<IdentifiedLayer> layers;
  for (std::size_t i = 0; i < after.layers.size(); ++i) {
    DumpedLayer& layer = after.layers[i];
    RotationDump dump{.repeated = options.repeated || (after.repeated && !before)};
    POSENC_TRY(tensor, layer.tensor(options.dtype));
    dump.after = tensor;
    if (before) {
      POSENC_TRY(unrotated, before->layers[i].tensor(options.dtype));
      dump.before = unrotated;
    }
    POSENC_TRY(at, positions_of(options, layer, dump.after));
    dump.positions = at;
    const std::int64_t number =
        layer.layer >= 0 ? layer.layer : std::max<std::int64_t>(options.layer, 0);
    std::optional<SolvedPositions> solved;
    if (model) {
      POSENC_TRY(tried, solve_positions(dump, *model, number));
      solved = std::move(tried);
    }
    if (solved) {
      POSENC_TRY(stand, Positions::signed_ids(solved->at));
      dump.positions = stand;
    }
    POSENC_TRY(found, identify(dump));
    POSENC_CHECK(compare(options, model, number, found));
    if (solved) found.findings.insert(found.findings.begin(), solved->slip);
    layers.push_back({layer.name, std::move(found)});
  }
  return layers;
}

// The one tensor of a file, or the one that --tensor names.
Expected<DumpedLayer> one_tensor(const std::string& path, const IdentifyOptions& options) {
  POSENC_TRY(dump, read_dump(path, {.tensor = options.tensor, .least_axes = 2}));
  if (dump.layers.size() != 1)
    return fail("--tensor", "must name one tensor of " + path,
                std::to_string(dump.layers.size()) + " tensors");
  return std::move(dump.layers.front());
}

template <class Found>
Expected<int> say(const Expected<Found>& found, const IdentifyOptions& options,
                  const Terminal& term, bool good) {
  if (!found) return std::unexpected(found.error());
  write_out("{}{}", options.json ? to_json(*found) : identified_page(*found, term),
            options.json ? "\n" : "");
  return good ? 0 : 1;
}

Expected<int> say_table(const IdentifyOptions& options, const Terminal& term) {
  if (!options.table.empty()) {
    POSENC_TRY(values, one_tensor(options.table, options));
    POSENC_TRY(tensor, values.tensor(options.dtype));
    const auto found = identify_vectors(tensor);
    return say(found, options, term, found && found->sinusoidal);
  }
  if (options.cos.empty() || options.sin.empty())
    return fail(options.cos.empty() ? "--cos" : "--sin", "is required beside the other", "",
                "give both tables");
  POSENC_TRY(cosines, one_tensor(options.cos, options));
  POSENC_TRY(sines, one_tensor(options.sin, options));
  POSENC_TRY(cos, cosines.tensor(options.dtype));
  POSENC_TRY(sin, sines.tensor(options.dtype));
  auto found = identify_table(cos, sin);
  if (found && !options.model.empty()) {
    POSENC_TRY(model, named_model(options.model));
    const std::int64_t rows = cos.rank < 2 ? 0 : cos.shape[static_cast<std::size_t>(cos.rank - 2)];
    POSENC_TRY(findings, beside_model(*found, model, options.layer, rows));
    add_beside(std::move(findings), found->rotation);
  }
  return say(found, options, term,
             found && found->rotation.verdict == Rotated::rotation &&
                 only_notes(found->rotation.findings));
}

Run define_identify(CLI::App& app) {
  auto options = std::make_shared<IdentifyOptions>();
  app.add_option("--after", options->after,
                 "Queries or keys as they enter the products, [head][seq][dim]: .npy, safetensors, "
                 "GGUF (FILE or FILE:TENSOR), -, a state file or eval-callback's text of llama.cpp")
      ->type_name("FILE");
  app.add_option("--before", options->before, "The same before rotation")->type_name("FILE");
  app.add_option("--tensor", options->tensor,
                 "Its name in a file of several; * stands for any part: 'k_*'")
      ->type_name("NAME");
  app.add_option("--before_tensor", options->before_tensor, "The same of --before")
      ->type_name("NAME");
  app.add_option("--heads", options->heads, "Of rows that hold all heads, [seq][heads · dim]")
      ->transform(above_zero());
  app.add_option("--model", options->model,
                 "The model's file or name: what is found is compared with it")
      ->type_name("MODEL");
  app.add_option("--layer", options->layer,
                 "Layer of the model that a tensor without a number in its name is of; default: 0; "
                 "of a table any")
      ->check(CLI::NonNegativeNumber)
      ->default_str("");
  app.add_option("--part", options->part,
                 "Whose queries or keys they are: attention, or indexer, what picks the keys; "
                 "default: as their width tells")
      ->check(CLI::IsMember({"attention", "indexer"}))
      ->default_str("");
  app.add_option("--positions", options->positions,
                 "Of the tokens: 0:64 (64 not included), or ids.npy; default: from 0 on")
      ->type_name("IDS");
  app.add_flag("--repeated", options->repeated,
               "Every token is the same one, so --after alone is enough");
  app.add_flag("--values", options->values, "The tensors are values, which are not to rotate");
  app.add_option("--cos", options->cos,
                 "Cosines as the engine keeps them, [position][pair or channel]")
      ->type_name("FILE");
  app.add_option("--sin", options->sin, "Sines beside --cos")->type_name("FILE");
  app.add_option("--table", options->table,
                 "Vectors that it adds to embeddings, [position][channel]")
      ->type_name("FILE");
  app.add_option("--dtype", options->dtype, "bfloat16: .npy files are uint16 holding bfloat16")
      ->type_name("TYPE");
  app.add_option("--how", options->how,
                 "Print how to make the dump: transformers, vllm, sglang, mlx-lm, llama.cpp, "
                 "onnxruntime, any")
      ->type_name("ENGINE");
  app.add_flag("--json", options->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "Names pairing, rotated channels, base, scaling, amplitude, offset and direction, with the "
      "runner-up,\n"
      "and says what the dump does not show. Exit code 1: no rotation, none of two channels, or it "
      "cannot tell.\n\n"
      "Examples:\n"
      "  posenc identify --how transformers\n"
      "  posenc identify --after k.npy --repeated\n"
      "  posenc identify --before q.npy --after q_rotated.npy --positions 0:512 --json\n"
      "  posenc identify --before dump.safetensors:q --after dump.safetensors:q_rotated");
  return [options, &app]() -> Expected<int> {
    if (!options->how.empty()) {
      POSENC_TRY(text, how_to_dump(options->how));
      write_out("{}", text);
      return 0;
    }
    if (!(options->cos.empty() && options->sin.empty() && options->table.empty()))
      return say_table(*options, terminal(no_color(app)));
    if (options->after.empty())
      return fail("--after", "is required", "",
                  "posenc identify --how any tells how to make the file");
    if (!options->before.empty() && options->repeated)
      return fail("--repeated", "stands in for --before", "", "drop one of the flags");
    POSENC_TRY(printed, printed_layers(options->after));
    if (printed) return say_layers(*printed, options->json, terminal(no_color(app)));
    std::optional<Waiting> waiting(std::in_place, "identify", options->after);
    POSENC_TRY(layers, dumped_layers(*options));
    waiting.reset();
    return say_layers(layers, options->json, terminal(no_color(app)));
  };
}

}  // namespace

extern const Command identify_command{
    "identify", "which convention an engine rotated by, from dumped tensors", define_identify};

}  // namespace posenc::cli
