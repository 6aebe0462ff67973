// The queries and keys of families' own indexers, which posenc rotates by the indexer's plan.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

TEST(FamilyIndexer, RotatesAsItsOwnLibrary) {
  for (const Json& record : records("indexers")) {
    SCOPED_TRACE(record.at("family").get<std::string>() + ", layer " + record.at("layer").dump());
    const auto size = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
    const Expected<Model> model = read_config(record.at("config").dump());
    ASSERT_TRUE(model) << model.error().message();
    const LayerGroup* const group = find_group(*model, size("layer"), Stack::text);
    ASSERT_NE(group, nullptr);
    const std::optional<LayerGroup> indexer = indexer_group(*group);
    ASSERT_TRUE(indexer);
    EXPECT_EQ(indexer->geometry.heads, size("heads"));
    EXPECT_EQ(indexer->geometry.head_dim, size("head_dim"));
    ASSERT_TRUE(group->picked);
    EXPECT_EQ(group->indexer->keys.every, size("every"));
    Expected<Plan> plan = compile(*indexer);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->logits.multiplier, 1);
    if (!plan->rotate) {
      EXPECT_EQ(record.at("before"), record.at("after"));
      continue;
    }
    for (const auto& [name, heads, tokens, step] :
         {std::tuple{"q", size("heads"), size("tokens"), std::int64_t{1}},
          {"k", std::int64_t{1}, size("keys"), size("every")}}) {
      std::vector<double> x = numbers<double>(record.at("before").at(name));
      const Tensor view = Tensor::dense(x.data(), {1, heads, tokens, size("head_dim")});
      const std::int64_t axes = plan->rotate->frequencies.axes;
      std::vector<std::int64_t> ids;
      for (std::int64_t axis = 0; axis < axes; ++axis)
        for (std::int64_t t = 0; t < tokens; ++t) ids.push_back(t * step);
      const auto done = rotate(*plan, view, *Positions::signed_ids(ids, axes),
                               name == std::string("q") ? Side::query : Side::key, view);
      ASSERT_TRUE(done) << done.error().message();
      // transformers forms cos and sin in float.
      expect_close(x, numbers<double>(record.at("after").at(name)), 5e-6);
    }
  }
}

}  // namespace
}  // namespace posenc::golden
