#include "cli/pages/identify_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace posenc::cli {
namespace {

std::string fit_text(const FrequencyFit& fit) {
  std::string text = fmt::format("base {}", number_text(fit.base));
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

}  // namespace

std::string identified_page(const Identified& found, const Terminal& term) {
  std::string out = term.bold(name(found.verdict)) + "\n";
  const auto line = [&](std::string_view label, const std::string& text) {
    out += "  " + term.blue(padded(label, 12)) + wrapped(text, 14, 14) + "\n";
  };
  if (found.verdict == Rotated::rotation) {
    const bool halves = found.pairing == Pairing::halves;
    line("pairing",
         fmt::format("{}: channels ({}, {}), ({}, {}), …", name(found.pairing), found.first_dim,
                     found.first_dim + (halves ? found.rotary_dim / 2 : 1),
                     found.first_dim + (halves ? 1 : 2),
                     found.first_dim + (halves ? found.rotary_dim / 2 + 1 : 3)));
    line("channels", fmt::format("{} from {} on", found.rotary_dim, found.first_dim));
    if (found.frequencies) line("frequencies", fit_text(*found.frequencies));
    if (found.runner_up)
      line("next best",
           fmt::format("{}; off by {:.2g} times what the dump resolves, the first by {:.2g}",
                       fit_text(*found.runner_up), found.runner_up->misfit,
                       found.frequencies->misfit));
    if (found.amplitude) line("amplitude", fmt::format("×{:.6g}", *found.amplitude));
    if (found.offset && *found.offset != 0)
      line("offset",
           fmt::format("{:+}: positions are counted from there; harmless unless keys of another "
                       "count are cached beside them",
                       *found.offset));
    if (found.sign < 0) line("sign", "rotated backwards");
  }
  if (found.verdict != Rotated::no_rotation && found.residual > 0)
    line("residual", fmt::format("{:.1e} of what changed", found.residual));
  for (const std::string& sentence : found.cannot_tell) line("not seen", sentence);
  return out;
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
