// What somebody saw beside what was found: which finding begins where it was seen, and where
// nothing does, which number of the file or habit of the engine stands there.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "posenc/pictures.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/circumstances.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/foreign_lines.h"
#include "src/tools/log_lines.h"
#include "src/tools/programs.h"
#include "src/tools/recipes.h"
#include "src/tools/symptom.h"

namespace posenc::detail {
namespace {

// Nobody counts tokens while reading: 4k is 4,000 to one and 4,096 to another.
bool is_near(std::int64_t seen, std::int64_t number) {
  constexpr double apart = 0.08;
  return number > 0 && std::abs(static_cast<double>(seen - number)) <=
                           apart * static_cast<double>(std::max(seen, number));
}

// A field that is one number of tokens, "4,096"; 0: it is none.
std::int64_t number_alone(std::string_view field) {
  constexpr std::size_t most = 12;
  std::int64_t number = 0;
  if (field.empty() || field.size() > most) return 0;
  for (const char c : field) {
    if (c == ',') continue;
    if (c < '0' || c > '9') return 0;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::int64_t original_of(const Model& model) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
    if (!rope) continue;
    const auto original = std::visit(
        [](const auto& scaling) -> std::int64_t {
          if constexpr (requires { scaling.original_max_position_embeddings; })
            return static_cast<std::int64_t>(scaling.original_max_position_embeddings);
          else
            return 0;
        },
        rope->scaling);
    if (original > 0) return original;
  }
  return 0;
}

double base_of(const Model& model) {
  for (const LayerGroup& group : model.groups)
    if (const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group); rope && !group.window)
      return rope->rope_theta;
  return 0;
}

// The base of layers that have just that window; 0: none has.
double base_of_windowed(const Model& model, std::int64_t window) {
  for (const LayerGroup& group : model.groups)
    if (const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
        rope && group.window == window)
      return rope->rope_theta;
  return 0;
}

class Judge {
 public:
  Judge(const Symptom& symptom, const Model* model, std::span<const std::string> engines)
      : symptom_(symptom), model_(model), engines_(engines) {}

  std::vector<Finding> run() && {
    if (!symptom_.other.empty()) {
      of_others();
      return std::move(found_);
    }
    of_answer();
    if (!of_nominal_length()) of_default();
    of_sum_of_slots();
    of_pictures();
    of_table();
    of_time();
    if (!model_) of_own_table();
    if (model_) {
      of_window();
      of_scaling();
      of_lists();
      of_langchain();
      of_edge();
      of_cut();
      of_old_keys();
      of_base();
      of_three_axes();
      of_unread_scaling();
      of_longlora();
      of_two_rotations();
      of_learned_rows();
      of_longer();
      of_port();
    }
    if (!of_rounding()) of_circumstances();
    if (!model_) of_longer_at_all();
    if (model_ && found_.empty()) behind_window();
    return std::move(found_);
  }

 private:
  // Programs without a profile stand in the words alone.
  bool runs(std::string_view engine) const {
    const auto is_it = [&](const std::string& one) {
      return std::string_view(one).substr(0, one.find('@')) == engine;
    };
    return std::ranges::any_of(engines_, is_it) || std::ranges::any_of(symptom_.engines, is_it);
  }

  void say(std::string_view code, Severity severity, std::string message, std::string cure,
           std::int64_t position = 0) {
    Finding one{.code = std::string(code),
                .severity = severity,
                .message = std::move(message),
                .cure = std::move(cure)};
    if (position > 0) one.position = position;
    found_.push_back(std::move(one));
  }

  std::string seen_at() const { return "it was seen from about " + grouped(symptom_.from) + " on"; }

  // Memory and time grow with the context, and are no fault of positions.
  void of_others() {
    if (symptom_.other == "memory")
      return say("seen_elsewhere", Severity::note,
                 "it is memory that is short, and no position is wrong: keys and values take as "
                 "much for each token of the context that is reserved, whether a text fills it or "
                 "not",
                 "a shorter context (vLLM: --max-model-len, llama.cpp: -c, Ollama: num_ctx), or "
                 "keys and values of 8 bits; posenc explain MODEL says what a token takes");
    if (symptom_.other == "the price or a quota")
      return say("seen_elsewhere", Severity::note,
                 "it is about a price or a quota, and no position is wrong", "");
    if (symptom_.other != "speed") return;
    if (model_ && has_lists() && runs("onnxruntime-genai"))
      return say("seen_across_lists", Severity::note,
                 "ONNX Runtime GenAI makes all cached keys anew where a text crosses " +
                     grouped(original_of(*model_)) +
                     " tokens, since LongRoPE has another list there: that token is slow",
                 "prompt and answer on one side of it");
    say("seen_elsewhere", Severity::note,
        "it is speed, and no position is wrong: each token attends to all before it, so that long "
        "texts are slower",
        "");
  }

  // Tokens that are kept for the answer are part of the context.
  void of_answer() {
    const std::int64_t reached = model_ ? std::max(model_->context, reach(*model_)) : 0;
    if (symptom_.answer == 0 || reached <= 0 || symptom_.answer < reached) return;
    const std::string all = std::to_string(2 * symptom_.answer);
    say("beyond_context", Severity::warning,
        "an answer of " + grouped(symptom_.answer) +
            " tokens leaves no room for a prompt: the model reaches " + grouped(reached) +
            ", prompt and answer together",
        "a shorter answer, or a longer context: posenc extend MODEL --to " + all +
            " (--train where the weights are trained at it)",
        reached);
  }

