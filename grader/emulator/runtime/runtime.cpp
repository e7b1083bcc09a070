// CUDA on the CPU: the runtime, in one translation unit (one compilation, and everything can be inlined).

#define GRADER_RUNTIME
#include "cuda_runtime.h"

#include "state.inc"
#include "checked/hooks.inc"
#include "events.inc"
#include "memory.inc"
#include "scheduler.inc"
#include "launch.inc"
#include "pipeline.inc"
#include "faults.inc"
#include "api.inc"
#include "cublas.inc"
#include "checked/checked.inc"
