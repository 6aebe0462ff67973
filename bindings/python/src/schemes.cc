// Schemes, scalings and content schemes as Python's values: made by name, with their fields as
// keywords. What there is, and what each has, comes from the library's lists.
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/explain.h"

namespace posenc::python {
namespace {

FieldValue field_value(nb::handle value) {
  if (value.is_none()) return std::monostate();
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (std::int64_t whole = 0; PyLong_Check(value.ptr()) && nb::try_cast(value, whole)) return whole;
  if (PyUnicode_Check(value.ptr())) return said(nb::borrow(value));
  // PyTorch's tensors are no sequences, and numpy's single numbers have axes too, none.
  const bool is_array = !nb::getattr(value, "ndim", nb::int_(0)).equal(nb::int_(0));
  if (PyFloat_Check(value.ptr()) || (!is_array && !PySequence_Check(value.ptr())))
    return nb::cast<double>(nb::float_(value));
  std::vector<double> list;
  const nb::object flat = is_array ? value.attr("ravel")() : nb::borrow(value);
  for (const nb::handle item : flat) list.push_back(nb::cast<double>(nb::float_(item)));
  return list;
}

nb::object of_field(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> nb::object {
        using T = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return nb::none();
        else if constexpr (std::is_same_v<T, std::string>)
          return text(held);
        else if constexpr (std::is_same_v<T, std::vector<double>>) {
          nb::list list;
          for (const double x : held) list.append(x);
          return list;
        } else
          return nb::cast(held);
      },
      value);
}

Scaling scaling_of(nb::handle given) {
  Value* value = nullptr;
  if (nb::try_cast(given, value) && std::holds_alternative<Scaling>(value->held))
    return std::get<Scaling>(value->held);
  if (!PyDict_Check(given.ptr()))
    throw nb::type_error(
        "Rope: scaling must be a scaling (posenc.Yarn(factor=4)) or a dict as a config.json has "
        "it");
  const nb::dict fields = nb::cast<nb::dict>(given);
  std::string type = "default";
  for (const char* const key : {"rope_type", "type"})
    if (fields.contains(key)) type = said(fields[key]);
  Scaling scaling = unwrap(make_scaling(type));
  for (const auto [key, field] : fields) {
    const std::string name = said(nb::borrow(key));
    if (name != "rope_type" && name != "type") unwrap(set_field(scaling, name, field_value(field)));
  }
  return scaling;
}

// An array that is one of a scheme's tables, which fields are not.
template <class T>
bool is_table(T& value, std::string_view name, nb::handle given) {
  if constexpr (std::is_same_v<T, Scaling>)
    return false;
  else {
    if (!PyObject_HasAttrString(given.ptr(), "shape")) return false;
    if (std::ranges::find(info(value).tables, name, &TableInfo::name) == info(value).tables.end())
      return false;
    const Array array = array_of(given, info(value).name, name, Access::read);
    return set_table(value, name, copied_table(array.tensor)).has_value();
  }
}

template <class T>
void set_fields(T& value, const nb::dict& fields) {
  if constexpr (std::is_same_v<T, Scheme>)
    if (Rope* const rope = std::get_if<Rope>(&value); rope && fields.contains("scaling"))
      rope->scaling = scaling_of(fields["scaling"]);
  std::deque<std::string> names;
  std::vector<FieldSetting> settings;
  for (const auto [key, field] : fields) {
    const std::string& name = names.emplace_back(said(nb::borrow(key)));
    if constexpr (std::is_same_v<T, Scheme>)
      if (name == "scaling" && std::holds_alternative<Rope>(value)) continue;
    if (!is_table(value, name, field)) settings.push_back({name, field_value(field)});
  }
  unwrap(posenc::set_fields(value, std::span<const FieldSetting>(settings)));
}

Value make(std::string_view kind, std::string_view name, const nb::dict& fields) {
  const auto made = [&](auto value) {
    set_fields(value, fields);
    return Value{std::move(value)};
  };
  if (kind == "scaling") return made(unwrap(make_scaling(name)));
  if (kind == "content") return made(unwrap(make_content_scheme(name)));
  return made(unwrap(make_scheme(name)));
}

nb::dict fields_of(const Value& value) {
  nb::dict fields;
  std::visit(
      [&](const auto& held) {
        for (const FieldSetting& setting : settings(held))
          fields[text(setting.name)] = of_field(setting.value);
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, Scheme>)
          if (const Rope* const rope = std::get_if<Rope>(&held))
            fields["scaling"] = nb::cast(Value{rope->scaling});
      },
      value.held);
  return fields;
}

