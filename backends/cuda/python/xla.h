#pragma once

#include <nanobind/nanobind.h>

namespace posenc::cuda::python {

// The module's xla_targets: capsules of handlers for JAX by platform; empty where the module was
// built without XLA's headers.
void bind_xla(nanobind::module_& m);

}  // namespace posenc::cuda::python
