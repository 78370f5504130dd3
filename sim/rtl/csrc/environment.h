// The testbench environment of the accelerator: AXI memory model, AXI4-Lite register master, recorder. Shared by the fast bench, where
// the HDL shell calls it through DPI, and by the bare loop, which calls it itself.
#pragma once

#include "bus_log.h"
#include "job.h"
#include "memory.h"
#include "recorder.h"
#include "registers.h"
#include "write_log.h"

namespace bench {

struct Environment {
    explicit Environment(const std::string& job_path)
        : job(job_path),
          writes(job.text("write_log"), static_cast<unsigned>(job.number("word_bytes"))),
          bursts(job.text("bus_log")),
          memory(job, static_cast<unsigned>(job.number("word_bytes")), writes, bursts),
          recorder(job, registers) {}

    // Update the status block, which the parent process reads.
    void publish(uint64_t cycle) {
        Status& status = recorder.status();
        status.cycle = cycle;
        status.read_beats = memory.read_beats();
        status.write_beats = memory.write_beats();
        if (!memory.violation().empty()) memory.violation().copy(status.violation, sizeof status.violation - 1);
    }

    Job job;
    WriteLog writes;
    BusLog bursts;
    Registers registers;
    Memory memory;
    Recorder recorder;
    // The register access that the bench's Python side asked for.
    bool answered = false;
    uint32_t answer = 0;
    uint8_t answer_code = 0;
};

// The environment of this process; DPI functions take no context argument.
inline Environment* environment = nullptr;

}  // namespace bench
