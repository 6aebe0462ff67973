// Python that does otherwise than the files it is given want: positions and frequencies of 16 bits,
// scalings that are set too late, modules of another transformers, neighbours for halves.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

// Whether a model's text pairs neighbours: code that rotates so is its own.
bool rotates_neighbours(const Model* model) {
  const Rope* rope = model ? rope_of_text(*model) : nullptr;
  return model && (!rope || rope->pairing == Pairing::interleaved);
}

// Python without its comments and what stands in its strings, a statement each, with its line.
struct Statement {
  std::string text;
  std::int64_t line = 0;
};
std::vector<Statement> statements_of(std::string_view code) {
  std::vector<Statement> all;
  std::string text;
  char quote = 0;
  std::int64_t line = 1, first = 1;
  int depth = 0;
  const auto end = [&] {
    if (const std::string_view whole = trimmed(text); !whole.empty())
      all.push_back({std::string(whole), first});
    text.clear();
  };
  for (std::size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == '\n') ++line;
    if (quote != 0) {
      if (c == quote || c == '\n') quote = 0;
      continue;
    }
    if (c == '#') {
      at = std::min(code.find('\n', at), code.size()) - 1;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if ((c == '\n' && depth <= 0) || c == ';') {
      end();
      first = line;
      depth = 0;
    } else {
      text += c == '\n' ? ' ' : c;
    }
  }
  end();
  return all;
}

// What a call's brackets hold, and the calls that follow it: "n, dtype=torch.bfloat16).half()".
std::string_view call_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return {};
  std::string_view rest = text.substr(at + name.size());
  int depth = 1;
  std::size_t end = 0;
  for (; end < rest.size() && depth > 0; ++end)
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
  // .to(torch.bfloat16), .half()
  while (end < rest.size() && rest[end] == '.') {
    const std::size_t open = rest.find('(', end), close = rest.find(')', end);
    if (open == rest.npos || close == rest.npos || close < open) break;
    end = close + 1;
  }
  return rest.substr(0, end);
}

// The dtype of 16 bits that a part of a statement casts to; "": none.
std::string_view sixteen_bits(std::string_view part) {
  if (contains_any(part, {"torch.bfloat16", ".bfloat16()", "jnp.bfloat16"})) return "bfloat16";
  if (contains_any(part, {"torch.float16", ".half()", "np.float16", "torch.half"}))
    return "float16";
  return "";
}

std::optional<Finding> angles_rounded_in_code(std::string_view code) {
  for (const Statement& one : statements_of(code)) {
    const std::string_view text = one.text;
    std::string_view dtype;
    const bool of_positions = contains_any(text, {"pos", "freq", "seq", "t = ", "outer(", "rope"});
    for (const std::string_view call : {"torch.arange(", "np.arange(", "jnp.arange("})
      if (dtype.empty() && of_positions) dtype = sixteen_bits(call_behind(text, call));
    // inv_freq = (…).to(torch.bfloat16), inv_freq.half()
    if (const std::size_t at = text.find("inv_freq"); dtype.empty() && at != text.npos) {
      const std::string_view rest = text.substr(at + std::string_view("inv_freq").size());
      const std::string_view sign = trimmed(rest.substr(0, 3));
      constexpr std::size_t of_self = 12, longest_cast = 12;  // "self._", ".bfloat16()"
      const bool is_made = at < of_self && sign.starts_with('=') && !sign.starts_with("==");
      const bool is_cast =
          contains_any(rest.substr(0, longest_cast), {".bfloat16()", ".half()", ".to(torch."});
      const bool later = contains_any(rest, {".cos()", ".sin()", "torch.cos(", "torch.sin("});
      if (is_made && !later) dtype = sixteen_bits(rest);
      if (dtype.empty() && is_cast) dtype = sixteen_bits(rest.substr(0, rest.find(')') + 1));
    }
    if (dtype.empty()) continue;
    const std::int64_t exact = dtype == "bfloat16" ? 256 : 2048;  // whole numbers up to it are kept
    return Finding{.code = "angles_rounded",
                   .position = exact,
                   .found = std::string(dtype),
                   .message = "positions or frequencies are formed in " + std::string(dtype) +
                              ": positions beyond it share one number, and angles are wrong by "
                              "more the longer the text",
                   .cure =
                       "torch.arange, inv_freq and their product in float32; cos and sin alone may "
                       "be rounded",
                   .line = one.line};
  }
  return std::nullopt;
}

// inv_freq = 1.0 / (base ** …), by the base alone, where the model's file scales.
std::optional<Finding> unscaled_in_code(std::string_view code, const Model* model) {
  const Rope* rope = model ? rope_of_text(*model) : nullptr;
  if (!rope || std::holds_alternative<Unscaled>(rope->scaling)) return std::nullopt;
  const std::string small = small_letters(code);
  if (contains_any(small, {"rope_scaling", "rope_parameters", "yarn", "llama3", "low_freq", "ntk",
                           "scaling_factor", "inv_freq_mask", "linear", "long_factor"}))
    return std::nullopt;
  for (const Statement& one : statements_of(code)) {
    const bool makes = contains_any(one.text, {"inv_freq =", "inv_freq=", "freqs =", "freqs="}) &&
                       one.text.contains("**") && contains_any(one.text, {"arange", "linspace"});
    if (!makes) continue;
    return Finding{.code = "rope_scaling",
                   .severity = Severity::warning,
                   .expected = scaling_text(rope->scaling),
                   .found = "none",
                   .message =
                       "this code makes the frequencies of the base alone, and the model's "
                       "file scales them: what it rotates does not fit what the model did",
                   .cure =
                       "take the frequencies of the model itself (model.model.rotary_emb."
                       "inv_freq; mlx-lm: the layer's rope), or scale them as the file says",
                   .line = one.line};
  }
  return std::nullopt;
}

