// What an engine was told beside what the model's file says: the model with the told values put in
// is compared with the model itself.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/tools/log_lines.h"
#include "src/tools/log_numbers.h"
#include "src/tools/recipes.h"
#include "src/tools/told_rope.h"

namespace posenc {
namespace {

using detail::EngineLog, detail::LogSaid;
using detail::grouped, detail::nearly;

class LogDifferences {
 public:
  LogDifferences(const Model& model, EngineLog log) : model_(model), log_(std::move(log)) {}

  Expected<std::vector<Finding>> run(std::int64_t length) {
    findings_ = log_.remarks;
    of_tokenizer();
    of_request();
    of_table();
    of_sizes();
    of_trained_length();
    of_keys();
    of_gguf_keys();
    of_lost_longrope();
    of_arguments();
    of_windows();
    of_unsloth();
    Model told = model_;
    for (LayerGroup& group : told.groups)
      if (!is_tower(group.stack)) put_in(group);
    sizes();
    POSENC_TRY(differ, differences(model_, told, length));
    for (Finding& finding : differ) {
      if (const std::int64_t line = line_of(finding.code)) finding.line = line;
      if (finding.code == "rope_scaling") finding.cure = cure_of_scaling(finding.cure);
      if (const detail::Recipe* recipe = detail::recipe_between(model_, told);
          recipe && finding.code == "rope_scaling") {
        finding.severity = Severity::note;
        finding.message = "it ran with the scaling that " + std::string(recipe->source) +
                          " publish for longer texts; " + finding.message;
        finding.cure = "";
      }
      findings_.push_back(std::move(finding));
    }
    context(told, length);
    if (log_.known == 0)
      findings_.push_back({.code = "log_unknown",
                           .severity = Severity::warning,
                           .message = "no line that tells anything about position: known are those "
                                      "of llama.cpp, its converter, Ollama, LM Studio, vLLM, "
                                      "SGLang, transformers and mlx-lm",
                           .cure = "give what the engine prints when it loads the model; "
                                   "llama-server wants -v, vLLM its first lines"});
    std::ranges::stable_sort(findings_, {}, &Finding::severity);
    return std::move(findings_);
  }

 private:
  const LogSaid* positive(std::string_view what) const {
    const LogSaid* said = log_.find(what);
    return said && said->number > 0 ? said : nullptr;
  }

  // The last of these that the log has.
  const LogSaid* used(std::string_view at_last, std::string_view before) const {
    const LogSaid* said = positive(at_last);
    return said ? said : positive(before);
  }

  std::int64_t line_of(std::string_view code) const {
    if (overridden_ > 0) return overridden_;
    const auto line = [](const LogSaid* said) { return said ? said->line : std::int64_t{0}; };
    if (code == "rope_theta") return line(used("base_used", "base"));
    if (code == "rotary_dim") return line(positive("rotary_dim"));
    if (code == "pairing") return line(log_.find("halves"));
    if (const std::int64_t scale = line(used("scale_used", "scale"))) return scale;
    return line(log_.find("factor") ? log_.find("factor") : log_.find("type"));
  }

  void put_in(LayerGroup& group) {
    Rope* rope = const_cast<Rope*>(detail::rope_of(group));
    if (!rope) return;
    // Layers with a window may rotate by a base of their own, of which these lines do not tell.
    const bool others = group.window && bases_differ();
    // koboldcpp's own, which its line says and nobody has to mend.
    const bool as_meant = log_.remark_of("stretched_by_engine") != nullptr;
    if (const LogSaid* base = used("base_used", "base");
        base && !others && !as_meant && base->number > 1 && !is_of_a_layer(base->number))
      rope->rope_theta = base->number;
    if (const LogSaid* halves = log_.find("halves"))
      rope->pairing = halves->number == 1 ? Pairing::halves : Pairing::interleaved;
    dimensions(group, *rope);
    if (!others) {
      scaling(*rope);
      overridden(*rope);
    }
  }

