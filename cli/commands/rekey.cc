// posenc rekey: cached keys from one rotation and place to another.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <fmt/format.h>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/commands/rekey_state.h"
#include "cli/pages/progress.h"
#include "posenc/explain.h"
#include "posenc/key_header.h"
#include "posenc/rekey.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct RekeyOptions {
  std::string in, out, from, to, to_model, to_scheme, dtype;
  std::int64_t layer = -1;
  bool values = false;
  std::optional<Source> source;
};

// The plan that keys of this shape shall have: another model's layer, a scheme, or the one they
// have.
Expected<Plan> target(const RekeyOptions& options, const Plan& plan, const Tensor& keys) {
  if (!options.to_scheme.empty()) {
    const std::string& said = options.to_scheme;
    POSENC_TRY(scheme, said.starts_with('{') ? read_scheme(said) : make_scheme(said));
    return compile(scheme,
                   {.heads = keys.shape[1], .kv_heads = keys.shape[1], .head_dim = keys.shape[3]});
  }
  if (options.to_model.empty()) return plan;
  POSENC_TRY(model, read_model(options.to_model));
  const std::optional<std::int64_t> layer =
      options.layer < 0 ? std::nullopt : std::optional(options.layer);
  POSENC_TRY(group, chosen_group(model, "", layer, {"rekey", options.to_model}));
  return compile(group);
}

// The header of keys that travel, where IN is a .safetensors file that has one for the tensor.
constexpr std::string_view header_prefix = "poskeys";

Expected<std::optional<KeyHeader>> header_of(const std::string& in) {
  POSENC_TRY(text, said_of_tensor(in, header_prefix));
  if (!text) return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text->size(); i += 2) {
    unsigned byte = 0;
    const char* const at = text->data() + i;
    if (std::from_chars(at, at + 2, byte, 16).ptr != at + 2) break;
    bytes.push_back(static_cast<std::byte>(byte));
  }
  POSENC_TRY(header, parse_key_header(bytes, in));
  return header;
}

// As metadata of the tensor that OUT has; none for a rotation that has no header.
Metadata metadata_of(const std::string& out, const Expected<KeyHeader>& header) {
  if (!header) return {};
  std::string text;
  for (const std::byte byte : to_bytes(*header))
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return {{std::string(header_prefix) + ":" + tensor_written(out), text}};
}

// Where the keys stand: as --from says, or as their header does.
Expected<Positions> stood(const RekeyOptions& options, const std::optional<KeyHeader>& header) {
  if (!options.from.empty()) return positions(options.from);
  if (header && header->consecutive)
    return Positions::range(header->first, static_cast<std::int64_t>(header->tokens));
  return fail("rekey", "--from must say where the keys stand",
              header ? "a header of ids that are not consecutive" : "no header of the keys",
              "--from 0:512, or a file of ids");
}

