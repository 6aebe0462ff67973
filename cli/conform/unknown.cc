#include "cli/conform/unknown.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/identify.h"

namespace posenc::cli::conform {
namespace {

using nlohmann::json;

// [token][head][channel] as a view with the heads in front.
Tensor heads_first(std::vector<double>& values, const json& like) {
  const auto tokens = static_cast<std::int64_t>(like.size());
  const auto heads = static_cast<std::int64_t>(like[0].size());
  const auto dim = static_cast<std::int64_t>(like[0][0].size());
  return Tensor::dense(values.data(), {tokens, heads, dim}).swapped(0, 1);
}

}  // namespace

std::string said_of_unknown(const std::string& operation, const VectorTest& test,
                            const Answer& answer) {
  const auto got = answer.output.find("q");
  if ((operation != "rotate" && operation != "model") || got == answer.output.end()) return "";
  const json& q = test.input["q"];
  std::optional<std::vector<double>> before = numbers(q);
  std::vector<double> after = got->second;
  const std::optional<std::vector<double>> at = numbers(test.input["positions"]);
  if (!before || !at || after.size() != before->size() || at->size() != q.size()) return "";
  std::vector<std::int64_t> ids;
  for (const double position : *at) ids.push_back(static_cast<std::int64_t>(position));
  const auto positions = Positions::ids(ids);
  if (!positions) return "";
  const auto found = identify(
      {.after = heads_first(after, q), .before = heads_first(*before, q), .positions = *positions});
  if (!found) return "";
  if (found->verdict != Rotated::rotation) return fmt::format("identify: {}", name(found->verdict));
  std::string text = fmt::format("identify: pairs of {}, channels {} to {}",
                                 found->pairing == Pairing::halves ? "halves" : "neighbours",
                                 found->first_dim, found->first_dim + found->rotary_dim - 1);
  if (found->sign < 0) text += ", backwards";
  if (found->offset && *found->offset != 0) text += fmt::format(", positions + {}", *found->offset);
  if (found->amplitude) text += fmt::format(", factor {:.4g}", *found->amplitude);
  if (found->frequencies) text += fmt::format(", base {:.6g}", found->frequencies->base);
  return text;
}

}  // namespace posenc::cli::conform