  // vLLM prints a line for each kind of layer.
  bool is_of_a_layer(double base) const {
    return std::ranges::any_of(model_.groups, [&](const LayerGroup& group) {
      const Rope* rope = detail::rope_of(group);
      return rope && nearly(rope->rope_theta, base);
    });
  }

  bool bases_differ() const {
    const Rope* first = nullptr;
    for (const LayerGroup& group : model_.groups) {
      const Rope* rope = detail::rope_of(group);
      if (!rope || is_tower(group.stack)) continue;
      if (first && first->rope_theta != rope->rope_theta) return true;
      first = rope;
    }
    return false;
  }

  void dimensions(const LayerGroup& group, Rope& rope) const {
    const LogSaid* dim = positive("rotary_dim");
    if (!dim || std::holds_alternative<Proportional>(rope.scaling) || dim->number > 1e6) return;
    const Expected<Plan> plan = compile(group);
    const std::int64_t told = std::llround(dim->number);
    if (!plan || !plan->rotate || plan->rotate->slice.rotary_dim == told || told % 2 != 0) return;
    if (group.geometry.head_dim > 0 && told > group.geometry.head_dim) return;
    for (const LayerGroup& other : model_.groups) {
      const Expected<Plan> theirs = compile(other);
      if (theirs && theirs->rotate && theirs->rotate->slice.rotary_dim == told) return;
    }
    rope.rotary_dim = told;
  }

  // llama.cpp's divisors are tensors, of which no line tells: a scaling that is made of them is not
  // compared unless a factor comes on top.
  void scaling(Rope& rope) {
    const LogSaid *scale = used("scale_used", "scale"), *factor = positive("factor"),
                  *type = log_.find("type");
    if (!scale && !factor && !type) return;
    const double s = scale ? 1 / scale->number : factor ? factor->number : 1;
    const bool tensors = std::holds_alternative<Llama3>(rope.scaling) ||
                         std::holds_alternative<LongRope>(rope.scaling) ||
                         std::holds_alternative<Proportional>(rope.scaling) ||
                         std::holds_alternative<Explicit>(rope.scaling);
    const bool unknown = log_.remark_of("unknown_rope_type") != nullptr;
    const bool none = type && (type->text == "none" || type->text == "NONE");
    if (tensors && nearly(s, 1) && !unknown) return;
    const Yarn* own = std::get_if<Yarn>(&rope.scaling);
    const bool yarn =
        type ? type->text.starts_with("yarn") || type->text.starts_with("YARN") : own != nullptr;
    if (!yarn && (stretched_to(s) || scaled_by_flags()) &&
        std::holds_alternative<Unscaled>(rope.scaling)) {
      stretched_by_flags(s);
      return;
    }
    if (!yarn) {
      rope.scaling = none || nearly(s, 1) ? Scaling(Unscaled{}) : Scaling(Linear{s});
      return;
    }
    Yarn told = own ? *own : Yarn{.original_max_position_embeddings = model_.context};
    if (scale || factor) told.factor = s;
    if (const LogSaid* original = positive("original"); original && original->number < 0x1p50)
      told.original_max_position_embeddings = std::llround(original->number);
    if (told.original_max_position_embeddings > 0) rope.scaling = told;
  }

  // llama.cpp runs as many tokens more as it divides positions by: somebody asked for both.
  bool stretched_to(double factor) const {
    const LogSaid* asked = positive("n_ctx");
    constexpr double nearly_alike = 0.05;
    return log_.find("scale_used") && asked && factor > 1 && model_.context > 0 &&
           std::abs(asked->number / (factor * static_cast<double>(model_.context)) - 1) <
               nearly_alike;
  }
  // A factor that runs, and that the file has not, for more tokens than the file's.
  bool scaled_by_flags() const {
    const LogSaid *trained = positive("scale"), *runs = positive("scale_used"),
                  *asked = positive("n_ctx");
    return trained && runs && runs->number < 1 && nearly(trained->number, 1) && asked &&
           asked->number > static_cast<double>(model_.context);
  }
  // Which scaling the flags chose these lines do not tell: "rope scaling = linear" is the file's.
  void stretched_by_flags(double factor) {
    if (std::exchange(stretched_, true)) return;
    findings_.push_back(
        {.code = "rope_scaling",
         .severity = Severity::note,
         .expected = "none",
         .found = "a factor of " + number_text(factor),
         .message = "the flags took effect: positions are divided by it for as many times the "
                    "tokens. Whether linear or by YaRN these lines do not say ('rope scaling = "
                    "linear' is what the file was trained with): the command line does",
         .cure = "--rope-scaling yarn, unless the model was trained with linear positions: "
                 "--rope-scale alone is linear",
         .line = log_.find("scale_used")->line});
  }

