// Which members of two plans, or of one part of them, differ.
#pragma once

#include <string>
#include <vector>

#include "posenc/plan.h"

namespace posenc::detail {

// Alike but for how files keep numbers: float32 in a GGUF, or decimals.
bool nearly(double a, double b);
bool nearly(const std::vector<double>& a, const std::vector<double>& b);

struct MemberDifference {
  std::string member;           // "regions.region[1].query.most"; of a list the first number
  std::string expected, found;  // as text
};

// In the order of the members; empty: alike, numbers nearly so. `member` begins at the part: a
// Plan, or one of those in it. A part that one of two has alone is one difference, of "none" and
// "given".
template <class Part>
std::vector<MemberDifference> member_differences(const Part& a, const Part& b);

// Of a member and all below it: is_of("regions", "regions.window") is true.
bool is_of(std::string_view member, std::string_view path);

// "window 1024 against 2048, region[1].query.most 3 against none": the first few, and how many
// more.
std::string told(const std::vector<MemberDifference>& differences);

}  // namespace posenc::detail
