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

// In the order of the members; empty: alike, numbers nearly so. `member` begins at the part. A part
// that one of two has alone is one difference, of "none" and "given".
std::vector<MemberDifference> member_differences(const Plan& a, const Plan& b);
std::vector<MemberDifference> member_differences(const Add& a, const Add& b);
std::vector<MemberDifference> member_differences(const Rotate& a, const Rotate& b);
std::vector<MemberDifference> member_differences(const Bias& a, const Bias& b);
std::vector<MemberDifference> member_differences(const Relative& a, const Relative& b);
std::vector<MemberDifference> member_differences(const Logits& a, const Logits& b);

// Of a member of a rotation and all below it: is_of("regions", "regions.window") is true.
bool is_of(std::string_view member, std::string_view path);

// "window 1024 against 2048, region[1].query.most 3 against none": the first few, and how many
// more.
std::string told(const std::vector<MemberDifference>& differences);

}  // namespace posenc::detail
