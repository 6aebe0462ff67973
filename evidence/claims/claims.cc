// The list of all claims, and how one is run.
#include "posenc/claims.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "evidence/claims/shorthand.h"

namespace posenc {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::right: return "true";
    case Verdict::sloppy: return "sloppy";
    case Verdict::wrong: return "wrong";
    case Verdict::measured: return "measured in small";
    case Verdict::unchecked: return "not checkable here";
  }
  return {};
}

std::span<const ClaimText> claim_texts() {
  static constexpr ClaimText texts[] = {
      {"S0", "absolute and relative families, sine waves, rotation matrices, RoPE; four figures",
       "Positional Embeddings in Transformers, with interactive playgrounds"},
      {"S1", "what an encoding should satisfy, and from translation to rotation",
       "Positional Encoding: what are positional encodings?"},
      {"S2", "why relative; learned vectors, RoPE, position interpolation, YaRN",
       "Position Embeddings, December 2025"},
      {"S3", "from binary counting to waves, heat maps, rotation matrices, RoFormer's results",
       "Positional Encoding Explained: A Deep Dive into Transformer PE, N. C. Paleti, July 2024"},
      {"S4", "every scheme side by side, costs, common bugs, questions and answers",
       "Positional Encoding: how a transformer learns that word order matters"}};
  return texts;
}

std::span<const Claim> all_claims() {
  static const std::vector<Claim> all = [] {
    std::vector<Claim> list;
    for (const auto& part :
         {detail::waves_claims(), detail::pattern_claims(), detail::table_claims(),
          detail::rotation_claims(), detail::distance_claims(), detail::attention_claims(),
          detail::padding_claims(), detail::scaling_claims(), detail::dynamic_claims(),
          detail::cost_claims(), detail::published_claims()})
      list.insert(list.end(), part.begin(), part.end());
    std::ranges::sort(list, {}, [](const Claim& c) { return std::pair{c.row, c.part}; });
    return list;
  }();
  return all;
}

Verified verify(const Claim& claim) {
  Verified result{.claim = &claim};
  if (!claim.check) {
    const bool measured = claim.verdict == Verdict::measured;
    result.finding.computed =
        measured ? std::string(claim.measured) : std::string(claim.correct) + ".";
    result.agrees = measured || claim.verdict == Verdict::unchecked;
    return result;
  }
  const auto start = std::chrono::steady_clock::now();
  Expected<Evidence> finding = claim.check();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!finding) {
    result.finding.computed = "The check failed: " + finding.error().message();
    return result;
  }
  result.finding = std::move(*finding);
  // A check that measures nothing supports nothing.
  result.agrees = !result.finding.measures.empty() &&
                  std::ranges::all_of(result.finding.measures, &Measure::agrees);
  return result;
}

std::string summary(std::span<const Verified> results) {
  std::map<Verdict, int> count;
  std::string disagreeing;
  for (const Verified& result : results) {
    ++count[result.claim->verdict];
    if (!result.agrees) disagreeing += (disagreeing.empty() ? "" : ", ") + result.claim->number();
  }
  std::string kinds;
  for (const auto& [verdict, n] : count)
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(n) + " " + std::string(name(verdict));
  return std::to_string(results.size()) + (results.size() == 1 ? " claim: " : " claims: ") + kinds +
         (disagreeing.empty() ? "; all computations agree with these verdicts"
                              : "; computations DISAGREE with the verdicts of " + disagreeing);
}

}  // namespace posenc