// A factor for positions that doubles them: scale = 1 / factor if … else 2.0.
std::optional<Finding> doubled_in_code(std::string_view code) {
  for (const Statement& one : statements_of(code))
    if (one.text.contains("scale") && one.text.contains("else 2.0") && one.text.contains("rope"))
      return Finding{.code = "positions_shifted",
                     .message =
                         "where nothing is linear the scale is 2.0, which multiplies every "
                         "position by 2: all angles are doubled, at any length",
                     .cure = "else 1.0",
                     .line = one.line};
  return std::nullopt;
}

// "model" of `model = AutoModelForCausalLM.from_pretrained(…)`; "": no model is loaded there.
std::string model_loaded_by(std::string_view statement) {
  const std::size_t call = statement.find(".from_pretrained("), sign = statement.find('=');
  if (call == statement.npos || sign == statement.npos || sign > call) return "";
  const std::string_view made_by = statement.substr(sign + 1, call - sign - 1);
  if (!contains_any(made_by, {"Model", "ForCausalLM", "ForConditionalGeneration"}) ||
      contains_any(made_by, {"Config", "Tokenizer", "Processor"}))
    return "";
  const std::string_view name = statement.substr(0, sign);
  return std::string(trimmed(name.substr(0, name.find(','))));
}

// model.config.rope_scaling = … behind from_pretrained: modules have read it by then.
std::optional<Finding> scaled_after_loading(std::string_view code) {
  if (!code.contains("from_pretrained(") || code.contains("mlx")) return std::nullopt;
  const std::vector<Statement> all = statements_of(code);
  // What is made of the changed configuration afterwards has it.
  std::size_t made_anew = 0;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (contains_any(all[n].text, {"from_config(", "config=", "save_pretrained(",
                                   "rotary_emb =", "rotary_emb=", "RotaryEmbedding("}))
      made_anew = n;
  std::string model;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (std::string loaded = model_loaded_by(all[n].text); !loaded.empty())
      model = std::move(loaded);
    if (model.empty() || n < made_anew) continue;
    for (const std::string_view key :
         {".config.rope_scaling", ".config.rope_parameters", ".config.rope_theta"}) {
      const std::string target = model + std::string(key);
      if (!all[n].text.starts_with(target)) continue;
      const std::string_view behind = trimmed(std::string_view(all[n].text).substr(target.size()));
      const bool sets = (behind.starts_with('=') && !behind.starts_with("==") &&
                         !trimmed(behind.substr(1)).starts_with("None")) ||
                        behind.starts_with('[');
      if (!sets) continue;
      return Finding{
          .code = "override_unread",
          .message = std::string(key.substr(1)) +
                     " is set on a model that is loaded: its frequencies were formed while it was "
                     "made, and go on without it",
          .cure =
              "config = AutoConfig.from_pretrained(…), set it there, and from_pretrained(…, "
              "config=config); or write it into config.json",
          .line = all[n].line};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> slip_in_code(std::string_view code, const Model* model) {
  if (auto late = scaled_after_loading(code)) return late;
  if (auto doubled = doubled_in_code(code)) return doubled;
  if (auto plain = unscaled_in_code(code, model)) return plain;
  // Buffers go with the model where its dtype is changed.
  const bool in_float = contains_any(
      code, {"inv_freq.float()", "inv_freq.to(torch.float32)", "inv_freq[None, :, None].float()"});
  if (code.contains("register_buffer(\"inv_freq\"") && code.contains(".type_as(self.inv_freq)") &&
      !in_float)
    return Finding{.code = "angles_rounded",
                   .severity = Severity::warning,
                   .found = "bfloat16",
                   .message =
                       "inv_freq is a buffer, so that model.to(torch.bfloat16) or .half() "
                       "rounds it, and cosines that are made later, beyond "
                       "max_position_embeddings, are made of rounded positions and "
                       "frequencies: angles are wrong by more the longer the text",
                   .cure =
                       "positions, inv_freq and their product in float32 (.float(), autocast "
                       "off); cos and sin alone may be rounded"};
  const std::size_t call = code.find("rotary_emb(");
  if (call != code.npos &&
      code.substr(call, code.substr(call).find('\n')).contains("seq_len=position_ids"))
    return Finding{.code = "transformers_mismatch",
                   .severity = Severity::warning,
                   .message = std::string(takes_positions_now),
                   .cure =
                       "cos, sin = rotary_emb(value_states, position_ids), and "
                       "apply_rotary_pos_emb(q, k, cos, sin); or the transformers that this "
                       "code was written for"};
  if (code.contains("view_as_complex") && code.contains("-1, 2)") && !rotates_neighbours(model))
    return Finding{.code = "pairing",
                   .severity = model ? Severity::warning : Severity::note,
                   .message =
                       "this code rotates neighbours (0, 1), as Meta's own weights want it; "
                       "Hugging Face's files of Llama have q and k permuted for halves "
                       "(0, d/2)",
                   .cure =
                       "Meta's weights (original/), or turn the permutation of q_proj and "
                       "k_proj back: posenc identify on q and k names the pairing"};
  return angles_rounded_in_code(code);
}

}  // namespace posenc::detail
