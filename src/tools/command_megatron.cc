// Arguments of Megatron-LM, which reads no configuration: a rotation that no argument asks for has
// Megatron's own defaults.
#include <cmath>
#include <string>
#include <utility>

#include "src/core/try.h"
#include "src/tools/command_line.h"

namespace posenc::detail {
namespace {

class MegatronFlags {
 public:
  MegatronFlags(const CommandLine& line, std::vector<Finding>& findings)
      : line_(line), findings_(findings) {}

  bool has(std::string_view name) const { return line_.find(name) != nullptr; }

  bool rotates() const {
    if (has("--multi-latent-attention")) return true;  // by a module of its own
    const CommandFlag* type = line_.find("--position-embedding-type");
    if (!type) return has("--use-rotary-position-embeddings");
    return type->value == "rope" || type->value == "yarn" || type->value == "mrope";
  }

  Expected<Rope> rope(const Rope& of_file) const {
    Rope rope{.pairing = has("--rotary-interleaved") ? Pairing::interleaved : Pairing::halves};
    // Which axis a pair takes is of no matter to text.
    rope.mrope_section = of_file.mrope_section;
    rope.mrope_interleaved = of_file.mrope_interleaved;
    rope.pair_axes = of_file.pair_axes;
    POSENC_TRY(base, number("--rotary-base", 10000, 1));
    POSENC_TRY(part, number("--rotary-percent", 1, 0));
    if (part > 1)
      return fail("command", "--rotary-percent must be at most 1", number_text(part),
                  "write 0.5 for half of each head");
    rope.rope_theta = base;
    rope.partial_rotary_factor = part;
    const CommandFlag* type = line_.find("--position-embedding-type");
    if (part < 1 && type && type->value == "yarn") {
      findings_.push_back(line_finding(
          "flag_unread", Severity::error, "--rotary-percent " + number_text(part),
          "Megatron's YarnRotaryEmbedding does not read the flag: all channels of a head rotate "
          "(Megatron-LM#7476)",
          "a Megatron-LM that has that change, or train with --position-embedding-type rope"));
      rope.partial_rotary_factor = 1;
    }
    POSENC_TRY(scaling, scaling_of());
    rope.scaling = std::move(scaling);
    return rope;
  }

  // Multi-latent attention has arguments and defaults of its own (MLATransformerConfig): YaRN unless
  // --rope-type says otherwise, over the channels that the file rotates.
  Expected<Rope> latent_rope(const Rope& of_file) const {
    Rope rope = of_file;
    POSENC_TRY(base, number("--rotary-base", 10000, 1));
    rope.rope_theta = base;
    const CommandFlag* type = line_.find("--rope-type");
    if (type && type->value != "rope" && type->value != "yarn")
      return fail("command", "--rope-type must be rope or yarn", type->value,
                  "multi-latent attention takes yarn where nobody says it");
    if (type && type->value == "rope") {
      for (const char* of_yarn : {"--rotary-scaling-factor", "--original-max-position-embeddings"})
        if (const CommandFlag* flag = line_.find(of_yarn)) {
          findings_.push_back(
              line_finding("flag_dropped", Severity::error,
                           std::string(of_yarn) + " " + printable(flag->value, 20),
                           "--rope-type rope leaves YaRN's arguments out of the rotation",
                           "--rope-type yarn, which latent attention takes where nobody says it"));
          break;
        }
      rope.scaling = Unscaled{};
      return rope;
    }
    POSENC_TRY(factor, number("--rotary-scaling-factor", 1, 0));
    POSENC_TRY(scaling, yarn_of(factor, "--original-max-position-embeddings", "--beta-"));
    // Megatron takes 1 and 0 where the line says neither: a factor on cos and sin, none on logits.
    POSENC_TRY(one, number("--mscale", 1, -1));
    POSENC_TRY(all, number("--mscale-all-dim", 0, -1));
    scaling.mscale.reset();
    scaling.mscale_all_dim.reset();
    if (one > 0 && all > 0)
      scaling.mscale = one;
    else
      scaling.attention_factor = magnitude(factor, one) / magnitude(factor, all);
    if (all > 0) scaling.mscale_all_dim = all;
    const Yarn* yarn = std::get_if<Yarn>(&of_file.scaling);
    if (yarn) scaling.max_position_embeddings = yarn->max_position_embeddings;
    scaling.scale_logits = true;
    if (factor == 1)
      rope.scaling = Unscaled{};
    else
      rope.scaling = scaling;
    return rope;
  }

