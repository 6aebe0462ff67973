// The C interface: attention by plans and by schemes that read the content, and its gradients.
#include <string>
#include <utility>

#include "posenc/angles.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "posenc/explain.h"
#include "posenc/gradients.h"
#include "src/c/handles.h"
#include "src/core/saturating.h"

using namespace posenc;
using c::done, c::hand_out, c::misuse, c::need, c::View, c::view;

// --- attention -----------------------------------------------------------------------------------

posenc_status posenc_attend(const posenc_plan* plan, const posenc_attention* in,
                            const posenc_tensor* out) noexcept {
  constexpr std::string_view where = "posenc_attend";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out", out);
  return given.status ? given.status : done(attend(*given.in, plan->value, given.out));
}

posenc_status posenc_attend_reference(const posenc_plan* plan, const posenc_attention* in,
                                      const posenc_tensor* out,
                                      const posenc_tensor* logits) noexcept {
  constexpr std::string_view where = "posenc_attend_reference";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out", out);
  if (given.status) return given.status;
  View to{POSENC_OK};
  if (logits) to = view(where, "logits", logits);
  return to.status ? to.status
                   : done(attend_reference(*given.in, plan->value, given.out, to.tensor));
}

// --- schemes that read the content ---------------------------------------------------------------

posenc_status posenc_content_from_scheme(const char* scheme_json, posenc_content** out) noexcept {
  if (const auto bad =
          need("posenc_content_from_scheme", "out", out, {{"scheme_json", scheme_json}}))
    return bad;
  return hand_out(read_content_scheme(scheme_json), out);
}

void posenc_content_free(posenc_content* content) noexcept { delete content; }

posenc_status posenc_content_set_table(posenc_content* content, const char* name,
                                       const posenc_tensor* values) noexcept {
  constexpr std::string_view where = "posenc_content_set_table";
  if (const auto bad = need(where, {{"content", content}, {"name", name}})) return bad;
  const View given = view(where, "values", values);
  if (given.status) return given.status;
  if (const auto bad = c::need_table(where, "values", given.tensor)) return bad;
  return done(set_table(content->value, name, c::copied(given.tensor)));
}

posenc_status posenc_attend_content_reference(const posenc_content* content,
                                              const posenc_plan* plan, const posenc_attention* in,
                                              const posenc_tensor* out, const posenc_tensor* logits,
                                              const posenc_tensor* weights) noexcept {
  constexpr std::string_view where = "posenc_attend_content_reference";
  if (const auto bad = need(where, {{"content", content}})) return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out", out);
  if (given.status) return given.status;
  return c::on_tensors(where, {}, 0, {{"logits", logits, true}, {"weights", weights, true}},
                       [&](const Tensor& to_logits, const Tensor& to_weights) {
                         return attend_reference(*given.in, content->value,
                                                 plan ? plan->value : Plan{}, given.out, to_logits,
                                                 to_weights);
                       });
}

#ifndef __wasm__
namespace {

// The gradients that are wanted, by the struct's members.
struct Wanted {
  std::string_view name;
  const posenc_tensor* from;
  Tensor* to;
};
posenc_status read_gradients(std::string_view where, std::initializer_list<Wanted> members) {
  for (const auto& [name, from, to] : members) {
    if (from == nullptr) continue;
    const View each = view(where, "gradients." + std::string(name), from);
    if (each.status) return each.status;
    *to = each.tensor;
  }
  return POSENC_OK;
}

template <class Gradients>
posenc_status need_gradients(std::string_view where, std::string_view type,
                             const Gradients* gradients) {
  if (const auto bad = need(where, {{"gradients", gradients}})) return bad;
  return c::need_size(where, "gradients", type, *gradients);
}

}  // namespace

