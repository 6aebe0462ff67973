// What a simulated machine does in place of computing: it takes as long. The linker's --wrap puts
// these functions where the program calls attend() and asks for memory, so that what is simulated
// is the program itself.
#include <simgrid/host.h>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <set>
#include <vector>

#include "posenc/attention.h"

namespace posenc {
namespace {

// Pairs of a query and a key that it sees, for what the benchmark asks: causal text of one axis,
// with a window or none.
std::int64_t pairs_of(const AttentionInputs& in) {
  std::vector<std::int64_t> keys;
  keys.reserve(static_cast<std::size_t>(in.keys.size()));
  for (std::int64_t j = 0; j < in.keys.size(); ++j) keys.push_back(in.keys.at(j));
  std::ranges::sort(keys);
  const auto up_to = [&](std::int64_t position) {
    return std::ranges::upper_bound(keys, position) - keys.begin();
  };
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < in.queries.size(); ++i) {
    const std::int64_t position = in.queries.at(i), window = in.mask.window;
    pairs += up_to(position) - (window > 0 ? up_to(position - window) : 0);
  }
  return pairs;
}

// As long as reading and writing so many bytes takes, if the platform says how fast that is
// ("memory", bytes a second).
void take_time_of_memory(double bytes) {
  const sg_host_t machine = sg_host_self();
  const char* const said = sg_host_get_property_value(machine, "memory");
  if (said != nullptr)
    smpi_execute_flops(bytes / std::strtod(said, nullptr) * sg_host_get_speed(machine));
}

Expected<void> take_time(const AttentionInputs& in, const Tensor& out, const Tensor& log_sums) {
  if (!in.mask.causal || in.mask.chunk > 0 || in.mask.prefix > 0 || in.mask.keep != nullptr ||
      in.mask.blocks != nullptr || in.queries.axes() != 1)
    return fail("simulated attend", "counts the pairs of causal text, with a window or none",
                "another mask", "run it on machines that are there");
  const auto heads = static_cast<double>(in.q.shape[0] * in.q.shape[1]),
             widths = static_cast<double>(in.q.shape[3] + in.v.shape[3]);
  smpi_execute_flops(2 * widths * heads * static_cast<double>(pairs_of(in)));
  if (!log_sums) return {};
  // Merged with the sum so far: two are read, one is written. −∞ says that nothing is there to
  // merge.
  take_time_of_memory(3 * 4 * static_cast<double>(out.size()));
  for (std::int64_t n = 0; n < log_sums.size(); ++n)
    log_sums.set(n, -std::numeric_limits<double>::infinity());
  return {};
}

// Tensors of all ranks together fit no machine. What they hold tells nothing here, so that all of
// them share a mebibyte.
constexpr std::size_t large = std::size_t{1} << 20;
std::set<void*>& tensors() {
  static auto* const all = new std::set<void*>;
  return *all;
}

}  // namespace
}  // namespace posenc

// --- What the linker puts in place ---------------------------------------------------------------

#define POSENC_ATTEND "_ZN6posenc6attendERKNS_15AttentionInputsERKNS_4PlanERKNS_6TensorES8_"

namespace posenc {

Expected<void> real_attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                           const Tensor& log_sums) asm("__real_" POSENC_ATTEND);
Expected<void> simulated_attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                const Tensor& log_sums) asm("__wrap_" POSENC_ATTEND);

Expected<void> simulated_attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                const Tensor& log_sums) {
  // A call without queries checks its arguments.
  return in.q.shape[2] == 0 ? real_attend(in, plan, out, log_sums) : take_time(in, out, log_sums);
}

}  // namespace posenc

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): so the linker's --wrap names them.
void* __real__Znwm(std::size_t bytes);
void __real__ZdlPv(void* memory);

void* __wrap__Znwm(std::size_t bytes) {
  if (bytes < posenc::large) return __real__Znwm(bytes);
  // Set to zero, then filled from elsewhere.
  posenc::take_time_of_memory(3 * static_cast<double>(bytes));
  void* const memory = SMPI_SHARED_MALLOC(bytes);
  posenc::tensors().insert(memory);
  return memory;
}
void __wrap__ZdlPv(void* memory) {
  posenc::tensors().erase(memory) == 1 ? SMPI_SHARED_FREE(memory) : __real__ZdlPv(memory);
}
void __wrap__ZdlPvm(void* memory, std::size_t) { __wrap__ZdlPv(memory); }
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
