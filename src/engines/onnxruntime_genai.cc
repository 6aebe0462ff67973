// onnxruntime-genai's builder, which bakes tables of cosines and sines into the graph.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void onnxruntime_genai_reads(EngineRope& rope) {
  if (rope.scaling<DynamicNtk>()) lose_scaling(rope, "the builder does not know it");
  lose_attention_factor(rope);
  if (auto* yarn = rope.scaling<Yarn>()) {
    if (!rope.states("beta_fast")) {
      lose_scaling(rope,
                   "the builder knows it by its beta_fast, which the file has not: write beta_fast "
                   "32 and beta_slow 1");
    } else if (yarn->truncate) {
      rope.approximated("the ends of YaRN's ramp are not rounded to whole pairs");
      yarn->truncate = false;
    }
  }
  if (rope.model.context > 0) rope.table_rows(rope.model.context);
}

}  // namespace

const EngineProfile onnxruntime_genai_profile{
    {"onnxruntime-genai", "ort-genai ort onnx", "onnxruntime-genai", "0.16.0",
     "onnxruntime_genai/models/builders/base.py"},
    "config.json",
    onnxruntime_genai_reads};

}  // namespace posenc::detail