  // vLLM's own words: a dict for the whole scaling.
  void overridden(Rope& rope) {
    for (const char* name : {"rope_scaling", "rope_parameters", "hf_overrides"}) {
      const LogSaid* said = log_.find(name);
      if (!said) continue;
      const Expected<detail::Json> json = detail::parse_json(said->text, name);
      if (!json) continue;
      const detail::Json* dict = &*json;
      bool replaces = std::string_view(name) == "rope_parameters";
      if (std::string_view(name) == "hf_overrides") {
        const detail::Json* inner = json->find("text_config");
        if (!inner) inner = &*json;
        dict = inner->find("rope_parameters");
        replaces = dict != nullptr;
        if (!dict) dict = inner->find("rope_scaling");
        if (!dict) continue;
      }
      std::vector<Finding> remarks;
      const auto now = detail::told_rope(
          rope, *dict, {.context = model_.context, .replaces = replaces, .line = said->line},
          remarks);
      if (now) rope = *now, overridden_ = said->line;
      for (Finding& finding : remarks)
        if (std::ranges::find(findings_, finding) == findings_.end())
          findings_.push_back(std::move(finding));
    }
  }

  // What llama-server can be told of a scaling that its file has lost.
  std::string cure_of_scaling(const std::string& usual) const {
    const Rope* rope = detail::rope_of_text(model_);
    const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    if (!yarn || !yarn->factor || !log_.find("type") || log_.find("rope_scaling")) return usual;
    return "the GGUF has lost it: convert it with a newer converter, or start llama-server with "
           "--rope-scaling yarn --rope-scale " +
           number_text(*yarn->factor) + " --yarn-orig-ctx " +
           std::to_string(yarn->original_max_position_embeddings);
  }

  // Which scaling of the file Unsloth's takes the place of.
  void of_unsloth() {
    const Rope* rope = detail::rope_of_text(model_);
    if (!rope || std::holds_alternative<Unscaled>(rope->scaling)) return;
    for (Finding& one : findings_) {
      if (one.code != "scaling_by_length") continue;
      one.message += ": here " + std::string(info(rope->scaling).name) +
                     ", which reaches further; on transformers 5 the base is lost as well";
      one.cure = "max_seq_length " + std::to_string(model_.context) +
                 ", or pip install -U unsloth (July 2026 or later keeps the file's scaling)";
    }
  }

  // Whether anything slides that an attention without windows would see too much of.
  void of_windows() {
    const bool slides = std::ranges::any_of(model_.groups, [](const LayerGroup& group) {
      return group.window && !is_tower(group.stack);
    });
    for (Finding& one : findings_) {
      if (one.code != "window_unread" || slides) continue;
      one.severity = Severity::note;
      one.message =
          "this attention (sdpa, eager) knows no window, and in this model nothing "
          "slides: the line may be passed over";
      one.cure = "";
    }
  }

