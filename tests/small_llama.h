// A Llama of two layers with random weights, as a GGUF file and as plain double loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/safetensors_front.h"
#include "tests/gguf_bytes.h"

namespace posenc::test {

struct SmallLlamaFile {
  static constexpr int width = 16, heads = 4, kv_heads = 2, head_dim = 4, hidden = 24, layers = 2,
                       vocabulary = 12;
  using Vector = std::vector<double>;

  std::map<std::string, std::vector<float>> weights;
  std::vector<std::pair<std::string, std::vector<int>>> shapes;

  SmallLlamaFile() {
    add("token_embd.weight", {vocabulary, width});
    add("output_norm.weight", {width});
    for (int layer = 0; layer < layers; ++layer) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      for (const auto& [name, shape] :
           std::initializer_list<std::pair<std::string, std::vector<int>>>{
               {"attn_norm", {width}},
               {"ffn_norm", {width}},
               {"attn_q", {heads * head_dim, width}},
               {"attn_k", {kv_heads * head_dim, width}},
               {"attn_v", {kv_heads * head_dim, width}},
               {"attn_output", {width, heads * head_dim}},
               {"ffn_gate", {hidden, width}},
               {"ffn_up", {hidden, width}},
               {"ffn_down", {width, hidden}}})
        add(at + name + ".weight", shape);
    }
  }
  void add(const std::string& name, const std::vector<int>& shape) {
    std::normal_distribution<float> normal(shape.size() == 1 ? 1.F : 0.F, 0.4F);
    std::vector<float>& numbers = weights[name];
    for (int i = 0; i < shape[0] * (shape.size() > 1 ? shape[1] : 1); ++i)
      numbers.push_back(normal(random));
    shapes.emplace_back(name, shape);
  }

  std::string file() const {
    using Bytes = GgufBytes;
    Bytes b;
    b.start(shapes.size(), 13);
    b.key("general.architecture", Bytes::string).word("llama");
    const auto number = [&](std::string_view key, std::uint32_t value) {
      b.key(key, Bytes::u32).put(value);
    };
    number("llama.block_count", layers);
    number("llama.context_length", 64);
    number("llama.embedding_length", width);
    number("llama.feed_forward_length", hidden);
    number("llama.attention.head_count", heads);
    number("llama.attention.head_count_kv", kv_heads);
    b.key("llama.attention.layer_norm_rms_epsilon", Bytes::f32).put(1e-5F);
    b.key("llama.rope.freq_base", Bytes::f32).put(100.F);
    b.key("tokenizer.ggml.model", Bytes::string).word("gpt2");
    b.key("tokenizer.ggml.pre", Bytes::string).word("gpt-2");
    b.key("tokenizer.ggml.tokens", Bytes::array).put(std::uint32_t{Bytes::string});
    b.put(std::uint64_t{vocabulary});
    for (int i = 0; i < vocabulary; ++i) b.word(std::string(1, static_cast<char>('a' + i)));
    b.key("tokenizer.ggml.merges", Bytes::array)
        .put(std::uint32_t{Bytes::string})
        .put(std::uint64_t{0});
    std::uint64_t offset = 0;
    for (const auto& [name, shape] : shapes) {
      if (shape.size() == 1)
        b.tensor(name, {static_cast<std::uint64_t>(shape[0])}, 0, offset);
      else
        b.tensor(name, {static_cast<std::uint64_t>(shape[1]), static_cast<std::uint64_t>(shape[0])},
                 0, offset);
      offset += (weights.at(name).size() * sizeof(float) + 31) / 32 * 32;
    }
    b.pad();
    for (const auto& [name, shape] : shapes) {
      for (const float x : weights.at(name)) b.put(x);
      b.pad();
    }
    return b.text;
  }

