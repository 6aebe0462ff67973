// Two models whose weights somebody wants to average: whether they rotate alike.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "posenc/error.h"
#include "posenc/tools.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {
namespace {

// What of two rotations differs, "rope_theta 10000 against 1000000"; "": nothing.
std::string rotations_apart(const Rope& one, Rope other) {
  // Of a picture's axes text sees none.
  if (one.mrope_section.empty() != other.mrope_section.empty()) {
    other.mrope_section = one.mrope_section;
    other.mrope_interleaved = one.mrope_interleaved;
    other.pair_axes = one.pair_axes;
  }
  if (one == other) return "";
  std::string apart;
  const auto differ = [&](bool differs, const std::string& what) {
    if (differs) apart += (apart.empty() ? "" : ", ") + what;
  };
  differ(one.rope_theta != other.rope_theta,
         "rope_theta " + number_text(one.rope_theta) + " against " + number_text(other.rope_theta));
  differ(one.scaling != other.scaling,
         "scaling " + scaling_text(one.scaling) + " against " + scaling_text(other.scaling));
  differ(one.pairing != other.pairing, "the pairing of channels");
  return apart.empty() ? "the channels that rotate" : apart;
}

}  // namespace

Finding as_partners(const Model& one, const Model& other, bool exact) {
  const Rope *first = rope_of_text(one), *second = rope_of_text(other);
  Finding out{.code = "two_models", .severity = Severity::note};
  const std::string lengths = one.context > 0 && other.context > 0 && one.context != other.context
                                  ? "; max_position_embeddings (" + grouped(one.context) + ", " +
                                        grouped(other.context) +
                                        ") is a promise, and does not matter for it"
                                  : "";
  std::string apart = first && second   ? rotations_apart(*first, *second)
                      : first || second ? "one rotates, and the other does not"
                                        : "";
  const auto found = differences(one, other);
  const auto differs_in = [&](auto is_it) { return found && std::ranges::any_of(*found, is_it); };
  constexpr std::string_view sizes = "layers heads kv_heads two_models";
  // A tower that one of them lacks is left out of a merge.
  const auto of_tower = [](const Finding& each) { return each.stack && is_tower(*each.stack); };
  const bool tower_differs = differs_in(of_tower);
  const auto is_size = [&](const Finding& each) {
    return contains_word(sizes, each.code) && !of_tower(each) &&
           !(tower_differs && each.code == "two_models");
  };
  if (exact && differs_in(is_size)) {
    out.severity = Severity::warning;
    out.message = "layers or heads differ, so that weights of the two cannot be averaged" +
                  (apart.empty() ? "" : "; they rotate otherwise, too (" + apart + ")");
    return out;
  }
  // Where the first layers agree others may not.
  const bool elsewhere = differs_in([&](const Finding& each) {
    return each.severity != Severity::note && each.code != "context" && each.code != "mrope" &&
           !(each.stack && is_tower(*each.stack)) && !contains_word(sizes, each.code);
  });
  if (apart.empty() && !elsewhere) {
    out.message = (first ? "the two rotate alike" : "the two have their positions alike") +
                  std::string(", so that positions are in no merge's way") + lengths;
    return out;
  }
  if (apart.empty()) apart = "posenc diff of the two says in which layers";
  out.severity = Severity::warning;
  out.message = "poor partners of a merge: the two rotate otherwise (" + apart +
                "), and averaged rows of q and k fit neither" + lengths;
  out.cure =
      "two models that rotate alike; or q_proj and k_proj of one of the two, with its config.json";
  return out;
}

}  // namespace posenc::detail
