// The C interface: errors, lists, models, plans. These files alone have no unwind tables: an
// exception from below (memory that ran out) ends the process here instead of passing through to
// the caller.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/c/handles.h"

namespace posenc::c {
namespace {

// Room for the longest message that fail() makes, and for its parts. Plain bytes: no constructor,
// no allocation, no order of destruction when a thread or a shared library ends.
thread_local char last_error[4096];
thread_local char last_parts[4][1024];

template <std::size_t room>
void keep(std::string_view text, char (&into)[room]) {
  const std::size_t size = std::min(text.size(), room - 1);
  std::ranges::copy(text.substr(0, size), into);
  into[size] = '\0';
}

posenc_status keep(const Error& error, posenc_status status) {
  keep(error.message(), last_error);
  keep(error.where, last_parts[POSENC_ERROR_WHERE]);
  keep(error.rule, last_parts[POSENC_ERROR_RULE]);
  keep(error.got, last_parts[POSENC_ERROR_GOT]);
  keep(error.cure, last_parts[POSENC_ERROR_CURE]);
  return status;
}

}  // namespace

posenc_status refused(const Error& error) { return keep(error, POSENC_REFUSED); }

posenc_status misuse(std::string_view function, std::string_view rule, std::string_view got,
                     std::string_view cure) {
  return keep(fail(function, rule, got, cure).error(), POSENC_MISUSE);
}

posenc_status need(std::string_view function, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments)
    if (!argument.pointer)
      return misuse(function, std::string(argument.name) + " must be given", "NULL");
  return POSENC_OK;
}

posenc_status hand_out(std::string_view text, char** out) {
  // malloc and not new[]: a caller's own tools know what it is.
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) std::abort();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  *out = copy;
  return POSENC_OK;
}

namespace {

bool known(posenc_angles angles) { return POSENC_EXACT <= angles && angles <= POSENC_GGML_FLOAT; }

Expected<Geometry> geometry_of(const posenc_geometry& c) {
  if (c.struct_size != sizeof c)
    return fail("posenc_plan_from_scheme",
                "geometry.struct_size must be " + std::to_string(sizeof c),
                std::to_string(c.struct_size), "set it to sizeof(posenc_geometry)");
  if (!known(c.angles))
    return fail("posenc_plan_from_scheme", "geometry.angles must be one of posenc_angles",
                std::to_string(c.angles));
  return Geometry{.width = c.width,
                  .heads = c.heads,
                  .kv_heads = c.kv_heads,
                  .head_dim = c.head_dim,
                  .length = c.length,
                  .grid_height = c.grid_height,
                  .grid_width = c.grid_width};
}

}  // namespace
}  // namespace posenc::c

using namespace posenc;
using c::hand_out, c::misuse, c::need, c::refused;

const char* posenc_last_error(void) noexcept { return c::last_error; }

const char* posenc_last_error_part(posenc_error_part part) noexcept {
  return 0 <= part && part <= POSENC_ERROR_CURE ? c::last_parts[part] : "";
}

const char* posenc_version(void) noexcept { return POSENC_VERSION; }

void posenc_string_free(char* text) noexcept { std::free(text); }

// --- what there is -------------------------------------------------------------------------------

posenc_status posenc_schemes_json(char** json) noexcept {
  if (const auto bad = need("posenc_schemes_json", {{"json", json}})) return bad;
  return hand_out(schemes_to_json(), json);
}

posenc_status posenc_models_json(char** json) noexcept {
  if (const auto bad = need("posenc_models_json", {{"json", json}})) return bad;
  return hand_out(models_to_json(bundled_models()), json);
}

posenc_status posenc_normals(uint64_t seed, int64_t first, int64_t count, double* out) noexcept {
  constexpr std::string_view where = "posenc_normals";
  if (const auto bad = need(where, {{"out", out}})) return bad;
  if (count < 0) return misuse(where, "count must not be negative", std::to_string(count));
  std::ranges::copy(normals(seed, count, first), out);
  return POSENC_OK;
}

// --- models --------------------------------------------------------------------------------------

posenc_status posenc_model_open(const char* path_or_name, posenc_model** out) noexcept {
  if (const auto bad = need("posenc_model_open", "out", out, {{"path_or_name", path_or_name}}))
    return bad;
  return hand_out(read_model(path_or_name), out);
}

posenc_status posenc_model_read(const void* bytes, size_t size, const char* name,
                                posenc_model** out) noexcept {
  if (const auto bad = need("posenc_model_read", "out", out)) return bad;
  if (size > 0)
    if (const auto bad = need("posenc_model_read", {{"bytes", bytes}})) return bad;
  return hand_out(
      read_model_bytes({static_cast<const std::byte*>(bytes), size}, name ? name : "model"), out);
}

void posenc_model_free(posenc_model* model) noexcept { delete model; }

posenc_status posenc_model_explain_json(const posenc_model* model, int64_t at, int64_t layer,
                                        char** json) noexcept {
  constexpr std::string_view where = "posenc_model_explain_json";
  if (const auto bad = need(where, "json", json, {{"model", model}})) return bad;
  if (at < 0) return misuse(where, "at must be a length, or 0", std::to_string(at));
  if (layer < -1) return misuse(where, "layer must be a layer, or -1", std::to_string(layer));
  Ask ask{.at = at, .layer = {}};
  if (layer >= 0) ask.layer = layer;
  return c::hand_out_json(explain(model->value, ask), json);
}

