// threadIdx and its kin are always there; students include this for their editor's sake.
#pragma once
#include "cuda_runtime.h"
