// Messages that many programs print, and whose meaning the lines around them tell: of code that was
// written for another version of transformers, of a length that was asked for elsewhere, of a count
// by a program that says its name on another line.
#include <string>

#include "src/core/contains_any.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

constexpr std::string_view mismatch = "transformers_mismatch";

Finding error_of(std::string_view code, std::string_view message, std::string_view cure) {
  return {.code = std::string(code), .message = std::string(message), .cure = std::string(cure)};
}

// transformers 4.48 took the module out of the attention; the model has one since 4.43 (Llama),
// 4.45 (Qwen 2), 4.48 (Mistral and the others).
std::optional<Finding> of_missing_module(std::string_view small) {
  if (!small.contains("has no attribute 'rotary_emb'")) return std::nullopt;
  const bool of_causal = contains_any(small, {"forcausallm'", "forconditionalgeneration'", "peft"});
  if (of_causal)
    return error_of(mismatch,
                    "the program looks for rotary_emb in a wrapper: the model within it "
                    "has the module (model.model.rotary_emb), in transformers since 4.43 "
                    "(Llama), 4.45 (Qwen 2) or 4.48 (Mistral and others)",
                    "model.model.rotary_emb (of PEFT: model.base_model.model.model), or a "
                    "version of the program that fits this transformers");
  if (contains_any(small, {"gpt2", "bert", "bloom", "optattention", "optmodel", "t5"}))
    return std::nullopt;
  if (small.contains("attention' object"))
    return error_of(mismatch,
                    "the program looks for rotary_emb in the attention, from which "
                    "transformers 4.48 took it: it stands in the model, and layers get "
                    "cos and sin as position_embeddings",
                    "transformers 4.47, or a version of the program that was made for 4.48 "
                    "and later; no file is wrong");
  return error_of(mismatch,
                  "the program looks for rotary_emb in the model, where transformers has "
                  "it since 4.43 (Llama), 4.45 (Qwen 2) or 4.48 (Mistral and others): "
                  "this transformers is older",
                  "pip install -U transformers, or an older version of the program "
                  "(AutoAWQ 0.2.6 for transformers before 4.45); no file is wrong");
}

// "apply_rotary_pos_emb_fp32() takes 2 positional arguments but 4 were given"
std::optional<Finding> of_other_arguments(std::string_view small, std::string_view context) {
  const bool of_rotation =
      contains_any(small, {"rotary", "_rope", "rope_", "rope("}) ||
      (small.contains("forward_native()") &&
       contains_any(context, {"rotary", "RotaryEmbedding"})) ||
      (small.contains("forward() got") && contains_any(context, {"rotary_emb("}));
  if (!of_rotation) return std::nullopt;
  if (small.contains("unexpected keyword argument 'seq_len'"))
    return error_of(mismatch, takes_positions_now,
                    "rotary_emb(value_states, position_ids) in the code that calls it, or "
                    "the transformers that it was written for");
  const bool counts = (small.contains("positional argument") && small.contains("were given")) ||
                      small.contains("required positional argument: 'position_ids'") ||
                      small.contains("required positional arguments: 'cos' and 'sin'");
  if (!counts || small.contains("rope_theta")) return std::nullopt;
  if (small.contains("forward_native()") || small.contains("forward_cuda()") ||
      small.contains("forward_oot()"))
    return error_of(
        "versions_apart",
        "vLLM's rotation is called with other arguments than it has: a plugin (vllm-ascend "
        "and the like) or a patch was written for another vLLM",
        "the pair of versions that the plugin's release notes name; vllm-ascend has one "
        "branch for each vLLM");
  return error_of(mismatch,
                  "the rotation is called with other arguments than it has: code that takes the "
                  "place of transformers' own (a patch, a trainer, the model's own file) was "
                  "written for another version of it",
                  "update the program that patches it, or take the transformers that it "
                  "was written for (its requirements name it)");
}

// "KeyError: 'position_embeddings'" of a converter that makes a GPT-2.
std::optional<Finding> of_missing_table(std::string_view line, std::string_view context) {
  if (!line.contains("KeyError: 'position_embeddings'") ||
      !contains_any(context, {"megatron_gpt2", "gpt2_checkpoint"}))
    return std::nullopt;
  return error_of(
      "scheme",
      "the converter looks for a learned table of positions, and the checkpoint has "
      "none: it was trained with a rotation (or with nothing), and GPT-2, which the "
      "converter makes, has no place for that",
      "a converter of the architecture that was trained (of one that rotates: GPT-NeoX, "
      "Llama), or the trainer's own (Megatron Bridge)");
}

