// The C interface: tensors, positions, and plans acting on them.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "posenc/angles.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/gradients.h"
#include "src/c/handles.h"
#include "src/core/addressable.h"
#include "src/core/saturating.h"

using namespace posenc;
using c::done, c::hand_out, c::misuse, c::need, c::refused, c::View, c::view;

namespace posenc::c {

View view(std::string_view function, std::string_view name, const posenc_tensor* c) {
  if (const auto bad = need(function, {{name, c}})) return {bad};
  const auto wrong = [&](std::string_view member, std::string_view rule, std::int64_t got) {
    return View{misuse(function, std::string(name) + "." + std::string(member) + std::string(rule),
                       std::to_string(got))};
  };
  if (c->struct_size != sizeof *c)
    return wrong("struct_size", " must be sizeof(posenc_tensor), " + std::to_string(sizeof *c),
                 c->struct_size);
  if (c->dtype < POSENC_FLOAT64 || c->dtype > POSENC_BFLOAT16)
    return wrong("dtype", " must be one of posenc_dtype", c->dtype);
  if (c->rank < 0 || c->rank > Tensor::max_rank) return wrong("rank", " must be 0 to 4", c->rank);
  View out{POSENC_OK,
           Tensor{.data = c->data, .dtype = static_cast<DType>(c->dtype), .rank = c->rank}};
  std::copy_n(c->shape, c->rank, out.tensor.shape.begin());
  std::copy_n(c->stride, c->rank, out.tensor.stride.begin());
  const std::size_t size = size_of(out.tensor.dtype);
  if (const std::size_t beyond = std::bit_cast<std::uintptr_t>(c->data) % size; beyond != 0)
    return wrong("data", " must be aligned to " + std::to_string(size) + " bytes",
                 static_cast<std::int64_t>(beyond));
  return out;
}

ReadMask read_mask(std::string_view function, const posenc_mask* mask) {
  if (mask == nullptr) return {POSENC_OK};
  if (const auto bad = need_size(function, "mask", "posenc_mask", *mask)) return {bad};
  if (mask->key_count < 0) return {misuse(function, "key_count must not be negative")};
  if (mask->window < 0 || mask->chunk < 0 || mask->prefix < 0)
    return {misuse(function, "window, chunk and prefix must not be negative")};
  return {POSENC_OK,
          {.causal = mask->causal != 0,
           .window = mask->window,
           .chunk = mask->chunk,
           .prefix = mask->prefix,
           .keep = mask->keep,
           .blocks = mask->blocks,
           .keys = mask->keys,
           .key_count = mask->key_count}};
}

posenc_status need_table(std::string_view function, std::string_view name, const Tensor& tensor) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (!tensor) return need(function, {{std::string(name) + ".data", nullptr}});
  const auto end = tensor.shape.begin() + tensor.rank;
  if (std::any_of(tensor.shape.begin(), end, [](std::int64_t extent) { return extent < 0; }) ||
      !detail::addressable(tensor)) {
    return misuse(function, std::string(name) + " must have no negative extent, and fit in memory",
                  shape_text(tensor), "check shape and strides");
  }
  if (tensor.size() > most) {
    return misuse(function, std::string(name) + " must have at most 2^28 numbers",
                  shape_text(tensor), "check shape and strides");
  }
  if (tensor.size() == 0 && !detail::ends_soon(tensor)) {
    return misuse(function,
                  std::string(name) + " must have 2^24 rows or fewer where it has no numbers",
                  shape_text(tensor), "check the shape");
  }
  return POSENC_OK;
}

Table copied(const Tensor& from) {
  const Tensor x = from.with_rank(Tensor::max_rank);
  const auto numbers = std::make_shared<std::vector<double>>();
  numbers->reserve(static_cast<std::size_t>(x.size()));
  for (std::int64_t a = 0; a < x.shape[0]; a++)
    for (std::int64_t b = 0; b < x.shape[1]; b++)
      for (std::int64_t c = 0; c < x.shape[2]; c++)
        for (std::int64_t d = 0; d < x.shape[3]; d++)
          numbers->push_back(x.get(x.offset(a, b, c, d)));
  Tensor dense = from;
  dense.data = numbers->data();
  dense.dtype = DType::f64;
  std::int64_t step = 1;
  for (auto axis = static_cast<std::size_t>(from.rank); axis-- > 0;) {
    dense.stride[axis] = step;
    step *= dense.shape[axis];
  }
  return Table::borrow(dense, numbers);
}

