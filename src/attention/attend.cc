// The verb of attention.h: arguments checked, then the loop that takes them.
#include "posenc/attention.h"
#include "src/attention/arguments.h"
#include "src/attention/fused.h"
#include "src/kernels/threads.h"

namespace posenc {

Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out) {
#if POSENC_SIMD
  const auto checked = detail::attend_arguments("attend", in, plan, out);
  if (!checked) return std::unexpected(checked.error());
  if (const auto job = detail::attend_job(*checked, plan, in.queries, in.keys, in.mask)) {
    const std::int64_t logits =
        checked->q.shape[0] * checked->q.shape[1] * checked->q.shape[2] * checked->k.shape[2];
    detail::share_out(
        job->size(), detail::thread_count(in.threads, logits),
        [&](std::int64_t first, std::int64_t last) { detail::attend_parts(*job, first, last); });
    return {};
  }
#endif
  return attend_reference(in, plan, out);
}

}  // namespace posenc
