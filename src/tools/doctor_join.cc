// What one piece of evidence says of another: a server that refuses a request has started, and a
// limit that it names is one of the line's own.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/command_line.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"
#include "src/tools/roles.h"
#include "src/tools/training.h"

namespace posenc::detail {
namespace {

constexpr std::string_view more_room =
    "more GPUs, a smaller cache type (fp8), a larger share of memory for it "
    "(--mem-fraction-static, --gpu-memory-utilization), or shorter requests";

class Joined {
 public:
  explicit Joined(Diagnosis& out) : out_(out) {}

  std::vector<Finding> run() {
    asked_of_ollama();
    of_forks();
    if (with("picture_as_text"))
      for (const char* code : {"beyond_context", "request_too_long", "tokenizer_limit"}) drop(code);
    if (with("table_end")) drop("beyond_context");  // rows that are not there are no angles
    rows_below_offset();
    square_of_auraflow();
    ids_of_packed_rows();
    fills_the_context();
    cut_by_nobody_else();
    for (const Exhibit& one : out_.evidence) {
      if (one.model) table_of(one), cut_of(one);
      if (one.kind == ExhibitKind::command) flags_of_others(one);
      if (one.kind == ExhibitKind::training) picture_cut(one);
    }
    for (const Exhibit& one : out_.evidence) {
      if (one.kind == ExhibitKind::training) parts_of_ranks(one), lengths_of_settings(one);
      if (one.kind == ExhibitKind::training) sum_of_settings(one);
      if (one.kind == ExhibitKind::command || one.kind == ExhibitKind::training)
        cut_by_trainer(one);
      if (one.kind == ExhibitKind::command)
        draft_of_line(one), runs_with(one), runs_less(one), scaled_by_line();
      if (one.kind == ExhibitKind::log) covered_by(one), loaded_otherwise(one);
    }
    refused_as_the_line_says();
    if (!with("request_too_long")) return std::move(found_);
    for (const Exhibit& one : out_.evidence) {
      if (one.kind == ExhibitKind::command) limit_of_line(one);
      if (one.kind == ExhibitKind::log) limit_of_pool(one);
      if (one.kind == ExhibitKind::training) limit_of_settings(one);
    }
    lift_by_the_line();
    for (const Diagnosed& one : out_.findings)
      if (one.finding.code == "theta_missing" && one.engine == "sglang") {
        drop("theta_missing");
        break;
      }
    return std::move(found_);
  }

 private:
  bool with(std::string_view code) const {
    return std::ranges::any_of(out_.findings,
                               [&](const Diagnosed& one) { return one.finding.code == code; });
  }
  void drop(std::string_view code) {
    std::erase_if(out_.findings, [&](const Diagnosed& one) { return one.finding.code == code; });
  }

  // A trainer's cos and sin are made of position_ids, which packing makes and a collator may not pad.
  void ids_of_packed_rows() {
    const bool packs = std::ranges::any_of(out_.evidence, [](const Exhibit& one) {
      return std::ranges::any_of(
          std::array<std::string_view, 5>{"packing: true", "packing: True", "packing=True",
                                          "neat_packing", "sample_packing: true"},
          [&](std::string_view word) { return one.text.contains(word); });
    });
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (!packs || finding.code != "lengths_differ" ||
          !finding.message.starts_with("a table of cos and sin"))
        continue;
      finding.code = "ids_not_padded";
      finding.message =
          "cos and sin are made of position_ids, and these are shorter than the row: "
          "packing made them, and the row alone was padded, or got tokens for pictures";
      finding.cure =
          "packing: false, or flash_attn: fa2 (whose path packs otherwise), until the "
          "trainer is newer";
    }
  }

  // What a Modelfile or a variable asks for, and what Ollama runs.
  void asked_of_ollama() {
    for (const Exhibit& asked : out_.evidence) {
      if (asked.kind == ExhibitKind::modelfile) {
        if (const auto tokens = number_after(asked.text, "PARAMETER num_ctx "))
          ollama_runs(
              *tokens,
              "Ollama runs fewer tokens than the Modelfile asks for: the model was not made "
              "anew from it, or the runner (MLX) does not read num_ctx",
              "ollama create NAME -f Modelfile, then ollama ps; a GGUF's runner reads "
              "num_ctx",
              "Ollama runs more tokens than the Modelfile asks for: options.num_ctx of the "
              "request stands above it, and a client (Roo Code, Cline, Open WebUI) sends "
              "the model's own context there",
              "num_ctx in the client's settings; ollama ps shows what runs");
        continue;
      }
      if (asked.kind != ExhibitKind::command) continue;
      const auto line = read_command_line(asked.text);
      const CommandFlag* flag =
          line && line->engine == "ollama" ? line->find("--ctx-size") : nullptr;
      const auto tokens = flag ? number_after(flag->value, "") : std::nullopt;
      if (tokens && asked.text.contains("ollama run"))
        ollama_runs(*tokens,
                    "OLLAMA_CONTEXT_LENGTH is read by `ollama serve` when it starts: before "
                    "`ollama run`, which is a client, it does nothing",
                    "set it in the environment of the server (systemctl edit ollama, docker run "
                    "-e), or /set parameter num_ctx within `ollama run`");
      else if (tokens)
        ollama_runs(*tokens,
                    asked.as.contains("a request")
                        ? "Ollama runs another context than the request's num_ctx asks for, which "
                          "has not reached this runner: /v1 reads none, and a client may send "
                          "another"
                        : "Ollama runs another context than OLLAMA_CONTEXT_LENGTH asks for: "
                          "num_ctx of the request, which Open WebUI and other clients send, or of "
                          "the model's Modelfile, stands above the variable",
                    "set num_ctx in the client (Open WebUI: the model's advanced parameters), or "
                    "PARAMETER num_ctx in a Modelfile; ollama ps shows what runs");
    }
  }

