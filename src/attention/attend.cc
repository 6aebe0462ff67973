// The verb of attention.h: arguments checked, then the loop that takes them.
#include "posenc/attention.h"
#include "src/attention/arguments.h"
#include "src/attention/fused.h"
#include "src/kernels/threads.h"

namespace posenc {

Expected<void> attend(const Tensor& q, const Tensor& k, const Tensor& v, const Plan& plan,
                      const Positions& queries, const Positions& keys, const Mask& mask,
                      const Tensor& out, [[maybe_unused]] Threads threads) {
#if POSENC_SIMD
  const auto in = detail::attend_arguments("attend", q, k, v, plan, queries, keys, out);
  if (!in) return std::unexpected(in.error());
  if (const auto job = detail::attend_job(*in, plan, queries, keys, mask)) {
    const std::int64_t logits = in->q.shape[0] * in->q.shape[1] * in->q.shape[2] * in->k.shape[2];
    detail::share_out(
        job->size(), detail::thread_count(threads, logits),
        [&](std::int64_t first, std::int64_t last) { detail::attend_parts(*job, first, last); });
    return {};
  }
#endif
  return attend_reference(q, k, v, plan, queries, keys, mask, out);
}

}  // namespace posenc