posenc_status posenc_model_group_count(const posenc_model* model, int64_t* count) noexcept {
  if (const auto bad = need("posenc_model_group_count", {{"model", model}, {"count", count}}))
    return bad;
  *count = static_cast<std::int64_t>(model->value.groups.size());
  return POSENC_OK;
}

posenc_status posenc_model_find_group(const posenc_model* model, const char* stack, int64_t layer,
                                      int64_t* group) noexcept {
  constexpr std::string_view where = "posenc_model_find_group";
  if (const auto bad = need(where, {{"model", model}, {"stack", stack}, {"group", group}}))
    return bad;
  for (const Stack each :
       {Stack::text, Stack::encoder, Stack::decoder, Stack::vision, Stack::audio}) {
    if (name(each) != stack) continue;
    const LayerGroup* found = find_group(model->value, layer, each);
    if (!found)
      return refused(fail(where, "the model has no such layer in its " + std::string(stack),
                          std::to_string(layer))
                         .error());
    *group = found - model->value.groups.data();
    return POSENC_OK;
  }
  return misuse(where, "stack must be text, encoder, decoder or vision", stack);
}

namespace {

// What is the same of every plan of a group; `group_of` chooses whose it is.
template <class GroupOf>
posenc_status plan_of_group(std::string_view where, const posenc_model* model, int64_t group,
                            int64_t length, posenc_angles angles, posenc_plan** out,
                            const GroupOf& group_of) {
  if (const auto bad = need(where, "out", out, {{"model", model}})) return bad;
  const auto groups = static_cast<std::int64_t>(model->value.groups.size());
  if (group < 0 || group >= groups)
    return misuse(where, "group must be one of the model's " + std::to_string(groups),
                  std::to_string(group));
  if (length < 0) return misuse(where, "length must not be negative", std::to_string(length));
  if (!c::known(angles))
    return misuse(where, "angles must be one of posenc_angles", std::to_string(angles));
  const Expected<LayerGroup> chosen =
      group_of(model->value.groups[static_cast<std::size_t>(group)]);
  if (!chosen) return refused(chosen.error());
  return hand_out(compile(*chosen, length, static_cast<Angles>(angles)), out);
}

}  // namespace

posenc_status posenc_model_plan(const posenc_model* model, int64_t group, int64_t length,
                                posenc_angles angles, posenc_plan** out) noexcept {
  return plan_of_group("posenc_model_plan", model, group, length, angles, out,
                       [](const LayerGroup& whole) -> Expected<LayerGroup> { return whole; });
}

#ifndef __wasm__
posenc_status posenc_model_indexer_plan(const posenc_model* model, int64_t group, int64_t length,
                                        posenc_angles angles, posenc_plan** out) noexcept {
  constexpr std::string_view where = "posenc_model_indexer_plan";
  return plan_of_group(where, model, group, length, angles, out,
                       [&](const LayerGroup& whole) -> Expected<LayerGroup> {
                         if (auto own = indexer_group(whole)) return *std::move(own);
                         return fail(where, "the group must have an indexer",
                                     std::to_string(group));
                       });
}
#endif

// --- plans ---------------------------------------------------------------------------------------

namespace {

// give(scheme): what is to be done before it is compiled.
template <class Give>
posenc_status plan_of(std::string_view where, const char* scheme_json,
                      const posenc_geometry* geometry, posenc_plan** out, const Give& give) {
  if (const auto bad = need(where, "out", out, {{"scheme_json", scheme_json}})) return bad;
  const Expected<Geometry> around = geometry ? c::geometry_of(*geometry) : Geometry{};
  if (!around) return c::keep(around.error(), POSENC_MISUSE);
  Expected<Scheme> scheme = read_scheme(scheme_json);
  if (!scheme) return refused(scheme.error());
  if (const auto bad = give(*scheme)) return bad;
  const auto angles = geometry ? static_cast<Angles>(geometry->angles) : Angles::exact;
  return hand_out(compile(*scheme, *around, angles), out);
}

}  // namespace

posenc_status posenc_plan_from_scheme(const char* scheme_json, const posenc_geometry* geometry,
                                      posenc_plan** out) noexcept {
  return plan_of("posenc_plan_from_scheme", scheme_json, geometry, out,
                 [](const Scheme&) -> posenc_status { return POSENC_OK; });
}

#ifndef __wasm__
posenc_status posenc_plan_from_tables(const char* scheme_json, const posenc_geometry* geometry,
                                      const char* const* names, const posenc_tensor* tables,
                                      size_t count, posenc_plan** out) noexcept {
  constexpr std::string_view where = "posenc_plan_from_tables";
  return plan_of(where, scheme_json, geometry, out, [&](Scheme& scheme) -> posenc_status {
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto bad = need(where, {{"names", names}, {"tables", tables}})) return bad;
      if (const auto bad = need(where, {{"names[" + std::to_string(i) + "]", names[i]}}))
        return bad;
      const c::View given = c::view(where, names[i], &tables[i]);
      if (given.status) return given.status;
      if (const auto bad = c::need_table(where, names[i], given.tensor)) return bad;
      const Expected<void> set = set_table(scheme, names[i], c::copied(given.tensor));
      if (!set) return refused(set.error());
    }
    return POSENC_OK;
  });
}
#endif

void posenc_plan_free(posenc_plan* plan) noexcept { delete plan; }

posenc_status posenc_plan_json(const posenc_plan* plan, char** json) noexcept {
  if (const auto bad = need("posenc_plan_json", "json", json, {{"plan", plan}})) return bad;
  return hand_out(to_json(plan->value), json);
}