  // A server that refuses a text which the model reaches was started for less.
  void of_request() {
    const std::int64_t reached = std::max(model_.context, detail::reach(model_));
    for (Finding& one : findings_) {
      // Command R's files keep what was trained as model_max_length.
      if (one.code == "context_refused" && !one.cure.contains("tokenizer_config") &&
          !one.cure.contains("sliding-window") && !one.cure.contains("max-total-tokens") &&
          whole(one.expected) > 0 && whole(one.expected) < model_.context &&
          whole(one.found) <= model_.context) {
        one.message += ", although the file says " + grouped(model_.context) + " elsewhere";
        one.cure =
            "pip install -U vllm (0.4.1 or later takes model_max_length too), or write "
            "max_position_embeddings " +
            std::to_string(model_.context) + ": no scaling is wanted";
        continue;
      }
      if (one.code != "request_too_long" || one.expected.empty() || one.found.empty()) continue;
      const std::int64_t limit = whole(one.expected), text = whole(one.found);
      const std::int64_t grown = detail::grown_by_length(model_);
      if (limit > 0 && text > reached && text <= grown) {
        one.message += "; the file's dynamic scaling reaches " + grouped(grown) +
                       ", so the server, and not the model, is what limits it";
        one.cure = "start it for " + std::to_string(grown) + " tokens (vLLM: --max-model-len); " +
                   "some engines and versions do not count a dynamic scaling in by themselves";
        continue;
      }
      if (limit > 0 && text > reached && limit >= model_.context && model_.context > 0) {
        one.position = limit;
        one.message += "; the model is made for " + grouped(model_.context) +
                       ", so a longer text wants a scaling";
        one.cure = "ask for less, or posenc extend MODEL --to " + std::to_string(text) +
                   ", which plans a longer context";
      }
      if (limit <= 0 || text <= limit || text > reached) continue;
      if (one.message.contains("ms-swift's template")) {  // of a trainer, which no server limits
        one.severity = Severity::warning;
        one.message +=
            "; with truncation_strategy delete the row is left out, and training goes on";
        one.cure = "--max_length " + std::to_string(text) + " or more: the model reaches " +
                   grouped(reached);
        continue;
      }
      one.message += "; the model itself reaches " + grouped(reached) +
                     ", so the server, and not the model, is what limits it";
      one.cure = "start it for " + std::to_string(reached) + " tokens, or for " +
                 std::to_string(text) +
                 " at least: --max-model-len (vLLM), --context-length (SGLang), " +
                 "-c (llama.cpp), num_ctx (Ollama)" +
                 (one.cure.starts_with("start it for more tokens") ? "" : "; " + one.cure);
    }
  }

  // How far the model goes, beside an error that does not say it.
  void of_table() {
    const std::int64_t reached = std::max(model_.context, detail::reach(model_));
    for (Finding& one : findings_) {
      if (one.code != "table_end" || reached <= 0) continue;
      const std::int64_t end = whole(one.found);
      if (end > 0 && end == model_.context) {
        one.position = end;
        one.message = "a position is behind the last row of the table of cos and sin, which has " +
                      grouped(end) + ", this model's max_position_embeddings";
        one.cure = "start it for " + std::to_string(end) +
                   " tokens (no --max-model-len above it, "
                   "no VLLM_ALLOW_LONG_MAX_MODEL_LEN), or posenc extend MODEL --to LENGTH";
        continue;
      }
      if (end > 0 && one.message.starts_with("an index is beyond the")) {
        const std::string what = detail::size_of_model(model_, static_cast<double>(end));
        one.message += what.empty() ? "; " + grouped(end) + " is none of this model's lengths"
                                    : "; " + grouped(end) + " is " + what;
      }
      one.message += "; this model takes " + grouped(reached) + " tokens, special ones counted";
      if (has_learned_table())
        one.cure +=
            "; its rows come with the weights: a larger number in the config.json adds none, and "
            "the checkpoint's own number is the end";
    }
  }

  // Older checks of transformers do not know YaRN's own trained length, and count from the context.
  void of_trained_length() {
    const Rope* rope = detail::rope_of_text(model_);
    const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    for (Finding& one : findings_) {
      if (one.code != "unknown_key" || one.found != "{'original_max_position_embeddings'}" || !yarn)
        continue;
      const std::int64_t trained = yarn->original_max_position_embeddings;
      const bool same = trained == model_.context;
      one.severity = same ? Severity::note : Severity::warning;
      one.message =
          "this transformers (before 4.51) takes max_position_embeddings, " +
          grouped(model_.context) + ", for YaRN's trained length" +
          (same ? ", which is the same number: nothing is lost; vLLM and SGLang read the key by "
                  "themselves"
                : " and not the " + grouped(trained) +
                      " of the file: it stretches otherwise; vLLM and SGLang read the key");
      one.cure = same ? "" : "pip install -U transformers (4.51 or later)";
    }
  }