  // The default context of a program that was not told one.
  void of_default() {
    const bool complains = symptom_.seen != Seen::nothing;
    const bool lost = complains && (symptom_.seen == Seen::forgets || symptom_.is(When::in_turns));
    // Whose context is another, or is shared, or was said elsewhere.
    for (const When cause :
         {When::side_by_side, When::of_front_end, When::no_positions, When::of_v1, When::of_ps,
          When::of_nemo, When::of_goose, When::of_state, When::of_vram, When::of_mistral_mscale})
      if (symptom_.is(cause)) return;
    for (const DefaultContext& one : default_contexts()) {
      if (one.of_embeddings != symptom_.of_embeddings ||
          std::ranges::none_of(split(one.programs),
                               [&](std::string_view name) { return runs(name); }))
        continue;
      const bool near = std::ranges::any_of(one.tokens, [&](std::int64_t tokens) {
        return is_near(symptom_.from, tokens) || is_near(symptom_.length, tokens);
      });
      // It was told more: the number is in the words.
      const std::int64_t most = *std::ranges::max_element(one.tokens);
      if (symptom_.set_to > most) return of_cap();
      if (symptom_.is(When::of_client)) return;
      if (!near && symptom_.from > 2 * most) return of_two_lengths();
      // Of anything that fails a short context is no more likely than the rest.
      const bool may_be = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats ||
                          (complains && symptom_.is(When::long_texts)) || symptom_.length > 0;
      if (!lost && !near && !may_be) return;
      say("context_defaulted", lost || near ? Severity::warning : Severity::note,
          std::string(one.message), std::string(one.cure));
      return;
    }
  }

  // A length of several slots together, and one slot's, both in the words.
  void of_sum_of_slots() {
    if (symptom_.sum_of_slots == 0) return;
    const std::string each = grouped(symptom_.sum_of_slots / symptom_.slots);
    Finding one{.code = "slots",
                .severity = Severity::note,
                .expected = grouped(symptom_.sum_of_slots),
                .found = each,
                .message = grouped(symptom_.sum_of_slots) + " is the sum of " +
                           std::to_string(symptom_.slots) + " slots, each of which has " + each +
                           ": a text has one slot's",
                .cure = "take " + each +
                        " for the length; --parallel 1, or --kv-unified, by which one slot may "
                        "have more, as far as the model reaches"};
    found_.push_back(std::move(one));
  }

  // Ollama runs no more than the file says, whatever num_ctx asks for.
  void of_cap() {
    if (!runs("ollama") || !model_ || model_->context <= 0 || symptom_.set_to <= model_->context)
      return;
    say("context_capped", Severity::warning,
        "Ollama caps num_ctx at what the model's file promises: " + grouped(model_->context) +
            " of the " + grouped(symptom_.set_to) + " asked for",
        "num_ctx up to " + std::to_string(model_->context) +
            "; for more another model, or a GGUF whose own scaling and context say so (posenc "
            "extend MODEL --to " +
            std::to_string(symptom_.set_to) + " --engine ollama)");
  }

  // A limit and a longer text, both in the words.
  void of_two_lengths() {
    if (symptom_.from == 0 || symptom_.length <= symptom_.from) return;
    Finding one{.code = "request_too_long",
                .severity = Severity::warning,
                .expected = grouped(symptom_.from),
                .found = grouped(symptom_.length),
                .message =
                    "the text is longer than what it is loaded for, and is cut off, refused, "
                    "or answered with nothing",
                .cure =
                    "load it for more tokens, as far as the model reaches (posenc explain "
                    "MODEL), or a shorter text"};
    found_.push_back(std::move(one));
  }

  void of_pictures() {
    const std::optional<PictureSize> of_model = model_ ? trained_size(*model_) : std::nullopt;
    const std::int64_t most = of_model ? of_model->frames : symptom_.frames_of_model;
    if (most > 1 && symptom_.frames > most)
      return say(
          "frames_beyond", Severity::warning,
          "the model was trained on videos of " + std::to_string(most) +
              " frames at most: the pair of channels that turns once in about so many comes "
              "round again behind them, and the video repeats itself, or stands still",
          std::to_string(most) +
              " frames, and pieces that go on from the last one; or RIFLEx, which slows that "
              "pair (posenc extend TRANSFORMER --to FRAMESxHEIGHTxWIDTH)");
    const std::int64_t side = std::max(symptom_.height, symptom_.width);
    if (!of_model && symptom_.side_of_model > 0 && side > symptom_.side_of_model)
      return say("size_beyond", Severity::warning,
                 "the model was trained on pictures of about " +
                     std::to_string(symptom_.side_of_model) +
                     " pixels a side: rows and columns beyond are positions which it has not seen, "
                     "and stripes, blocks and doubled things come of it",
                 "a picture within that, which is enlarged afterwards in tiles; posenc extend "
                 "TRANSFORMER --to HEIGHTxWIDTH says what scaling its axes does");
    if (!of_model || side <= std::max(of_model->height, of_model->width)) return;
    say("size_beyond", Severity::warning,
        "the model was trained on " + std::to_string(of_model->width) + "×" +
            std::to_string(of_model->height) + ": rows and columns of " +
            std::to_string(symptom_.width) + "×" + std::to_string(symptom_.height) +
            " that lie beyond are positions which it has not seen, and things repeat or fall into "
            "blocks",
        "posenc extend MODEL --to " + std::to_string(symptom_.height) + "x" +
            std::to_string(symptom_.width) +
            " says what each method changes; or a small picture first, which is enlarged");
  }

