// In place of xla.cc where jaxlib, which carries XLA's headers, is not installed.
#include "backends/cuda/python/xla.h"

namespace posenc::cuda::python {

void bind_xla(nanobind::module_& m) { m.attr("xla_targets") = nanobind::dict(); }

}  // namespace posenc::cuda::python
