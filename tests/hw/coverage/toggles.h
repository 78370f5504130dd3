// Toggles of signals of more than 64 bits, in place of Verilator's function: in 5.048 it also counts those of every
// word for the words above it, because a shift by 32 bits or more takes the rest of 32.
#pragma once

#include <algorithm>
#include <cstdint>

#include "verilated_cov.h"

static inline void intloom_wide_toggles(int width, uint32_t* counts, WDataInP now, WDataInP before) {
    for (int first = 0; first < width; first += VL_EDATASIZE) {
        const int word = first / VL_EDATASIZE;
        const int bits = std::min<int>(VL_EDATASIZE, width - first);
        VL_COV_TOGGLE_CHG_ST_I(bits, counts + 2 * first, now[word], before[word]);
    }
}

#define VL_COV_TOGGLE_CHG_ST_W intloom_wide_toggles
