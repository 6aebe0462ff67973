// A training step under PyTorch's autograd (libtorch): posenc's attention forwards, its gradients
// backwards. Built where libtorch is installed (Debian: libtorch-dev).
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

#include "posenc/posenc.h"

using namespace posenc;

namespace {

// A view of a dense or strided torch tensor of four axes; no copy.
Tensor view(const torch::Tensor& x) {
  Tensor seen = Tensor::dense(x.data_ptr<float>(), {x.size(0), x.size(1), x.size(2), x.size(3)});
  for (int axis = 0; axis < 4; ++axis) seen.stride[static_cast<std::size_t>(axis)] = x.stride(axis);
  return seen;
}

void must(const Expected<void>& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().message().c_str());
  std::exit(1);
}

AttentionInputs inputs(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const Positions positions = Positions::range(0, q.size(2));
  return {.q = view(q), .k = view(k), .v = view(v), .queries = positions, .keys = positions};
}

// softmax(rotated q·kᵀ)·v of any plan. Nothing but q, k and v is kept for the backward pass.
struct Attend : torch::autograd::Function<Attend> {
  static torch::Tensor forward(torch::autograd::AutogradContext* kept, const torch::Tensor& q,
                               const torch::Tensor& k, const torch::Tensor& v, const Plan* plan) {
    kept->save_for_backward({q, k, v});
    kept->saved_data["plan"] = reinterpret_cast<std::int64_t>(plan);
    torch::Tensor out = torch::empty({q.size(0), q.size(1), q.size(2), v.size(3)});
    must(attend(inputs(q, k, v), *plan, view(out)));
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* kept,
                                                 torch::autograd::variable_list given) {
    const auto saved = kept->get_saved_variables();
    const auto* plan = reinterpret_cast<const Plan*>(kept->saved_data["plan"].toInt());
    torch::Tensor q = torch::empty_like(saved[0]), k = torch::empty_like(saved[1]),
                  v = torch::empty_like(saved[2]);
    must(attend_backward(inputs(saved[0], saved[1], saved[2]), *plan, view(given[0].contiguous()),
                         {.q = view(q), .k = view(k), .v = view(v)}));
    return {q, k, v, torch::Tensor()};
  }
};

// The same by torch's own operations: channel c is paired with c + head_dim/2.
torch::Tensor rotated(const torch::Tensor& x, const Plan& plan) {
  const auto frequencies = torch::tensor(plan.rotate->frequencies.radians);
  const auto angles =
      torch::outer(torch::arange(x.size(2), torch::kDouble), frequencies.to(torch::kDouble))
          .to(torch::kFloat);
  const auto halves = x.chunk(2, -1);
  const auto cos = angles.cos(), sin = angles.sin();
  return torch::cat({halves[0] * cos - halves[1] * sin, halves[0] * sin + halves[1] * cos}, -1);
}

torch::Tensor by_torch(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const Plan& plan) {
  const auto logits = rotated(q, plan).matmul(rotated(k, plan).transpose(-1, -2)) /
                      std::sqrt(static_cast<double>(q.size(3)));
  const auto hidden = torch::ones({q.size(2), q.size(2)}, torch::kBool).triu(1);
  return logits.masked_fill(hidden, -INFINITY).softmax(-1).matmul(v);
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const std::int64_t heads = 4, length = 32, head_dim = 16, width = heads * head_dim;
  const Expected<Plan> plan = compile(Scheme{Rope{}}, {.heads = heads, .head_dim = head_dim});
  if (!plan) return 1;
  torch::nn::Linear project(width, 3 * width), out(width, width);
  const auto x = torch::randn({2, length, width}), wanted = torch::randn({2, length, width});
  const auto gradient = [&](bool by_posenc) {
    project->zero_grad();
    const auto parts =
        project(x).view({2, length, 3, heads, head_dim}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto attended = by_posenc ? Attend::apply(parts[0], parts[1], parts[2], &*plan)
                                    : by_torch(parts[0], parts[1], parts[2], *plan);
    const auto loss =
        (out(attended.transpose(1, 2).reshape({2, length, width})) - wanted).square().mean();
    loss.backward();
    std::printf("loss %.6f %s\n", loss.item<double>(),
                by_posenc ? "with posenc's attention" : "with torch's operations");
    return project->weight.grad().clone();
  };
  const auto ours = gradient(true), theirs = gradient(false);
  const double apart = (ours - theirs).abs().max().item<double>();
  std::printf("gradients of the projection differ by at most %.1e\n", apart);
  return apart < 1e-6 ? 0 : 1;
}
