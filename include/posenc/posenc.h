// All of posenc.
#pragma once

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/bench.h"
#include "posenc/claims.h"
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