nb::object table_of(const Value& value, std::string_view name) {
  nb::object found;
  const auto look = [&](const auto& scheme) {
    if constexpr (requires { scheme.tables(); })
      std::apply(
          [&](const auto&... field) {
            ((field.name == name ? void(found = table_array(scheme.*field.member)) : void()), ...);
          },
          scheme.tables());
  };
  if (const auto* const content = std::get_if<ContentScheme>(&value.held))
    std::visit(look, *content);
  if (const auto* const scheme = std::get_if<Scheme>(&value.held)) std::visit(look, *scheme);
  if (!found.is_valid()) refuse("table", "the scheme has no table of that name", name);
  return found;
}

const SchemeInfo& about(const Value& value) {
  return std::visit([](const auto& held) -> const SchemeInfo& { return info(held); }, value.held);
}

// "Rope" of posenc::Rope: what the value is called in C++, and so in Python.
template <class T>
constexpr std::string_view class_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

template <class... T>
void list(nb::list& to, std::string_view kind, const std::variant<T...>*) {
  (to.append(nb::make_tuple(text(class_name<T>()), text(kind), text(T::name))), ...);
}

}  // namespace

void bind_schemes(nb::module_& m) {
  nb::class_<Value>(
      m, "Value",
      "One word of the library's lists with its fields; posenc.Rope and its kin hold one.")
      .def_prop_ro("name", [](const Value& value) { return text(about(value).name); })
      .def_prop_ro("title", [](const Value& value) { return text(about(value).title); })
      .def_prop_ro("formula", [](const Value& value) { return text(about(value).formula); })
      .def_prop_ro("paper", [](const Value& value) { return text(about(value).paper); })
      .def_prop_ro(
          "reads",
          [](const Value& value) {
            const std::optional<Reads> reads = about(value).reads;
            return text(reads ? name(*reads) : "");
          },
          "What a scheme that reads the content weighs a key by: positions, gates or keys.")
      .def_prop_ro("tables",
                   [](const Value& value) {
                     nb::list names;
                     for (const TableInfo& table : about(value).tables)
                       names.append(text(table.name));
                     return names;
                   })
      .def_prop_ro("kind",
                   [](const Value& value) {
                     constexpr std::string_view kinds[] = {"scheme", "scaling", "content"};
                     return text(kinds[value.held.index()]);
                   })
      .def("replace",
           [](Value value, const nb::dict& fields) {
             std::visit([&](auto& held) { set_fields(held, fields); }, value.held);
             return value;
           })
      .def("fields", &fields_of, "Every field with its value, in the library's order.")
      .def("table", &table_of, nb::arg("name"),
           "A tensor of a scheme that reads the content, in float64; None where it was not given.")
      .def("same_as", [](const Value& a, const Value& b) {
        return std::visit(
            [](const auto& x, const auto& y) {
              if constexpr (std::is_same_v<decltype(x), decltype(y)>) {
                if constexpr (requires { x == y; }) return x == y;
              }
              return false;
            },
            a.held, b.held);
      });
  m.def("make_value", &make, nb::arg("kind"), nb::arg("name"), nb::arg("fields"));
  m.def(
      "value_classes",
      [] {
        nb::list all;
        list(all, "scheme", static_cast<const Scheme*>(nullptr));
        list(all, "scaling", static_cast<const Scaling*>(nullptr));
        list(all, "content", static_cast<const ContentScheme*>(nullptr));
        return all;
      },
      "(class, kind, name) of every word of the lists.");
  m.def("schemes_json", &scheme_list_to_json);
}

}  // namespace posenc::python
