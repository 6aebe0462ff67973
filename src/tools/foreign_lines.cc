#include "src/tools/foreign_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "posenc/explain.h"
#include "posenc/pictures.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/command_line.h"
#include "src/tools/log_lines.h"
#include "src/tools/programs.h"
#include "src/tools/roles.h"

namespace posenc::detail {
namespace {

// Makers of videos: the flag of their frames, and how many their models were trained on at most.
struct Video {
  std::string_view program, flag;
  std::int64_t trained;
  std::string_view of = {};  // counts only where the line names this model
};
constexpr Video videos[] = {
    {"generate.py", "--frame_num", 81},  // Wan
    {"sample_video.py", "--video-length", 129},
    {"cli_demo.py", "--num_frames", 161, "1.5"},
    {"cli_demo.py", "--num_frames", 49},
};

// The number behind a flag, with a blank or an equals sign between.
std::optional<double> number_of_word(std::string_view line, std::string_view flag) {
  for (const char* between : {" ", "=", ":"})
    if (const auto number = number_after(line, std::string(flag) + between)) return number;
  return std::nullopt;
}

Finding too_many_frames(std::string_view who, std::string_view flag, std::int64_t trained,
                        double frames, const std::string& otherwise) {
  const std::string most = std::to_string(trained);
  return {.code = "frames_beyond",
          .severity = Severity::warning,
          .expected = most,
          .found = grouped(std::llround(frames)),
          .message = std::string(who) + " was trained on videos of " + most +
                     " frames at most: the pair of channels that turns once in about so many comes "
                     "round again behind them, and the video repeats itself, or stands still",
          .cure = std::string(flag) + " " + most + ", and pieces that go on from the last frame; " +
                  otherwise};
}

std::optional<Finding> beyond_frames(std::string_view line, std::string_view program,
                                     std::string_view title, bool& judged) {
  for (const Video& one : videos) {
    if (one.program != program || !(one.of.empty() || line.contains(one.of))) continue;
    const auto frames = number_of_word(line, one.flag);
    judged = judged || frames;
    if (!frames || *frames <= static_cast<double>(one.trained) || *frames > 0x1p40)
      return std::nullopt;
    return too_many_frames(title, one.flag, one.trained, *frames,
                           "or RIFLEx, which slows that pair");
  }
  return std::nullopt;
}

std::optional<Finding> beyond_training(const PictureSize& trained, std::string_view name,
                                       double frames) {
  if (frames <= static_cast<double>(trained.frames)) return std::nullopt;
  return too_many_frames("the model", name, trained.frames, frames,
                         "posenc extend MODEL --to " + number_text(frames) + "x" +
                             std::to_string(trained.height) + "x" + std::to_string(trained.width) +
                             " says what RIFLEx and the other methods change");
}

// A call or settings by which a video's model is asked for more frames than it was trained on.
std::optional<Finding> frames_of_call(std::string_view text, const Model& model, bool& judged) {
  const std::optional<PictureSize> trained = trained_size(model);
  if (!trained || trained->frames == 1) return std::nullopt;
  for (const std::string_view name : {"num_frames", "video_length", "video-length", "frame_num"}) {
    const auto frames = number_of_word(text, name);
    if (!frames || *frames < 1 || *frames > 0x1p40) continue;
    judged = true;
    return beyond_training(*trained, name, *frames);
  }
  return std::nullopt;
}

// mlx-vlm's class of three axes makes plain frequencies, whatever rope_type says.
std::optional<Finding> scaling_of_pictures(const Model& model) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = rope_of(group);
    if (!rope || is_tower(group.stack) || rope->mrope_section.empty() ||
        std::holds_alternative<Unscaled>(rope->scaling))
      continue;
    return Finding{.code = "scaling_lost",
                   .expected = scaling_text(rope->scaling),
                   .found = "none",
                   .message =
                       "mlx-vlm's rotation of three axes (M-RoPE) makes plain frequencies "
                       "and does not read rope_type: the file's scaling does nothing, "
                       "without a word",
                   .cure =
                       "stay within the trained length, or run it by an engine that scales "
                       "M-RoPE (vLLM, SGLang); posenc identify --how any shows what ran"};
  }
  return std::nullopt;
}