posenc_status posenc_attend_backward(const posenc_plan* plan, const posenc_attention* in,
                                     const posenc_tensor* out_gradient,
                                     const posenc_attention_gradients* gradients) noexcept {
  constexpr std::string_view where = "posenc_attend_backward";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  if (const auto bad = need_gradients(where, "posenc_attention_gradients", gradients)) return bad;
  AttentionGradients to;
  const c::ReadProfiles profiles = c::read_profiles(where, gradients->profiles);
  if (profiles.status) return profiles.status;
  to.profiles = profiles.tensors;
  if (const auto bad = read_gradients(
          where, {{"q", gradients->q, &to.q},
                  {"k", gradients->k, &to.k},
                  {"v", gradients->v, &to.v},
                  {"slopes", gradients->slopes, &to.slopes},
                  {"bias", gradients->bias, &to.bias},
                  {"relative_query", gradients->relative_query, &to.relative_query},
                  {"relative_key", gradients->relative_key, &to.relative_key},
                  {"relative_value", gradients->relative_value, &to.relative_value},
                  {"rotation_frequency", gradients->rotation_frequency, &to.rotation_frequency},
                  {"sink_logits", gradients->sink_logits, &to.sink_logits},
                  {"rotation_phase", gradients->rotation_phase, &to.rotation_phase},
                  {"mix_cosine", gradients->mix_cosine, &to.mix_cosine},
                  {"mix_sine", gradients->mix_sine, &to.mix_sine}}))
    return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out_gradient", out_gradient);
  return given.status ? given.status : done(attend_backward(*given.in, plan->value, given.out, to));
}

// --- angles that content says --------------------------------------------------------------------

namespace {

// NULL: none.
std::span<const double> by_pair(const double* factor, const Tensor& x) {
  const std::int64_t pairs = std::max<std::int64_t>(x.with_rank(Tensor::max_rank).shape[3], 0);
  return factor ? std::span(factor, static_cast<std::size_t>(pairs)) : std::span<const double>();
}

}  // namespace

posenc_status posenc_summed_angles(const posenc_tensor* steps, const double* factor,
                                   const posenc_tensor* start, const posenc_tensor* out) noexcept {
  return c::on_tensors("posenc_summed_angles", {}, 0,
                       {{"steps", steps}, {"out", out}, {"start", start, true}},
                       [&](const Tensor& from, const Tensor& to, const Tensor& begin) {
                         return summed_angles(from, by_pair(factor, from), begin, to);
                       });
}

posenc_status posenc_summed_angles_gradient(const posenc_tensor* angles_gradient,
                                            const double* factor,
                                            const posenc_tensor* out) noexcept {
  return c::on_tensors("posenc_summed_angles_gradient", {}, 0,
                       {{"angles_gradient", angles_gradient}, {"out", out}},
                       [&](const Tensor& from, const Tensor& to) {
                         return summed_angles_gradient(from, by_pair(factor, from), to);
                       });
}

namespace {

struct ReadForm {
  posenc_status status = POSENC_MISUSE;
  AngleForm form = {};
};
ReadForm read_form(std::string_view where, const posenc_plan* plan, const posenc_angle_form* form) {
  if (const auto bad = need(where, {{"plan", plan}, {"form", form}})) return {bad};
  if (form->struct_size != sizeof(posenc_angle_form))
    return {misuse(where, "form->struct_size must be sizeof(posenc_angle_form)",
                   std::to_string(form->struct_size), "set it before the call")};
  const auto known = [](std::int32_t number, std::int32_t last) {
    return 0 <= number && number <= last;
  };
  if (!known(form->step, POSENC_STEP_POWERS) || !known(form->gate, POSENC_GATE_SOFTPLUS))
    return {misuse(where, "form's step and gate must be constants of posenc",
                   std::to_string(form->step) + ", " + std::to_string(form->gate),
                   "POSENC_STEP_PLAIN and its kin, POSENC_GATE_NONE and its kin")};
  return {POSENC_OK,
          {.step = static_cast<AngleStep>(form->step),
           .gate = static_cast<AngleGate>(form->gate),
           .own_step = form->own_step != 0,
           .sums = form->alone == 0,
           .turning = form->turning,
           .plan = plan->value}};
}

// What both list, absent where NULL.
struct ReadSaid {
  posenc_status status = POSENC_MISUSE;
  Tensor said = {}, gate = {}, start = {};
};
ReadSaid read_said(std::string_view where, std::string_view name, const posenc_said_angles* in) {
  if (in == nullptr || in->struct_size != sizeof(posenc_said_angles))
    return {misuse(where,
                   std::string(name) + " must be a posenc_said_angles with its struct_size set",
                   in == nullptr ? "NULL" : std::to_string(in->struct_size),
                   "set it to sizeof(posenc_said_angles)")};
  ReadSaid read{POSENC_OK};
  for (const auto& [what, from, to] : {std::tuple{"said", in->said, &read.said},
                                       {"gate", in->gate, &read.gate},
                                       {"start", in->start, &read.start}}) {
    if (from == nullptr) continue;
    const View given = view(where, what, from);
    if (given.status) return {given.status};
    *to = given.tensor;
  }
  return read;
}

}  // namespace

