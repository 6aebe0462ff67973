// The C interface called with anything: schemes, geometries, positions, tensors and masks of any
// numbers. Every call succeeds or says why not. Only what cannot be checked is kept: memory is
// there, exactly as much as a view says.
#include "posenc/c.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "posenc/schemes.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

constexpr std::int64_t most = 1 << 10;  // elements of a view: more only takes time
__extension__ using Wide = __int128;

void check_status(posenc_status status) {
  must(status == POSENC_OK || status == POSENC_REFUSED || status == POSENC_MISUSE,
       "a status is one of three");
  if (status == POSENC_OK) return;
  const std::string_view message = posenc_last_error();
  must(!message.empty(), "a refusal says why");
  check_text(message);
}

using PlanHandle = std::unique_ptr<posenc_plan, decltype(&posenc_plan_free)>;
using ContentHandle = std::unique_ptr<posenc_content, decltype(&posenc_content_free)>;
using CacheHandle = std::unique_ptr<posenc_cache, decltype(&posenc_cache_free)>;
using PositionsHandle = std::unique_ptr<posenc_positions, decltype(&posenc_positions_free)>;

// Of a scheme's name, one of its fields with any number, and any geometry.
PlanHandle any_plan(Bytes& bytes) {
  const auto schemes = all_schemes();
  const Scheme scheme = make_scheme(schemes[bytes.byte() % schemes.size()].name).value();
  std::string json = "{\"type\": \"" + std::string(info(scheme).name) + "\"";
  const std::vector<FieldSetting> fields = settings(scheme);
  for (int i = bytes.byte() % 3; i > 0 && !fields.empty(); --i) {
    const std::string_view name = fields[bytes.byte() % fields.size()].name;
    std::int64_t whole = bytes.integer();
    if (whole > 4096 && whole <= std::int64_t{1} << 27)
      whole %= 4096;  // affordable, and slow to make often
    json += ", \"" + std::string(name) +
            "\": " + (bytes.byte() % 2 ? std::to_string(whole) : std::to_string(bytes.number()));
  }
  posenc_geometry geometry = {
      .struct_size = sizeof geometry,
      .angles = bytes.byte() % 8 == 0 ? static_cast<posenc_angles>(bytes.integer()) : POSENC_EXACT,
      .width = bytes.integer(),
      .heads = bytes.integer(),
      .kv_heads = bytes.integer(),
      .head_dim = bytes.integer(),
      .length = bytes.integer(),
      .grid_height = bytes.integer(),
      .grid_width = bytes.integer()};
  for (std::int64_t* extent : {&geometry.width, &geometry.heads, &geometry.head_dim,
                               &geometry.length, &geometry.grid_height, &geometry.grid_width})
    if (*extent > 256 && *extent <= std::int64_t{1} << 26) *extent %= 256;
  posenc_plan* plan = nullptr;
  check_status(posenc_plan_from_scheme((json + "}").c_str(), &geometry, &plan));
  return {plan, posenc_plan_free};
}

PositionsHandle any_positions(Bytes& bytes) {
  posenc_positions* made = nullptr;
  switch (bytes.byte() % 4) {
    case 0: {
      const std::int64_t first = bytes.integer();
      check_status(posenc_positions_range(first, bytes.integer(), &made));
      break;
    }
    case 1: {
      const std::vector<std::int64_t> ids = bytes.integers();
      const std::int64_t axes = 1 + bytes.byte() % 3, batch = 1 + bytes.byte() % 3;
      check_status(posenc_positions_ids(
          ids.data(), axes, batch, static_cast<std::int64_t>(ids.size()) / (axes * batch), &made));
      break;
    }
    case 2: {
      std::array<std::uint8_t, 32> mask{};
      for (std::uint8_t& each : mask) each = bytes.byte() % 2;
      const std::int64_t batch = 1 + bytes.byte() % 3, cached = bytes.integer();
      check_status(
          posenc_positions_from_mask(mask.data(), batch, 8, cached, bytes.integer(), &made));
      break;
    }
    default: {
      const std::int64_t first = bytes.byte(), second = bytes.byte();
      const std::int64_t ends[] = {0, first, first + second};
      check_status(posenc_positions_packed(ends, 3, &made));
    }
  }
  return {made, posenc_positions_free};
}