// mlx-vlm's class of Gemma 3 reads rope_global_base_freq, which no file has: its base is 1,000,000,
// as of Google's own.
std::optional<Finding> base_of_gemma3(const Model& model) {
  constexpr double of_google = 1e6;
  if (model.family != "gemma3" && model.family != "gemma3_text") return std::nullopt;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = rope_of(group);
    if (!rope || is_tower(group.stack) || group.window || rope->rope_theta == of_google) continue;
    return Finding{.code = "rope_theta",
                   .expected = number_text(rope->rope_theta),
                   .found = number_text(of_google),
                   .message =
                       "mlx-vlm's class of Gemma 3 does not read rope_theta (0.7.10): layers "
                       "that see everything rotate by its own base, from the first tokens on",
                   .cure = "write rope_global_base_freq " + number_text(rope->rope_theta) +
                           " beside rope_theta in the config.json that it loads"};
  }
  return std::nullopt;
}

std::optional<Finding> pairs_of_deepseek_vl(const Model& model) {
  if (model.family != "deepseek_vl_v2") return std::nullopt;
  return Finding{.code = "pairing",
                 .severity = Severity::warning,
                 .message =
                     "mlx-vlm up to 0.7.1 pairs neighbours in DeepSeek-VL2's layers, where "
                     "the weights pair halves: short prompts are answered, long ones and "
                     "those with pictures repeat themselves (mlx-vlm#2323)",
                 .cure =
                     "pip install -U mlx-vlm (0.7.2 or later), or rope_traditional false in "
                     "language_config"};
}

// MLC LLM handed its cache one of LongRoPE's two lists, whatever the text (mlc-llm#3375).
std::optional<Finding> one_list_of_mlc(const Model& model, std::int64_t length) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
    const auto* longrope = rope ? std::get_if<LongRope>(&rope->scaling) : nullptr;
    if (!longrope) continue;
    const std::int64_t trained = longrope->original_max_position_embeddings;
    const std::string side = length == 0 ? ""
                                         : ", so that texts of " + grouped(length) + " want the " +
                                               (length > trained ? "long" : "short") + " ones";
    return Finding{.code = "short_texts",
                   .severity = Severity::warning,
                   .found = "one list",
                   .message =
                       "MLC LLM before November 2025 took one of LongRoPE's two lists for "
                       "all texts: the file has short factors up to " +
                       grouped(trained) + " tokens and long ones beyond" + side +
                       "; what a newer one takes is not known",
                   .cure =
                       "update MLC LLM and TVM, compile the model anew, and compare answers "
                       "on both sides of " +
                       grouped(trained) + " (posenc identify reads its tensors)"};
  }
  return std::nullopt;
}

const Rope* first_rope_of_text(const Model& model) {
  for (const LayerGroup& group : model.groups)
    if (const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group); rope && !group.window)
      return rope;
  return nullptr;
}

// Unsloth's rotary of its fast classes had no scaling of Llama 3.1 on newer transformers.
std::optional<Finding> unscaled_by_unsloth(const Model& model, std::int64_t length) {
  const Rope* rope = first_rope_of_text(model);
  const auto* llama3 = rope ? std::get_if<Llama3>(&rope->scaling) : nullptr;
  if (!llama3) return std::nullopt;
  const std::int64_t trained = llama3->original_max_position_embeddings;
  if (length > 0 && length <= trained) return std::nullopt;
  return Finding{.code = "scaling_lost",
                 .severity = Severity::warning,
                 .position = trained,
                 .expected = scaling_text(rope->scaling),
                 .found = "none",
                 .message =
                     "Unsloth's FastLanguageModel before July 2026 does not read this "
                     "scaling on newer transformers: texts far beyond " +
                     grouped(trained) + " (about 29,000 tokens, as reported) fall apart",
                 .cure =
                     "pip install -U unsloth (July 2026 or later), or FastModel in place of "
                     "FastLanguageModel"};
}