ReadProfiles read_profiles(std::string_view function, const posenc_profiles* given) {
  if (given == nullptr) return {POSENC_OK};
  if (const auto bad = need_size(function, "profiles", "posenc_profiles", *given)) return {bad};
  ReadProfiles read{POSENC_OK};
  for (const auto& [name, from, to] :
       {std::tuple{"profiles.query", given->query, &read.tensors.query},
        {"profiles.key", given->key, &read.tensors.key}}) {
    if (from == nullptr) continue;
    const View each = view(function, name, from);
    if (each.status) return {each.status};
    *to = each.tensor;
  }
  return read;
}

ReadAttention read_attention(std::string_view function, const posenc_attention* in,
                             std::string_view out_name, const posenc_tensor* out) {
  if (const auto bad = need(function, {{"in", in}})) return {bad};
  if (const auto bad = need_size(function, "in", "posenc_attention", *in)) return {bad};
  if (const auto bad = need(function, {{"queries", in->queries}, {"keys", in->keys}})) return {bad};
  if (const auto bad = need_threads(function, in->threads)) return {bad};
  const ReadMask sees = read_mask(function, in->mask);
  if (sees.status) return {sees.status};
  View views[4];
  const std::pair<std::string_view, const posenc_tensor*> given[] = {
      {"q", in->q}, {"k", in->k}, {"v", in->v}, {out_name, out}};
  for (std::size_t i = 0; i < 4; i++) {
    views[i] = view(function, given[i].first, given[i].second);
    if (views[i].status) return {views[i].status};
  }
  View sinks{POSENC_OK};
  if (in->sink_logits) sinks = view(function, "in.sink_logits", in->sink_logits);
  if (sinks.status) return {sinks.status};
  const ReadProfiles profiles = read_profiles(function, in->profiles);
  if (profiles.status) return {profiles.status};
  return {POSENC_OK,
          AttentionInputs{.q = views[0].tensor,
                          .k = views[1].tensor,
                          .v = views[2].tensor,
                          .queries = in->queries->value,
                          .keys = in->keys->value,
                          .mask = sees.mask,
                          .threads = Threads{in->threads},
                          .sink_logits = sinks.tensor,
                          .profiles = profiles.tensors,
                          .options = {.allow_bfloat16_products = in->float_products == 0}},
          views[3].tensor};
}

posenc_status need_threads(std::string_view function, std::int32_t threads) {
  if (threads >= 0) return POSENC_OK;
  return misuse(function, "threads must not be negative", std::to_string(threads));
}

posenc_status need_side(std::string_view where, posenc_side side) {
  return side >= POSENC_QUERY && side <= POSENC_VALUE
             ? POSENC_OK
             : misuse(where, "side must be one of posenc_side", std::to_string(side));
}

namespace {

// Out of `count` numbers that a product of sizes says; nothing if it is negative or overflows.
Expected<std::size_t> product(std::string_view function,
                              std::initializer_list<std::int64_t> extents) {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) {
    all = detail::product(all, extent);
    if (extent < 0 || all > static_cast<std::int64_t>(PTRDIFF_MAX / sizeof(std::int64_t)))
      return fail(function, "sizes must not be negative, and their product must fit in memory",
                  std::to_string(extent));
  }
  return static_cast<std::size_t>(all);
}

using Rotation = Expected<void> (*)(const Plan&, const Tensor&, const Positions&, Side,
                                    const Tensor&, Threads);

posenc_status rotated(std::string_view where, Rotation rotation, const posenc_plan* plan,
                      const posenc_tensor* x, const posenc_positions* positions, posenc_side side,
                      const posenc_tensor* out, std::int32_t threads) {
  if (const auto bad = need_side(where, side)) return bad;
  return on_tensors(where, {{"plan", plan}, {"positions", positions}}, threads,
                    {{"x", x}, {"out", out}}, [&](const Tensor& from, const Tensor& to) {
                      return rotation(plan->value, from, positions->value, static_cast<Side>(side),
                                      to, Threads{threads});
                    });
}

// make(how many numbers there are to read).
template <class Make>
posenc_status positions_of(std::string_view where, Argument numbers,
                           std::initializer_list<std::int64_t> extents, posenc_positions** out,
                           const Make& make) {
  if (const auto bad = need(where, "out", out)) return bad;
  const auto size = product(where, extents);
  if (!size) return refused(size.error());
  if (*size > 0)
    if (const auto bad = need(where, {numbers})) return bad;
  return hand_out(make(*size), out);
}

using RotationBy = Expected<void> (*)(const Plan&, const Tensor&, const Tensor&, Side,
                                      const Tensor&, Threads);

