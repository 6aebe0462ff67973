// The verb of attention.h: arguments checked, then the loop that takes them.
#include "posenc/attention.h"

#include "src/attention/arguments.h"
#include "src/attention/fused.h"
#include "src/attention/reference.h"
#include "src/core/try.h"

namespace posenc {

Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                      const Tensor& log_sums) {
  POSENC_TRY(checked, detail::attend_arguments(rooms::attend, "attend", in, plan, out));
  POSENC_TRY(sums, detail::number_by_query("attend", "log_sums", log_sums, checked));
  checked.log_sums = sums;
#if POSENC_SIMD
  POSENC_CHECK(detail::check_reach(plan, checked));
  detail::attend_by_plan(checked, plan);
  return {};
#else
  return detail::attend_by_rows(checked, plan, {});
#endif
}

}  // namespace posenc