// Code that was written for the base of 2023.
std::optional<Finding> base_of_gpt_fast(const Model& model) {
  const Rope* rope = first_rope_of_text(model);
  constexpr double usual = 10000;
  if (!rope || rope->rope_theta == usual) return std::nullopt;
  return Finding{.code = "rope_theta",
                 .severity = Severity::warning,
                 .expected = number_text(rope->rope_theta),
                 .found = number_text(usual),
                 .message =
                     "gpt-fast's ModelArgs has rope_base 10000 unless the model's own entry "
                     "says another: short prompts are answered, and longer ones turn into "
                     "nonsense",
                 .cure = "rope_base=" + number_text(rope->rope_theta) +
                         " in transformer_configs of model.py, or a newer gpt-fast"};
}

}  // namespace

std::optional<Finding> unknown_option_of_ollama(std::string_view code) {
  const std::size_t options = code.find("options");
  if (options == code.npos || code.contains("num_ctx") || !code.contains("chat"))
    return std::nullopt;
  for (const std::string_view name : {"n_ctx", "num_context", "context_length", "max_context"})
    if (code.substr(options).contains(name))
      return Finding{.code = "flag_unread",
                     .severity = Severity::warning,
                     .expected = "num_ctx",
                     .found = std::string(name),
                     .message =
                         "where this client talks to Ollama: its option is num_ctx, and one "
                         "that it does not know does nothing, without a word",
                     .cure = "options={\"num_ctx\": TOKENS}; ollama ps shows what runs"};
  return std::nullopt;
}

std::optional<Finding> frames_beyond(const Model& model, std::int64_t frames) {
  const std::optional<PictureSize> trained = trained_size(model);
  return trained && trained->frames > 1
             ? beyond_training(*trained, "num_frames", static_cast<double>(frames))
             : std::nullopt;
}

std::vector<Finding> known_of_program(std::string_view word, const Model& model,
                                      std::int64_t length) {
  std::optional<Finding> known = word == "mlc_llm" || word == "mlc" ? one_list_of_mlc(model, length)
                                 : word == "unsloth"  ? unscaled_by_unsloth(model, length)
                                 : word == "gpt-fast" ? base_of_gpt_fast(model)
                                                      : std::nullopt;
  std::vector<Finding> found;
  const auto keep = [&](std::optional<Finding> one) {
    if (one) found.push_back(*std::move(one));
  };
  keep(std::move(known));
  if (word == "mlx_vlm") {
    keep(scaling_of_pictures(model));
    keep(base_of_gemma3(model));
    keep(pairs_of_deepseek_vl(model));
  }
  return found;
}

ForeignLine foreign_line(std::string_view line, const Model* model) {
  ForeignLine out;
  const auto keep = [&](std::optional<Finding> one) {
    if (one) out.findings.push_back(*std::move(one));
  };
  if (model) keep(frames_of_call(line, *model, out.judged));
  if (out.judged) return out;
  const auto words = shell_words(line);
  if (!words) return out;
  const auto started = started_program(*words);
  if (!started || !started->program->engine.empty()) return out;
  const Program& program = *started->program;
  keep(beyond_frames(line, program.word, program.title, out.judged));
  if (!model) return out;
  std::vector<RoleTold> roles = roles_in(line);
  // It shares out memory by this flag, and limits no text.
  if (program.title == "mistral.rs")
    std::erase_if(roles, [](const RoleTold& one) { return one.key == "max-seq-len"; });
  out.judged = out.judged || !roles.empty();
  for (Finding& one : judge_roles(model, roles)) keep(std::move(one));
  for (Finding& one : known_of_program(program.word, *model, 0)) keep(std::move(one));
  return out;
}

}  // namespace posenc::detail
