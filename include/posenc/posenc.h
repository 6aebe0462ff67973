// All of the library posenc. claims.h and bench.h belong to libraries of their own.
#pragma once

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/content.h"
#include "posenc/error.h"
#include "posenc/explain.h"
#include "posenc/fields.h"
#include "posenc/files.h"
#include "posenc/gradients.h"
#include "posenc/model.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/scalings.h"
#include "posenc/schemes.h"
#include "posenc/tensor.h"
#include "posenc/tools.h"
