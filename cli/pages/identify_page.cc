#include "cli/pages/identify_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/pages/findings_page.h"

namespace posenc::cli {
namespace {

std::string fit_text(const FrequencyFit& fit) {
  std::string text = fmt::format("base {}", number_text(fit.base));
  if (fit.kept != DType::f64) text += fmt::format(", rounded to {}", name(fit.kept));
  if (std::holds_alternative<Unscaled>(fit.scaling)) return text + ", no scaling";
  text += fmt::format(", scaling {}", info(fit.scaling).name);
  for (const FieldSetting& setting : settings(fit.scaling)) {
    if (const auto* x = std::get_if<double>(&setting.value))
      text += fmt::format(" {} {}", setting.name, number_text(*x));
    if (const auto* i = std::get_if<std::int64_t>(&setting.value))
      text += fmt::format(" {} {}", setting.name, *i);
  }
  return text;
}

std::string forms_text(const std::vector<std::string>& forms) {
  if (forms.size() > 1 && forms.front() == "exact") return "exact, or in float: they agree so far";
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"exact", "exact"},
      {"hf_float", "a float product (Hugging Face)"},
      {"float_product", "a float product of frequencies rounded once"},
      {"ggml_float", "float, pair after pair (ggml)"},
      {"bfloat16_frequencies", "frequencies in bfloat16"},
      {"float16_frequencies", "frequencies in float16"},
      {"bfloat16_positions", "positions in bfloat16: beyond 256 some are one"},
      {"float16_positions", "positions in float16: beyond 2,048 some are one"},
      {"bfloat16_products", "products of position and frequency in bfloat16"},
      {"float16_products", "products of position and frequency in float16"},
      {"bfloat16", "all of it in bfloat16"},
      {"float16", "all of it in float16"},
      {"tf32", "a product in TF32: beyond 2,048 some positions are one"}};
  std::string text;
  for (const auto& [form, word] : words)
    if (std::ranges::find(forms, form) != forms.end())
      text += (text.empty() ? "" : ", or ") + std::string(word);
  return text;
}

// "k_0, k_1 … k_29".
std::string names_of(std::span<const IdentifiedLayer> layers,
                     const std::vector<std::size_t>& group) {
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group.size() > most && i == most - 1) {
      out += " … " + layers[group.back()].name;
      break;
    }
    out += (i == 0 ? "" : ", ") + layers[group[i]].name;
  }
  return out;
}

// Lines of a label and a text.
class Lines {
 public:
  Lines(std::string_view title, const Terminal& term)
      : text(term.bold(title) + "\n"), term_(term) {}
  void line(std::string_view label, const std::string& sentence) {
    text += "  " + term_.blue(padded(label, 12)) + wrapped(sentence, 14, 14) + "\n";
  }
  void unseen(const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) line("not seen", sentence);
  }
  // What made the angles, whatever kind of dump shows them.
  void frequencies(const Identified& found) {
    if (found.frequencies) line("frequencies", fit_text(*found.frequencies));
    if (found.runner_up) next_best(*found.runner_up, found.frequencies->misfit);
    if (!found.angles.empty()) line("angles", forms_text(found.angles));
    if (found.amplitude) line("amplitude", fmt::format("×{:.6g}", *found.amplitude));
    if (found.sign < 0) line("sign", "rotated backwards");
  }

  std::string text;

 private:
  // What is ruled out says nothing to whoever asks what an engine did.
  void next_best(const FrequencyFit& fit, double first) {
    constexpr double possible = 3;  // times the rounding
    if (fit.misfit <= possible)
      line("next best",
           fmt::format("{}; possible too: {:.2g} times the dump's rounding off, the first {:.2g}",
                       fit_text(fit), fit.misfit, first));
  }

  const Terminal& term_;
};

}  // namespace

