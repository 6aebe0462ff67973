// All numbers of a plan that attention reads, so that ranks whose plans differ in one of them hear
// of it.
#pragma once

#include <bit>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "backends/distributed/communicator.h"
#include "posenc/plan.h"

namespace posenc::mpi {

class PlanFingerprint {
 public:
  explicit PlanFingerprint(Fingerprint& print) : print_(print) {}

  // What is added to embeddings attention does not read.
  void add(const Plan& plan) {
    each_member(plan, [&](const auto& row, const auto& member) {
      if (row.name != "add") any(member);
    });
  }

 private:
  template <PlanPart T>
  void any(const T& part) {
    each_member(part, [&](const auto&, const auto& member) { any(member); });
  }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void any(T number) {
    print_.add(number);
  }
  void any(float number) { print_.add(std::bit_cast<std::uint32_t>(number)); }
  void any(double number) { print_.add(std::bit_cast<std::uint64_t>(number)); }
  template <class T>
  void any(const std::optional<T>& part) {
    print_.add(part.has_value());
    if (part) any(*part);
  }
  template <class... T>
  void any(const std::variant<T...>& kind) {
    print_.add(kind.index());
    std::visit([&](const auto& part) { any(part); }, kind);
  }
  template <class T>
  void any(const std::vector<T>& list) {
    print_.add(list.size());
    for (const T& item : list) any(item);
  }
  void any(std::string_view word) {
    print_.add(word.size());
    for (const char letter : word) print_.add(letter);
  }
  void any(const RowList& list) {
    print_.add(list.size());
    for (const std::int32_t row : list) print_.add(row);
  }
  // Each rank has the table in memory of its own.
  void any(const Table& table) {
    const Tensor& values = table.values;
    print_.add(values.rank);
    if (!values) return;
    for (int axis = 0; axis < values.rank; ++axis)
      print_.add(values.shape[static_cast<std::size_t>(axis)]);
    const Tensor all = values.with_rank(Tensor::max_rank);
    for (std::int64_t a = 0; a < all.shape[0]; ++a)
      for (std::int64_t b = 0; b < all.shape[1]; ++b)
        for (std::int64_t c = 0; c < all.shape[2]; ++c)
          for (std::int64_t d = 0; d < all.shape[3]; ++d)
            any(all.get(a * all.stride[0] + b * all.stride[1] + c * all.stride[2] +
                        d * all.stride[3]));
  }

  Fingerprint& print_;
};

}  // namespace posenc::mpi