  // Rows of a learned table, of a kind of model that the words name.
  void of_table() {
    const std::int64_t rows = symptom_.rows_of_model;
    if (model_) return;  // whose own file tells
    if (symptom_.is(When::of_half_table))
      return say("seen_at_table", Severity::warning,
                 "CTranslate2 (faster-whisper, WhisperX) ends an answer after half of the 448 rows "
                 "of Whisper's decoder, 224 tokens, as OpenAI's own code does: speech of 30 "
                 "seconds that needs more loses its end",
                 "shorter windows (chunk_length=15), or a CTranslate2 with "
                 "OpenNMT/CTranslate2#2075, by which prompt and answer share all 448");
    const bool there = is_near(symptom_.from, rows) || is_near(symptom_.length, rows) ||
                       symptom_.from == rows / 2 || symptom_.length == rows / 2;
    if (rows == 0 || !(there || symptom_.seen == Seen::forgets || symptom_.of_position ||
                       symptom_.from > rows || symptom_.length > rows))
      return;
    say("seen_at_table", there ? Severity::warning : Severity::note,
        "a learned table of " + std::to_string(rows) + " positions, that of " +
            std::string(symptom_.model) +
            ", special tokens counted, cannot be scaled to more: what is longer is cut off without "
            "a word, or refused",
        "texts in pieces that fit (Whisper: a prompt and its answer share them, and its encoder "
        "takes 30 seconds of sound), or a model that is made for longer ones");
  }

  // Qwen2.5-VL and its kin place frames by seconds.
  void of_time() {
    const bool by_seconds = model_ && (model_->family.starts_with("qwen2_5_vl") ||
                                       model_->family.starts_with("qwen2_5_omni"));
    if (!symptom_.is(When::of_time) || !(by_seconds || (!model_ && symptom_.seconds_per_grid)))
      return;
    say("seen_in_time", Severity::warning,
        "Qwen2.5-VL and Omni place a video's frames tokens_per_second × second_per_grid_ts apart, "
        "in whole numbers: where the fps of the video does not reach the processor, or its "
        "second_per_grid_ts does not reach the model, 2 a second are taken; beyond 4 a second "
        "neighbours share a position in Qwen2.5-VL",
        "hand fps on (processor(…, **video_kwargs), of process_vision_info(…, "
        "return_video_kwargs=True)), look at second_per_grid_ts, and update an engine that drops "
        "it");
  }

  // A window that an engine does not keep, or a cache that is cut at it.
  void of_window() {
    if (symptom_.from == 0) return;
    for (const LayerGroup& group : model_->groups) {
      const std::int64_t window = is_tower(group.stack) ? 0 : group.window.value_or(0);
      if (!is_near(symptom_.from, window) || is_near(symptom_.from, model_->context)) continue;
      if (symptom_.of_window) return say_window(window);
      say("seen_at_window", Severity::warning,
          seen_at() + ", and layers have a window of " + grouped(window) +
              ": what runs it keeps no window there (a build or a file from before it knew one), "
              "drops what the other layers still need, or takes it for the longest text",
          "update the engine, and convert the file anew with it; posenc diff config.json FILE "
          "shows whether the window is in it",
          symptom_.from);
      return;
    }
  }

  // Mistral 7B v0.1: a file that promises what the model was not trained on (2310.06825, table 1).
  bool of_nominal_length() {
    constexpr std::int64_t trained = 8192, promised = 32768, window = 4096;
    constexpr double base = 10000;
    const bool is_it = model_ && model_->family == "mistral" && model_->context == promised &&
                       base_of_windowed(*model_, window) == base;
    const bool spoilt = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats ||
                        symptom_.seen == Seen::worse;
    if (!is_it || !spoilt || !is_near(symptom_.from, trained)) return false;
    say("seen_at_window", Severity::warning,
        "Mistral 7B v0.1 and what is tuned from it were trained on 8,192 tokens with a window of "
        "4,096: 32,768 is what the file promises, and what runs without the window (llama.cpp and "
        "programs upon it, attention of sdpa) ends in nonsense from about there on",
        "texts up to 8,192 tokens, or a model of v0.2 or later (base 1,000,000, trained on 32,768)",
        trained);
    return true;
  }

