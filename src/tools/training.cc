#include "src/tools/training.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/programs.h"
#include "src/tools/settings.h"

namespace posenc::detail {
namespace {

constexpr std::size_t longest_settings = std::size_t{1} << 20;

Expected<std::int64_t> tokens_of(std::string_view key, const std::string& value) {
  POSENC_TRY(tokens, number_of_flag({std::string(key), value}));
  if (tokens < 1 || tokens > 0x1p40 || tokens != std::floor(tokens))
    return fail("adapter", std::string(key) + " must be a number of tokens", value,
                "write it as 32768");
  return static_cast<std::int64_t>(tokens);
}

// NeMo-RL, NeMo, Megatron Bridge, torchtitan: wherever it stands.
constexpr std::string_view deep_length_keys[] = {"max_total_sequence_length", "encoder_seq_length",
                                                 "seq_length", "seq_len"};

// verl; ms-swift, 360-LLaMA-Factory; axolotl and others; NeMo, Megatron.
constexpr std::string_view shared_among_ranks[] = {
    "ulysses_sequence_parallel_size", "sequence_parallel_size", "sequence_parallel_degree",
    "context_parallel_size", "cp_size"};

Expected<void> read_lengths(const Settings& settings, Training& out) {
  for (const auto& [prompt, answer] : prompt_and_answer_keys) {
    const std::string *first = settings.find(prompt, true), *second = settings.find(answer, true);
    if (!first || !second) continue;
    POSENC_TRY(of_prompt, tokens_of(prompt, *first));
    POSENC_TRY(of_answer, tokens_of(answer, *second));
    out.prompt = of_prompt, out.answer = of_answer;
    out.prompt_key = prompt, out.answer_key = answer;
  }
  const auto take = [&](std::string_view key, bool deep) -> Expected<void> {
    const std::string* value = out.length == 0 ? settings.find(key, deep) : nullptr;
    if (!value) return {};
    POSENC_TRY(tokens, tokens_of(key, *value));
    out.length = tokens;
    out.length_key = key;
    return {};
  };
  for (const std::string_view key : length_keys) POSENC_CHECK(take(key, false));
  for (const std::string_view key : deep_length_keys) POSENC_CHECK(take(key, true));
  if (out.length == 0) out.length = out.prompt + out.answer;
  return {};
}

bool is_serving(std::string_view command) {
  constexpr std::string_view known[] = {"infer", "deploy", "app", "eval", "chat", "api", "webchat"};
  return std::ranges::find(known, command) != std::end(known);
}

// Automodel packs texts beforehand (one row of positions). TRL tells samples apart only with flash
// attention, and not where they are wrapped.
void read_packing(const Settings& settings, Training& out) {
  const std::string* size = settings.find("packed_sequence.pack_size");
  const std::string *before = settings.find("packed_sequence.pretokenize"),
                    *packs = settings.find("packing");
  out.packs_rows = size && *size != "0" && before && *before == "true" &&
                   !settings.find("post_tokenize_hook_fn", true);
  const std::string *strategy = settings.find("packing_strategy", true),
                    *attention = settings.find("attn_implementation", true);
  const bool wraps = strategy && *strategy == "wrapped",
             is_flash = attention && attention->contains("flash");
  const bool joins = packs && (*packs == "True" || *packs == "true");
  // In YAML packing is LLaMA-Factory's key as well, which chooses its attention by flash_attn.
  const std::string* called = settings.find("called_in");
  out.packs_blind = joins && called && *called == "Python" && (wraps || !is_flash);
  const std::string *of_factory = settings.find("finetuning_type"),
                    *tells_apart = settings.find("neat_packing"), *stage = settings.find("stage");
  // Texts of a pre-training (stage pt) are joined so on purpose.
  out.packs_through = joins && of_factory &&
                      !(tells_apart && (*tells_apart == "true" || *tells_apart == "True")) &&
                      !(stage && *stage == "pt");
  if (joins && is_flash && !wraps && *attention != "flash_attention_2")
    out.packs_by_kernel = printable(*attention, 60);
}

bool is_dict_key(std::string_view key) { return key == "rope_scaling" || key == "rope_parameters"; }

Expected<void> read_override(const Settings& settings, Training& out) {
  constexpr std::string_view length_of_config = "max_position_embeddings";
  const bool of_axolotl = settings.find("sequence_len") && settings.find("base_model");
  JsonWriter json;
  json.object();
  bool any = false;
  for (const Setting& one : settings.all()) {
    if (one.key() == length_of_config && one.path.contains("override")) {
      POSENC_TRY(tokens, tokens_of(one.path, one.value));
      out.promised = tokens;
    }
    if (one.key() == "rope_theta" && one.path.contains("override_config"))
      if (const auto base = parse_json(one.value, one.path)) {
        const auto* whole = base->get<std::int64_t>();
        const auto* real = base->get<double>();
        out.base = whole ? static_cast<double>(*whole) : real ? *real : 0;
      }
    if (!is_dict_key(one.parent()) || one.value.empty()) continue;
    // utils/schemas/deprecated.py of axolotl.
    if (of_axolotl && std::ranges::count(one.path, '.') == 1) {
      out.refuses_override = true;
      continue;
    }
    any = true;
    out.override_key = one.parent();
    const std::string way = one.path.substr(0, one.path.rfind('.'));
    out.override_place = printable(way.substr(0, std::min(way.rfind('.'), way.size())), 100);
    json.key(one.key());
    const auto number = parse_json(one.value, one.path);
    if (number && !number->get<std::string>())
      json.json(one.value);
    else
      json.value(one.value);
  }
  json.end();
  if (!any) return {};
  POSENC_TRY(dict, parse_json(json.text, out.override_key));
  out.override_dict = std::move(dict);
  return {};
}

// Packed texts, and nothing that tells attention where one begins.
void of_packing(const Training& training, std::vector<Finding>& findings) {
  if (training.packs_blind)
    findings.push_back(
        {.code = "packing_ignored",
         .severity = Severity::warning,
         .message = "packing joins samples in one row. Without flash attention, and with "
                    "packing_strategy wrapped (TRL's only one before 0.18) in any case, the mask "
                    "is plain causal: a sample sees those before it, and its positions go on from "
                    "theirs",
         .cure = "attn_implementation=\"flash_attention_2\" where the model is loaded, with "
                 "packing_strategy=\"bfd\" (TRL 0.20 or later), by which position_ids begin at 0 "
                 "with each sample; or packing=False"});
  if (training.packs_through)
    findings.push_back(
        {.code = "packing_ignored",
         .severity = Severity::warning,
         .found = "packing",
         .message = "LLaMA-Factory's packing joins samples in one row: each sees those before it, "
                    "and its positions go on from theirs, so that the loss is another from the "
                    "first step on",
         .cure = "neat_packing: true, by which attention and positions begin anew at each sample; "
                 "or packing: false"});
  if (const std::string& kernel = training.packs_by_kernel; !kernel.empty()) {
    const std::string since = kernel == "flash_attention_3"                    ? "0.22"
                              : kernel == "kernels-community/vllm-flash-attn3" ? "0.21"
                                                                               : "0.24";
    findings.push_back(
        {.code = "packing_ignored",
         .severity = Severity::note,
         .found = kernel,
         .message = "packed samples are told apart by position_ids, which TRL before " + since +
                    " does not hand to " + kernel +
                    ": a sample then sees those before it, or the loss is 0 (trl#3942)",
         .cure = "TRL " + since + " or later, or attn_implementation=\"flash_attention_2\""});
  }
  if (training.ring_of_batches)
    findings.push_back(
        {.code = "packing_ignored",
         .severity = training.packs ? Severity::warning : Severity::note,
         .message =
             std::string(training.packs ? "" : "where texts are packed beforehand: ") +
             "batch_ring knows no bounds of packed texts: positions and attention go on from "
             "one document into the next",
         .cure = "ring_attn_func: varlen_llama3, or sample_packing: false"});
}

// What is put into the model's configuration, and where.
void of_overrides(const Training& training, std::vector<Finding>& findings) {
  const std::int64_t both = training.prompt + training.answer;
  if (training.promised > 0 && training.promised < both)
    findings.push_back(
        {.code = "lengths_contradict",
         .position = training.promised,
         .expected = grouped(both),
         .found = grouped(training.promised),
         .message = "max_position_embeddings by override is less than " + training.prompt_key +
                    " + " + training.answer_key +
                    ", which verl refuses ('model context length "
                    "should be greater than total sequence length')",
         .cure = "max_position_embeddings=" + std::to_string(both) + ", or shorter texts"});
  if (training.refuses_override)
    findings.push_back(
        {.code = "flag_removed",
         .found = "rope_scaling",
         .message = "axolotl takes rope_scaling no longer at the top of its file, and ends with "
                    "DeprecationWarning: it is a key of overrides_of_model_config",
         .cure = "overrides_of_model_config: and rope_scaling below it, with rope_type, factor and "
                 "the model's own rope_theta"});
}

}  // namespace

std::string Training::sum_text() const {
  return prompt_key + " " + grouped(prompt) + " + " + answer_key + " " + grouped(answer);
}

Expected<Training> read_training(std::string_view text) {
  if (text.size() > longest_settings)
    return fail("adapter", "a trainer's settings must be at most 1 MiB",
                std::to_string(text.size()) + " bytes", "give the YAML file of the training");
  const Settings settings(text);
  Training out;
  POSENC_CHECK(read_lengths(settings, out));
  // Unsloth hands no rope_scaling to the engine that it generates by.
  if (const std::string* fast = settings.find("fast_inference", true))
    out.drops_scaling = *fast == "True";
  for (const std::string_view key : shared_among_ranks)
    if (const std::string* ranks = settings.find(key, true); ranks && out.ranks < 2) {
      const auto number = parse_json(*ranks, key);
      const std::int64_t* whole = number ? number->get<std::int64_t>() : nullptr;
      if (!whole || *whole < 2 || *whole > 4096) continue;
      out.ranks = *whole, out.ranks_key = key;
    }
  out.of_unsloth = text.contains("unsloth") || text.contains("FastLanguageModel");
  const std::string* by_vllm = settings.find("use_vllm");
  out.rolls_out_by_vllm = by_vllm && *by_vllm == "true";
  const std::string *ring = settings.find("ring_attn_func"),
                    *packs = settings.find("sample_packing");
  const std::string *fuses = settings.find("rope_fusion", true),
                    *ranks = settings.find("cp_size", true);
  out.fuses_parts = fuses && *fuses == "true" && ranks && *ranks != "1" && *ranks != "0";
  out.ring_of_batches = ring && ring->contains("batch_ring");
  out.packs = packs && *packs == "true";
  read_packing(settings, out);
  if (const std::string* word = settings.find("rope_scaling")) out.scaling = printable(*word, 60);
  for (const char* key : {"finetuning_type", "train_type", "tuner_type"})
    if (const std::string* kind = settings.find(key))
      out.whole = *kind == "full" || *kind == "freeze";
  // Trainers of prompts and answers (verl and its kin) train all weights unless asked for LoRA.
  if (out.prompt > 0 && std::ranges::none_of(settings.all(), [](const Setting& one) {
        return one.path.contains("lora") && one.value != "0";
      }))
    out.whole = true;
  if (const std::string* command = settings.find("command")) {
    out.serves = is_serving(*command);
    const bool of_requests = *command == "api" || *command == "chat" || *command == "webchat";
    out.cuts_data_alone = of_requests && settings.find("cutoff_len");
  }
  if (out.serves && out.length == 0)
    if (const std::string* asked = settings.find("max_model_len")) {
      POSENC_TRY(tokens, tokens_of("max_model_len", *asked));
      out.length = tokens;
    }
  POSENC_CHECK(read_override(settings, out));
  return out;
}

std::vector<Finding> contradictions(const Training& training) {
  std::vector<Finding> findings;
  const std::int64_t both = training.prompt + training.answer;
  if (training.length < both)
    findings.push_back({.code = "lengths_contradict",
                        .position = training.length,
                        .expected = grouped(both),
                        .found = grouped(training.length),
                        .message = training.length_key + " sizes the table of cos and sin, and " +
                                   training.prompt_key + " + " + training.answer_key +
                                   " are more: texts run past it",
                        .cure = training.length_key + ": " + std::to_string(both)});
  of_overrides(training, findings);
  if (training.drops_scaling && training.override_dict)
    findings.push_back(
        {.code = "wrapper_scaling",
         .message = "with fast_inference Unsloth generates by vLLM, to which it does not hand "
                    "rope_scaling: training and generation rotate differently, and vLLM keeps the "
                    "file's length",
         .cure = "write rope_scaling and max_position_embeddings into the config.json, or "
                 "fast_inference = False"});
  if (training.cuts_data_alone)
    findings.push_back(
        {.code = "flag_unread",
         .severity = Severity::warning,
         .found = "cutoff_len " + grouped(training.length),
         .message = "cutoff_len cuts the texts of a data set, and no request: a prompt that is "
                    "longer than what the engine serves (vllm_maxlen) is refused",
         .cure = "cut the prompt in the client, or raise vllm_maxlen as far as the model reaches"});
  if (training.rolls_out_by_vllm && (training.scaling || training.override_dict))
    findings.push_back(
        {.code = "wrapper_scaling",
         .severity = Severity::warning,
         .message = "rope_scaling by flag reaches the model that is trained, and not vLLM, which "
                    "writes the answers (use_vllm) and reads the config.json alone: it refuses a "
                    "longer vllm_max_model_len, or answers without the scaling",
         .cure = "write rope_scaling and max_position_embeddings into the config.json of the "
                 "model, and drop the flag"});
  if (training.fuses_parts)
    findings.push_back(
        {.code = "rope_fusion_parts",
         .severity = Severity::warning,
         .message =
             "rope_fusion rotates each rank's part of a text (cp_size above 1) as if it began "
             "at 0: the loss is wrong, without an error",
         .cure = "rope_fusion: false, or cp_size: 1"});
  of_packing(training, findings);
  return findings;
}

bool is_training(std::string_view text) {
  if (text.size() > longest_settings) return false;
  const Settings settings(text);
  return std::ranges::any_of(settings.all(), [](const Setting& one) {
    const std::string_view key = one.key();
    return std::ranges::find(length_keys, key) != std::end(length_keys) ||
           std::ranges::find(deep_length_keys, key) != std::end(deep_length_keys) ||
           key == "max_prompt_length" || key == "max_prompt_tokens" || is_dict_key(one.parent()) ||
           key == "rope_fusion" || key == "sequence_parallel_size" ||
           one.path == "packed_sequence.pack_size";
  });
}

std::optional<TrainingLine> training_of_line(std::string_view text) {
  const auto words = shell_words(text);
  if (!words) return std::nullopt;
  const auto started = started_program(*words);
  // A line of Hydra's words without a program that is known: a.b.c=VALUE.
  const bool hydra = std::ranges::any_of(*words, [](const std::string& word) {
    return word.contains(".rope_scaling.") || word.contains(".rope_parameters.") ||
           word.starts_with("data.max_prompt_length=");
  });
  if (started ? !started->program->trains : !hydra) return std::nullopt;
  TrainingLine out;
  if (started) {
    out.trainer = started->program->title;
    if (started->behind < words->size() && !(*words)[started->behind].starts_with('-'))
      out.settings += "command: " + (*words)[started->behind] + "\n";
    out.serves = started->behind < words->size() && is_serving((*words)[started->behind]);
  }
  for (std::size_t i = started ? started->behind : 0; i < words->size(); ++i) {
    std::string_view word = (*words)[i];
    const bool is_flag = word.starts_with("--");
    word.remove_prefix(std::min(word.find_first_not_of("-+"), word.size()));
    std::string name(word.substr(0, word.find('=')));
    std::string_view value;
    if (const std::size_t equals = word.find('='); equals != word.npos)
      value = word.substr(equals + 1);
    else if (is_flag && i + 1 < words->size() && !(*words)[i + 1].starts_with("--"))
      value = (*words)[++i];
    if (name.empty() || value.empty() || value.contains('\n')) continue;
    if (is_flag) std::ranges::replace(name, '-', '_');
    out.settings += name + ": " + std::string(value) + "\n";
  }
  return out;
}

}  // namespace posenc::detail