// A buffer of older checkpoints, where nothing else is missing.
std::optional<Finding> of_stored_ids(std::string_view line) {
  const bool is_named = line.contains("embeddings.position_ids\"") ||
                        (line.contains("embeddings.position_ids") && line.contains("UNEXPECTED"));
  if (!is_named || line.contains("embeddings.weight\"")) return std::nullopt;
  Finding note = error_of(
      "position_ids_stored",
      "position_ids is a buffer that counts 0, 1, 2, …, no weight: transformers saves it no longer "
      "since 4.31, so that a checkpoint of an older one has a key too many, or one of a newer a "
      "key "
      "too few; no position is wrong",
      "load_state_dict(…, strict=False), or delete the key from the dictionary");
  note.severity = Severity::note;
  return note;
}

// "ImportError: cannot import name 'apply_rotary_emb' from 'comfy.ldm.lightricks.model'"
std::optional<Finding> of_missing_import(std::string_view line) {
  constexpr std::string_view marker = "cannot import name '", from = "' from '";
  const std::size_t at = line.find(marker);
  if (at == line.npos || !line.contains("Error")) return std::nullopt;  // a warning goes on without
  const std::string_view rest = line.substr(at + marker.size());
  const std::size_t end = rest.find(from);
  const std::string_view name = rest.substr(0, std::min(end, rest.size()));
  const std::string small = in_small_letters(name);
  if (end == rest.npos ||
      !(contains_any(small, {"rotary", "_rope", "rope_", "freqs_cis", "pos_embed", "embednd",
                             "ropeparam", "ropescal"}) ||
        small.starts_with("rope")))
    return std::nullopt;
  const std::string_view module = rest.substr(end + from.size()),
                         package = module.substr(0, module.find_first_of(".'"));
  if (package == "rope") return std::nullopt;  // which refactors Python
  const bool of_comfy = package == "comfy";
  return error_of("versions_apart",
                  std::string(package) + " has no " + std::string(name) +
                      " there: what imports it was written for another version of " +
                      std::string(package) + ", and nothing of it is loaded",
                  of_comfy ? "update ComfyUI and the custom nodes together, or go back to the "
                             "nodes' release that fits your ComfyUI"
                           : "update what imports it, or take the version of " +
                                 std::string(package) + " that its requirements name");
}

std::optional<Finding> of_devices(std::string_view small, std::string_view context) {
  if (!small.contains("expected all tensors to be on the same device")) return std::nullopt;
  const bool of_angles = contains_any(context, {"inv_freq_expanded", "inv_freq["}) ||
                         contains_any(small, {"rotary", "inv_freq"});
  if (!of_angles || !small.contains("cpu")) return std::nullopt;
  return error_of("buffer_elsewhere",
                  "inv_freq stayed on the CPU: it is a buffer of the model, and a program "
                  "that moves layers one by one (quantizers: AutoAWQ, AutoGPTQ) does not "
                  "move it",
                  "model.model.rotary_emb.to(device) before the first layer runs, or a newer "
                  "version of the program (AutoAWQ with transformers 4.48 and later, "
                  "GPTQModel)");
}

// ExecuTorch counts both, and ends where they fill what was exported.
std::optional<Finding> of_executorch(std::string_view line, std::string_view context) {
  const auto prompt = number_after(line, "Prompt Tokens: "),
             made = number_after(line, "Generated Tokens: ");
  const bool is_its = contains_any(context, {"executorch", "pytorchobserver", "stats.h", "et_"});
  if (!prompt || !made || !is_its) return std::nullopt;
  for (const double room : {128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0})
    if (*prompt + *made == room - 1 || *prompt + *made == room)
      return Finding{.code = "context_full",
                     .severity = Severity::warning,
                     .expected = number_text(room),
                     .found = number_text(*prompt + *made),
                     .message = "prompt and answer together have come to " + number_text(room) +
                                " tokens, for which the file was exported: ExecuTorch ends there "
                                "without a word",
                     .cure =
                         "export the model again with its length (--max_seq_length and "
                         "--max_context_length of its exporter; optimum-cli: --max_seq_len)"};
  return std::nullopt;
}