std::string identified_page(const Identified& found, const Terminal& term) {
  Lines page(name(found.verdict), term);
  if (found.verdict == Rotated::rotation) {
    const bool halves = found.pairing == Pairing::halves;
    page.line("pairing",
              fmt::format("{}: channels ({}, {}), ({}, {}), …", name(found.pairing),
                          found.first_dim, found.first_dim + (halves ? found.rotary_dim / 2 : 1),
                          found.first_dim + (halves ? 1 : 2),
                          found.first_dim + (halves ? found.rotary_dim / 2 + 1 : 3)));
    page.line("channels",
              fmt::format("{} from {} on{}", found.rotary_dim, found.first_dim,
                          found.blocks > 1 ? fmt::format(", in {} blocks", found.blocks) : ""));
    if (found.axis_layout != AxisLayout::one)
      page.line("axes",
                fmt::format("{}: {} pairs of each as far as they turn{}", name(found.axis_layout),
                            fmt::join(found.axis_pairs, ", "),
                            found.axes_restart ? "; frequencies begin anew with each" : ""));
    page.frequencies(found);
    if (found.offset && *found.offset != 0)
      page.line("offset",
                fmt::format("{:+}: positions are counted from there; harmless unless keys of "
                            "another count are cached beside them",
                            *found.offset));
  }
  if (found.verdict != Rotated::no_rotation && found.residual > 0)
    page.line("residual", fmt::format("{:.1e} of what changed", found.residual));
  page.unseen(found.cannot_tell);
  if (!found.findings.empty()) page.text += "\n" + findings_page(found.findings, term, "");
  return page.text;
}

std::string identified_page(const IdentifiedTable& table, const Terminal& term) {
  const Identified& found = table.rotation;
  const bool rotates = found.verdict == Rotated::rotation;
  Lines page(rotates ? "table of cosines and sines" : "no table of cosines and sines", term);
  if (rotates) {
    page.line("columns", table.columns == TableColumns::pairs
                             ? "one for each pair"
                             : fmt::format("two for each pair, {}", name(table.columns)));
    if (table.exchanged) page.line("exchanged", "--cos holds the sines, and --sin the cosines");
    page.frequencies(found);
    page.line("first row",
              found.offset ? fmt::format("position {}", *found.offset) : "of no whole position");
    page.line("kept in", std::string(name(table.kept)));
  }
  page.unseen(found.cannot_tell);
  if (!found.findings.empty()) page.text += "\n" + findings_page(found.findings, term, "");
  return page.text;
}

std::string identified_page(const IdentifiedVectors& vectors, const Terminal& term) {
  Lines page(vectors.sinusoidal ? "sinusoidal vectors" : "no sinusoidal vectors", term);
  if (vectors.sinusoidal) {
    page.line("layout", fmt::format("{}, {} first", name(vectors.layout),
                                    vectors.cosine_first ? "cosines" : "sines"));
    page.line("frequencies",
              fmt::format("base {}, {}", number_text(vectors.base),
                          vectors.spacing == WaveSpacing::ends
                              ? "spacing ends: base^(−r/(d/2 − 1)), as Whisper has it"
                              : "spacing width: base^(−2r/d)"));
    if (vectors.scale != 1) page.line("scale", fmt::format("×{:.6g}", vectors.scale));
    page.line("first row", fmt::format("position {}", *vectors.offset));
  } else {
    page.line("learned", "no channels turn together: learned, or of a kind that is not known");
  }
  if (!vectors.zero_rows.empty())
    page.line("zero rows", fmt::format("{}, as of padding", fmt::join(vectors.zero_rows, ", ")));
  page.line("kept in", std::string(name(vectors.kept)));
  page.unseen(vectors.cannot_tell);
  return page.text;
}

std::string identified_page(std::span<const IdentifiedLayer> layers, const Terminal& term) {
  const std::vector<std::vector<std::size_t>> groups = alike(layers);
  std::string out;
  for (const std::vector<std::size_t>& group : groups) {
    const std::string& first = layers[group.front()].name;
    std::string names = first;
    if (group.size() > 1)
      names = std::to_string(group.size()) + " layers: " + names_of(layers, group);
    out += (out.empty() ? "" : "\n") + term.blue(wrapped(names, 2, 0)) + "\n" +
           identified_page(layers[group.front()].found, term);
  }
  if (groups.size() < 2) return out;
  std::vector<std::size_t> others;
  for (const std::vector<std::size_t>& group : groups)
    if (&group != &groups.front()) others.insert(others.end(), group.begin(), group.end());
  std::ranges::sort(others);
  out +=
      "\n" +
      wrapped("not all rotate alike: " + names_of(layers, others) + " differ from the rest", 2, 0) +
      "\n";
  return out;
}

}  // namespace posenc::cli