  // What to say where it runs fewer tokens than are wanted, and, if that is another thing, more.
  void ollama_runs(double wanted, std::string message, std::string cure,
                   const std::string& of_more = {}, const std::string& cure_of_more = {}) {
    for (const Exhibit& one : out_.evidence) {
      if (one.kind != ExhibitKind::log) continue;
      const auto log = read_log(one.text);
      const LogSaid* runs = log ? log->find("n_ctx") : nullptr;
      if (!runs || runs->number == wanted || runs->number < 1) continue;
      if (told_of(wanted, runs->number)) return;
      if (runs->number > wanted && !of_more.empty()) {
        message = of_more, cure = cure_of_more;
        drop("beyond_context");
      }
      found_.push_back({.code = "num_ctx_ignored",
                        .severity = Severity::warning,
                        .expected = told(wanted),
                        .found = told(runs->number),
                        .message = message,
                        .cure = cure,
                        .line = runs->line});
      return;
    }
  }

  // The log says so itself.
  bool told_of(double wanted, double runs) const {
    return std::ranges::any_of(out_.findings, [&](const Diagnosed& one) {
      return one.finding.code == "context_defaulted" && one.finding.expected == told(wanted) &&
             one.finding.found == told(runs);
    });
  }

  bool says(std::string_view word) const {
    return std::ranges::any_of(out_.evidence,
                               [&](const Exhibit& one) { return one.text.contains(word); });
  }

  // RoBERTa's ids begin behind its padding row: ids that somebody prints and that begin at 0 read
  // rows of other places.
  void rows_below_offset() {
    std::int64_t offset = 0;
    for (const Exhibit& one : out_.evidence) {
      if (!one.model || one.model->groups.empty()) continue;
      for (const Scheme& scheme : one.model->groups.front().schemes)
        if (const auto* table = std::get_if<Learned>(&scheme)) offset = table->row_offset;
    }
    if (offset < 1) return;
    for (const Exhibit& one : out_.evidence) {
      const std::size_t at = one.text.find("position_ids");
      constexpr std::size_t near = 200;
      const std::string_view ids =
          at == one.text.npos ? "" : std::string_view(one.text).substr(at, near);
      if (!ids.contains("[0, 1, 2, ")) continue;
      found_.push_back(
          {.code = "offset",
           .severity = Severity::error,
           .expected = std::to_string(offset),
           .found = "0",
           .message =
               "position_ids begin at 0, and this model's table has its first place in row " +
               std::to_string(offset) + ": every token reads a row " + std::to_string(offset) +
               " too early",
           .cure = "add " + std::to_string(offset) +
                   " to each text's ids (padding_idx + 1), or let the class make them: pass none"});
      return;
    }
  }

  // AuraFlow's class is not read, and its configuration says how large a picture its table takes.
  void square_of_auraflow() {
    for (const Exhibit& config : out_.evidence) {
      if (config.kind != ExhibitKind::unusable || !config.text.contains("AuraFlowTransformer2D"))
        continue;
      constexpr double per_latent = 8;  // pixels, by its VAE
      const double side =
          std::sqrt(number_after(config.text, "\"pos_embed_max_size\": ").value_or(0));
      const double patch = number_after(config.text, "\"patch_size\": ").value_or(0);
      if (side < 1 || side > 4096 || side != std::floor(side) || patch < 1 || patch > 64) continue;
      for (Diagnosed& one : out_.findings) {
        Finding& finding = one.finding;
        if (!finding.message.starts_with("an index is beyond its tensor on the GPU")) continue;
        const std::string square = told(side) + "×" + told(side),
                          most = told(per_latent * patch * side);
        finding.message =
            "a picture has more patches on a side than the learned table has rows: pos_embed of " +
            config.name + " has " + square + ", so that sides of at most " + most + " px fit (" +
            told(per_latent) + " × patch " + told(patch) + " × " + told(side) + ")";
        finding.cure = "sides of at most " + most +
                       " px, buckets of the data too; or interpolate pos_embed to a larger square "
                       "and train it on";
      }
      return;
    }
  }

  // A prompt that is as long as the context leaves no token to an answer, which engines want.
  void fills_the_context() {
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      const auto most = number_after(finding.expected, "");
      if (finding.code != "request_too_long" || finding.expected != finding.found || !most ||
          finding.message.contains("max_length counts"))
        continue;
      finding.message =
          "the prompt fills the context and leaves no token to the answer, of which "
          "the engine wants one";
      finding.cure = "prompts of " + told(*most - 1) +
                     " tokens at most (max_length of what measures), or one token more of context "
                     "(max_model_len) where the model reaches further";
    }
  }

