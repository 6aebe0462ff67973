// Layers of one dump that rotate alike.
#include <algorithm>
#include <cmath>
#include <functional>

#include "posenc/identify.h"

namespace posenc {
namespace {

// Frequencies are compared where both dumps show them; a slow pair may be seen in one alone.
bool same_pairs(const Identified& a, const Identified& b) {
  for (const IdentifiedPair& x : a.pairs) {
    const auto y = std::ranges::find_if(
        b.pairs, [&](const IdentifiedPair& pair) { return pair.a == x.a && pair.b == x.b; });
    if (y == b.pairs.end()) continue;
    const double off = std::abs(x.frequency - y->frequency);
    const double rounding = 1e-6 * std::abs(x.frequency);
    if (off > 5 * (x.resolution + y->resolution) + rounding) return false;
  }
  return true;
}

bool rotate_alike(const Identified& a, const Identified& b) {
  if (a.verdict != b.verdict ||
      !std::ranges::equal(a.findings, b.findings, {}, &Finding::code, &Finding::code))
    return false;
  if (a.verdict != Rotated::rotation) return true;
  constexpr double same_amplitude = 0.01;
  return a.pairing == b.pairing && a.first_dim == b.first_dim && a.sign == b.sign &&
         (!a.offset || !b.offset || a.offset == b.offset) &&
         (!a.amplitude || !b.amplitude || std::abs(*a.amplitude - *b.amplitude) < same_amplitude) &&
         same_pairs(a, b);
}

}  // namespace

std::vector<std::vector<std::size_t>> alike(std::span<const IdentifiedLayer> layers) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto group = std::ranges::find_if(groups, [&](const auto& each) {
      return rotate_alike(layers[each.front()].found, layers[i].found);
    });
    if (group == groups.end())
      groups.push_back({i});
    else
      group->push_back(i);
  }
  std::ranges::stable_sort(groups, std::greater{}, [](const auto& group) { return group.size(); });
  return groups;
}

}  // namespace posenc