  // Numbers that are the model's own.
  void of_sizes() {
    for (Finding& one : findings_) detail::name_numbers(model_, one);
    if (const LogSaid* view = log_.find("view"))
      if (auto heads = detail::heads_of_view(model_, view->text, view->number)) {
        heads->line = view->line;
        findings_.push_back(*std::move(heads));
      }
  }

  bool has_learned_table() const {
    return std::ranges::any_of(model_.groups, [](const LayerGroup& group) {
      return !is_tower(group.stack) && std::ranges::any_of(group.schemes, [](const Scheme& scheme) {
        return std::holds_alternative<Learned>(scheme);
      });
    });
  }

  // "Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': {'original_max_position_embeddings'}"
  void of_unread_original(Finding& one) const {
    const detail::Recipe* recipe = detail::recipe_of(model_);
    const bool same = one.found == "{'original_max_position_embeddings'}" && recipe &&
                      recipe->trained == model_.context;
    if (!same) return;
    one.severity = Severity::note;
    one.message = "this transformers takes max_position_embeddings for it, which is the same " +
                  grouped(model_.context) + " in this model's file: the line may be passed over";
    one.cure = "";
  }

  // A key that a reader misses, and that the file has: the reader looks elsewhere.
  void of_keys() {
    for (Finding& one : findings_) {
      if (one.code == "unknown_key") of_unread_original(one);
      if (one.code != "key_missing") continue;
      if (one.message.contains("the base of rope_parameters")) of_missing_base(one);
      if (one.message.starts_with("code that wants the base at the top")) of_base_at_top(one);
      if (!one.message.contains("trained length")) continue;
      if (!is_scaled()) {
        one.code = "transformers_mismatch";
        one.message =
            "the file has no scaling, and this code takes the dictionary that transformers 5 makes "
            "of every rope_theta (rope_type default) for one";
        one.cure =
            "the file is right: update the engine and the library that it calls, or run it with "
            "transformers 4.57; a trained length written into the file would change nothing";
        continue;
      }
      for (const LayerGroup& group : model_.groups)
        for (const Provenance& value : group.provenance) {
          const bool is_it = value.field == "original_max_position_embeddings" &&
                             value.origin == Origin::file && value.detail.contains("attention.");
          if (!is_it) continue;
          one.message =
              "the file has it (" + value.detail +
              "), and the reader looks at the top of rope_parameters: a check of transformers 5 "
              "does so for YaRN, where each kind of layer has its own dictionary "
              "(transformers#45887)";
          one.cure = "the file is right: pip install -U transformers, or the engine that asks";
          return;
        }
    }
  }

  // What the keys of a GGUF do not hold, and whoever writes a reader of them must know.
  void of_gguf_keys() {
    const detail::LogSaid* key = log_.find("base_key");
    if (!key || log_.find("sliding_base_key")) return;
    std::string_view tensor;
    const Rope *whole = nullptr, *sliding = nullptr;
    for (const LayerGroup& group : model_.groups) {
      const Rope* rope = is_tower(group.stack) ? nullptr : detail::rope_of(group);
      if (!rope) continue;
      if (std::holds_alternative<Llama3>(rope->scaling)) tensor = "rope_freqs.weight";
      if (std::holds_alternative<LongRope>(rope->scaling))
        tensor = "rope_factors_long.weight and rope_factors_short.weight";
      (group.window ? sliding : whole) = rope;
    }
    const auto note = [&](std::string_view what, std::string message) {
      findings_.push_back({.code = "gguf_silent",
                           .severity = Severity::note,
                           .found = std::string(what),
                           .message = std::move(message),
                           .line = key->line});
    };
    if (!tensor.empty())
      note(tensor, "the keys do not hold this model's scaling, which a GGUF has as " +
                       std::string(tensor) +
                       ": a program that reads keys alone rotates without it");
    if (whole && sliding && whole->rope_theta != sliding->rope_theta)
      note("base", "the keys hold the base of the layers that see everything (" +
                       number_text(whole->rope_theta) + "): those that slide turn by " +
                       number_text(sliding->rope_theta) +
                       (std::holds_alternative<Unscaled>(sliding->scaling) &&
                                !std::holds_alternative<Unscaled>(whole->scaling)
                            ? ", without the scaling,"
                            : "") +
                       " which a program must know of " + model_.family);
  }