posenc_status rotated_by(std::string_view where, RotationBy rotation, const posenc_plan* plan,
                         const posenc_tensor* x, const posenc_tensor* angles, posenc_side side,
                         const posenc_tensor* out, std::int32_t threads) {
  if (const auto bad = need_side(where, side)) return bad;
  return on_tensors(where, {{"plan", plan}}, threads, {{"x", x}, {"angles", angles}, {"out", out}},
                    [&](const Tensor& from, const Tensor& by, const Tensor& to) {
                      return rotation(plan->value, from, by, static_cast<Side>(side), to,
                                      Threads{threads});
                    });
}

Table* table_of(Plan& plan, posenc_table which) {
  if (which == POSENC_TABLE_ADD) {
    Rows* rows = plan.add ? std::get_if<Rows>(&plan.add->kind) : nullptr;
    return rows ? &rows->table : nullptr;
  }
  if (which == POSENC_TABLE_BIAS) {
    BiasTable* bias = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
    return bias ? &bias->values : nullptr;
  }
  if (!plan.relative) return nullptr;
  Relative& relative = *plan.relative;
  if (which == POSENC_TABLE_RELATIVE_QUERY) return relative.uses_query ? &relative.query : nullptr;
  if (which == POSENC_TABLE_RELATIVE_KEY) return relative.uses_key ? &relative.key : nullptr;
  return relative.uses_value ? &relative.value : nullptr;
}

}  // namespace
}  // namespace posenc::c

posenc_status posenc_tensor_dense(void* data, posenc_dtype dtype, int32_t rank,
                                  const int64_t* shape, posenc_tensor* out) noexcept {
  constexpr std::string_view where = "posenc_tensor_dense";
  if (const auto bad = need(where, {{"out", out}})) return bad;
  *out = {};
  if (rank > 0)
    if (const auto bad = need(where, {{"shape", shape}})) return bad;
  if (rank < 0 || rank > Tensor::max_rank)
    return misuse(where, "rank must be 0 to 4", std::to_string(rank));
  if (dtype < POSENC_FLOAT64 || dtype > POSENC_BFLOAT16)
    return misuse(where, "dtype must be one of posenc_dtype", std::to_string(dtype));
  posenc_tensor view = {};
  view.struct_size = sizeof view;
  view.dtype = dtype;
  view.rank = rank;
  view.data = data;
  std::int64_t step = 1;
  for (int axis = rank - 1; axis >= 0; axis--) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = step;
    step = posenc::detail::product(step, shape[axis]);
    if (shape[axis] < 0 || step == posenc::detail::saturated)
      return misuse(where, "extents must not be negative, and their product must fit in memory",
                    std::to_string(shape[axis]));
  }
  *out = view;
  return POSENC_OK;
}

posenc_status posenc_plan_set_table(posenc_plan* plan, posenc_table which,
                                    const posenc_tensor* values) noexcept {
  constexpr std::string_view where = "posenc_plan_set_table";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  if (which < POSENC_TABLE_ADD || which > POSENC_TABLE_TEMPERATURE)
    return misuse(where, "table must be one of posenc_table", std::to_string(which));
  const View given = view(where, "values", values);
  if (given.status) return given.status;
  Plan changed = plan->value;
  if (which == POSENC_TABLE_TEMPERATURE) {
    const Expected<void> set = set_temperature(changed.logits, given.tensor);
    if (!set) return refused(set.error());
    const Expected<Plan> fits = checked(changed);
    if (!fits) return refused(fits.error());
    plan->value = std::move(changed);
    return POSENC_OK;
  }
  Table* table = c::table_of(changed, which);
  if (!table)
    return refused(fail(where, "the plan has no such table", "", "see posenc_plan_json").error());
  // Checked before a number is read: what it says of its size may be anything.
  *table = Table::borrow(given.tensor);
  if (!*table) return need(where, {{"values.data", nullptr}});
  const Expected<Plan> fits = checked(changed);
  if (!fits) return refused(fits.error());
  if (const auto bad = c::need_table(where, "values", given.tensor)) return bad;
  *table = c::copied(given.tensor);
  plan->value = std::move(changed);
  return POSENC_OK;
}

// --- positions -----------------------------------------------------------------------------------

posenc_status posenc_positions_range(int64_t first, int64_t count,
                                     posenc_positions** out) noexcept {
  constexpr std::string_view where = "posenc_positions_range";
  if (const auto bad = need(where, "out", out)) return bad;
  std::int64_t end = 0;
  if (first < 0 || count < 0 || __builtin_add_overflow(first, count, &end))
    return misuse(where, "first and count must not be negative, nor their sum overflow",
                  std::to_string(first) + " and " + std::to_string(count));
  *out = new posenc_positions{Positions::range(first, count)};
  return POSENC_OK;
}

