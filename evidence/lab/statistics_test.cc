#include "evidence/lab/statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace posenc::lab {
namespace {

// Printed in every table of Student's distribution.
TEST(StudentQuantile, IsThatOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706205, 1e-6);
  EXPECT_NEAR(student_quantile(0.975, 5), 2.570582, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812461, 1e-6);
  EXPECT_NEAR(student_quantile(0.975, 1000), 1.962339, 1e-6);
}

TEST(StudentQuantile, IsOddAboutTheMiddle) {
  EXPECT_DOUBLE_EQ(student_quantile(0.1, 4), -student_quantile(0.9, 4));
  EXPECT_NEAR(student_quantile(0.5, 4), 0, 1e-9);
}

TEST(IntervalOf, IsStudentsOfFewNumbers) {
  const Interval interval = interval_of(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.half_width, 4.302653 / std::sqrt(3.0), 1e-6);
}

TEST(IntervalOf, KnowsNothingOfOneNumber) {
  EXPECT_TRUE(std::isinf(interval_of(std::vector<double>{1}).half_width));
}

// t = 2/(1/√3) = 3.4641 of 2 degrees: 0.074180 in every calculator.
TEST(TTest, IsStudents) {
  EXPECT_NEAR(t_test_p(std::vector<double>{1, 2, 3}), 0.0741799, 1e-6);
  EXPECT_EQ(t_test_p(std::vector<double>{1}), 1);
}

TEST(SignFlip, OfSixPairsComesToOneInThirtyTwo) {
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, 2, 3, 4, 5, 6}), 2.0 / 64);
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, 2, 3, 4, 5}), 2.0 / 32);
}

TEST(SignFlip, OfDifferencesThatCancelSaysNothing) {
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, -1}), 1);
}

TEST(Holm, RaisesTheSmallestMost) {
  EXPECT_EQ(holm(std::vector<double>{0.04, 0.01, 0.03}), (std::vector<double>{0.06, 0.03, 0.06}));
}

}  // namespace
}  // namespace posenc::lab