  // llama.cpp's converter of Phi reads rope_scaling alone where it is older than this spelling: it
  // then writes LongRoPE's trained length, and neither its lists nor its factor.
  void of_lost_longrope() {
    const LogSaid* trained = log_.find("original");
    if (!trained || !log_.find("context_key") || log_.find("attn_factor") ||
        !model_.family.starts_with("phi"))
      return;
    const bool is_new = std::ranges::any_of(model_.groups, [](const LayerGroup& group) {
      const Rope* rope = is_tower(group.stack) ? nullptr : detail::rope_of(group);
      return rope && std::holds_alternative<LongRope>(rope->scaling) &&
             std::ranges::any_of(group.provenance, [](const Provenance& value) {
               return value.detail.contains("rope_parameters");
             });
    });
    if (!is_new) return;
    findings_.push_back(
        {.code = "scaling_lost",
         .severity = Severity::warning,
         .expected = "longrope",
         .found = "no rope.scaling.attn_factor",
         .message = "the GGUF's keys have LongRoPE's trained length and not the factor that stands "
                    "beside its lists: the file keeps the scaling in rope_parameters, as "
                    "transformers 5 writes it, and a converter that reads rope_scaling alone "
                    "leaves the lists out (llama.cpp#24820)",
         .cure = "a newer converter, or write the same dictionary as rope_scaling into the "
                 "config.json too, and convert again; posenc diff config.json FILE.gguf says "
                 "whether the lists are there",
         .line = trained->line});
  }

  bool is_scaled() const {
    return std::ranges::any_of(model_.groups, [](const LayerGroup& group) {
      const Rope* rope = detail::rope_of(group);
      return rope && !is_tower(group.stack) && !std::holds_alternative<Unscaled>(rope->scaling);
    });
  }

  void of_base_at_top(Finding& one) const {
    const Rope* rope = detail::rope_of_text(model_);
    if (!rope) return;
    const std::string base = number_text(rope->rope_theta);
    one.found = "rope_parameters";
    one.message = "the file keeps rope_theta " + base +
                  " in rope_parameters, as transformers 5 writes it, and this code wants it at the "
                  "top of the file";
    one.cure = "write \"rope_theta\": " + base +
               " at the top of the config.json too, or update the program";
  }

  // Where the file has the base that a reader misses.
  void of_missing_base(Finding& one) const {
    std::string bases;
    bool inside = false, at_top = false;
    for (const LayerGroup& group : model_.groups)
      for (const Provenance& value : group.provenance) {
        if (value.field != "rope_theta" || value.origin != Origin::file || is_tower(group.stack))
          continue;
        inside |= value.detail.contains("_attention");
        at_top |= !value.detail.contains('.');
        if (!bases.contains(value.value)) bases += (bases.empty() ? "" : ", ") + value.value;
      }
    if (inside) {
      one.message =
          "the file has a dictionary for each kind of layer within rope_parameters (bases " +
          bases + "), and this code looks for one base at its top";
      one.cure =
          "the file is right: update the program. Where it makes a model of one rotation of it (a "
          "draft), give that the base of the layers that it stands for";
    } else if (at_top) {
      one.message = "the file has rope_theta " + bases +
                    " at its top, as before transformers 5, and this code looks for it within "
                    "rope_parameters: something has replaced that dictionary, or transformers 4 "
                    "has read the file";
      one.cure = "where an override or a flag writes rope_parameters, write rope_theta " + bases +
                 " into it; else pip install -U transformers (5.0 or later)";
    }
  }

