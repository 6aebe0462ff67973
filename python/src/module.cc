// The extension module posenc._posenc: the public headers as Python sees them. Nothing is computed here.
#include "errors.h"

#include <exception>

#include "bindings.h"
#include "posenc/c.h"

namespace posenc::python {
namespace {

// posenc.Error is Python's own class, so that it pickles and subclasses as any other.
void raise(const Error& error) {
  const nb::object type = nb::module_::import_("posenc.errors").attr("Error");
  const nb::object raised = type(text(error.message()), text(error.where), text(error.rule),
                                 text(error.got), text(error.cure));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Refused& refused) {
      raise(refused.error);
    }
  });
}

}  // namespace posenc::python

NB_MODULE(_posenc, m) {
  using namespace posenc::python;
  m.doc() = "What posenc's public headers declare; use it through the package posenc.";
  m.attr("__version__") = posenc_version();
  bind_errors(m);
  bind_schemes(m);
  bind_positions(m);
  bind_plans(m);
  bind_attention(m);
  bind_cache(m);
  bind_models(m);
  bind_tools(m);
  bind_formulas(m);
  bind_files(m);
  bind_layouts(m);
}