posenc_status posenc_positions_ids(const int64_t* ids, int64_t axes, int64_t batch, int64_t seq,
                                   posenc_positions** out) noexcept {
  return c::positions_of(
      "posenc_positions_ids", {"ids", ids}, {axes, batch, seq}, out,
      [&](std::size_t size) { return Positions::ids({ids, size}, axes, batch); });
}

posenc_status posenc_positions_from_mask(const uint8_t* mask, int64_t batch, int64_t seq,
                                         int64_t cached, int64_t padding,
                                         posenc_positions** out) noexcept {
  return c::positions_of(
      "posenc_positions_from_mask", {"mask", mask}, {batch, seq}, out,
      [&](std::size_t size) { return Positions::from_mask({mask, size}, batch, cached, padding); });
}

posenc_status posenc_positions_signed_ids(const int64_t* ids, int64_t axes, int64_t batch,
                                          int64_t seq, posenc_positions** out) noexcept {
  return c::positions_of(
      "posenc_positions_signed_ids", {"ids", ids}, {axes, batch, seq}, out,
      [&](std::size_t size) { return Positions::signed_ids({ids, size}, axes, batch); });
}

posenc_status posenc_positions_grid(const int64_t* sizes, const int64_t* first, int64_t axes,
                                    posenc_positions** out) noexcept {
  constexpr std::string_view where = "posenc_positions_grid";
  if (const auto bad = need(where, "out", out, {{"sizes", sizes}})) return bad;
  if (axes < 1 || axes > 64)
    return misuse(where, "axes must lie within 1 and 64", std::to_string(axes));
  const auto count = static_cast<std::size_t>(axes);
  return hand_out(Positions::grid({sizes, count}, {first, first ? count : 0}), out);
}

posenc_status posenc_positions_packed(const int64_t* cu_seqlens, int64_t count,
                                      posenc_positions** out) noexcept {
  return c::positions_of("posenc_positions_packed", {"cu_seqlens", cu_seqlens}, {count}, out,
                         [&](std::size_t size) { return Positions::packed({cu_seqlens, size}); });
}

posenc_status posenc_positions_patches(int64_t height, int64_t width, int64_t merge, int64_t frames,
                                       posenc_positions** out) noexcept {
  if (const auto bad = need("posenc_positions_patches", "out", out)) return bad;
  return hand_out(patch_positions(height, width, merge, frames), out);
}

posenc_status posenc_positions_shape(const posenc_positions* positions, int64_t shape[3]) noexcept {
  if (const auto bad = need("posenc_positions_shape", {{"positions", positions}, {"shape", shape}}))
    return bad;
  shape[0] = positions->value.axes();
  shape[1] = positions->value.batch();
  shape[2] = positions->value.size();
  return POSENC_OK;
}

posenc_status posenc_positions_copy(const posenc_positions* positions, int64_t* ids,
                                    size_t capacity) noexcept {
  constexpr std::string_view where = "posenc_positions_copy";
  if (const auto bad = need(where, {{"positions", positions}})) return bad;
  const Positions& from = positions->value;
  const auto size = c::product(where, {from.axes(), from.batch(), from.size()});
  if (!size) return refused(size.error());
  if (*size > capacity)
    return misuse(where, "capacity must be at least " + std::to_string(*size),
                  std::to_string(capacity));
  if (*size > 0)
    if (const auto bad = need(where, {{"ids", ids}})) return bad;
  for (std::int64_t axis = 0; axis < from.axes(); axis++)
    for (std::int64_t b = 0; b < from.batch(); b++)
      for (std::int64_t t = 0; t < from.size(); t++) *ids++ = from.at(t, b, axis);
  return POSENC_OK;
}

void posenc_positions_free(posenc_positions* positions) noexcept { delete positions; }

// --- acting on tensors ---------------------------------------------------------------------------

posenc_status posenc_add(const posenc_plan* plan, const posenc_tensor* embedding,
                         const posenc_positions* positions, const posenc_tensor* out,
                         int32_t threads) noexcept {
  return c::on_tensors("posenc_add", {{"plan", plan}, {"positions", positions}}, threads,
                       {{"embedding", embedding}, {"out", out}},
                       [&](const Tensor& from, const Tensor& to) {
                         return add(plan->value, from, positions->value, to, Threads{threads});
                       });
}

