// Claims about trained models: what training alone can tell small models have measured, whose words
// a test compares with evidence/lab/results, or it is not checkable here, and says why. Numbers
// that papers publish are named as such.
#include "evidence/claims/shorthand.h"

namespace posenc::detail {
namespace of_published {

constexpr std::string_view group = "trained models";

Evidence fewer_steps(Lab&) {
  constexpr double published_pi_steps = 1000, published_yarn_steps = 400;  // 2306.15595, 2309.00071
  const double ratio = published_pi_steps / published_yarn_steps;
  return found(
      say("From published numbers: ", published_pi_steps, " steps of position interpolation over ",
          published_yarn_steps, " of YaRN is ", ratio, "."),
      {inside("| ratio of published steps − 2.5 |", std::abs(ratio - 2.5), 0)});
}

constexpr Claim claims[] = {
    {22, 'b', group, "Language models without positions come close to those with them", "S4",
     Verdict::measured,
     "Needs training on a large corpus; the paper reports it for causal models only", "",
     "2203.16634",
     "the paper's perplexities on WikiText-103; posenc lab report "
     "evidence/lab/results/standard.jsonl",
     nullptr,
     "Without position a model is no more than 0.1 worse than with RoPE, in range: contradicted, "
     "difference +0.616 ±0.019 nats over 6 seeds; Copying two symbols more than in training, no "
     "position gets more right than RoPE: reproduced, difference +0.302 ±0.125 of the answers over "
     "6 "
     "seeds; Finding hidden bytes by reading both ways, no position is worse than RoPE by more "
     "than "
     "0.1: reproduced, difference +0.893 ±0.041 nats over 6 seeds."},
    {23, 'a', group, "Learned and sinusoidal vectors translate nearly equally well", "S4",
     Verdict::unchecked,
     "Needs BLEU of trained translators; the paper says so itself (Table 3, row E)", "",
     "1706.03762", "the paper's Table 3", nullptr},
    {23, 'b', group, "Learned vectors work better than sinusoidal ones", "S2 S4", Verdict::measured,
     "Needs training; published causal perplexities have it the other way round", "", "2203.16634",
     "the paper's perplexities on WikiText-103; posenc lab report "
     "evidence/lab/results/standard.jsonl",
     nullptr,
     "Learned vectors are better than sinusoidal ones, in range: reproduced, difference +0.078 "
     "±0.029 nats over 6 seeds."},
    {26, 'b', group,
     "ALiBi trained at 1,024 equals sinusoids trained at 2,048, faster and in less memory", "S4",
     Verdict::measured, "Needs a model of 1.3 billion parameters; the paper reports it", "",
     "2108.12409", "the paper's main result; posenc lab report evidence/lab/results/standard.jsonl",
     nullptr,
     "ALiBi in range is no more than 0.02 worse than sinusoids: reproduced, difference -0.269 "
     "±0.030 "
     "nats over 6 seeds; ALiBi trained at 64 bytes is at 128 no more than 0.02 worse than "
     "sinusoids trained at 128: reproduced, difference -0.482 ±0.018 nats over 6 seeds."},
    {26, 'c', group, "ALiBi's extrapolation comes for free", "S4", Verdict::measured,
     "Needs training; the paper's Appendix B lays the gain mostly to early tokens having more "
     "context",
     "", "2108.12409",
     "the paper's Appendix B; posenc lab report evidence/lab/results/standard.jsonl", nullptr,
     "ALiBi gains more than 0.02 from 8 × the context: contradicted, difference -0.008 ±0.002 nats "
     "over 6 seeds; ALiBi at 8 × is no more than 0.02 worse than at 1 ×: reproduced, difference "
     "+0.008 ±0.002 nats over 6 seeds."},
    {33, 'a', group, "RoFormer translates better: BLEU 27.5 against 27.3", "S3", Verdict::unchecked,
     "Needs BLEU of trained translators; published from single runs, with GLUE tasks going both "
     "ways",
     "", "2104.09864", "the paper's Tables 1 and 2", nullptr},
    {34, 'a', group, "RoPE converges faster", "S3", Verdict::measured,
     "Needs training; the paper shows it for masked language models and does not explain it", "",
     "2104.09864", "the paper's Figure 3; posenc lab report evidence/lab/results/standard.jsonl",
     nullptr,
     "Half-way through training RoPE's loss is below that of sinusoids: reproduced, difference "
     "+0.364 ±0.035 nats over 6 seeds; Half-way through training RoPE's loss is below ALiBi's: "
     "reproduced, difference +0.113 ±0.021 nats over 6 seeds."},
    {35, 'a', group, "YaRN needs 2.5 times less compute than RoPE", "S2", Verdict::wrong,
     "2.5 counts training steps, and against position interpolation", "1000/400", "2309.00071",
     "the steps both papers publish", run<fewer_steps>},
    {35, 'b', group, "YaRN needs 10 times fewer tokens than RoPE", "S2", Verdict::measured,
     "Needs fine-tuning of large models; the paper compares with Code Llama's data, not with RoPE",
     "", "2309.00071",
     "the paper's abstract and Section 4; posenc lab report evidence/lab/results/standard.jsonl",
     nullptr,
     "Tuned for a quarter of the steps, YaRN at 8 × is no worse than RoPE without scaling after "
     "all "
     "of them: not seen here, difference +0.027 ±0.027 nats over 6 seeds."},
    {36, 'c', group, "Position interpolation works less well than YaRN", "S2", Verdict::measured,
     "Needs perplexities of large fine-tuned models; YaRN's paper reports it", "", "2309.00071",
     "the paper's tables of perplexity; posenc lab report evidence/lab/results/standard.jsonl",
     nullptr,
     "Untuned, YaRN at 8 × is better than position interpolation: reproduced, difference +1.095 "
     "±0.114 nats over 6 seeds; Tuned, YaRN at 8 × is still better than position interpolation: "
     "reproduced, difference +0.475 ±0.034 nats over 6 seeds."},
    {40, 'a', group, "A few hundred steps stretch a 4k model to 32k or 128k", "S4",
     Verdict::measured,
     "Needs fine-tuning at 128k; the paper reports 400 steps, and 200 more for 128k", "",
     "2309.00071", "the paper's Section 4; posenc lab report evidence/lab/results/standard.jsonl",
     nullptr,
     "Untuned, YaRN at 8 × is better than no scaling: reproduced, difference +0.864 ±0.209 nats "
     "over 6 seeds; Tuned for a fifth of the training, YaRN at 8 × is within 0.05 of RoPE at 1 ×: "
     "reproduced, difference +0.013 ±0.006 nats over 6 seeds."},
    {41, 'd', group, "T5's bias extrapolates moderately, ALiBi strongly", "S4", Verdict::measured,
     "Needs trained models; published comparisons agree on the order", "", "2205.09921",
     "the paper's perplexities beyond the trained length; posenc lab report "
     "evidence/lab/results/standard.jsonl",
     nullptr,
     "T5 at 8 × is worse than ALiBi at 8 ×: reproduced, difference +0.622 ±0.015 nats over 6 "
     "seeds; T5 at 8 × is better than RoPE at 8 ×: reproduced, difference +0.440 ±0.196 nats over "
     "6 seeds."},
};

}  // namespace of_published

std::span<const Claim> published_claims() { return of_published::claims; }

}  // namespace posenc::detail
