// The command posenc, as a function of the process that Python began.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "cli/run.h"

namespace posenc::python {

void bind_command(nb::module_& m) {
  m.def(
      "run_command",
      [](std::vector<std::string> arguments) { return cli::run_program(std::move(arguments)); },
      nb::arg("arguments"), nb::call_guard<nb::gil_scoped_release>(),
      "Runs the command posenc with what stands behind its name, on this process's standard "
      "streams. Gives its exit code.");
}

}  // namespace posenc::python