posenc_status posenc_position_vectors(const posenc_plan* plan, const posenc_positions* positions,
                                      const posenc_tensor* out, int32_t threads) noexcept {
  return c::on_tensors("posenc_position_vectors", {{"plan", plan}, {"positions", positions}},
                       threads, {{"out", out}}, [&](const Tensor& to) {
                         return position_vectors(plan->value, positions->value, to,
                                                 Threads{threads});
                       });
}

posenc_status posenc_rotate(const posenc_plan* plan, const posenc_tensor* x,
                            const posenc_positions* positions, posenc_side side,
                            const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated("posenc_rotate", rotate, plan, x, positions, side, out, threads);
}

posenc_status posenc_rotate_qk(const posenc_plan* plan, const posenc_tensor* q,
                               const posenc_tensor* k, const posenc_positions* positions,
                               const posenc_tensor* q_out, const posenc_tensor* k_out,
                               int32_t threads) noexcept {
  return c::on_tensors(
      "posenc_rotate_qk", {{"plan", plan}, {"positions", positions}}, threads,
      {{"q", q}, {"k", k}, {"q_out", q_out}, {"k_out", k_out}},
      [&](const Tensor& q_from, const Tensor& k_from, const Tensor& q_to, const Tensor& k_to) {
        return rotate(plan->value, q_from, k_from, positions->value, q_to, k_to, Threads{threads});
      });
}

posenc_status posenc_rotate_inverse(const posenc_plan* plan, const posenc_tensor* x,
                                    const posenc_positions* positions, posenc_side side,
                                    const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated("posenc_rotate_inverse", rotate_inverse, plan, x, positions, side, out,
                    threads);
}

posenc_status posenc_rotate_transpose(const posenc_plan* plan, const posenc_tensor* x,
                                      const posenc_positions* positions, posenc_side side,
                                      const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated("posenc_rotate_transpose", rotate_transpose, plan, x, positions, side, out,
                    threads);
}

posenc_status posenc_rotation_angles(const posenc_plan* plan, const posenc_positions* positions,
                                     const posenc_tensor* out, int32_t threads) noexcept {
  return c::on_tensors("posenc_rotation_angles", {{"plan", plan}, {"positions", positions}},
                       threads, {{"out", out}}, [&](const Tensor& to) {
                         return rotation_angles(plan->value, positions->value, to,
                                                Threads{threads});
                       });
}

posenc_status posenc_rotation_angles_at(const posenc_plan* plan, const posenc_tensor* at,
                                        const posenc_tensor* out, int32_t threads) noexcept {
  return c::on_tensors("posenc_rotation_angles_at", {{"plan", plan}}, threads,
                       {{"at", at}, {"out", out}}, [&](const Tensor& from, const Tensor& to) {
                         return rotation_angles(plan->value, from, to, Threads{threads});
                       });
}

posenc_status posenc_rotate_by(const posenc_plan* plan, const posenc_tensor* x,
                               const posenc_tensor* angles, posenc_side side,
                               const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated_by("posenc_rotate_by", rotate_by, plan, x, angles, side, out, threads);
}

posenc_status posenc_rotate_by_transpose(const posenc_plan* plan, const posenc_tensor* x,
                                         const posenc_tensor* angles, posenc_side side,
                                         const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated_by("posenc_rotate_by_transpose", rotate_by_transpose, plan, x, angles, side,
                       out, threads);
}

posenc_status posenc_rotate_by_inverse(const posenc_plan* plan, const posenc_tensor* x,
                                       const posenc_tensor* angles, posenc_side side,
                                       const posenc_tensor* out, int32_t threads) noexcept {
  return c::rotated_by("posenc_rotate_by_inverse", rotate_by_inverse, plan, x, angles, side, out,
                       threads);
}

posenc_status posenc_angle_gradient(const posenc_plan* plan, const posenc_tensor* rotated,
                                    const posenc_tensor* rotated_gradient,
                                    const posenc_tensor* out) noexcept {
  return c::on_tensors("posenc_angle_gradient", {{"plan", plan}}, 0,
                       {{"rotated", rotated}, {"rotated_gradient", rotated_gradient}, {"out", out}},
                       [&](const Tensor& x, const Tensor& by, const Tensor& to) {
                         return angle_gradient(plan->value, x, by, to);
                       });
}

posenc_status posenc_bias(const posenc_plan* plan, const posenc_positions* queries,
                          const posenc_positions* keys, const posenc_tensor* out,
                          int32_t threads) noexcept {
  return c::on_tensors("posenc_bias", {{"plan", plan}, {"queries", queries}, {"keys", keys}},
                       threads, {{"out", out}}, [&](const Tensor& to) {
                         return bias(plan->value, queries->value, keys->value, to,
                                     Threads{threads});
                       });
}
