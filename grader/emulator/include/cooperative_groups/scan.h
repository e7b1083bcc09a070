// Everything of cooperative groups is in one header here.
#pragma once
#include "../cooperative_groups.h"
