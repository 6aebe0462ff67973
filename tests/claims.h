// Claims verified once a process, for all tests of it.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "posenc/claims.h"

namespace posenc::test {

inline double verifying_seconds = 0;  // of the processor: a busy machine slows the wall clock alone

inline const Verified& verified(const Claim& claim) {
  static std::map<std::string, Verified> known;
  const auto found = known.find(claim.number());
  if (found != known.end()) return found->second;
  const std::clock_t began = std::clock();
  const Verified& result = known.emplace(claim.number(), verify(claim)).first->second;
  verifying_seconds += static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  return result;
}
inline std::vector<Verified> all_verified() {
  std::vector<Verified> all;
  for (const Claim& claim : all_claims()) all.push_back(verified(claim));
  return all;
}

}  // namespace posenc::test
