/* What the programs of tests/c share: a call that must succeed or fail, with the line that says so,
   and the small makers of arguments. */
#pragma once

#include "posenc/c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int failures;

static inline void fail(const char* file, int line, const char* what, const char* got) {
  fprintf(stderr, "%s:%d: %s; posenc said: %s\n", file, line, what, got);
  failures++;
}

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, posenc_last_error()); \
  } while (0)
#define OK(call) CHECK((call) == POSENC_OK)

/* The call fails with this status, and its message has the word. */
static inline void expect(const char* file, int line, posenc_status wanted, posenc_status status,
                          const char* word) {
  if (status != wanted || strstr(posenc_last_error(), word) == NULL)
    fail(file, line, word, status == POSENC_OK ? "nothing, it succeeded" : posenc_last_error());
}
#define MISUSE(word, call) expect(__FILE__, __LINE__, POSENC_MISUSE, (call), (word))
#define REFUSED(word, call) expect(__FILE__, __LINE__, POSENC_REFUSED, (call), (word))

static inline int has(const char* text, const char* word) {
  return text && strstr(text, word) != NULL;
}

static inline posenc_plan* plan_of(const char* scheme, posenc_geometry geometry) {
  posenc_plan* plan = NULL;
  geometry.struct_size = sizeof geometry;
  OK(posenc_plan_from_scheme(scheme, &geometry, &plan));
  return plan;
}

static inline posenc_tensor dense(void* data, posenc_dtype dtype, int64_t a, int64_t b, int64_t c,
                                  int64_t d) {
  const int64_t shape[] = {a, b, c, d};
  posenc_tensor tensor;
  OK(posenc_tensor_dense(data, dtype, 4, shape, &tensor));
  return tensor;
}

static inline posenc_positions* range(int64_t first, int64_t count) {
  posenc_positions* positions = NULL;
  OK(posenc_positions_range(first, count, &positions));
  return positions;
}

/* The tests of a file each. */
void test_answers(void);
void test_attention(void);
void test_moving_keys(void);
void test_refusals(void);