  // Long texts that come out as nonsense, nobody says from where on.
  void behind_window() {
    const bool garbled = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats;
    if (!garbled || !(symptom_.is(When::long_texts) || symptom_.from > 0)) return;
    for (const LayerGroup& group : model_->groups) {
      const std::int64_t window = is_tower(group.stack) ? 0 : group.window.value_or(0);
      const bool before = symptom_.from > 0 && symptom_.from < window;
      if (window == 0 || window >= model_->context || before) continue;
      say("seen_at_window", Severity::note,
          "layers have a window of " + grouped(window) +
              " tokens, and long texts reach behind it: what runs it may keep no window there, or "
              "cut its cache of keys wrongly",
          "compare a text just below " + grouped(window) +
              " tokens with one just above; update the engine, or run another" +
              (runs("lmdeploy") ? " (TurboMind of older LMDeploy keeps none: --backend pytorch)"
                                : ""));
      return;
    }
  }

  // The window is what they complain of.
  void say_window(std::int64_t window) {
    std::int64_t with = 0, all = 0;
    for (const LayerGroup& group : model_->groups) {
      if (is_tower(group.stack)) continue;
      all += std::ssize(group.layers);
      with += group.window ? std::ssize(group.layers) : 0;
    }
    say("seen_at_window", Severity::warning,
        std::to_string(with) + " of " + std::to_string(all) + " layers see the last " +
            grouped(window) + " tokens by design" +
            (with < all ? ", and the other " + std::to_string(all - with) +
                              " see all of them: what stands farther back is not lost, unless the "
                              "program gives all layers the window, or keeps no older keys"
                        : ": what stands farther back reaches a token through layers alone"),
        with < all
            ? "leave the window as it is (without it this is another model), and see that the "
              "program keeps all keys of the other layers; compare with another engine"
            : "a model without windows, where the beginning of long texts must count",
        symptom_.from);
  }

  void of_scaling() {
    const std::int64_t original = original_of(*model_);
    if (symptom_.from == 0 || !is_near(symptom_.from, original) ||
        is_near(symptom_.from, model_->context) || (has_lists() && symptom_.long_right) ||
        symptom_.is(When::of_missing_llama3))
      return;
    say("seen_at_scaling", Severity::warning,
        seen_at() + ", and " + grouped(original) +
            " is what the model was trained for before its scaling: text that breaks right there "
            "runs without the scaling, or with one that changes in the middle of a text",
        "posenc diff MODEL --engines all tells who reads it; the engine's log prints what it took "
        "(posenc doctor MODEL LOG)",
        symptom_.from);
  }

  bool has_lists() const {
    return std::ranges::any_of(model_->groups, [](const LayerGroup& group) {
      const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
      return rope && std::holds_alternative<LongRope>(rope->scaling);
    });
  }
  // LongRoPE's lists change where a text crosses the trained length.
  void of_lists() {
    const bool garbled = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats;
    const std::int64_t original = original_of(*model_);
    if (!has_lists() || !garbled || symptom_.is(When::at_once) ||
        (is_near(symptom_.from, original) && !symptom_.long_right) ||
        2 * symptom_.from > 3 * original)
      return;
    const bool by_length = symptom_.from > 0 || symptom_.is(When::long_texts);
    say("seen_across_lists", by_length ? Severity::warning : Severity::note,
        "a text that crosses " + grouped(original) +
            " tokens, prompt and answer together, changes LongRoPE's list in the middle: keys "
            "cached before are stale there unless the engine makes them anew",
        "keep prompt and answer on one side of " + grouped(original) +
            ", or an engine's version that makes the cache anew there",
        by_length ? original : 0);
  }

  // A round number that is none of the file's.
  static constexpr std::array<std::int64_t, 7> edges = {512, 1024, 2048, 4096, 8192, 16384, 32768};
  bool at_edge() const { return std::ranges::find(edges, symptom_.from) != edges.end(); }
  // The first Qwen stretches beyond a length that its file says apart.
  bool of_own_length() {
    for (const Warning& one : model_->warnings) {
      const auto length = number_after(one.message, "seq_length is ");
      const bool stretches = std::ranges::any_of(model_->warnings, [](const Warning& other) {
        return other.message.contains("use_dynamic_ntk");
      });
      if (!length || !stretches || !is_near(symptom_.from, std::llround(*length))) continue;
      const std::string told = grouped(std::llround(*length));
      say("seen_at_scaling", Severity::warning,
          seen_at() + ", and beyond seq_length, " + told +
              ", the model's own code raises the base by the text's length: to base · "
              "alpha^(d/(d−2)), alpha = 2^ceil(log2(length/" +
              told + ") + 1) − 1, and multiplies queries by a logarithm (use_logn_attn)",
          "do the same (transformers' dynamic NTK has another alpha), or stay below " + told,
          symptom_.from);
      return true;
    }
    return false;
  }

  void of_edge() {
    if (of_own_length()) return;
    if (!at_edge() || symptom_.from >= model_->context || !found_.empty() ||
        symptom_.is(When::chunked) || symptom_.is(When::of_draft) || symptom_.asks_longer)
      return;
    say("seen_at_edge", Severity::warning,
        seen_at() + ", a round number, and the model reaches " + grouped(model_->context) +
            ": mostly the program's own table of cosines, cache or default context ends there, and "
            "no angle of the model",
        "look for that number in its settings and code, and make it " +
            std::to_string(model_->context),
        symptom_.from);
  }

