// flashgrade's CUDA on the CPU: what nvcc includes by itself, with everything a kernel uses.
#pragma once

// What nvcc's own cuda_runtime.h brings; files rely on it. (<cstdio> is not among it.)
#include <cmath>
#include <math.h>  // and their names without std::
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <limits>
#include <new>
#include <utility>

#include "grader_rt/host_defines.h"
#include "vector_types.h"
#include "vector_functions.h"
#include "cuda_runtime_api.h"
#include "grader_rt/core.h"
#include "grader_rt/warp.h"
#include "grader_rt/shared.h"
#include "grader_rt/launch.h"
#include "grader_rt/math.h"
#include "grader_rt/atomics.h"
#include "grader_rt/host.h"
#ifndef GRADER_RUNTIME
#include "grader_rt/checked.h"
#endif
