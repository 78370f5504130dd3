// Output files of a run: the trace of instruction starts and ends, counters at the end of every layer, and a status
// block that another process can read at any time, also after a crash of the simulator.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "job.h"
#include "registers.h"

namespace bench {

constexpr unsigned kUnits = 4;

// Laid out for struct.unpack in sim/rtl/status.py.
struct Status {
    uint64_t cycle;
    uint64_t started[kUnits];
    uint64_t done[kUnits];
    uint64_t layers;
    uint64_t read_beats, write_beats;
    char violation[160];
};

class Recorder {
  public:
    Recorder(const Job& job, Registers& registers);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // One cycle with at least one trace pulse.
    void pulses(uint64_t cycle, unsigned started, unsigned done);
    void flush();
    Status& status() { return *status_; }

  private:
    struct Boundary {
        uint64_t unit, count;
    };

    void snapshot(uint64_t cycle);

    Registers& registers_;
    Mapping status_map_;
    Status* status_;
    std::FILE* trace_;
    std::FILE* snapshots_;
    std::vector<uint64_t> trace_buffer_;
    std::vector<Boundary> boundaries_;
    std::vector<uint32_t> counters_;
};

}  // namespace bench
