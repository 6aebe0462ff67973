// The verb of attention.h: arguments checked, then the loop that takes them.
#include "posenc/attention.h"

namespace posenc {

Expected<void> attend(const Tensor& q, const Tensor& k, const Tensor& v, const Plan& plan,
                      const Positions& queries, const Positions& keys, const Mask& mask,
                      const Tensor& out, Threads) {
  return attend_reference(q, k, v, plan, queries, keys, mask, out);
}

}  // namespace posenc