  // Somewhere within the context, and an engine is named: its cache of a window.
  void of_old_keys() {
    const bool lost = symptom_.seen != Seen::nothing && symptom_.seen != Seen::differs;
    if (!lost || !found_.empty() || engines_.empty() || 2 * symptom_.from > model_->context) return;
    for (const LayerGroup& group : model_->groups) {
      const std::int64_t window = is_tower(group.stack) ? 0 : group.window.value_or(0);
      if (window == 0 || symptom_.from <= window) continue;
      return say("seen_by_window_cache", Severity::note,
                 seen_at() + ", behind a window of " + grouped(window) +
                     " that layers have: keys of a window are kept in a ring, which engines have "
                     "turned too early, or masked wrongly, where a model without windows stays "
                     "right",
                 cure_of_engine("seen_by_window_cache",
                                "a newer version of the engine; its full cache, where it has one "
                                "(llama.cpp: --swa-full); and compare with another engine"));
    }
  }

  // "512-token default": a cut of the program's own.
  void of_cut() {
    if (symptom_.seen != Seen::forgets || !found_.empty() ||
        std::ranges::find(edges, symptom_.length) == edges.end() ||
        2 * symptom_.length > model_->context)
      return;
    say("seen_at_edge", Severity::warning,
        "the program cuts texts at " + grouped(symptom_.length) +
            " tokens of its own, and the model reaches " + grouped(model_->context),
        "look for that number in its settings (max_length, max_seq_length, n_ctx), and make it " +
            std::to_string(model_->context));
  }

  // How a text becomes longer is a question, and no fault.
  void of_longer() {
    if (!symptom_.asks_longer || !found_.empty() || symptom_.is(When::of_missing_llama3)) return;
    const Rope* rope = rope_of_text(*model_);
    if (!rope) return;
    const bool scales = !std::holds_alternative<Unscaled>(rope->scaling);
    if (const Recipe* own = scales && symptom_.asks_less ? recipe_followed_by(*model_) : nullptr)
      return say(
          "asks_longer", Severity::note,
          "the file's scaling (" + scaling_text(rope->scaling) + ") is what " +
              std::string(own->source) +
              " add for long texts: the weights were trained without it, and short texts are "
              "a little better so",
          "leave it out where no text is longer than " + grouped(own->trained));
    if (scales && symptom_.asks_less)
      return say("asks_longer", Severity::note,
                 "the weights were trained with the file's scaling (" +
                     scaling_text(rope->scaling) +
                     "): it acts on every length, and without it short texts go wrong, too",
                 "leave it in");
    if (scales)
      return say("asks_longer", Severity::note,
                 "the file has its scaling already (" + scaling_text(rope->scaling) +
                     "), and an engine that reads it needs no flag: it reaches " +
                     grouped(std::max(model_->context, reach(*model_))) + " tokens",
                 "posenc diff MODEL --engines all tells who reads it");
    const Recipe* recipe = recipe_of(*model_);
    const auto longest =
        recipe ? std::llround(recipe->factor * static_cast<double>(recipe->trained)) : 0;
    if (longest <= model_->context)
      return say("asks_longer", Severity::note,
                 "no engine makes texts longer by itself: the file reaches " +
                     grouped(model_->context) + " tokens, and beyond them it needs a scaling",
                 "posenc extend MODEL --to LENGTH says what each scaling does, and what is typed");
    say("asks_longer", Severity::note,
        "no engine makes texts longer by itself: the file reaches " + grouped(model_->context) +
            " tokens; for up to " + grouped(longest) + " its authors publish YaRN by " +
            number_text(recipe->factor) + ", which acts on short texts, too",
        "posenc extend MODEL --to " + std::to_string(longest) + " writes what is typed");
  }

  // The same where nobody knows of which model.
  void of_longer_at_all() {
    if (!symptom_.asks_longer || symptom_.asks_less || !found_.empty()) return;
    say("asks_longer", Severity::note,
        "texts become longer by a scaling that the engine must read: YaRN's factor is the length "
        "that is wanted over the one that was trained (1,048,576 of 262,144: 4), and where a "
        "program's code knows no YaRN it runs as before, without a word",
        "posenc extend MODEL --to LENGTH --engine vllm (sglang, llama.cpp, transformers …) writes "
        "what is typed; posenc diff MODEL --engines all says who reads it");
  }

  // What a program that somebody wrote passes over: all that is not one plain rotation.
  void of_port() {
    if (!symptom_.of_port) return;
    std::string parts;
    const auto part = [&](const std::string& text) { parts += (parts.empty() ? "" : "; ") + text; };
    std::vector<std::int64_t> still;
    std::int64_t all = 0;
    const Rope* first = rope_of_text(*model_);
    for (const LayerGroup& group : model_->groups) {
      if (is_tower(group.stack) || group.mixer == Mixer::recurrence) continue;
      all += std::ssize(group.layers);
      const Rope* rope = rope_of(group);
      if (!rope) still.insert(still.end(), group.layers.begin(), group.layers.end());
      if (rope && first && rope->rope_theta != first->rope_theta)
        part("layers " + layer_list(group.layers) + " rotate by base " +
             number_text(rope->rope_theta) + ", others by " + number_text(first->rope_theta));
    }
    if (!first) return;
    if (!still.empty())
      part(std::to_string(still.size()) + " of " + std::to_string(all) + " layers do not rotate (" +
           layer_list(still) + ")");
    if (first->partial_rotary_factor < 1)
      part("only " + number_text(first->partial_rotary_factor) + " of a head rotates");
    if (!std::holds_alternative<Unscaled>(first->scaling)) part(scaling_text(first->scaling));
    if (parts.empty()) return;
    say("seen_by_port", symptom_.seen == Seen::nothing ? Severity::note : Severity::warning,
        "what a program of one's own mostly misses in this model: " + parts,
        "posenc explain MODEL has it layer by layer; posenc identify compares q and k of the two");
  }

