// Why each unit does not process a word, cycle by cycle, from handshakes alone: a reference for the performance counters.
#pragma once

#include <cstdint>

#include "probes.h"

// What a unit's counters of cycles count; a unit that takes an instruction from its queue may count nothing.
struct Cycles {
    uint32_t busy = 0, no_instruction = 0, wait = 0, memory = 0, weights = 0, accumulators = 0;
};

class Stalls {
  public:
    Cycles of[probes::BENCH_UNITS];

    // Before the clock edge.
    void cycle(const Vtop& top) {
        probes::Handshakes h;
        probes::read(top, h);
        for (unsigned u = 0; u < probes::BENCH_UNITS; ++u) {
            if (h.running) attribute(h, u);
            const unsigned taken = h.valid[u] && h.ready[u];
            offered_[u] += h.committed[u] - taken;
            in_flight_[u] += taken - h.done[u];
        }
        follow_array(h);
    }

  private:
    void attribute(const probes::Handshakes& h, unsigned u) {
        Cycles& cycles = of[u];
        if (h.word[u]) ++cycles.busy;
        else if (u == probes::BENCH_MAC && !h.array_free) ++(array_waits_for_bank(h) ? cycles.accumulators : cycles.weights);
        // The array takes its next instruction when the readout takes an earlier one.
        else if (u == probes::BENCH_MAC && h.valid[u]) ++(h.readout_offered ? cycles.accumulators : cycles.weights);
        else if (u != probes::BENCH_MAC && unfinished(h, u)) ++cycles.memory;
        else if (!offered_[u]) ++cycles.no_instruction;
        else if (!h.valid[u]) ++cycles.wait;
    }

    // A store ends with its last response, a cycle before it is reported.
    unsigned unfinished(const probes::Handshakes& h, unsigned u) const {
        return in_flight_[u] - (u == probes::BENCH_STORE && h.done[u]);
    }

    // The next tile is a strip's first one, its weights and its loops are ready, and no bank is.
    bool array_waits_for_bank(const probes::Handshakes& h) const {
        const bool planned = since_plan_ >= probes::BENCH_PLANNER || h.tile_pixels >= probes::BENCH_PLANNER;
        const unsigned allowed = h.tile_continues ? 0 : 1;
        return planned && h.weights_ready && (h.tile_first || h.tile_continues) && banks_in_use_ > allowed;
    }

    void follow_array(const probes::Handshakes& h) {
        banks_in_use_ += (h.weights_taken && (h.tile_first || h.tile_continues)) - h.bank_released;
        ++since_plan_;
        if (h.word[probes::BENCH_MAC] && ++pixel_ == h.tile_pixels) pixel_ = 0, since_plan_ = 1;
        if (h.array_free && h.plan_offered) since_plan_ = 1;
    }

    // Instructions in the queue or offered, and those that the unit has.
    unsigned offered_[probes::BENCH_UNITS] = {}, in_flight_[probes::BENCH_UNITS] = {};
    unsigned banks_in_use_ = 0, pixel_ = 0, since_plan_ = 0;
};