  // multi_latent_attention.py makes the softmax's scale of mscale_all_dim whatever --rope-type is.
  Expected<double> logits_beside_plain() const {
    const CommandFlag* type = line_.find("--rope-type");
    if (!type || type->value != "rope") return 1.0;
    POSENC_TRY(factor, number("--rotary-scaling-factor", 1, 0));
    POSENC_TRY(all, number("--mscale-all-dim", 0, -1));
    const double once = magnitude(factor, all);
    return once * once;
  }

  // arguments.py stops where texts are longer than the model.
  Expected<void> check_lengths() const {
    POSENC_TRY(most, number("--max-position-embeddings", 0x1p50, 0));
    POSENC_TRY(texts, number("--seq-length", 0, 0));
    if (texts > most)
      findings_.push_back(line_finding("lengths_contradict", Severity::error,
                                       "--seq-length " + number_text(texts),
                                       "Megatron stops: --max-position-embeddings " +
                                           number_text(most) + " must not be below --seq-length",
                                       "--max-position-embeddings " + number_text(texts) +
                                           " --seq-length " + number_text(texts)));
    return {};
  }

 private:
  // As yarn_rotary_pos_embedding.py has it.
  static double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
  }

  // Above `least`.
  Expected<double> number(std::string_view name, double usual, double least) const {
    const CommandFlag* flag = line_.find(name);
    if (!flag) return usual;
    POSENC_TRY(value, number_of_flag(*flag));
    if (value > least) return value;
    return fail("command", flag->name + " must be above " + number_text(least), flag->value,
                "write the number that the model has");
  }

  // What positions are divided by: Megatron's own script keeps the flag for itself.
  Expected<double> divisor() const {
    POSENC_TRY(factor, number("--rotary-seq-len-interpolation-factor", 1, 0));
    if (factor == 1 || line_.program != "pretrain_gpt.py") return factor;
    const bool drops = is_before(line_.version, "0.19");
    if (!drops && !line_.version.empty()) return factor;
    findings_.push_back(line_finding(
        drops ? "flag_dropped" : "version_needed", drops ? Severity::error : Severity::note,
        "--rotary-seq-len-interpolation-factor " + number_text(factor),
        drops ? "pretrain_gpt.py of Megatron-core 0.18 and before does not hand the flag on "
                "(Megatron-LM#2902): positions are not divided, and the model trains without a "
                "scaling"
              : "Megatron-core 0.18 and before (until June 2026) does not hand the flag on, and "
                "trains without a scaling (Megatron-LM#2902)",
        "Megatron-core 0.19 or later, or seq_len_interpolation_factor=" + number_text(factor) +
            " for GPTModel in gpt_builders.py"));
    return drops ? 1 : factor;
  }

