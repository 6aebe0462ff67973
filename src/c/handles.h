// What the files of the C interface share: the handles, and how errors leave.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "posenc/attention.h"
#include "posenc/c.h"
#include "posenc/content.h"
#include "posenc/model.h"
#include "posenc/positions.h"

struct posenc_model {
  posenc::Model value;
};
struct posenc_plan {
  posenc::Plan value;
};
struct posenc_content {
  posenc::ContentScheme value;
};
struct posenc_positions {
  posenc::Positions value;
};

namespace posenc::c {

// Keep the message for posenc_last_error().
posenc_status refused(const Error& error);
posenc_status misuse(std::string_view function, std::string_view rule, std::string_view got = {},
                     std::string_view cure = {});

struct Argument {
  std::string_view name;
  const void* pointer;
};
// POSENC_MISUSE for a struct of another size than this library's. `name` is the argument's, `type`
// the struct's own.
template <class Struct>
posenc_status need_size(std::string_view function, std::string_view name, std::string_view type,
                        const Struct& given) {
  if (given.struct_size == sizeof given) return POSENC_OK;
  return misuse(function,
                std::string(name) + ".struct_size must be " + std::to_string(sizeof given),
                std::to_string(given.struct_size), "set it to sizeof(" + std::string(type) + ")");
}
// POSENC_MISUSE for the first one that is NULL.
posenc_status need(std::string_view function, std::initializer_list<Argument> arguments);
// The same where a result is handed out: `out` is NULL unless the function returns POSENC_OK.
template <class Result>
posenc_status need(std::string_view function, std::string_view name, Result** out,
                   std::initializer_list<Argument> arguments = {}) {
  if (const auto bad = need(function, {Argument{name, out}})) return bad;
  *out = nullptr;
  return need(function, arguments);
}

// What `made` holds becomes the caller's.
template <class Handle, class T>
posenc_status hand_out(Expected<T> made, Handle** out) {
  if (!made) return refused(made.error());
  *out = new Handle{std::move(*made)};
  return POSENC_OK;
}
posenc_status hand_out(std::string_view text, char** out);
template <class T>
posenc_status hand_out_json(const Expected<T>& made, char** json) {
  return made ? hand_out(to_json(*made), json) : refused(made.error());
}

inline posenc_status done(const Expected<void>& result) {
  return result ? POSENC_OK : refused(result.error());
}

// The tensor that a C struct describes. `name` is the argument's, for messages.
struct View {
  posenc_status status = POSENC_MISUSE;
  Tensor tensor = {};
};
View view(std::string_view function, std::string_view name, const posenc_tensor* c);

struct TensorArgument {
  std::string_view name;
  const posenc_tensor* tensor;
  bool optional = false;  // NULL: absent
};
// POSENC_MISUSE for a negative number, and for none of posenc_side.
posenc_status need_threads(std::string_view function, std::int32_t threads);
posenc_status need_side(std::string_view where, posenc_side side);

// What the functions that act on tensors do: act(tensor, ...) of those given, once all that they
// need is there.
template <std::size_t N, class Act>
posenc_status on_tensors(std::string_view function, std::initializer_list<Argument> needed,
                         std::int32_t threads, const TensorArgument (&given)[N], const Act& act) {
  if (const auto bad = need(function, needed)) return bad;
  if (const auto bad = need_threads(function, threads)) return bad;
  Tensor tensors[N];
  for (std::size_t i = 0; i < N; i++) {
    if (given[i].optional && given[i].tensor == nullptr) continue;
    const View seen = view(function, given[i].name, given[i].tensor);
    if (seen.status) return seen.status;
    tensors[i] = seen.tensor;
  }
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return done(act(tensors[I]...));
  }(std::make_index_sequence<N>());
}

// NULL: causal.
struct ReadMask {
  posenc_status status = POSENC_MISUSE;
  Mask mask = {};
};
ReadMask read_mask(std::string_view function, const posenc_mask* mask);

struct ReadProfiles {
  posenc_status status = POSENC_MISUSE;
  ProfileTensors tensors = {};
};
ReadProfiles read_profiles(std::string_view function, const posenc_profiles* given);  // NULL: none

// What every attention takes, with its output.
struct ReadAttention {
  posenc_status status = POSENC_MISUSE;
  std::optional<AttentionInputs> in = {};
  Tensor out = {};
};
ReadAttention read_attention(std::string_view function, const posenc_attention* in,
                             std::string_view out_name, const posenc_tensor* out);

// POSENC_MISUSE for no memory, negative extents, shapes or strides that no memory has, and more
// than 2^28 numbers: what a caller says of a table's size may be anything.
posenc_status need_table(std::string_view function, std::string_view name, const Tensor& tensor);

// The same numbers in memory of the table's own, dense.
Table copied(const Tensor& from);

}  // namespace posenc::c