Run define_rekey(CLI::App& app) {
  auto options = std::make_shared<RekeyOptions>();
  app.add_option("IN", options->in,
                 "Keys as they are cached, [head][seq][dim] or [batch][head][seq][dim]: .npy, "
                 "FILE:TENSOR of a .safetensors file, or -; a state file of llama.cpp")
      ->required();
  app.add_option("OUT", options->out,
                 "Where the moved keys go: .npy, .safetensors (or FILE:TENSOR), or -; of a state "
                 "file another")
      ->required();
  app.add_option("--from", options->from,
                 "Where the keys stand rotated: 0:512, 0,1,2 or ids.npy (as their header says)")
      ->type_name("IDS")
      ->default_str("");
  app.add_option("--to", options->to, "Where they shall stand")->type_name("IDS")->required();
  CLI::Option* const to_model = app.add_option("--to_model", options->to_model,
                                               "A model whose rotation they shall have (the same)")
                                    ->type_name("MODEL");
  app.add_option("--to_scheme", options->to_scheme,
                 "Or a scheme, by its name or as JSON has it (posenc schemes)")
      ->type_name("SCHEME")
      ->excludes(to_model);
  app.add_option("--to_layer", options->layer, "Its layer")->default_str("");
  app.add_flag("--values", options->values, "IN are values, of a plan that rotates them");
  app.add_option("--dtype", options->dtype, "bfloat16: IN is a .npy of uint16 holding bfloat16")
      ->type_name("TYPE");
  options->source.emplace(app, "rekey");
  app.footer(
      "Keys that a plan rotated at --from become keys rotated at --to, as if they had been "
      "rotated\n"
      "there: once by the difference of the angles, and rounded once. posenc explain MODEL "
      "--reuse\n"
      "says whether a model's keys may be moved.\n"
      "Of llama.cpp's state files the cells at positions --from go to --to, in every layer, each "
      "by "
      "its own rotation.\n"
      "A .safetensors file keeps a header beside the tensor: by which rotation, and where, its "
      "keys\n"
      "stand. Keys whose header says otherwise than the flags are refused.\n\n"
      "Examples:\n"
      "  posenc rekey k.npy moved.npy --model llama-3.1-8b --from 100:612 --to 0:512\n"
      "  posenc rekey k.npy moved.npy --model deepseek-v3 --from 0:64 --to ids.npy\n"
      "  posenc rekey k.npy far.npy --model ./short --to-model ./long --from 0:512 --to 0:512\n"
      "  posenc rekey k.npy other.npy --scheme rope --from 0:64 --to 0:64 \\\n"
      "    --to-scheme '{\"type\": \"rope\", \"rope_theta\": 500000}'\n"
      "  posenc rekey slot.bin moved.bin --model model.gguf --from 100:612 --to 0:512\n"
      "  posenc rekey dump.safetensors:k out.safetensors:k --scheme rope --from 0:64 --to 64:128");
  return [options]() -> Expected<int> {
    std::optional<Waiting> waiting(std::in_place, "rekey", options->in);
    if (is_state_file(options->in)) {
      POSENC_CHECK(
          rekey_state({options->in, options->out, options->from, options->to}, *options->source));
      return 0;
    }
    POSENC_CHECK(array_format(options->out));
    POSENC_TRY(array, read_array(options->in));
    POSENC_TRY(whole, tensor_of(array, options->dtype, options->in));
    if (whole.rank < 2)
      return fail("rekey", "the tensor must have 2, 3 or 4 axes", std::to_string(whole.rank),
                  "give [head][seq][dim]");
    const Tensor keys = whole.with_rank(4);
    POSENC_TRY(said, header_of(options->in));
    POSENC_TRY(from, stood(*options, said));
    POSENC_TRY(to, positions(options->to));
    POSENC_TRY(plan, options->source->plan({.kv_heads = keys.shape[1], .head_dim = keys.shape[3]}));
    POSENC_TRY(other, target(*options, plan, keys));
    const Side side = options->values ? Side::value : Side::key;
    const auto header = [&](const Stand& stand, std::optional<std::int64_t> layer) {
      return key_header(stand, keys.shape, key_type(keys.dtype), side,
                        layer ? static_cast<std::uint32_t>(*layer) : KeyHeader::any_layer);
    };
    if (said) {
      POSENC_TRY(expected, header({&plan, from}, options->source->layer()));
      POSENC_CHECK(check_key_header(*said, expected, options->in));
    }
    POSENC_CHECK(rekey({&plan, from}, {&other, to}, keys, keys, side));
    if (options->out == "-") waiting.reset();
    const std::optional<std::int64_t> layer =
        options->layer < 0 ? options->source->layer() : std::optional(options->layer);
    POSENC_CHECK(write_array(options->out, array, options->dtype,
                             metadata_of(options->out, header({&other, to}, layer))));
    return 0;
  };
}

}  // namespace

extern const Command rekey_command{
    "rekey", "cached keys moved to other positions, or to another rotation", define_rekey};

}  // namespace posenc::cli