  // The rows of the model's own learned table.
  void of_learned_rows() {
    const bool learned = std::ranges::any_of(model_->groups, [](const LayerGroup& group) {
      return !is_tower(group.stack) && std::ranges::any_of(group.schemes, [](const Scheme& scheme) {
        return std::holds_alternative<Learned>(scheme);
      });
    });
    const bool there =
        is_near(symptom_.from, model_->context) || is_near(symptom_.length, model_->context);
    // In a batch it is padding, unless somebody counts tokens.
    const bool of_padding = symptom_.is(When::in_batch) && symptom_.from == 0 && !there;
    if (symptom_.is(When::of_silent_cut)) return;
    if (!learned || !found_.empty() || model_->context <= 0 || of_padding ||
        !(there || symptom_.of_position || symptom_.seen == Seen::forgets))
      return;
    say("seen_at_table", there ? Severity::warning : Severity::note,
        "a learned table of " + grouped(model_->context) +
            " positions, special tokens counted, cannot be scaled to more: what is longer is cut "
            "off, refused, or an index out of range",
        "texts (in training labels, too) of at most " + grouped(model_->context) +
            " tokens: leave longer ones out, or in pieces that fit");
  }

  // The words themselves name a table that ends.
  void of_own_table() {
    if (!symptom_.of_table || symptom_.from == 0) return;
    say("seen_at_edge", Severity::warning,
        "the program's own table of cosines and sines, or its cache, ends at " +
            grouped(symptom_.from) + ", and the texts are longer",
        "make what sizes it longer (rotary_seq_len, max_seq_len, max_position_embeddings), or cut "
        "the texts");
  }

  // Trained with positions that were divided, which the files of most do not say.
  void of_longlora() {
    const std::int64_t context = model_->context, length = symptom_.trained_by_longlora;
    const Rope* rope = rope_of_text(*model_);
    const bool scaled = !rope || !std::holds_alternative<Unscaled>(rope->scaling);
    if (scaled || context <= 0 || length < 2 * context) return;
    const std::string factor = std::to_string((length + context - 1) / context);
    say("seen_unscaled", Severity::warning,
        "LongLoRA trains with positions divided by " + factor + " for " + grouped(length) +
            " tokens, and this file has no rope_scaling: it reaches " + grouped(context) +
            ", and is wrong from the first tokens on",
        "\"rope_scaling\": {\"type\": \"linear\", \"factor\": " + factor +
            ".0} in the config.json");
  }

  // The file has a scaling, and somebody says that it is not read.
  void of_unread_scaling() {
    if ((!symptom_.is(When::unscaled) && !breaks_early()) || symptom_.is(When::of_cutoff) ||
        symptom_.is(When::of_demo_indexer))
      return;
    for (const LayerGroup& group : model_->groups) {
      const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
      if (!rope || std::holds_alternative<Unscaled>(rope->scaling)) continue;
      const bool linear = std::holds_alternative<Linear>(rope->scaling);
      return say(
          "seen_unscaled", found_.empty() ? Severity::warning : Severity::note,
          "the file scales (" + scaling_text(rope->scaling) +
              "), and a program that does not read that rotates otherwise " +
              (linear ? "from the first tokens on: blanks, newlines and nonsense at any length"
                      : "than the model was trained: long texts fall apart"),
          "a version or engine that reads it (posenc diff MODEL --engines all); no other "
          "flag makes up for it");
    }
  }

  // Layers that rotate otherwise than others are asked about.
  void of_two_rotations() {
    if (!symptom_.of_rotation || !found_.empty()) return;
    const LayerGroup *with = nullptr, *without = nullptr;
    for (const LayerGroup& group : model_->groups)
      if (!is_tower(group.stack) && rope_of(group)) (group.window ? with : without) = &group;
    if (!with || !without || *rope_of(*with) == *rope_of(*without)) return;
    const auto told = [](const LayerGroup& group) {
      const Rope& rope = *rope_of(group);
      return number_text(rope.rope_theta) + (std::holds_alternative<Unscaled>(rope.scaling)
                                                 ? ""
                                                 : " with " + scaling_text(rope.scaling));
    };
    say("asks_rotation", Severity::note,
        "layers with a window rotate by base " + told(*with) + ", the others by " + told(*without) +
            ": two sets of angles by design, which a log or a GGUF that names one number does not "
            "show (llama.cpp keeps those of windows in keys of their own, ending in _swa)",
        "posenc explain MODEL shows both; posenc diff config.json FILE.gguf compares them");
  }

