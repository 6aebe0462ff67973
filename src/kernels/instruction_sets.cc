// What Highway was built for, as a list, and a choice of its own for tests.
#include "src/kernels/instruction_sets.h"

#if POSENC_SIMD
#include "hwy/highway.h"
#endif

namespace posenc::detail {

#if !POSENC_SIMD

std::vector<InstructionSet> instruction_sets() { return {{"plain", 0}}; }

void use_instruction_set(std::int64_t) {}

// With one set alone nothing is chosen, and Highway is headers only.
#elif (HWY_TARGETS & (HWY_TARGETS - 1)) == 0

std::vector<InstructionSet> instruction_sets() {
  return {{hwy::TargetName(HWY_STATIC_TARGET), HWY_STATIC_TARGET}};
}

void use_instruction_set(std::int64_t) {}

#else

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const std::int64_t bit : hwy::SupportedAndGeneratedTargets()) {
    sets.push_back({hwy::TargetName(bit), bit});
  }
  return sets;
}

void use_instruction_set(std::int64_t bit) {
  hwy::SetSupportedTargetsForTest(bit);
  hwy::GetChosenTarget().DeInit();
}

#endif

}  // namespace posenc::detail