  // A trainer that compares its arguments with the configuration, and a flag that went into it: the
  // file says which of them is right.
  void of_arguments() {
    const Rope* rope = detail::rope_of_text(model_);
    if (!rope) return;
    for (Finding& one : findings_) {
      if (const std::size_t at = one.cure.find(detail::base_of_the_file);
          one.code == "flag_removed" && at != one.cure.npos)
        one.cure.replace(at, detail::base_of_the_file.size(), number_text(rope->rope_theta));
      const bool compared = one.code == "rope_theta" && one.message.starts_with("the trainer's");
      if (!compared || one.found != number_text(rope->rope_theta) || one.expected == one.found)
        continue;
      one.message = "the argument is right, as the file says " + one.found +
                    ": the check read its class's default, since the file has rope_theta within "
                    "rope_parameters, where older code does not look (slime#1720)";
      one.cure = "update the trainer, or write rope_theta " + one.found + " at the file's top too";
    }
  }

  static std::int64_t whole(std::string text) {
    std::erase(text, ',');
    std::int64_t number = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || number > (std::int64_t{1} << 50)) break;
      number = 10 * number + (c - '0');
    }
    return number;
  }

  // A tokenizer complains of its own limit; the model's context says whether the text fits.
  void of_tokenizer() {
    const auto at = std::ranges::find(findings_, "tokenizer_limit", &Finding::code);
    const LogSaid* text = log_.find("text");
    const std::int64_t reached = std::max(model_.context, detail::reach(model_));
    if (at == findings_.end() || !text || reached == 0) return;
    if (text->number <= static_cast<double>(reached)) {
      at->severity = Severity::note;
      at->message =
          "the tokenizer's own limit (model_max_length of tokenizer_config.json): the "
          "model reaches " +
          grouped(reached) + " tokens, so the text fits, and nothing is wrong";
      at->cure = "set model_max_length to " + std::to_string(reached) + " to be rid of the line";
      return;
    }
    at->code = "beyond_context";
    at->severity = Severity::warning;
    at->position = reached;
    at->expected = grouped(reached);
    at->message = "a text was longer than the model's context: angles that training has not shown";
    at->cure = "ask for less, or plan a longer context: posenc extend MODEL --to LENGTH";
  }

  void sizes() {
    const LayerGroup* first = nullptr;
    for (const LayerGroup& group : model_.groups)
      if (!first && group.stack == Stack::text) first = &group;
    if (!first) return;
    const auto compare = [&](const char* what, std::int64_t expected) {
      const LogSaid* said = positive(what);
      if (!said || expected == 0 || static_cast<double>(expected) == said->number) return;
      findings_.push_back({.code = what,
                           .severity = Severity::warning,
                           .expected = std::to_string(expected),
                           .found = number_text(said->number),
                           .message = "the log may be that of another model",
                           .cure = "compare the model that was loaded",
                           .line = said->line});
    };
    compare("layers", detail::layers_of(model_, Stack::text));
    compare("heads", first->geometry.heads);
    if (first->cache_note.contains("MLA"))
      return;  // llama.cpp counts one head for the compressed keys
    compare("kv_heads", first->geometry.kv_heads);
  }

  // A key of the file's own that says less than the model is made for: whoever made the file wrote
  // it, and engines serve no more.
  bool shorter_by_key(const LogSaid& trained) {
    const LogSaid* key = log_.find("context_key");
    if (!key || trained.number >= static_cast<double>(model_.context)) return false;
    if (trained.number == static_cast<double>(detail::trained_length(model_))) {
      findings_.push_back(
          {.code = "context",
           .severity = Severity::note,
           .expected = grouped(model_.context),
           .found = grouped(std::llround(trained.number)),
           .message = "the GGUF's own " + key->text +
                      " is the length that the model was trained at; the context of its "
                      "config.json is what the authors' scaling makes of it, which llama.cpp is "
                      "told by flags (--rope-scaling, --rope-freq-scale)",
           .line = trained.line});
      return true;
    }
    findings_.push_back(
        {.code = "context",
         .severity = Severity::warning,
         .expected = grouped(model_.context),
         .found = grouped(std::llround(trained.number)),
         .message = "the GGUF's own " + key->text +
                    " is less than the model is made for: llama.cpp and Ollama serve no more than "
                    "that, and the rotation is not touched",
         .cure = "download the model again, since its makers have mended it, or take another GGUF; "
                 "llama.cpp: --override-kv " +
                 key->text + "=int:" + std::to_string(model_.context),
         .line = trained.line});
    return true;
  }