// A view and the memory from its lowest element to its highest. None where that would be too much
// to make, and not so much that the library must notice.
struct View {
  posenc_tensor tensor = {};
  std::vector<char> memory;
};
std::optional<View> any_view(Bytes& bytes, std::int32_t rank) {
  View made;
  posenc_tensor& t = made.tensor;
  t.struct_size = bytes.byte() == 1 ? bytes.byte() : sizeof t;
  t.dtype = bytes.byte() == 1 ? static_cast<posenc_dtype>(bytes.integer()) : bytes.byte() % 4;
  t.rank = bytes.byte() == 1 ? static_cast<std::int32_t>(bytes.integer()) : rank;
  Wide lowest = 0, highest = 0, step = 1;
  bool empty = false, negative = false;
  const std::int32_t axes = std::clamp(t.rank, 0, 4);
  for (std::int32_t axis = axes - 1; axis >= 0; --axis) {
    t.shape[axis] = bytes.byte() % 16 == 0 ? bytes.integer() : bytes.byte() % 8;
    t.stride[axis] = bytes.byte() % 4 == 0 ? bytes.integer() : static_cast<std::int64_t>(step);
    if (step < std::int64_t{1} << 40) step *= std::max<std::int64_t>(t.shape[axis], 1);
    empty = empty || t.shape[axis] == 0;
    negative = negative || t.shape[axis] < 0;
    const Wide reach = static_cast<Wide>(t.shape[axis] - 1) * t.stride[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  constexpr std::array<std::int64_t, 4> sizes = {8, 4, 2, 2};
  const std::int64_t size =
      t.dtype >= 0 && t.dtype < 4 ? sizes[static_cast<std::size_t>(t.dtype)] : 8;
  const Wide elements = highest - lowest + 1;
  if (empty || negative || t.rank != axes) {
    made.memory.resize(64);
    t.data = made.memory.data();
  } else if (elements <= most) {
    made.memory.resize(static_cast<std::size_t>(elements * size));
    for (char& each : made.memory) each = static_cast<char>(bytes.byte());
    t.data = made.memory.data() + static_cast<std::int64_t>(-lowest) * size;
  } else if (elements > static_cast<Wide>(1) << 62) {
    made.memory.resize(64);
    t.data = made.memory.data();
  } else {
    return std::nullopt;
  }
  if (bytes.byte() == 1) t.data = nullptr;
  return made;
}

// Of a scheme's name, with tables of any.
ContentHandle any_content(Bytes& bytes) {
  const auto any = [&]() -> const SchemeInfo& {
    return all_content_schemes()[bytes.byte() % all_content_schemes().size()];
  };
  posenc_content* made = nullptr;
  const std::string json = "{\"type\": \"" + std::string(any().name) + "\"}";
  check_status(posenc_content_from_scheme(json.c_str(), &made));
  ContentHandle content(made, posenc_content_free);
  for (int n = 0; n < 2; ++n) {
    const std::vector<TableInfo>& tables = any().tables;
    const auto table = any_view(bytes, 4);
    if (!table || tables.empty()) continue;
    const std::string name(tables[bytes.byte() % tables.size()].name);
    check_status(posenc_content_set_table(made, name.c_str(), &table->tensor));
  }
  return content;
}

// Row-major, of any numbers. None where that would be too much to make.
std::optional<View> dense_view(Bytes& bytes, posenc_dtype dtype,
                               const std::array<std::int64_t, 4>& shape) {
  Wide elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    elements = std::min<Wide>(elements * extent, most + 1);
  }
  if (elements > most) return std::nullopt;
  View made;
  made.memory.resize(static_cast<std::size_t>(elements + 1) * sizeof(double));
  for (char& each : made.memory) each = static_cast<char>(bytes.byte());
  check_status(posenc_tensor_dense(made.memory.data(), dtype, 4, shape.data(), &made.tensor));
  return made;
}

std::int32_t threads(Bytes& bytes) {
  return bytes.byte() % 8 == 0 ? static_cast<std::int32_t>(bytes.integer()) : 1;
}

void attention(Bytes& bytes, const posenc_plan* plan, const posenc_content* content,
               const posenc_positions* queries, const posenc_positions* keys) {
  const auto q = any_view(bytes, 4), k = any_view(bytes, 4), v = any_view(bytes, 4),
             out = any_view(bytes, 4);
  if (!q || !k || !v || !out) return;
  std::vector<std::uint8_t> keep(4 * most);
  for (std::size_t i = 0; i < 64; ++i) keep[i] = bytes.byte() % 2;
  const posenc_mask mask = {.struct_size = sizeof mask,
                            .causal = bytes.byte() % 2,
                            .window = bytes.integer(),
                            .chunk = bytes.integer(),
                            .prefix = bytes.integer(),
                            .keep = bytes.byte() % 2 ? keep.data() : nullptr};
  posenc_attention in = {.struct_size = sizeof in,
                         .threads = threads(bytes),
                         .q = &q->tensor,
                         .k = &k->tensor,
                         .v = &v->tensor,
                         .queries = queries,
                         .keys = keys,
                         .mask = bytes.byte() % 2 ? &mask : nullptr,
                         .sink_logits = nullptr,
                         .profiles = nullptr};
  const auto by_q = any_view(bytes, 4);
  const auto sinks = bytes.byte() % 4 == 1 ? any_view(bytes, 1 + bytes.byte() % 3) : std::nullopt;
  if (sinks) in.sink_logits = &sinks->tensor;
  const auto of_queries = bytes.byte() % 4 == 1 ? any_view(bytes, 4) : std::nullopt;
  const posenc_profiles profiles{sizeof profiles, of_queries ? &of_queries->tensor : nullptr,
                                 nullptr};
  if (of_queries) in.profiles = &profiles;
  if (content != nullptr) {
    check_status(posenc_attend_content(content, plan, &in, &out->tensor, nullptr));
    check_status(
        posenc_attend_content_reference(content, plan, &in, &out->tensor, nullptr, nullptr));
    if (!by_q) return;
    const posenc_content_gradients to = {.struct_size = sizeof to, .q = &by_q->tensor};
    return check_status(
        posenc_attend_content_backward(content, plan, &in, &out->tensor, &to, nullptr));
  }
  check_status(posenc_attend(plan, &in, &out->tensor));
  check_status(posenc_attend_reference(plan, &in, &out->tensor, nullptr));
  if (!by_q) return;
  const posenc_attention_gradients to = {.struct_size = sizeof to, .q = &by_q->tensor};
  check_status(posenc_attend_backward(plan, &in, &out->tensor, &to));
}

// Verbs of one view in and one out.
void act(Bytes& bytes, posenc_plan* plan, const posenc_positions* positions) {
  const std::int32_t verb = bytes.byte() % 12, rank = verb < 2 ? 3 : 4;
  const auto x = any_view(bytes, rank);
  const auto y = bytes.byte() % 2 ? x : any_view(bytes, rank);
  if (!x || !y) return;
  const posenc_tensor *in = &x->tensor, *out = &y->tensor;
  const posenc_side side = bytes.byte() % 4;
  const std::int32_t count = threads(bytes);
  switch (verb) {
    case 0: return check_status(posenc_add(plan, in, positions, out, count));
    case 1: return check_status(posenc_position_vectors(plan, positions, out, count));
    case 2: return check_status(posenc_rotate(plan, in, positions, side, out, count));
    case 3: return check_status(posenc_rotate_inverse(plan, in, positions, side, out, count));
    case 4: return check_status(posenc_rotate_transpose(plan, in, positions, side, out, count));
    case 5: return check_status(posenc_rotate_qk(plan, in, out, positions, in, out, count));
    case 6: return check_status(posenc_rotation_angles(plan, positions, out, count));
    case 7: return check_status(posenc_rotate_by(plan, in, out, side, in, count));
    case 8: return check_status(posenc_rotate_by_transpose(plan, in, out, side, in, count));
    case 9: return check_status(posenc_rotation_angles_at(plan, in, out, count));
    case 10: return check_status(posenc_angle_gradient(plan, in, in, out));
    default: return check_status(posenc_bias(plan, positions, positions, out, count));
  }
}

// Keys that move: dense, in pages, in 8 bits; and their header, written and read.
void rekey(Bytes& bytes, const posenc_plan* plan, const posenc_positions* from,
           const posenc_positions* to) {
  const auto x = any_view(bytes, 4);
  if (!x) return;
  const posenc_side side = bytes.byte() % 4;
  const std::int32_t count = threads(bytes);
  const std::int32_t pages[] = {bytes.byte() % 3, bytes.byte() % 3, bytes.byte() - 1, 0};
  const std::int64_t tokens[] = {bytes.byte() % 6, bytes.integer()};
  const posenc_page_table table = {.struct_size = sizeof table,
                                   .pages = pages,
                                   .sequences = bytes.byte() % 3,
                                   .columns = bytes.byte() % 3,
                                   .tokens = tokens};
  posenc_key_codes codes = {.struct_size = sizeof codes,
                            .type = POSENC_E4M3 + bytes.byte() % 2,
                            .codes = x->tensor.data,
                            .block = bytes.byte() % 5,
                            .new_scales = bytes.byte() % 2};
  const std::int64_t size = x->tensor.dtype == POSENC_FLOAT64   ? 8
                            : x->tensor.dtype == POSENC_FLOAT32 ? 4
                                                                : 2;
  for (int axis = 0; axis < 4; ++axis) {  // the first byte of each number of the view
    codes.shape[axis] = x->tensor.shape[axis];
    if (__builtin_mul_overflow(x->tensor.stride[axis], size, &codes.stride[axis])) return;
  }
  const auto scales = bytes.byte() % 2 ? any_view(bytes, 4) : std::nullopt;
  if (scales) codes.scales = scales->tensor;
  unsigned char header[POSENC_KEY_HEADER_BYTES];
  posenc_key_header said = {};
  switch (bytes.byte() % 5) {
    case 0:
      return check_status(posenc_rekey(plan, from, plan, to, &x->tensor, side, &x->tensor, count));
    case 1:
      return check_status(
          posenc_rekey_pages(plan, from, plan, to, &x->tensor, &table, side, count));
    case 2:
      return check_status(posenc_rekey_codes(plan, from, plan, to, &codes, nullptr, side, count));
    case 3:
      return check_status(posenc_rekey_codes(plan, from, plan, to, &codes, &table, side, count));
    default:
      check_status(posenc_key_header_make(plan, from, x->tensor.shape, bytes.byte() % 8, side,
                                          bytes.byte() % 4 - 1, header));
      const auto rest = bytes.rest();
      check_status(posenc_key_header_read(rest.data(), rest.size(), nullptr, &said));
  }
}

// Two sequences of a cache, and calls in any order.
void cache(Bytes& bytes, const posenc_plan* plan, const posenc_positions* positions) {
  posenc_cache_options options = {.struct_size = sizeof options,
                                  .dtype = bytes.byte() % 4,
                                  .kv_heads = bytes.integer(),
                                  .head_dim = bytes.integer(),
                                  .value_dim = bytes.byte() % 2 ? bytes.integer() : 0,
                                  .page_size = bytes.integer(),
                                  .max_pages = bytes.byte() % 2 ? bytes.integer() : 0,
                                  .rotated = bytes.byte() % 2,
                                  .one_plan = bytes.byte() % 2};
  // What a machine may have only takes memory.
  for (std::int64_t* extent :
       {&options.kv_heads, &options.head_dim, &options.value_dim, &options.page_size})
    if (*extent > 16 && *extent <= std::int64_t{1} << 50) *extent %= 16;
  if (options.max_pages > 16 && options.max_pages <= 1 << 28) options.max_pages %= 16;
  posenc_cache* made = nullptr;
  check_status(posenc_cache_make(&options, &made));
  const CacheHandle owner{made, posenc_cache_free};
  std::int64_t sequences[2] = {-1, -1}, tokens = 0, length = 0;
  for (std::int64_t& each : sequences) check_status(posenc_cache_add(made, &each));
  if (bytes.byte() % 8 == 0) sequences[1] = bytes.integer();
  const std::int64_t value_dim = options.value_dim ? options.value_dim : options.head_dim;
  const auto view = [&](std::int64_t count, std::int64_t heads, std::int64_t width) {
    return bytes.byte() % 8 == 0
               ? any_view(bytes, 4)
               : dense_view(bytes, options.dtype, {count, heads, 1 + bytes.byte() % 3, width});
  };
  for (int call = 0; call < 8 && !bytes.rest().empty(); ++call) {
    const std::int64_t count = 1 + bytes.byte() % 2, one = sequences[bytes.byte() % 2];
    const std::int64_t first = bytes.byte() % 4, last = first + bytes.byte() % 4;
    switch (bytes.byte() % 6) {
      case 0:
      case 1: {
        const auto k = view(count, options.kv_heads, options.head_dim),
                   v = view(count, options.kv_heads, value_dim);
        if (k && v)
          check_status(posenc_cache_append(made, sequences, static_cast<std::size_t>(count),
                                           &k->tensor, &v->tensor, plan,
                                           bytes.byte() % 2 ? positions : nullptr, threads(bytes)));
        break;
      }
      case 2: {
        const std::int64_t heads =
            0 < options.kv_heads && options.kv_heads <= 16 ? 2 * options.kv_heads : 1;
        const auto q = view(count, heads, options.head_dim), out = view(count, heads, value_dim);
        if (q && out)
          check_status(posenc_cache_attend(made, sequences, static_cast<std::size_t>(count),
                                           &q->tensor, plan, nullptr, nullptr, nullptr,
                                           &out->tensor, threads(bytes)));
        break;
      }
      case 3: check_status(posenc_cache_shift(made, one, first, last, bytes.integer())); break;
      case 4: check_status(posenc_cache_evict(made, one, first, last, bytes.byte() % 2)); break;
      default:
        check_status(posenc_cache_size(made, one, &tokens, &length));
        if (bytes.byte() % 4 == 0) check_status(posenc_cache_remove(made, one));
    }
  }
}

}  // namespace
}  // namespace posenc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc::fuzz;
  Bytes bytes({data, size});
  const PlanHandle plan = any_plan(bytes);
  const PositionsHandle queries = any_positions(bytes), keys = any_positions(bytes);
  for (int call = 0; call < 4 && !bytes.rest().empty(); ++call) {
    switch (bytes.byte() % 6) {
      case 0:
        if (const auto table = any_view(bytes, 2))
          check_status(posenc_plan_set_table(plan.get(), bytes.byte() % 7, &table->tensor));
        break;
      case 1: act(bytes, plan.get(), queries.get()); break;
      case 2: cache(bytes, plan.get(), queries.get()); break;
      case 3: rekey(bytes, plan.get(), queries.get(), keys.get()); break;
      case 4: {
        const ContentHandle content = any_content(bytes);
        attention(bytes, plan.get(), content.get(), queries.get(), keys.get());
        break;
      }
      default:
        attention(bytes, plan.get(), nullptr, queries.get(),
                  bytes.byte() % 2 ? keys.get() : queries.get());
    }
  }
  return 0;
}