posenc_status posenc_angle_form_named(const char* name, int64_t head_dim, double number,
                                      posenc_angle_form* form, posenc_plan** plan) noexcept {
  constexpr std::string_view where = "posenc_angle_form_named";
  if (const auto bad = need(where, "plan", plan, {{"name", name}, {"form", form}})) return bad;
  if (form->struct_size != sizeof(posenc_angle_form))
    return misuse(where, "form->struct_size must be sizeof(posenc_angle_form)",
                  std::to_string(form->struct_size), "set it before the call");
  constexpr std::string_view known[] = {"selective_rope", "carope",  "mamba3",
                                        "mamba3_halves",  "grape_m", "repo"};
  const std::string_view asked = name;
  const auto or_else = [&](double usual) { return number == 0 ? usual : number; };
  Expected<AngleForm> made =
      asked == known[0]   ? selective_rope(head_dim, or_else(500000))
      : asked == known[1] ? carope(head_dim)
      : asked == known[2] ? mamba3(head_dim, or_else(0.5))
      : asked == known[3] ? mamba3(head_dim, or_else(0.5), Pairing::halves)
      : asked == known[4] ? grape_m(head_dim, or_else(10000))
      : asked == known[5]
          ? repo(head_dim, or_else(500000))
          : Expected<AngleForm>(fail(where, "no such form", asked, suggestion(asked, known)));
  if (!made) return c::refused(made.error());
  form->step = static_cast<std::int32_t>(made->step);
  form->gate = static_cast<std::int32_t>(made->gate);
  form->own_step = made->own_step ? 1 : 0;
  form->alone = made->sums ? 0 : 1;
  form->turning = made->turning;
  return hand_out(Expected<Plan>(std::move(made->plan)), plan);
}

posenc_status posenc_content_angles(const posenc_plan* plan, const posenc_angle_form* form,
                                    const posenc_said_angles* in, const posenc_tensor* out,
                                    const posenc_tensor* next) noexcept {
  constexpr std::string_view where = "posenc_content_angles";
  const ReadForm made = read_form(where, plan, form);
  if (made.status) return made.status;
  const ReadSaid said = read_said(where, "in", in);
  if (said.status) return said.status;
  return c::on_tensors(where, {}, 0, {{"out", out}, {"next", next, true}},
                       [&](const Tensor& angles, const Tensor& behind) {
                         return content_angles(made.form, {said.said, said.gate, said.start},
                                               angles, behind);
                       });
}

