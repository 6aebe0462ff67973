// Cached keys that move to other positions, and whether a model's may.
#include "posenc/rekey.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/context_parallel.h"
#include "posenc/key_header.h"
#include "posenc/reuse.h"

namespace posenc::python {
namespace {

// From `keys` into `moved`, which may be the same object.
void move_keys(const char* where, nb::handle keys, nb::handle moved, const CompiledPlan& from,
               nb::handle from_ids, const CompiledPlan* to, nb::handle to_ids,
               std::string_view side, std::string_view layout, int threads) {
  if (is_recorded(keys))
    refuse(where, "keys must need no gradient", "a tensor that requires one",
           "pass keys.detach(): what is cached is a constant");
  const bool in_place = keys.is(moved);
  const Array read = array_of(keys, where, "keys", in_place ? Access::write : Access::read);
  const Array written = in_place ? read : array_of(moved, where, "out", Access::write);
  const Tensor in = in_layout(read.tensor, layout, where),
               out = in_layout(written.tensor, layout, where);
  const Positions stood = positions_of(from_ids, in.shape[2], where),
                  stand = positions_of(to_ids, in.shape[2], where);
  const Side whose = side_of(side);
  const Plan& anew = to ? to->plan : from.plan;
  unlocked([&] { return rekey({&from.plan, stood}, {&anew, stand}, in, out, whose, {threads}); });
}

nb::object rekeyed(nb::handle keys, const CompiledPlan& from, nb::handle from_ids,
                   const CompiledPlan* to, nb::handle to_ids, std::string_view side,
                   std::string_view layout, int threads) {
  nb::object made = empty_like(keys);
  move_keys("rekey", keys, made, from, from_ids, to, to_ids, side, layout, threads);
  return handed_back(std::move(made), keys);
}

void rekey_in_place(nb::handle keys, const CompiledPlan& from, nb::handle from_ids,
                    const CompiledPlan* to, nb::handle to_ids, std::string_view side,
                    std::string_view layout, int threads) {
  move_keys("rekey_", keys, keys, from, from_ids, to, to_ids, side, layout, threads);
}

// Where keys go: plans, and positions as Python says them.
struct Going {
  const CompiledPlan& from;
  nb::handle from_ids;
  const CompiledPlan* to;
  nb::handle to_ids;
  const Plan& anew() const { return to ? to->plan : from.plan; }
};

// A block table, row by row, and the tokens of each sequence.
struct BlockTable {
  std::vector<std::int32_t> pages;
  std::vector<std::int64_t> tokens;
  std::int64_t longest() const { return tokens.empty() ? 0 : *std::ranges::max_element(tokens); }
};

void rekey_pages_in_place(nb::handle keys, const std::vector<std::int32_t>& pages,
                          const std::vector<std::int64_t>& tokens, const CompiledPlan& from,
                          nb::handle from_ids, const CompiledPlan* to, nb::handle to_ids,
                          std::string_view side, std::string_view layout, int threads) {
  constexpr const char* where = "rekey_";
  const BlockTable table{pages, tokens};
  const Array pool = array_of(keys, where, "keys", Access::write);
  const Tensor in = in_layout(pool.tensor, layout, where);
  const Positions stood = positions_of(from_ids, table.longest(), where),
                  stand = positions_of(to_ids, table.longest(), where);
  const Plan& anew = to ? to->plan : from.plan;
  const Side whose = side_of(side);
  unlocked([&] {
    return rekey({&from.plan, stood}, {&anew, stand}, KeyPages{in, table.pages, table.tokens},
                 whose, {threads});
  });
}

// Codes of one byte, as Python has them: uint8, or int8.
struct Codes {
  nb::ndarray<> memory;
  Tensor tensor;  // of which shape and strides hold; its data are bytes
};
Codes codes_of(nb::handle object, std::string_view layout, const char* where) {
  Codes made;
  if (!nb::try_cast(as_exported(object), made.memory, false) || made.memory.itemsize() != 1 ||
      made.memory.device_type() != nb::device::cpu::value || made.memory.ndim() > 4)
    refuse(where, "codes must be a writable array of one byte a number on the CPU",
           said(nb::inst_name(object)), "pass uint8 or int8, or view float8 as uint8");
  made.tensor.data = made.memory.data();
  made.tensor.rank = static_cast<int>(made.memory.ndim());
  for (std::size_t axis = 0; axis < made.memory.ndim(); ++axis) {
    made.tensor.shape[axis] = made.memory.shape_ptr()[axis];
    made.tensor.stride[axis] = made.memory.stride_ptr()[axis];
  }
  made.tensor = in_layout(made.tensor, layout, where);
  return made;
}

void move_coded(const CodedKeys& keys, const std::optional<BlockTable>& table, const Going& going,
                std::string_view side, int threads, const char* where) {
  const std::int64_t count = table ? table->longest() : keys.shape[2];
  const Positions stood = positions_of(going.from_ids, count, where),
                  stand = positions_of(going.to_ids, count, where);
  const Side whose = side_of(side);
  unlocked([&] {
    const Stand from{&going.from.plan, stood}, to{&going.anew(), stand};
    return table ? rekey(from, to, CodedPages{keys, table->pages, table->tokens}, whose, {threads})
                 : rekey(from, to, keys, whose, {threads});
  });
}

void rekey_coded_in_place(nb::handle codes, nb::handle scales, std::string_view code,
                          std::int64_t block, bool keep_scales,
                          const std::optional<std::vector<std::int32_t>>& pages,
                          const std::optional<std::vector<std::int64_t>>& tokens,
                          const CompiledPlan& from, nb::handle from_ids, const CompiledPlan* to,
                          nb::handle to_ids, std::string_view side, std::string_view layout,
                          int threads) {
  constexpr const char* where = "rekey_";
  if (code != "e4m3" && code != "int8")
    refuse(where, "codes must be \"e4m3\" or \"int8\"", code, "rekey_ takes arrays of floats too");
  const Codes bytes = codes_of(codes, layout, where);
  const Tensor& in = bytes.tensor;
  CodedKeys keys{.code = code == "int8" ? KeyCode::int8 : KeyCode::e4m3,
                 .codes = static_cast<std::byte*>(in.data),
                 .shape = in.shape,
                 .stride = in.stride,
                 .block = block,
                 .keep_scales = keep_scales};
  Array numbers;
  if (!scales.is_none()) {
    numbers = array_of(scales, where, "scales", keep_scales ? Access::read : Access::write);
    keys.scales = numbers.tensor.rank == 4 ? in_layout(numbers.tensor, layout, where)
                                           : numbers.tensor.with_rank(4);
  }
  std::optional<BlockTable> table;
  if (pages && tokens) table = BlockTable{*pages, *tokens};
  move_coded(keys, table, {from, from_ids, to, to_ids}, side, threads, where);
}

void rekey_q8_0_in_place(nb::handle blocks, std::int64_t kv_heads, std::int64_t head_dim,
                         const CompiledPlan& from, nb::handle from_ids, const CompiledPlan* to,
                         nb::handle to_ids, std::string_view side, int threads) {
  constexpr const char* where = "rekey_";
  constexpr std::int64_t block = 32, bytes_of_block = 34;
  const Codes bytes = codes_of(blocks, "hsd", where);
  if (bytes.memory.ndim() != 3 || head_dim % block != 0)
    refuse(where, "q8_0 must be [batch, seq, bytes], and head_dim a multiple of 32",
           std::to_string(head_dim));
  const auto& [sequences, tokens_apart] =
      std::pair{bytes.tensor.shape[1], bytes.tensor.stride[2]};  // as layout "hsd" names them
  const std::int64_t seq = bytes.tensor.shape[2],
                     row = kv_heads * (head_dim / block) * bytes_of_block;
  if (bytes.tensor.shape[3] != row || bytes.tensor.stride[3] != 1 || tokens_apart != row ||
      (sequences > 1 && bytes.tensor.stride[1] != seq * row))
    refuse(where, "q8_0 must be dense, kv_heads · head_dim / 32 · 34 bytes a token",
           std::to_string(bytes.tensor.shape[3]) + " bytes a token", "copy it");
  move_coded(CodedKeys::q8_0(bytes.tensor.data, sequences, kv_heads, seq, head_dim), {},
             {from, from_ids, to, to_ids}, side, threads, where);
}

// --- the header ----------------------------------------------------------------------------------

KeyType key_type_named(std::string_view word) {
  for (const KeyType each : {KeyType::f64, KeyType::f32, KeyType::f16, KeyType::bf16, KeyType::e4m3,
                             KeyType::int8, KeyType::q8_0})
    if (name(each) == word) return each;
  refuse("key_header", "dtype must be float64, float32, float16, bfloat16, e4m3, int8 or q8_0",
         word);
}

KeyHeader header_of(const CompiledPlan& plan, nb::handle ids,
                    const std::vector<std::int64_t>& shape, std::string_view dtype,
                    std::string_view side, std::optional<std::uint32_t> layer) {
  const std::int64_t seq = shape.size() == 4 ? shape[2] : 0;
  return unwrap(key_header({&plan.plan, positions_of(ids, seq, "key_header")}, shape,
                           key_type_named(dtype), side_of(side),
                           layer.value_or(KeyHeader::any_layer)));
}

KeyHeader header_of_bytes(const nb::bytes& data, std::string_view where) {
  return unwrap(
      parse_key_header({reinterpret_cast<const std::byte*>(data.c_str()), data.size()}, where));
}

nb::bytes bytes_of_header(const KeyHeader& header) {
  const auto bytes = to_bytes(header);
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void bind_header(nb::module_& m) {
  nb::class_<KeyHeader>(m, "KeyHeader",
                        "64 bytes that travel with cached keys: by which rotation, and where, they "
                        "stand. key_header() makes it, to_bytes() and from_bytes() are its way "
                        "through files and wires.")
      .def_prop_ro("dtype", [](const KeyHeader& h) { return text(name(h.type)); })
      .def_prop_ro(
          "pairing",
          [](const KeyHeader& h) -> std::optional<std::string> {
            if (h.pairing == KeyHeader::unrotated) return {};
            return h.pairing == 0 ? "halves" : "interleaved";
          },
          "\"halves\" or \"interleaved\"; None where nothing rotates.")
      .def_prop_ro("side",
                   [](const KeyHeader& h) { return text(h.side == Side::value ? "value" : "key"); })
      .def_prop_ro(
          "axes", [](const KeyHeader& h) { return h.axes; }, "Axes of the positions.")
      .def_prop_ro(
          "consecutive", [](const KeyHeader& h) { return h.consecutive; },
          "Whether positions are first, first + 1, … on every axis.")
      .def_prop_ro(
          "first", [](const KeyHeader& h) { return h.first; },
          "The position of the first token, on the first axis.")
      .def_prop_ro("tokens", [](const KeyHeader& h) { return h.tokens; })
      .def_prop_ro(
          "layer",
          [](const KeyHeader& h) -> std::optional<std::uint32_t> {
            if (h.layer == KeyHeader::any_layer) return {};
            return h.layer;
          },
          "None where nobody said which.")
      .def_prop_ro("kv_heads", [](const KeyHeader& h) { return h.kv_heads; })
      .def_prop_ro("head_dim", [](const KeyHeader& h) { return h.head_dim; })
      .def_prop_ro(
          "first_dim", [](const KeyHeader& h) { return h.first_dim; },
          "The first of the channels that rotate.")
      .def_prop_ro("rotary_dim", [](const KeyHeader& h) { return h.rotary_dim; })
      .def_prop_ro(
          "rotation", [](const KeyHeader& h) { return h.rotation; },
          "The fingerprint of frequencies and amplitude.")
      .def_prop_ro(
          "positions", [](const KeyHeader& h) { return h.positions; },
          "The fingerprint of all positions.")
      .def("to_bytes", &bytes_of_header, "The 64 bytes.")
      .def("__bytes__", &bytes_of_header)
      .def_static("from_bytes", &header_of_bytes, nb::arg("data"), nb::arg("where") = "KeyHeader",
                  "Of bytes that begin with a header; `where` begins messages. Raises posenc.Error "
                  "for fewer bytes, another beginning, another version.")
      .def(
          "check",
          [](const KeyHeader& found, const KeyHeader& expected, std::string_view where) {
            unwrap(check_key_header(found, expected, where));
          },
          nb::arg("expected"), nb::arg("where") = "KeyHeader",
          "Raises posenc.Error where keys of this header are not those that a reader expects: the "
          "first member that differs, both values, and what to do.")
      .def("__eq__",
           [](const KeyHeader& a, nb::handle b) {
             const KeyHeader* other = nullptr;
             return nb::try_cast(b, other, false) && other != nullptr && a == *other;
           })
      .def("__hash__",
           [](const KeyHeader& h) {
             return static_cast<std::int64_t>(h.rotation ^ h.positions ^ h.layer);
           })
      .def("__getstate__", &bytes_of_header)
      .def("__setstate__",
           [](KeyHeader& self, const nb::bytes& data) {
             new (&self) KeyHeader(header_of_bytes(data, "KeyHeader"));
           })
      .def("__repr__", [](const KeyHeader& h) {
        return "<KeyHeader " + std::string(name(h.type)) + " [" + std::to_string(h.kv_heads) +
               ", " + std::to_string(h.tokens) + ", " + std::to_string(h.head_dim) + "] at " +
               std::to_string(h.first) + (h.consecutive ? " and on>" : ", …>");
      });
  m.def("key_header", &header_of, nb::arg("plan"), nb::arg("position_ids").none(), nb::arg("shape"),
        nb::arg("dtype") = "float32", nb::kw_only(), nb::arg("side") = "key",
        nb::arg("layer").none() = nb::none(),
        "The header of keys of shape [batch, kv_head, seq, head_dim] that plan rotated at "
        "position_ids. dtype: float64, float32, float16, bfloat16, e4m3, int8 or q8_0. Raises "
        "posenc.Error for rotations that have no header, by their names.");
}

template <class Verb>
void bind(nb::module_& m, const char* name, Verb verb, const char* doc) {
  m.def(name, verb, nb::arg("keys"), nb::arg("plan_from"), nb::arg("from_positions").none(),
        nb::arg("plan_to").none() = nb::none(), nb::arg("to_positions").none() = nb::none(),
        nb::kw_only(), nb::arg("side") = "key", nb::arg("layout") = "", nb::arg("threads") = 0,
        doc);
}

}  // namespace

void bind_rekey(nb::module_& m) {
  bind(m, "rekey", &rekeyed,
       "Keys [batch, kv_head, seq, head_dim] (or as layout names their axes) that plan_from "
       "rotated at from_positions, as plan_to (the same) rotates at to_positions: a new array, "
       "equal to a fresh rotation of the unrotated keys but for one rounding. Positions are as in "
       "Plan.rotate, None counts from 0. side: \"value\" for values of plans that rotate them. "
       "Raises posenc.Error for rotations that cannot be taken back, by their names; ids that are "
       "not as many as the keys; keys that PyTorch records. posenc.reuse says whether a model's "
       "keys may be moved.");
  bind(m, "rekey_", &rekey_in_place, "As rekey, in the array's own memory.");
  // Behind posenc.keys, which takes classes apart.
  m.def("rekey_pages_", &rekey_pages_in_place, nb::arg("keys"), nb::arg("pages"), nb::arg("tokens"),
        nb::arg("plan_from"), nb::arg("from_positions").none(), nb::arg("plan_to").none(),
        nb::arg("to_positions").none(), nb::arg("side"), nb::arg("layout"), nb::arg("threads"));
  m.def("rekey_coded_", &rekey_coded_in_place, nb::arg("codes"), nb::arg("scales").none(),
        nb::arg("code"), nb::arg("block"), nb::arg("keep_scales"), nb::arg("pages").none(),
        nb::arg("tokens").none(), nb::arg("plan_from"), nb::arg("from_positions").none(),
        nb::arg("plan_to").none(), nb::arg("to_positions").none(), nb::arg("side"),
        nb::arg("layout"), nb::arg("threads"));
  m.def("rekey_q8_0_", &rekey_q8_0_in_place, nb::arg("blocks"), nb::arg("kv_heads"),
        nb::arg("head_dim"), nb::arg("plan_from"), nb::arg("from_positions").none(),
        nb::arg("plan_to").none(), nb::arg("to_positions").none(), nb::arg("side"),
        nb::arg("threads"));
  bind_header(m);
  m.def(
      "reuse_json", [](const ReadModel& read) { return text(to_json(reuse(read.model))); },
      nb::arg("model"));
  m.def(
      "layout_json",
      [](const ReadModel& read, const std::string& cp, std::int64_t length,
         const std::string& machine) {
        const layout::Sharding sharding = unwrap(layout::read_sharding(cp));
        const layout::JudgeOptions options{.length = length,
                                           .machine = unwrap(layout::read_machine(machine))};
        return text(to_json(unwrap(layout::judge(read.model, sharding, options))));
      },
      nb::arg("model"), nb::arg("cp"), nb::arg("length"), nb::arg("machine"));
}

}  // namespace posenc::python
