// The extension module posenc._posenc: the public headers as Python sees them. Nothing is computed
// here.
#include "bindings.h"
#include "errors.h"
#include "posenc/c.h"

NB_MODULE(_posenc, m) {
  using namespace posenc::python;
  m.doc() = "What posenc's public headers declare; use it through the package posenc.";
  m.attr("__version__") = posenc_version();
  // What typing and torch list until the interpreter ends keeps modules alive, which is no leak.
  posenc::python::nb::set_leak_warnings(false);
  bind_errors(m);
  bind_schemes(m);
  bind_positions(m);
  bind_plans(m);
  bind_attention(m);
  bind_cache(m);
  bind_models(m);
  bind_tools(m);
  bind_formulas(m);
  bind_content_angles(m);
  bind_convolution(m);
  bind_files(m);
  bind_layouts(m);
  bind_resample(m);
  bind_command(m);
  bind_rekey(m);
}