  // Tokens of pictures stand in three rows of positions.
  void of_three_axes() {
    const bool has_axes = std::ranges::any_of(model_->groups, [](const LayerGroup& group) {
      const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
      return rope && !rope->mrope_section.empty();
    });
    if (symptom_.is(When::of_corners) || symptom_.is(When::of_saved_deltas)) return;
    const bool of_pictures = symptom_.is(When::of_pictures) || symptom_.is(When::of_places);
    // Which know the time by text before each frame.
    if (symptom_.is(When::of_time) && model_->family.starts_with("qwen3"))
      return say(
          "seen_in_time", Severity::warning,
          "Qwen3-VL and its kin know the time of a frame by text before it ('<3.0 seconds>'), "
          "not by M-RoPE: frames that are sent as pictures without it are a pile of pictures",
          "send a video (video_url, or the processor's videos=) with its fps, or write the "
          "timestamps as the processor does");
    const bool packed = symptom_.is(When::packed) && !symptom_.is(When::axes_as_packed);
    const bool of_mlx = runs("mlx_vlm") || runs("mlx-vlm") || runs("vmlx");
    if (has_axes && of_mlx && symptom_.seen != Seen::nothing)
      return say(
          "seen_on_axes", Severity::note,
          "mlx-vlm makes the positions of M-RoPE with the prompt and keeps them on the model "
          "(position_ids, rope_deltas): a step or a request that takes those of another "
          "begins at a wrong place, repeats itself, or ends with an error about shapes",
          "update mlx-vlm, or the version that was right; until then one request at a time");
    if (!has_axes || !(symptom_.is(When::one_row) || of_pictures || packed)) return;
    say("seen_on_axes", symptom_.is(When::one_row) || packed ? Severity::warning : Severity::note,
        "this model's positions have three rows (M-RoPE: time, height, width): where tokens of "
        "pictures, or those behind them, are rotated by one row, text stays right, and answers "
        "about places and pictures go wrong",
        "what runs or trains it must hand over position_ids [3, batch, tokens] of get_rope_index, "
        "and rope_deltas while decoding; update it (transformers 4.46 or later makes them in "
        "training, too), and posenc check-positions looks at the rows" +
            std::string(symptom_.is(When::of_places)
                            ? "; Qwen3-VL gives places in thousandths of a side, Qwen2.5-VL in "
                              "pixels of the picture as it was resized"
                            : ""));
  }

  // Of those that a rule of their own judges nothing is guessed, and trainers keep what a file says.
  bool is_foreign() const {
    return std::ranges::any_of(symptom_.engines, [&](const std::string& one) {
      const std::string_view name =
          program_without_profile(std::string_view(one).substr(0, one.find('@')));
      return !name.empty() && !is_trainer(name) && known_of_program(name, *model_, 0).empty();
    });
  }

  // Garbled well within what was trained, in a program whose reading nobody knows.
  bool breaks_early() const {
    const bool garbled = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats ||
                         (symptom_.seen == Seen::worse && symptom_.from > 0);
    const bool early = symptom_.from == 0 ? symptom_.is(When::long_texts)
                                          : 2 * symptom_.from <= trained_length(*model_);
    return garbled && early && !at_edge() && !symptom_.of_table &&
           !symptom_.is(When::after_eviction) && (is_foreign() || engines_.empty());
  }

  // The commonest slip of a program that somebody wrote: the base stays what it was in 2023.
  void of_base() {
    const double base = base_of(*model_);
    constexpr double usual = 10000;
    const Rope* rope = rope_of_text(*model_);
    const bool scales = rope && !std::holds_alternative<Unscaled>(rope->scaling);
    if (!breaks_early() || base <= 2 * usual || scales) return;
    say("seen_at_base", is_foreign() ? Severity::warning : Severity::note,
        "the file's base is " + number_text(base) +
            ": a program that keeps 10000, as code of 2023 does, answers short texts and turns "
            "into nonsense after some hundred tokens or a few thousand",
        "look for rope_theta, rope_base or rotary_base in its settings and code, and write " +
            number_text(base));
  }

  // Which hands llama.cpp a base of its own.
  void of_langchain() {
    const double base = base_of(*model_);
    constexpr double own = 10000;
    const bool garbled = symptom_.seen == Seen::garbled || symptom_.seen == Seen::repeats;
    const bool of_llama_cpp = runs("llama.cpp") || runs("llama-cpp-python");
    if (!runs("langchain") || !of_llama_cpp || !garbled || base <= 2 * own) return;
    say("seen_at_base", Severity::warning,
        "LangChain's LlamaCpp(…) hands llama.cpp rope_freq_base 10000 where nobody sets it, "
        "whatever the file says (" +
            number_text(base) + "): short texts are right, and longer ones nonsense",
        "LlamaCpp(…, rope_freq_base=" + number_text(base) + "), or 0, which takes the file's");
  }