posenc_status posenc_content_angles_gradient(const posenc_plan* plan, const posenc_angle_form* form,
                                             const posenc_said_angles* in,
                                             const posenc_tensor* angles_gradient,
                                             const posenc_said_angles* to,
                                             const posenc_tensor* frequency) noexcept {
  constexpr std::string_view where = "posenc_content_angles_gradient";
  const ReadForm made = read_form(where, plan, form);
  if (made.status) return made.status;
  const ReadSaid said = read_said(where, "in", in), wanted = read_said(where, "to", to);
  for (const ReadSaid& each : {said, wanted})
    if (each.status) return each.status;
  return c::on_tensors(
      where, {}, 0, {{"angles_gradient", angles_gradient}, {"frequency", frequency, true}},
      [&](const Tensor& by, const Tensor& of_frequency) {
        return content_angles_gradient(made.form, {said.said, said.gate, said.start}, by,
                                       {wanted.said, wanted.gate, wanted.start, of_frequency});
      });
}

// --- schemes that read the content, at speed -----------------------------------------------------

posenc_status posenc_attend_content(const posenc_content* content, const posenc_plan* plan,
                                    const posenc_attention* in, const posenc_tensor* out,
                                    const posenc_tensor* remainder) noexcept {
  constexpr std::string_view where = "posenc_attend_content";
  if (const auto bad = need(where, {{"content", content}})) return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out", out);
  if (given.status) return given.status;
  return c::on_tensors(where, {}, 0, {{"remainder", remainder, true}}, [&](const Tensor& rest) {
    return attend(*given.in, content->value, plan ? plan->value : Plan{}, given.out, rest);
  });
}

posenc_status posenc_attend_content_backward(const posenc_content* content, const posenc_plan* plan,
                                             const posenc_attention* in,
                                             const posenc_tensor* out_gradient,
                                             const posenc_content_gradients* gradients,
                                             const posenc_tensor* remainder_gradient) noexcept {
  constexpr std::string_view where = "posenc_attend_content_backward";
  if (const auto bad = need(where, {{"content", content}})) return bad;
  if (const auto bad = need_gradients(where, "posenc_content_gradients", gradients)) return bad;
  ContentGradients to;
  if (const auto bad = read_gradients(
          where, {{"q", gradients->q, &to.q},
                  {"k", gradients->k, &to.k},
                  {"v", gradients->v, &to.v},
                  {"hidden_weight", gradients->hidden_weight, &to.hidden_weight},
                  {"hidden_bias", gradients->hidden_bias, &to.hidden_bias},
                  {"output_weight", gradients->output_weight, &to.output_weight},
                  {"output_bias", gradients->output_bias, &to.output_bias},
                  {"c", gradients->c, &to.c},
                  {"length_multiplier", gradients->length_multiplier, &to.length_multiplier},
                  {"embeddings", gradients->embeddings, &to.embeddings},
                  {"log_gates", gradients->log_gates, &to.log_gates},
                  {"sink_logits", gradients->sink_logits, &to.sink_logits},
                  {"channel_gates", gradients->channel_gates, &to.channel_gates},
                  {"w", gradients->w, &to.w},
                  {"beta", gradients->beta, &to.beta},
                  {"p_queries", gradients->p_queries, &to.p_queries},
                  {"p_keys", gradients->p_keys, &to.p_keys}}))
    return bad;
  const c::ReadAttention given = c::read_attention(where, in, "out_gradient", out_gradient);
  if (given.status) return given.status;
  return c::on_tensors(where, {}, 0, {{"remainder_gradient", remainder_gradient, true}},
                       [&](const Tensor& rest) {
                         return attend_backward(*given.in, content->value,
                                                plan ? plan->value : Plan{}, given.out, to, rest);
                       });
}

posenc_status posenc_path_keys(const posenc_tensor* keys, const posenc_tensor* w,
                               const posenc_tensor* beta, int32_t threads) noexcept {
  return c::on_tensors("posenc_path_keys", {}, threads, {{"keys", keys}, {"w", w}, {"beta", beta}},
                       [&](const Tensor& of, const Tensor& by_w, const Tensor& by_beta) {
                         return path_keys(of, by_w, by_beta, {threads});
                       });
}
#endif
