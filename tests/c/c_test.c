/* The C interface from files compiled as C: what it answers, and that nothing wrong passed to it
   crashes. That its numbers are the C++ interface's is tests/c/same_numbers_test.cc. */
#include "tests/c/check.h"

int failures;

int main(void) {
  CHECK(strcmp(posenc_last_error(), "") == 0);
  test_answers();
  test_attention();
  test_moving_keys();
  test_refusals();
  if (failures) fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}