  // In the words of what runs it, where that is known.
  std::string cure_of_engine(std::string_view code, std::string_view cure) const {
    const bool serves =
        std::ranges::any_of(std::array<std::string_view, 6>{"vllm", "sglang", "tensorrt-llm",
                                                            "lmdeploy", "tgi", "llama.cpp"},
                            [&](std::string_view engine) { return runs(engine); });
    if (code == "seen_in_batch" && (runs("mlx-lm") || runs("mlx_vlm") || runs("mlx-vlm")))
      return "update the server: its cache of a batch is padded on the left, and positions or "
             "masks of shorter rows went wrong in several; until then one request at a time";
    if (code == "seen_in_batch" && serves)
      return "hand the engine prompts without padding: it batches by itself and has no mask, so "
             "that filler is text to it";
    if (code == "seen_after_shift" && runs("koboldcpp"))
      return "--noshift, or a context of prompt and answer together";
    if (code == "seen_after_shift" && runs("ollama"))
      return "num_ctx for prompt and answer together, and num_predict below what is left of it";
    if (code == "seen_by_chunks" && runs("sglang"))
      return "--chunked-prefill-size -1, or a newer version";
    if (code == "seen_by_window_cache" && runs("mlx-lm"))
      return "run such a model without a draft (--draft-model), its prompts not reused, or a newer "
             "mlx-lm";
    return std::string(cure);
  }

  // How the model's own file pairs channels, where words speak of it.
  std::string pairs_of_model() const {
    const Rope* rope = model_ ? rope_of_text(*model_) : nullptr;
    if (!rope) return "";
    const bool gguf = !model_->files.empty() && model_->files.front().format == FileFormat::gguf;
    return std::string("by its ") + (gguf ? "GGUF" : "config.json") + " this model pairs " +
           (rope->pairing == Pairing::halves ? "halves, (i, i + half), and neighbours are wrong"
                                             : "neighbours, (2i, 2i + 1), and halves are wrong") +
           "; ";
  }

  // What sums of another order make.
  bool of_rounding() {
    constexpr double small = 0.01;
    if (symptom_.seen != Seen::differs || symptom_.of_embeddings || symptom_.difference <= 0 ||
        symptom_.difference > small || !(symptom_.is(When::in_batch) || symptom_.of_position))
      return false;
    say("seen_by_rounding", Severity::note,
        "a difference of " + number_text(symptom_.difference) +
            " is rounding, of sums in another order and, in 16 bits, of other kernels: a wrong "
            "position changes logits by tenths and more",
        "compare in float32 (torch.float32, attn_implementation='eager'), where it shrinks to "
        "1e-5 or so, or what is generated");
    return true;
  }

  void of_circumstances() {
    // Somebody who asks about a batch or a conversion has seen nothing of it go wrong.
    constexpr std::array<When, 6> not_asked = {When::in_batch, When::in_turns,  When::converted,
                                               When::constant, When::regressed, When::at_once};
    const bool complains = symptom_.seen != Seen::nothing;
    const auto counts = [&](When when) {
      return symptom_.is(when) && (complains || (symptom_.of_position && when != When::in_turns) ||
                                   std::ranges::find(not_asked, when) == not_asked.end());
    };
    const bool of_llama_cpp =
        engines_.empty() || runs("llama.cpp") || runs("mlx-lm") || runs("ollama");
    for (const Circumstance& row : circumstances()) {
      const bool answered = (row.when == When::of_answers && symptom_.answer > 0) ||
                            (row.when == When::one_row && model_);
      if (answered && !found_.empty()) continue;
      if (!counts(row.when) || (row.when == When::window_cache && !of_llama_cpp)) continue;
      // What holds of a rotation, and of one whose part is a head of its own.
      const Rope* rope = model_ ? rope_of_text(*model_) : nullptr;
      if (row.when == When::of_rolled_inputs && model_ && !rope) continue;
      if (row.when == When::of_part_of_head && rope &&
          std::ranges::any_of(model_->groups, [](const LayerGroup& group) {
            const Rope* one = rope_of(group);
            return one && std::holds_alternative<Proportional>(one->scaling);
          }))
        continue;
      // Just where the first chunk of a prompt ends.
      const bool there = row.when == When::chunked && at_edge();
      return say(row.code, there ? Severity::warning : Severity::note,
                 (row.when == When::pairs ? pairs_of_model() : "") + std::string(row.message),
                 cure_of_engine(row.code, row.cure));
    }
  }

  const Symptom& symptom_;
  const Model* model_;
  std::span<const std::string> engines_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> judge_symptom(const Symptom& symptom, const Model* model,
                                   std::span<const std::string> engines) {
  return Judge(symptom, model, engines).run();
}

bool begins_where_seen(const Finding& finding, const Symptom& symptom, std::int64_t asked) {
  if (symptom.from == 0 || finding.code == "line_unknown" || finding.code == "version_unknown")
    return false;
  if (finding.position && is_near(symptom.from, *finding.position)) return true;
  // "length 4,097 is beyond the 4,096 positions the model is made for"
  constexpr std::string_view beyond = "beyond the ";
  if (const std::size_t at = finding.message.find(beyond);
      finding.code == "beyond_context" && at != finding.message.npos) {
    const std::string_view rest = std::string_view(finding.message).substr(at + beyond.size());
    if (is_near(symptom.from, number_alone(rest.substr(0, rest.find(' '))))) return true;
  }
  if (finding.code.contains("theta") || finding.code.contains("base")) return false;  // no lengths
  return std::ranges::any_of(std::array<std::string_view, 2>{finding.expected, finding.found},
                             [&](std::string_view field) {
                               const std::int64_t number = number_alone(field);
                               return number != asked && is_near(symptom.from, number);
                             });
}

}  // namespace posenc::detail