// The length that was asked for stands in another line than the one that runs.
std::optional<Finding> of_turbomind(std::string_view line, std::string_view context) {
  const auto runs = number_after(line, "exceeds `session_len` ("),
             asked = number_after(context, "session_len=");
  if (!runs || !asked || *asked <= *runs || *asked > 0x1p50) return std::nullopt;
  return Finding{.code = "context_fitted",
                 .severity = Severity::warning,
                 .expected = number_text(*asked),
                 .found = number_text(*runs),
                 .message =
                     "TurboMind runs fewer tokens than session_len asks for: its blocks of "
                     "keys and values have no room for more",
                 .cure =
                     "cache_max_entry_count nearer 1, more GPUs (tp), or keys and values of 8 "
                     "bits (quant_policy=8)"};
}

// transformers' CLIP under ZeRO-3: "… (got `sequence length`: 77 and max_position_embeddings: 0"
std::optional<Finding> of_empty_table(std::string_view line) {
  if (!line.contains("Sequence length must be less than max_position_embeddings")) return {};
  const auto rows = number_after(line, "max_position_embeddings: ");
  if (!rows || *rows != 0) return std::nullopt;
  return error_of("table_end",
                  "the table of positions is empty: DeepSpeed ZeRO-3 or FSDP shares its "
                  "rows among ranks, and the code reads its size instead of gathering it",
                  "keep this encoder out of ZeRO-3 (or gather its parameters around the "
                  "call), or ZeRO-2");
}

// Errors of Python that any program may print, told where the lines around say whose they are.
std::optional<Finding> of_neighbours(std::string_view line, std::string_view context) {
  if (line.contains("got an unexpected keyword argument 'max_seq_len'") &&
      contains_any(context, {"torchtune", "lora_llama", "lora_qwen", "lora_gemma", "lora_mistral",
                             "lora_phi"}))
    return error_of("flag_refused",
                    "max_seq_len was given to what does not take it: torchtune's builders "
                    "of whole models (lora_…, qlora_…) have their length of themselves",
                    "max_seq_len under tokenizer: alone");
  if (line.contains("'Tensor' and 'Embedding'") &&
      contains_any(context, {"siglip", "interpolate_pos_encoding"}))
    return error_of("engine_too_old",
                    "the class returns its table where it should return the table's rows: "
                    "SigLIP's of transformers 4.45.0 and 4.45.1 does, for "
                    "interpolate_pos_encoding=True and a picture of just the trained size",
                    "leave interpolate_pos_encoding out at that size, or pip install -U "
                    "transformers (4.45.2 or later)");
  if (line.contains("StopIteration") && contains_any(context, {"grid_iters"}))
    return error_of("mrope_grid",
                    "transformers 5.3.0 takes a row of video_grid_thw for each frame of a video, "
                    "and the processor makes one for each video: get_rope_index runs out of rows, "
                    "and the inputs are right",
                    "pip install -U transformers (5.4 or later), or 4.57; until then a row "
                    "for each frame (video_grid_thw repeated, its first number 1)");
  if (line.contains("Missing key(s)") && line.contains("\"rope_embed.periods\"") &&
      contains_any(line, {"\"cls_token\"", "\"blocks.0."}))
    return error_of("key_missing",
                    "every weight of the model is missing, so that the file has other "
                    "names: DINOv3's as transformers has them, in Meta's own class, or "
                    "the other way round; position has no part in it",
                    "the .pth of Meta's repository for Meta's class, the safetensors for "
                    "transformers' AutoModel");
  return std::nullopt;
}

}  // namespace

std::optional<Finding> told_by_neighbours(std::string_view line, std::string_view context) {
  const std::string small = in_small_letters(line);
  if (auto found = of_missing_module(small)) return found;
  if (auto found = of_other_arguments(small, context)) return found;
  if (auto found = of_missing_import(line)) return found;
  if (auto found = of_missing_table(line, context)) return found;
  if (auto found = of_stored_ids(line)) return found;
  if (auto found = of_devices(small, context)) return found;
  if (auto found = of_empty_table(line)) return found;
  if (auto found = of_neighbours(line, context)) return found;
  if (auto found = of_executorch(line, context)) return found;
  return of_turbomind(line, context);
}

}  // namespace posenc::detail
