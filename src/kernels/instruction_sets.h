// The instruction sets that kernels are built for and this machine has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace posenc::detail {

struct InstructionSet {
  std::string_view name;  // "AVX2"
  std::int64_t bit = 0;
};

// The best first. Without SIMD one that stands for the plain loops.
std::vector<InstructionSet> instruction_sets();

// From now on kernels use this one; bit 0: the best. For tests and measurements, while no kernel is
// at work.
void use_instruction_set(std::int64_t bit);

}  // namespace posenc::detail
