// What each file of this room adds to the module, and the classes that several of them know.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/content.h"
#include "posenc/model.h"
#include "posenc/schemes.h"

namespace posenc::python {

namespace nb = nanobind;

void bind_schemes(nb::module_& m);
void bind_positions(nb::module_& m);
void bind_plans(nb::module_& m);
void bind_attention(nb::module_& m);
void bind_cache(nb::module_& m);
void bind_models(nb::module_& m);
void bind_tools(nb::module_& m);
void bind_formulas(nb::module_& m);
void bind_content_angles(nb::module_& m);
void bind_convolution(nb::module_& m);
void bind_files(nb::module_& m);
void bind_layouts(nb::module_& m);
void bind_command(nb::module_& m);
void bind_resample(nb::module_& m);
void bind_rekey(nb::module_& m);

// Any word of the three lists: Python's Rope, Yarn and Fire each hold one.
struct Value {
  std::variant<Scheme, Scaling, ContentScheme> held;
};

// A plan, and the geometry and arithmetic that it was compiled with.
struct CompiledPlan {
  Plan plan;
  Geometry geometry;
};

// A model, and what the command would be given to read it again: a path or name, or a file's text.
struct ReadModel {
  Model model;
  std::string source, contents;
};

// Of its plan, or an error that begins with `where`.
const Rotate& rotation(const CompiledPlan& plan, std::string_view where);

// The methods that take arrays, and those of them that take angles.
void bind_verbs(nb::class_<CompiledPlan>& plan);
void bind_angles(nb::class_<CompiledPlan>& plan);

Angles angles_of(std::string_view name);
Side side_of(std::string_view name);

// A learned table's numbers, copied: Python's arrays come and go.
Table copied_table(const Tensor& values);
// And back, in float64; None for one that was not given.
nb::object table_array(const Table& table);

// Numbers as numpy's array of that shape; where there is no numpy, as array('d').
nb::object numbers(const std::vector<double>& values, const std::vector<std::int64_t>& shape);
nb::object numbers(const std::vector<std::uint64_t>& values,
                   const std::vector<std::int64_t>& shape);

}  // namespace posenc::python