  // The same weights as a folder of Hugging Face's, where halves are paired: its rows of q and k
  // stand in another order.
  std::string safetensors() const {
    std::string header = "{", data;
    for (const auto& [name, shape] : shapes) {
      std::vector<float> numbers = weights.at(name);
      if (name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight"))
        for (std::size_t row = 0; row < numbers.size() / width; ++row) {
          const std::size_t head = row / head_dim * head_dim, at = row % head_dim,
                            from =
                                head + (at < head_dim / 2 ? 2 * at : 2 * (at - head_dim / 2) + 1);
          for (std::size_t i = 0; i < width; ++i)
            numbers[row * width + i] = weights.at(name)[from * width + i];
        }
      header += (header.size() > 1 ? ",\"" : "\"") + hugging_face(name) +
                "\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(shape[0]) +
                (shape.size() > 1 ? "," + std::to_string(shape[1]) : "") + "],\"data_offsets\":[" +
                std::to_string(data.size()) + "," +
                std::to_string(data.size() + numbers.size() * sizeof(float)) + "]}";
      data.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    }
    return detail::safetensors_front(header + "}") + data;
  }
  static std::string hugging_face(std::string name) {
    const auto replace = [&](std::string_view from, std::string_view to) {
      if (const std::size_t at = name.find(from); at != name.npos)
        name.replace(at, from.size(), to);
    };
    replace("token_embd", "model.embed_tokens");
    replace("output_norm", "model.norm");
    replace("blk.", "model.layers.");
    replace("attn_norm", "input_layernorm");
    replace("ffn_norm", "post_attention_layernorm");
    replace("attn_output", "self_attn.o_proj");
    for (const char* part : {"q", "k", "v"})
      replace("attn_" + std::string(part), "self_attn." + std::string(part) + "_proj");
    for (const char* part : {"gate", "up", "down"})
      replace("ffn_" + std::string(part), "mlp." + std::string(part) + "_proj");
    return name;
  }
  static std::string config() {
    return R"({"model_type": "llama", "hidden_size": 16, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 4, "num_hidden_layers": 2, "intermediate_size": 24,
      "max_position_embeddings": 64, "rope_theta": 100.0, "rms_norm_eps": 1e-05})";
  }
  static std::string tokenizer() {
    std::string vocab;
    for (int i = 0; i < vocabulary; ++i)
      vocab += (i > 0 ? ", \"" : "\"") + std::string(1, static_cast<char>('a' + i)) +
               "\": " + std::to_string(i);
    return R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "merges": [],)"
           R"( "vocab": {)" +
           vocab + "}}}";
  }

  Vector times(const std::string& name, const Vector& x) const {
    const std::vector<float>& w = weights.at(name + ".weight");
    Vector y(w.size() / x.size());
    for (std::size_t i = 0; i < w.size(); ++i)
      y[i / x.size()] += static_cast<double>(w[i]) * x[i % x.size()];
    return y;
  }
  Vector normed(const std::string& name, const Vector& x) const {
    double squares = 0;
    for (const double number : x) squares += number * number;
    Vector y(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] *= weights.at(name + ".weight")[i] / std::sqrt(squares / width + 1e-5);
    return y;
  }
  // Neighbouring channels turn, as in llama.cpp's order of a Llama's rows.
  static void turn(Vector& x, double position) {
    for (std::size_t at = 0; at < x.size(); at += 2) {
      const double angle =
          position * std::pow(100.0, -static_cast<double>(at % head_dim) / head_dim);
      const double a = x[at], b = x[at + 1];
      x[at] = a * std::cos(angle) - b * std::sin(angle);
      x[at + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  // With `keep`, a token sees the first `sinks` and as many of the last as make `keep`, at
  // positions among these.
  Vector losses(const std::vector<std::int32_t>& tokens, std::size_t keep = 0,
                std::size_t sinks = 0) const {
    std::vector<Vector> x;
    for (const std::int32_t token : tokens) {
      const auto row = weights.at("token_embd.weight").begin() + token * width;
      x.emplace_back(row, row + width);
    }
    for (int layer = 0; layer < layers; ++layer) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      std::vector<Vector> keys, values;
      for (std::size_t t = 0; t < x.size(); ++t) {
        const Vector in = normed(at + "attn_norm", x[t]);
        Vector q = times(at + "attn_q", in);
        const Vector k = times(at + "attn_k", in);
        const std::size_t gone = keep > 0 && t + 1 > keep ? t + 1 - keep : 0;
        turn(q, static_cast<double>(t - gone));
        keys.push_back(k);
        values.push_back(times(at + "attn_v", in));
        std::vector<std::size_t> seen;
        for (std::size_t j = 0; j <= t; ++j)
          if (j < sinks || j >= sinks + gone) seen.push_back(j);
        Vector attended(heads * head_dim);
        for (std::size_t head = 0; head < heads; ++head) {
          const std::size_t of_q = head * head_dim, of_k = head / (heads / kv_heads) * head_dim;
          Vector weight;
          double sum = 0;
          for (std::size_t j = 0; j < seen.size(); ++j) {
            Vector key = keys[seen[j]];
            turn(key, static_cast<double>(j));
            double logit = 0;
            for (std::size_t c = 0; c < head_dim; ++c) logit += q[of_q + c] * key[of_k + c];
            weight.push_back(std::exp(logit / std::sqrt(head_dim)));
            sum += weight.back();
          }
          for (std::size_t j = 0; j < seen.size(); ++j)
            for (std::size_t c = 0; c < head_dim; ++c)
              attended[of_q + c] += weight[j] / sum * values[seen[j]][of_k + c];
        }
        const Vector out = times(at + "attn_output", attended);
        for (std::size_t i = 0; i < width; ++i) x[t][i] += out[i];
      }
      for (Vector& token : x) {
        const Vector in = normed(at + "ffn_norm", token);
        Vector gate = times(at + "ffn_gate", in);
        const Vector up = times(at + "ffn_up", in);
        for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
        const Vector out = times(at + "ffn_down", gate);
        for (std::size_t i = 0; i < width; ++i) token[i] += out[i];
      }
    }
    Vector made;
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      const Vector logits = times("token_embd", normed("output_norm", x[t]));
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      made.push_back(std::log(sum) - logits[static_cast<std::size_t>(tokens[t + 1])]);
    }
    return made;
  }

  std::mt19937 random{5};
};

}  // namespace posenc::test
