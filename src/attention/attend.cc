// The verb of attention.h: arguments checked, then the loop that takes them.
#include "posenc/attention.h"

#include "src/attention/arguments.h"
#include "src/attention/fused.h"
#include "src/core/try.h"

namespace posenc {

Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out) {
#if POSENC_SIMD
  POSENC_TRY(checked, detail::attend_arguments("attend", in, plan, out));
  POSENC_CHECK(detail::check_reach(plan, checked));
  detail::attend_by_plan(checked, plan);
  return {};
#else
  return attend_reference(in, plan, out);
#endif
}

}  // namespace posenc
