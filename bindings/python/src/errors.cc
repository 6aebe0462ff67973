// posenc.Error is raised for what the library refuses.
#include "errors.h"

#include <exception>

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