  // A switch that does not reach the check which refused.
  void cut_by_nobody_else() {
    if (!says("allow_auto_truncate")) return;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "request_too_long") continue;
      finding.message +=
          "; allow_auto_truncate cuts a prompt in SGLang's scheduler, and this "
          "check stands before it";
      finding.cure =
          "cut the prompt before it is sent, or context_length up to what the model "
          "reaches";
    }
  }

  // Code that cuts at a length: of a model that has no more, that is right.
  void cut_of(const Exhibit& model) {
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      const auto most = number_after(finding.found, "");
      const double context = static_cast<double>(model.model->context);
      if (finding.code != "texts_cut" || !finding.expected.empty() || !most || context <= 0)
        continue;
      if (*most >= context) finding.severity = Severity::note;
      finding.expected = told(context);
      finding.message += " (" + told(context) + " by its file)";
    }
  }

  // Flags that a program does not have, and its brother has.
  void flags_of_others(const Exhibit& command) {
    const bool serves =
        command.text.contains("mlx_lm.server") || command.text.contains("mlx_lm server");
    if (!serves && command.text.contains("mlx_lm") && command.text.contains("--max-kv-size"))
      found_.push_back(
          {.code = "context_shifted",
           .severity = Severity::warning,
           .found = "--max-kv-size",
           .message = "the cache keeps so many tokens, the first few and the last: "
                      "what stands between them is forgotten in longer texts",
           .cure = "leave --max-kv-size out, or set it to prompt and answer together"});
    if (!serves) return;
    for (const std::string_view flag : {"--rope-scale", "--rope-scaling", "--rope-freq-base",
                                        "--rope-theta", "--ctx-size", "--context-length"}) {
      if (!command.text.contains(flag)) continue;
      found_.push_back({.code = "flag_refused",
                        .severity = Severity::error,
                        .found = std::string(flag),
                        .message = "mlx_lm.server has no such flag and ends with 'unrecognized "
                                   "arguments': it runs what the model's config.json says",
                        .cure = "drop it; write a scaling into a copy of the config.json (posenc "
                                "extend MODEL --to LENGTH)"});
    }
    const bool refuses = std::ranges::find(found_, "flag_refused", &Finding::code) != found_.end();
    if (refuses)
      std::erase_if(out_.findings, [](const Diagnosed& asked) {
        return asked.finding.message.starts_with(as_settings_ask);
      });
    if (!command.text.contains("--max-kv-size")) return;
    found_.push_back({.code = "flag_refused",
                      .severity = Severity::error,
                      .found = "--max-kv-size",
                      .message = "mlx_lm.server has no such flag and ends with 'unrecognized "
                                 "arguments'; mlx_lm.generate has it (a cache that forgets the "
                                 "oldest tokens)",
                      .cure = "drop it; --prompt-cache-bytes and --prompt-cache-size bound the "
                              "server's memory, and the client bounds its prompts"});
  }

  // The limit of a training that has cut a picture's places off.
  void picture_cut(const Exhibit& settings) {
    const auto training = read_training(settings.text);
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "picture_cut" || !training || training->length == 0) continue;
      finding.message +=
          ": " + training->length_key + " " + grouped(training->length) + " of " + settings.name;
    }
  }

  const Model* model() const {
    const auto at = std::ranges::find_if(out_.evidence,
                                         [](const Exhibit& one) { return one.model.has_value(); });
    return at == out_.evidence.end() ? nullptr : &*at->model;
  }

  // --mtp, or a value that begins so; a folder may be called smtp.
  static bool has_word_mtp(std::string_view line) {
    for (const std::string_view word : {"--mtp", " mtp", "=mtp", "\"mtp", "'mtp"})
      if (line.contains(word)) return true;
    return false;
  }

  // llama.cpp's positions that do not follow, and a draft in the line.
  void draft_of_line(const Exhibit& command) {
    const auto line = read_command_line(command.text);
    if (!line || line->engine != "llama.cpp") return;
    const bool drafts = line->find("--model-draft") || command.text.contains("--spec-type") ||
                        has_word_mtp(command.text);
    const bool with_pictures =
        command.text.contains("--image") || says("image slice") || says("for M-RoPE");
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "positions_not_consecutive") continue;
      if (finding.message.starts_with(positions_of_a_draft)) one_slot_for_a_draft(*line, finding);
      const bool one_axis = finding.message.ends_with(of_two_causes),
                 shows = with_pictures && !one_axis;
      if (!drafts || !(one_axis || finding.message.ends_with(of_three_causes))) continue;
      finding.message =
          std::string("llama.cpp stops: the line has a draft (-md, -hfd, MTP)") +
          (shows ? ", and builds before May 2026 count a picture's tokens for its positions there, "
                   "which are fewer under M-RoPE: what they cut from the cache is not what was "
                   "guessed"
                 : ", and what it left in the cache is not cut back before the next tokens");
      finding.cure = std::string("update it; until then run without the draft") +
                     (shows ? " where there are pictures" : "");
    }
  }

  // Slots that share a draft's context mix their tokens there.
  static void one_slot_for_a_draft(const CommandLine& line, Finding& finding) {
    const CommandFlag* slots = line.find("--parallel");
    if (slots && number_of_flag(*slots).value_or(1) > 1 && !finding.cure.contains("-np 1"))
      finding.cure += "; or -np 1, with which no other slot shares the draft's context";
  }

  // verl stops at the sum of two settings, before anything is trained.
  void sum_of_settings(const Exhibit& settings) {
    const auto training = read_training(settings.text);
    if (!training || training->prompt == 0) return;
    const std::int64_t both = training->prompt + training->answer;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "context_refused" || finding.message != sum_beyond_context) continue;
      const std::int64_t context = model() ? model()->context : 0;
      if (context >= both) continue;
      const std::string sum = training->sum_text() + " = " + grouped(both);
      finding.expected = context > 0 ? grouped(context) : "";
      finding.found = grouped(both);
      finding.message = "verl stops: " + sum + " is more than the model's max_position_embeddings" +
                        (context > 0 ? " " + grouped(context) : "");
      const bool of_answer = training->answer >= training->prompt;
      const std::int64_t other = of_answer ? training->prompt : training->answer;
      const std::string key = of_answer ? training->answer_key : training->prompt_key;
      finding.cure = (context > other ? key + " of at most " + std::to_string(context - other)
                                      : "a smaller " + key + ", so that the two fit together") +
                     "; or a model that reaches further, or posenc extend MODEL --to " +
                     std::to_string(both) + " --train before training";
      if (context > 0) drop("training_beyond_context");
      return;
    }
  }

  // The tokenizer's limit is one that the settings of a training gave it.
  void cut_by_trainer(const Exhibit& settings) {
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      const auto limit = number_after(finding.expected, "");
      if (finding.code != "tokenizer_limit" || !limit) continue;
      for (const RoleTold& told_there : roles_in(settings.text)) {
        std::string key = told_there.key;
        std::ranges::replace(key, '-', '_');
        if (told_there.number != *limit ||
            std::ranges::find(length_keys, key) == std::end(length_keys))
          continue;
        const double context = model() ? static_cast<double>(model()->context) : 0;
        finding.severity = Severity::warning;
        finding.message =
            finding.expected + " is " + told_there.key + " of " + settings.name +
            ", which the trainer gives its tokenizer: a text of " + finding.found +
            " tokens is cut there, and its end, often the answer, is not learned. No position is "
            "wrong";
        finding.cure = told_there.key + " above " + std::to_string(longest_text(finding)) +
                       (context > *limit ? ", up to the " + told(context) + " of the model"
                                         : ", as far as the model reaches (posenc explain MODEL)") +
                       ", or leave such texts out";
        return;
      }
    }
  }
  static std::int64_t longest_text(const Finding& finding) {
    return std::llround(std::min(number_after(finding.found, "").value_or(0), 0x1p50));
  }

  // Builds of other people's engines that hear other words.
  void of_forks() {
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (says("IPEX_LLM") || says("ipex-llm") || says("ipex_llm")) {
        constexpr std::string_view cure =
            "OLLAMA_NUM_CTX in the environment of the server (IPEX_LLM_NUM_CTX before "
            "2.7.0b20250429), and start it anew";
        if (finding.code == "prompt_truncated") finding.cure = cure;
        if (finding.code != "context_defaulted") continue;
        finding.message =
            "ipex-llm's build of Ollama takes the context from a variable of its own "
            "and not from OLLAMA_CONTEXT_LENGTH";
        finding.cure = cure;
      }
      if (finding.code == "transformers_mismatch" && says("deepspeed/module_inject"))
        finding.cure =
            "replace_with_kernel_inject=False, or a newer DeepSpeed; with transformers 4.57 it "
            "starts, and the injected kernel then drops a scaling of the file (Llama 3's) without "
            "a word";
      if (finding.code == "context_capped" && says("llama-box") && says("--rope-scaling")) {
        finding.message =
            "the line of llama-box has a scaling, and the context of the embedding "
            "model is cut to the file's all the same: before 0.0.123 it does not "
            "heed it there";
        finding.cure =
            "update llama-box to 0.0.123 or later (GPUStack: another backend version of "
            "the model)";
      }
    }
  }

  // A scaling that stands alone beside the model's file, and reaches as far as is asked: read as
  // that of a file which says no length of its own, or, where the scaling does not say how long the
  // model was trained, of one with the model's.
  void covered_by(const Exhibit& scaling) {
    if (!scaling.as.starts_with(scaling_alone) || out_.length <= 0) return;
    const auto model = std::ranges::find_if(
        out_.evidence, [](const Exhibit& one) { return one.model.has_value(); });
    if (model == out_.evidence.end()) return;
    const bool says_trained = scaling.text.contains("original_max_position_embeddings");
    const std::int64_t context =
        says_trained ? 1 : std::max<std::int64_t>(model->model->context, 1);
    std::string text = R"({"model_type": "llama", "max_position_embeddings": )" +
                       std::to_string(context) + ", " + scaling.text + "}";
    std::ranges::replace(text, '\'', '"');  // as Python prints it
    const auto scaled = read_config(text);
    if (scaled && reach(*scaled) >= out_.length) drop("beyond_context");
  }

  // What `lms load` asks for, and LM Studio's own list says that it loaded.
  void loaded_otherwise(const Exhibit& answer) {
    const auto log = read_log(answer.text);
    const LogSaid* loaded = log ? log->find("loaded") : nullptr;
    if (!loaded || loaded->number < 1 || with("context_fitted")) return;
    for (const Exhibit& one : out_.evidence) {
      const std::size_t at = one.text.find("lms load ");
      if (at == one.text.npos) continue;
      const std::string_view typed = std::string_view(one.text).substr(at);
      const auto line = read_command_line(typed.substr(0, typed.find('\n')));
      const CommandFlag* flag = line ? line->find("--ctx-size") : nullptr;
      const double asked = flag ? number_of_flag(*flag).value_or(0) : 0;
      if (asked < 1 || asked == loaded->number) continue;
      const bool more = loaded->number > asked;
      found_.push_back(
          {.code = "flag_unread",
           .severity = Severity::warning,
           .expected = told(asked),
           .found = told(loaded->number),
           .message = "LM Studio loaded the model for " + told(loaded->number) +
                      " tokens, and not for the " + told(asked) + " of -c, which did not arrive: " +
                      (more ? "its runtime of MLX weights loads the model's own length, whatever "
                              "is asked for"
                            : "it was loaded before, or for the memory that was free"),
           .cure = more ? "the same model as a GGUF, whose runtime takes the length, or a newer "
                          "MLX runtime; the line and the model are right"
                        : "lms unload --all, then load it again; lms ps says what runs",
           .line = loaded->line});
      return;
    }
  }

  // What a line of llama-server asks for, and its log says less: flags of a router do not reach the
  // servers that it starts.
  void runs_less(const Exhibit& command) {
    const auto line = read_command_line(command.text);
    const bool told_already =
        with("context_capped") || with("context_fitted") || with("request_too_long");
    if (!line || line->engine != "llama.cpp" || told_already) return;
    const auto flag = [&](std::string_view name, double otherwise) {
      const CommandFlag* found = line->find(name);
      return found ? number_of_flag(*found).value_or(otherwise) : otherwise;
    };
    const double asked = flag("--ctx-size", 0),
                 slots = line->find("--kv-unified") ? 1 : std::max(1.0, flag("--parallel", 1)),
                 share = asked / slots;
    for (const Exhibit& one : out_.evidence) {
      if (one.kind != ExhibitKind::log) continue;
      const auto log = read_log(one.text);
      const LogSaid* runs = log ? log->find("n_ctx") : nullptr;
      constexpr double page = 256;  // llama.cpp rounds a slot's part to it
      if (!runs || runs->number < 1 || runs->number >= share - page) continue;
      const bool routed = one.text.contains("cmd_child_to_router");
      found_.push_back(
          {.code = "context_fitted",
           .severity = Severity::warning,
           .expected = told(asked),
           .found = told(runs->number),
           .message = routed ? "the router started the model's own server without -c of the line: "
                               "longer prompts are refused, or lose their beginning"
                             : "the server runs fewer tokens than the line asks for: another line "
                               "runs, or it took less by the memory that was free (--fit)",
           .cure = routed ? "write c = " + std::to_string(std::llround(std::min(asked, 0x1p50))) +
                                " for the model into the file of --models-preset, or start "
                                "llama-server with -m and -c"
                          : "look at /props of the server; --fit off says whether it fits",
           .line = runs->line});
      return;
    }
  }

  // A table that ends where a model does, be it the target or its draft.
  void table_of(const Exhibit& model) {
    bool ends = false;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "table_end" || finding.found.empty() || model.model->context == 0)
        continue;
      const auto end = number_after(finding.found, "");
      const bool is_its = end && *end == static_cast<double>(model.model->context);
      if (!is_its || finding.message.contains("this model's")) continue;
      finding.position = model.model->context;
      finding.message = "a position is behind the last row of the table of cos and sin of " +
                        model.name + ", which has " + grouped(model.model->context) +
                        ", its max_position_embeddings";
      finding.cure = "start the target for at most " + std::to_string(model.model->context) +
                     " tokens; a draft that was trained for more than its file says wants that "
                     "length as its max_position_embeddings, and no other weights (without CUDA "
                     "graphs the same read past the end goes unseen)";
      ends = true;
    }
    if (ends)
      std::erase_if(out_.findings,
                    [](const Diagnosed& one) { return one.finding.code == "draft_agrees"; });
  }

  // The log counts tokens, and the line beside it scales the model so that they are reached.
  void scaled_by_line() {
    double reached = 0;
    for (const Diagnosed& one : out_.findings)
      if (const Finding& finding = one.finding; finding.code == "rope_scaling") {
        const auto factor = number_after(finding.found, " factor "),
                   trained = number_after(finding.found, "original_max_position_embeddings ");
        const double context = out_.evidence.front().model
                                   ? static_cast<double>(out_.evidence.front().model->context)
                                   : 0;
        const bool divides = finding.found.starts_with("linear");
        reached = std::max(reached, factor.value_or(0) * trained.value_or(divides ? context : 0));
      }
    std::erase_if(out_.findings, [&](const Diagnosed& one) {
      const auto runs = number_after(one.finding.found, "");
      return one.finding.code == "beyond_context" && one.sure == "told by the log" && runs &&
             *runs <= reached;
    });
  }

  // What a line of llama.cpp asks for, and what its log says of it.
  void runs_with(const Exhibit& command) {
    const auto line = read_command_line(command.text);
    if (!line || line->engine != "llama.cpp") return;
    const CommandFlag* flag = line->find("--ctx-size");
    const double asked = flag ? number_of_flag(*flag).value_or(0) : 0;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "beyond_context") continue;
      if (is_of_koboldcpp(*line)) {
        finding.severity = Severity::note;
        finding.message =
            "koboldcpp raises the base by itself (NTK-aware) where --contextsize is beyond what "
            "the file is made for and no --ropeconfig is given; llama.cpp within warns all the "
            "same";
        finding.cure =
            "--ropeconfig SCALE BASE sets a scaling that the model was trained with; "
            "beyond twice the file's context take a model that is made for more";
      } else if (const double file = number_after(finding.expected, "").value_or(0);
                 asked > file && file > 0 && told_to_run(file)) {
        finding.code = "context_capped";
        finding.expected = told(asked);
        finding.found = told(file);
        finding.position.reset();
        finding.message = "the server gives a request " + told(file) +
                          " tokens, as its log says, and not the " + told(asked) +
                          " of the line: llama-server caps each slot at the file's context";
      }
    }
  }

  static bool is_of_koboldcpp(const CommandLine& line) {
    return line.program.starts_with("koboldcpp") && !line.find("--ropeconfig");
  }

  bool told_to_run(double tokens) const {
    return std::ranges::any_of(out_.evidence, [&](const Exhibit& one) {
      if (one.kind != ExhibitKind::log) return false;
      const auto log = read_log(one.text);
      const LogSaid* runs = log ? log->find("n_ctx") : nullptr;
      return runs && runs->number == tokens;
    });
  }

  // Its default runs, and not what was configured.
  static void unheard_by_docker(const CommandLine& line, Finding& finding) {
    const CommandFlag* all = line.find("--ctx-size");
    const double asked = all ? number_of_flag(*all).value_or(0) : 0;
    if (asked <= 4096) {
      finding.message = "Docker Model Runner runs 4,096 tokens, as it does where nobody sets more";
      finding.cure =
          "docker model configure --context-size LENGTH MODEL, or context_size in a compose file";
      return;
    }
    finding.message = "Docker Model Runner runs 4,096 tokens where nobody sets it: the " +
                      told(asked) + " that were configured did not reach the model that is loaded";
    finding.cure =
        "docker model unload, and configure it again before the next request; context_size in a "
        "compose file, or docker model package --context-size, are kept";
  }

  // Each of the slots has its part of -c; where it has not just that, memory has decided.
  static void of_slots(const CommandLine& line, Finding& finding, double limit) {
    const CommandFlag *all = line.find("--ctx-size"), *count = line.find("--parallel");
    const double asked = all ? number_of_flag(*all).value_or(0) : 0,
                 slots = count ? number_of_flag(*count).value_or(1) : 1,
                 needed = number_after(finding.found, "").value_or(0);
    if (asked <= limit) return;
    constexpr double page = 256;  // llama.cpp rounds a slot's part to it
    if (slots >= 2 && !line.find("--kv-unified") && std::abs(asked / slots - limit) < page) {
      const double enough = std::ceil(needed / page) * page * slots;
      finding.message = "-c " + told(asked) + " is shared among " + told(slots) +
                        " slots: each has " + finding.expected + ", and the request has " +
                        finding.found;
      finding.cure = "-c " + std::to_string(std::llround(std::min(enough, 0x1p50))) +
                     " (for each slot as much), -np 1, or --kv-unified, by which one slot may have "
                     "them all";
      return;
    }
    finding.code = "context_fitted";
    finding.message = "the line asks for " + told(asked) + " tokens, and the server runs with " +
                      finding.expected +
                      ": it took less by the memory that was free (--fit), or another line runs";
    finding.cure =
        "--fit off with the -c that you want says whether it fits; a smaller cache (-ctk q8_0 -ctv "
        "q8_0) or fewer layers on the GPU make room; tell clients the number that runs (/props)";
  }

  // A line that has one slot shares nothing.
  void of_one_slot(const CommandLine& line, Finding& finding) const {
    const CommandFlag *all = line.find("--ctx-size"), *count = line.find("--parallel");
    const double asked = all ? number_of_flag(*all).value_or(0) : 0,
                 needed = number_after(finding.found, "").value_or(0);
    const bool alone = count && number_of_flag(*count).value_or(0) == 1;
    if (!alone || asked <= 0 || asked > 0x1p40 || needed > 0x1p40 ||
        finding.code != "request_too_long")
      return;
    const Model* known = model();
    const double reached = known ? static_cast<double>(std::max(known->context, reach(*known))) : 0;
    finding.message = "the one slot has all of -c " + told(asked) +
                      ", and the talk (instructions, history, files and answer) has grown past it";
    const bool fits = reached > asked && needed <= reached;
    finding.cure =
        (fits ? "-c " + std::to_string(std::llround(reached)) + ", which is as far as the model " +
                    "reaches" +
                    (needed > asked ? " (at least " + std::to_string(std::llround(needed)) + ")"
                                    : "")
         : needed > asked ? "-c above " + std::to_string(std::llround(needed)) +
                                ", as far as the model reaches (posenc explain MODEL)"
                          : "a larger -c, as far as the model reaches (posenc explain MODEL)") +
        "; or a client that keeps less: its context length at most what the server has, a new chat";
  }

  // A length that the log refuses, by a line that has the scaling already: one finding, and the
  // line's own cure.
  void refused_as_the_line_says() {
    const auto refused = [](bool by_log) {
      return [by_log](const Diagnosed& one) {
        return one.finding.code == "context_refused" && by_log == (one.sure == "told by the log");
      };
    };
    const auto log = std::ranges::find_if(out_.findings, refused(true)),
               line = std::ranges::find_if(out_.findings, refused(false));
    if (log == out_.findings.end() || line == out_.findings.end() ||
        log->finding.found != line->finding.expected)
      return;
    log->finding.cure = line->finding.cure;
    out_.findings.erase(line);
  }

  // A scaling that the line has, and a refusal at the length that it does not lift.
  void lift_by_the_line() {
    const auto kept = std::ranges::find_if(out_.findings, [](const Diagnosed& one) {
      return one.finding.code == "context_not_lifted";
    });
    if (kept == out_.findings.end()) return;
    const Finding lifted = kept->finding;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      const std::size_t tail = finding.message.find("; the model is made for ");
      if (finding.code != "request_too_long" || finding.expected != lifted.found ||
          tail == finding.message.npos)
        continue;
      finding.message.resize(tail);
      finding.message +=
          "; the scaling reaches " + lifted.expected + ", and the server was not started for it";
      finding.cure = lifted.cure;
    }
  }

  // A limit that is the model's own, beside a line that asks for more: said already.
  bool is_of_the_context() const {
    const double context = model() ? static_cast<double>(model()->context) : 0;
    return context > 0 && with("beyond_context") &&
           std::ranges::any_of(out_.findings, [&](const Diagnosed& one) {
             return one.finding.code == "request_too_long" &&
                    number_after(one.finding.expected, "") == context &&
                    number_after(one.finding.found, "") == static_cast<double>(out_.length);
           });
  }

  // What a request among the evidence asks for at most; 0: none says.
  double longest_answer() const {
    for (const Exhibit& one : out_.evidence)
      for (const char* key : {"\"max_tokens\":", "\"max_completion_tokens\":", "max_tokens="})
        for (const std::string* text : {&one.text, &one.rest})
          if (const auto tokens = number_after(*text, key); tokens && *tokens > 0) return *tokens;
    return 0;
  }

  // SGLang says at its start for how many tokens it has room.
  void limit_of_pool(const Exhibit& log) {
    constexpr double reserved = 64;
    const auto pool = number_after(log.text, "max_total_num_tokens="),
               context = number_after(log.text, "context_len=");
    if (!pool || !context || *pool >= *context) return;
    for (Diagnosed& one : out_.findings) {
      const auto limit = number_after(one.finding.expected, "");
      if (one.finding.code != "request_too_long" || !limit || std::abs(*limit - *pool) > reserved)
        continue;
      one.finding.code = "cache_memory";
      one.finding.message = "the context is " + told(*context) +
                            " tokens, and the cache has room for " + told(*pool) +
                            " (max_total_num_tokens): memory for keys and values, and not the "
                            "context, is what limits it";
      one.finding.cure = std::string(more_room);
    }
  }

  // A limit below what the line asks for is none of the context: memory for keys is.
  void limit_of_line(const Exhibit& command) {
    const auto line = read_command_line(command.text);
    if (!line) return;
    if (line->engine == "llama.cpp") {
      for (Diagnosed& one : out_.findings) {
        if (one.finding.code != "request_too_long") continue;
        const auto limit = number_after(one.finding.expected, "");
        constexpr double usual_of_docker = 4096;
        if (limit == usual_of_docker && command.as.contains("Docker Model Runner"))
          unheard_by_docker(*line, one.finding);
        else if (limit)
          of_slots(*line, one.finding, *limit);
        of_one_slot(*line, one.finding);
      }
      return;
    }
    if (is_of_the_context()) return drop("request_too_long");
    double asked = 0;
    for (const char* name :
         {"--max-model-len", "--context-length", "--session-len", "--max-seq-len"})
      if (const CommandFlag* flag = line->find(name)) asked = number_of_flag(*flag).value_or(0);
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "request_too_long" || finding.expected.empty()) continue;
      const auto limit = number_after(finding.expected, "");
      if (!limit || asked <= *limit) continue;
      if (*limit == 0 || asked - *limit == longest_answer()) {
        finding.severity = Severity::error;
        finding.message =
            "the server counts what is left for the prompt: the answer that the client asks for "
            "(max_tokens) takes " +
            (*limit == 0 ? "all " + told(asked) : told(asked - *limit) + " of " + told(asked)) +
            " tokens, so that " + told(*limit) + " are left";
        finding.cure = "max_tokens of the request well below " + told(asked) +
                       ": an answer's length, and not the context's";
        continue;
      }
      if (finding.message.contains("vLLM's scheduler")) {
        finding.message = "the limit is max_num_batched_tokens, " + finding.expected +
                          " here, and not the context: without chunked prefill a whole prompt must "
                          "fit into one step (with it 2,048 are the default)";
        finding.cure = "--max-num-batched-tokens " + std::to_string(std::llround(asked)) +
                       ", or --enable-chunked-prefill where the model allows it";
        continue;
      }
      finding.code = "cache_memory";
      finding.message = "the line asks for " + told(asked) +
                        " tokens, and the server has room for " + finding.expected +
                        ": memory for keys and values, and not the context, is what limits it";
      finding.cure = std::string(more_room);
    }
  }

  // A text that the settings share among so many ranks, and one tensor as many times the other.
  void parts_of_ranks(const Exhibit& settings) {
    const auto training = read_training(settings.text);
    if (!training || training->ranks < 2) return;
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "lengths_differ" && finding.code != "parts_of_ranks") continue;
      const double a = number_after(finding.expected, "").value_or(0),
                   b = number_after(finding.found, "").value_or(0);
      if (std::min(a, b) * static_cast<double>(training->ranks) != std::max(a, b)) continue;
      finding.code = "parts_of_ranks";
      finding.message = told(std::max(a, b)) + " is " + std::to_string(training->ranks) +
                        " times " + told(std::min(a, b)) + ", as " + training->ranks_key + " " +
                        std::to_string(training->ranks) + " of " + settings.name +
                        " shares a text among ranks: one of the two tensors, positions (cos and "
                        "sin) or queries, was cut into the ranks' parts, and the other not";
      finding.cure = training->ranks_key +
                     " 1; or update the trainer and transformers together, whose patch of this "
                     "model's class no longer fits";
    }
  }

  // A size that is one of the settings' own, or one token more.
  void lengths_of_settings(const Exhibit& settings) {
    const std::vector<RoleTold> told_there = answers_and_lengths(settings.text);
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "lengths_differ" && finding.code != "mrope_mask") continue;
      for (const std::string& size : {finding.expected, finding.found})
        for (const RoleTold& length : told_there) {
          const double number = number_after(size, "").value_or(0);
          if (number != length.number && number != length.number + 1) continue;
          finding.message += "; " + size + " is " + length.key + " of " + settings.name +
                             (number == length.number ? "" : " and one token");
          if (finding.code == "lengths_differ")
            finding.message +=
                ": the one tensor is of the answer or the cut text, and the other "
                "of something longer, packed or shared among ranks";
          return;
        }
    }
  }

  static std::vector<RoleTold> answers_and_lengths(std::string_view text) {
    std::vector<RoleTold> all;
    const auto take = [&](std::string_view key) {
      if (const auto number = number_after(text, std::string(key) + ": ");
          number && *number > 1 && *number < 0x1p40)
        all.push_back({.role = Role::length, .key = std::string(key), .number = *number});
    };
    for (const auto& [prompt, answer] : prompt_and_answer_keys) take(answer), take(prompt);
    for (const std::string_view key : length_keys) take(key);
    return all;
  }

  void limit_of_settings(const Exhibit& settings) {
    const auto training = read_training(settings.text);
    if (!training || training->prompt == 0) return;
    const std::string both = grouped(training->prompt + training->answer);
    const bool pictures = settings.text.contains("image") || settings.text.contains("pixel") ||
                          settings.text.contains("VL");
    for (Diagnosed& one : out_.findings) {
      Finding& finding = one.finding;
      if (finding.code != "request_too_long") continue;
      const auto prompt = number_after(finding.found, "");
      if (finding.expected != both) {
        const auto limit = number_after(finding.expected, "");
        if (limit && prompt && *prompt <= static_cast<double>(training->prompt) &&
            *limit < static_cast<double>(training->prompt + training->answer)) {
          finding.message = "the engine within was started for " + finding.expected +
                            ", less than " + training->prompt_key + " and " + training->answer_key +
                            " of " + settings.name + " together, " + both;
          finding.cure = "tell the engine: max_seq_length=" +
                         std::to_string(training->prompt + training->answer) +
                         " of Unsloth's from_pretrained, vllm_max_model_length of TRL, "
                         "rollout.max_model_len of verl";
          continue;
        }
        if (!prompt || *prompt <= static_cast<double>(training->prompt)) continue;
        finding.message =
            "the prompt has " + finding.found + " tokens, although " + training->prompt_key +
            " of " + settings.name + " is " + grouped(training->prompt) +
            ": the trainer did not cut it for the engine, which takes " + finding.expected;
        // Room for the longest prompt that was met, and its answer.
        finding.cure =
            "leave prompts out of the data that are longer than that, or give the engine "
            "room for them and their answers, " +
            told(*prompt + static_cast<double>(training->answer)) +
            " tokens: max_seq_length of Unsloth's from_pretrained, "
            "vllm_max_model_length of TRL, rollout.max_model_len of verl";
        continue;
      }
      if (finding.message.contains("the client asks for an answer")) {
        finding.message += "; " + both + " is what " + settings.name +
                           " has for both, and the messages grow while a tool answers: all of the "
                           "answer is asked for each time";
        finding.cure = "a context of the engine above " + finding.found +
                       " (rollout.max_model_len, vllm_max_model_length), or an answer of what is "
                       "left: " +
                       both + " less the messages";
        continue;
      }
      const bool of_trl = training->answer_key == "max_completion_length";
      finding.message = both + " is " + training->sum_text() + " of " + settings.name +
                        ", and the prompt alone had " + finding.found +
                        (pictures ? ": a picture's tokens count as well" : "");
      finding.cure =
          "raise " + training->prompt_key + " above " + finding.found +
          (pictures ? ", or cut the pictures (max_pixels)"
           : of_trl ? ", leave longer prompts out of the data, or update TRL, some of whose "
                      "versions do not cut prompts for vLLM"
                    : ", or leave longer prompts out of the data (filter_overlong_prompts)");
    }
  }

  Diagnosis& out_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> join_evidence(Diagnosis& diagnosis) { return Joined(diagnosis).run(); }

}  // namespace posenc::detail