  Expected<Scaling> scaling_of() const {
    const CommandFlag* type = line_.find("--position-embedding-type");
    if (type && type->value == "yarn") return yarn();
    if (has("--use-rope-scaling")) {
      POSENC_TRY(factor, number("--rope-scaling-factor", 8, 0));
      if (factor != 8)
        findings_.push_back(line_finding(
            "flag_dropped", Severity::error, "--rope-scaling-factor " + number_text(factor),
            "gpt_builders.py does not hand the flag on: Megatron trains with factor 8 "
            "(Megatron-LM#6305)",
            "drop the flag where the model's own factor is 8, as Llama 3.1's; for another pass "
            "rope_scaling_factor to GPTModel in gpt_builders.py"));
      for (const char* name : {"--rotary-scaling-factor", "--yarn-rotary-scaling-factor"})
        if (const CommandFlag* flag = line_.find(name))
          findings_.push_back(line_finding(
              "flag_unread",
              number_of_flag(*flag).value_or(0) == 8 ? Severity::note : Severity::error,
              std::string(name) + " " + printable(flag->value, 20),
              "the flag is YaRN's: --use-rope-scaling has --rope-scaling-factor, 8 where it is not "
              "given, which gpt_builders.py does not hand on either (Megatron-LM#6305): Megatron "
              "trains with factor 8",
              "pass rope_scaling_factor=" + printable(flag->value, 20) +
                  " to GPTModel in gpt_builders.py"));
      POSENC_TRY(divided, divisor());
      if (divided != 1)
        findings_.push_back(line_finding(
            "scaled_twice", Severity::error,
            "--rotary-seq-len-interpolation-factor " + number_text(divided),
            "every position is divided by " + number_text(divided) +
                " beside Llama 3's scaling, which --use-rope-scaling asks for; what is compared "
                "here is without it",
            "drop one of the two"));
      return Llama3{.factor = 8, .original_max_position_embeddings = 8192};
    }
    POSENC_TRY(factor, divisor());
    return factor == 1 ? Scaling(Unscaled{}) : Scaling(Linear{.factor = factor});
  }

  Expected<Yarn> yarn_of(double factor, const std::string& trained, const std::string& beta) const {
    POSENC_TRY(original, number(trained, 4096, 0));
    if (original > 0x1p40 || original != std::floor(original))
      return fail("command", trained + " must be a number of tokens", number_text(original),
                  "write it as 32768");
    POSENC_TRY(fast, number(beta + "fast", 32, 0));
    POSENC_TRY(slow, number(beta + "slow", 1, 0));
    return Yarn{.factor = factor,
                .original_max_position_embeddings = static_cast<std::int64_t>(original),
                .beta_fast = fast,
                .beta_slow = slow};
  }

  Expected<Scaling> yarn() const {
    POSENC_TRY(older, number("--rotary-scaling-factor", 1, 0));
    POSENC_TRY(factor, number("--yarn-rotary-scaling-factor", older, 0));
    POSENC_TRY(yarn, yarn_of(factor, "--yarn-original-max-position-embeddings", "--yarn-beta-"));
    yarn.truncate = !has("--no-yarn-correction-range-round-to-int");
    if (has("--mscale") && has("--mscale-all-dim")) {
      POSENC_TRY(all, number_of_flag(*line_.find("--mscale-all-dim")));
      POSENC_TRY(one, number_of_flag(*line_.find("--mscale")));
      if (one > 0 && all > 0) yarn.mscale = one, yarn.mscale_all_dim = all;
    }
    return yarn;
  }

  const CommandLine& line_;
  std::vector<Finding>& findings_;
};

}  // namespace

Expected<void> apply_megatron_flags(Model& model, const CommandLine& line,
                                    std::vector<Finding>& findings) {
  const MegatronFlags told(line, findings);
  if (!told.rotates()) {
    const CommandFlag* type = line.find("--position-embedding-type");
    findings.push_back(line_finding(
        "position_embedding_type", Severity::error, type ? type->value : "learned_absolute",
        "nothing rotates: without --position-embedding-type Megatron adds learned vectors",
        "write --position-embedding-type rope (or yarn)"));
    return {};
  }
  POSENC_CHECK(told.check_lengths());
  for (LayerGroup& group : model.groups) {
    Rope* rope = mutable_rope(group);
    if (!rope || is_tower(group.stack)) continue;
    const std::size_t before = findings.size();
    const bool is_latent = group.cache_note.contains("MLA");
    POSENC_TRY(said, is_latent ? told.latent_rope(*rope) : told.rope(*rope));
    // What is said of one group is said of all.
    for (std::size_t i = findings.size(); i > before; --i)
      if (std::find(findings.begin(), findings.begin() + static_cast<std::ptrdiff_t>(before),
                    findings[i - 1]) != findings.begin() + static_cast<std::ptrdiff_t>(before))
        findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(i - 1));
    *rope = std::move(said);
    if (!is_latent) continue;
    POSENC_TRY(multiplier, told.logits_beside_plain());
    group.logits.multiplier *= multiplier;
  }
  return {};
}

}  // namespace posenc::detail
