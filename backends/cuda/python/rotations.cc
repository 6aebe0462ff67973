// Texts of plans, and the rotations that were made of them.
#include "backends/cuda/python/rotations.h"

#include <charconv>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace posenc::cuda::python {
namespace {

constexpr std::string_view where = "posenc_cuda";
constexpr std::size_t kept = 1000;

class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view next() {
    const std::size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    return word;
  }
  template <class T>
  T number() {
    const std::string_view word = next();
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    whole_ = whole_ && error == std::errc{} && end == word.data() + word.size() && !word.empty();
    return value;
  }
  // Whether every word so far was the number that it had to be, and `count` of them follow.
  bool has(std::int64_t count) const {
    std::int64_t words = rest_.empty() ? 0 : 1;
    for (const char c : rest_) words += c == ' ';
    return whole_ && words == count;
  }
  bool whole() const { return whole_; }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

struct Entry {
  std::shared_ptr<const Brought> made;
  bool recorded = false;
};

Expected<std::shared_ptr<const Brought>> brought(std::string_view text, const Backend& backend,
                                                 int ordinal) {
  auto plans = plans_of(text);
  if (!plans) return std::unexpected(plans.error());
  const CurrentDevice current(ordinal);
  auto rotations = Rotations::make(*plans, backend);
  if (!rotations) return std::unexpected(rotations.error());
  return std::make_shared<const Brought>(std::move(*rotations), ordinal);
}

Expected<const Backend*> backend_of(std::string_view name) {
  if (name == "emulated") return &emulated();
  if (name != "device") return fail(where, "a backend must be device or emulated", name);
  const Backend* const device = built_in_device();
  if (device == nullptr)
    return fail(where, "the module must be built with CUDA", "one of the emulated grid alone",
                "make cuda-wheel builds one");
  if (const char* const error = device->find())
    return fail(where, "there must be a CUDA device", "no CUDA device (" + std::string(error) + ")",
                "tensors on the CPU need none: posenc rotates them there");
  return device;
}

}  // namespace

Expected<std::vector<Plan>> plans_of(std::string_view text) {
  const auto no_text = [&] {
    return fail(where, "plans must be a text of posenc.cuda.text_of", text.substr(0, 40));
  };
  Words words(text);
  const std::string_view pairing = words.next();
  Rotate geometry;
  geometry.slice.pairing =
      pairing == name(Pairing::halves) ? Pairing::halves : Pairing::interleaved;
  geometry.slice.first_dim = words.number<std::int64_t>();
  geometry.slice.blocks = words.number<std::int64_t>();
  geometry.frequencies.heads = words.number<std::int64_t>();
  geometry.frequencies.axes = words.number<std::int64_t>();
  const auto pairs = words.number<std::int64_t>(), count = words.number<std::int64_t>();
  constexpr std::int64_t most = 1 << 20;
  for (const std::int64_t each :
       {geometry.frequencies.heads, geometry.frequencies.axes, pairs, count})
    if (each < 1 || each > most) return no_text();
  const std::int64_t frequencies = geometry.frequencies.heads * geometry.frequencies.axes;
  if (pairing != name(geometry.slice.pairing) || frequencies > most || frequencies * pairs > most ||
      !words.has(count * (1 + frequencies * pairs)))
    return no_text();
  geometry.slice.rotary_dim = 2 * pairs;
  std::vector<Plan> plans;
  for (std::int64_t each = 0; each < count; ++each) {
    Plan plan{.rotate = geometry};
    plan.rotate->amplitude = words.number<double>();
    for (std::int64_t i = 0; i < frequencies * pairs; ++i)
      plan.rotate->frequencies.radians.push_back(words.number<double>());
    if (!words.whole()) return no_text();
    auto good = checked(std::move(plan));
    if (!good) return std::unexpected(good.error());
    plans.push_back(std::move(*good));
  }
  return plans;
}

Expected<std::shared_ptr<const Brought>> rotations_of(std::string_view text,
                                                      std::string_view backend, int ordinal,
                                                      void* stream) {
  // Never freed: a device may be gone before the process' last objects are.
  static std::mutex& lock = *new std::mutex;
  static auto& entries = *new std::map<std::string, Entry, std::less<>>;
  const bool recorded = backend == "device" && is_captured(stream);
  const std::string key =
      std::string(backend) + ' ' + std::to_string(ordinal) + ' ' + std::string(text);
  const std::lock_guard guard(lock);
  if (const auto known = entries.find(key); known != entries.end()) {
    known->second.recorded = known->second.recorded || recorded;
    return known->second.made;
  }
  auto there = backend_of(backend);
  if (!there) return std::unexpected(there.error());
  if (recorded)
    return fail(where, "rotations must be made before a CUDA graph is recorded",
                "a first call in it", "call it once before, as a warm-up");
  auto made = brought(text, **there, ordinal);
  if (!made) return made;
  if (entries.size() >= kept)
    std::erase_if(entries, [](const auto& entry) { return !entry.second.recorded; });
  entries.emplace(key, Entry{*made});
  return made;
}

}  // namespace posenc::cuda::python