  void context(const Model& told, std::int64_t length) {
    const LogSaid *trained = positive("context"), *asked = positive("n_ctx");
    const bool differs =
        trained && model_.context > 0 && trained->number != static_cast<double>(model_.context);
    if (differs && !shorter_by_key(*trained))
      findings_.push_back({.code = "context",
                           .severity = Severity::warning,
                           .expected = grouped(model_.context),
                           .found = grouped(std::llround(std::min(trained->number, 0x1p50))),
                           .message = "the engine has another context from its file",
                           .cure = "compare max_position_embeddings with context_length",
                           .line = trained->line});
    // What the scaling reaches, as the engine was told it.
    if (!asked || length > 0) return;
    const double made_for = static_cast<double>(std::max(model_.context, detail::reach(told)));
    if (multiplied_twice(*asked)) return;
    const bool stretched =
        stretched_ || (log_.remark_of("stretched_by_engine") && asked->number > made_for);
    if (made_for > 0 && asked->number > made_for && !stretched)
      findings_.push_back({.code = "beyond_context",
                           .severity = Severity::warning,
                           .expected = grouped(std::llround(made_for)),
                           .found = grouped(std::llround(std::min(asked->number, 0x1p50))),
                           .message =
                               "the engine was started for more tokens than the model is made "
                               "for",
                           .cure = "posenc extend MODEL --to " +
                                   std::to_string(std::llround(std::min(asked->number, 0x1p50))) +
                                   " plans a longer context",
                           .line = asked->line});
    else if (made_for > 0 && asked->number < made_for)
      findings_.push_back({.code = "context_shorter",
                           .severity = Severity::note,
                           .expected = grouped(std::llround(made_for)),
                           .found = grouped(std::llround(asked->number)),
                           .message = "the engine was started for fewer tokens than the model is "
                                      "made for",
                           .line = asked->line});
  }

  // vLLM before September 2026 knew YaRN by that word alone, and multiplied a length that is scaled
  // already where the file spells the scaling otherwise (deepseek_yarn, telechat3-yarn).
  bool multiplied_twice(const LogSaid& asked) {
    const Rope* rope = detail::rope_of_text(model_);
    const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    if (!yarn || !yarn->factor || *yarn->factor <= 1 || model_.context == 0 ||
        4 * model_.context < 3 * detail::reach(model_) ||
        asked.number != static_cast<double>(model_.context) * *yarn->factor)
      return false;
    findings_.push_back(
        {.code = "context_multiplied",
         .severity = Severity::warning,
         .position = model_.context,
         .expected = grouped(model_.context),
         .found = grouped(std::llround(std::min(asked.number, 0x1p50))),
         .message = "the engine multiplied max_position_embeddings, which is scaled already, by "
                    "the factor once more (vLLM before September 2026, where the file does not "
                    "spell the scaling yarn): behind " +
                    grouped(model_.context) +
                    " the model was not trained, and the table of cos and sin ends",
         .cure = "--max-model-len " + std::to_string(model_.context) + ", or a newer vLLM",
         .line = asked.line});
    return true;
  }

  const Model& model_;
  EngineLog log_;
  std::vector<Finding> findings_;
  bool stretched_ = false;
  std::int64_t overridden_ = 0;
};

}  // namespace

Expected<std::vector<Finding>> log_differences(const Model& model, std::string_view log,
                                               std::int64_t length) {
  if (log.size() > largest_log)
    return fail("log", "must be at most 64 MiB", std::to_string(log.size()) + " bytes",
                "give its first lines: head -n 2000 FILE");
  POSENC_TRY(read, detail::read_log(log));
  return LogDifferences(model, std::move(read)).run(length);
}

}  // namespace posenc
