// The bare loop: the accelerator alone, without shell, VPI or Python, against the same memory model. It is the upper
// bound of simulation speed. Prints one JSON line: cycles and seconds from the start command to the interrupt, and what
// the status registers then say.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "ports.h"
#include "environment.h"

namespace {

constexpr int kClosingCycles = 40;  // after a write behind the run: a soft reset, or the start of a second one

using Clock = std::chrono::steady_clock;

class Loop {
  public:
    Loop(Vtop& top, bench::Environment& environment) : top_(top), environment_(environment) {}

    void cycle() {
        bench::AxiMaster master;
        uint8_t wdata[bench::kMaxWordBytes];
        ports::read_master(top_, master, wdata);
        // The ports are read before the edge, as a register on the other side would sample them.
        const bench::LiteSlave lite = ports::read_lite(top_);
        top_.clk = 1;
        top_.eval();
        // Edges without a valid may be left out while the memory is idle (see memory.h).
        if (master.arvalid || master.awvalid || master.wvalid || !environment_.memory.idle()) {
            environment_.memory.step(master, now_);
            ports::write_slave(top_, environment_.memory.slave());
        }
        if (!environment_.registers.idle()) {
            environment_.registers.step(lite);
            ports::write_lite(top_, environment_.registers.master());
        }
        top_.clk = 0;
        top_.eval();
        ++now_;
    }

    void reset() {
        top_.rst = 1;
        ports::write_slave(top_, environment_.memory.slave());
        // The environment is in reset too: what the accelerator drives before the first edges has no meaning.
        for (int i = 0; i < 4; ++i, ++now_) {
            top_.clk = 1;
            top_.eval();
            top_.clk = 0;
            top_.eval();
        }
        top_.rst = 0;
    }

    void finish_accesses() {
        while (!environment_.registers.idle()) cycle();
    }

    uint64_t now() const { return now_; }

  private:
    Vtop& top_;
    bench::Environment& environment_;
    uint64_t now_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the simulator ends with its parent process
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    try {
        if (argc < 2) throw std::runtime_error("call it with JOB-FILE");
        bench::Environment environment(argv[1]);
        bench::environment = &environment;  // for a shell that logs writes
        const auto top = std::make_unique<Vtop>(context.get(), "");
        Loop loop(*top, environment);
        loop.reset();
        for (const auto& row : environment.job.rows("write"))
            environment.registers.write(static_cast<uint32_t>(row.at(0)), static_cast<uint32_t>(row.at(1)), [](uint32_t, uint8_t) {});
        loop.finish_accesses();
        const uint64_t limit = loop.now() + environment.job.number("limit");
        const uint64_t first = loop.now();
        const auto start = Clock::now();
        while (!top->irq && loop.now() < limit) loop.cycle();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        const bool finished = top->irq;
        const uint64_t cycles = loop.now() - first;
        std::vector<uint32_t> values;
        for (const auto& row : environment.job.rows("read"))
            environment.registers.read(static_cast<uint32_t>(row.at(0)), [&](uint32_t data, uint8_t) { values.push_back(data); });
        loop.finish_accesses();
        std::printf("{\"cycles\": %llu, \"seconds\": %.6f, \"finished\": %s, \"violation\": \"%s\", ",
                    static_cast<unsigned long long>(cycles), seconds, finished ? "true" : "false",
                    environment.memory.violation().c_str());
        std::printf("\"read_beats\": %llu, \"write_beats\": %llu, \"registers\": [",
                    static_cast<unsigned long long>(environment.memory.read_beats()),
                    static_cast<unsigned long long>(environment.memory.write_beats()));
        for (size_t i = 0; i < values.size(); ++i) std::printf("%s%u", i ? ", " : "", values[i]);
        std::printf("]}\n");
        for (const auto& row : environment.job.rows("closing")) {
            environment.registers.write(static_cast<uint32_t>(row.at(0)), static_cast<uint32_t>(row.at(1)), [](uint32_t, uint8_t) {});
            loop.finish_accesses();
            for (int i = 0; i < kClosingCycles; ++i) loop.cycle();
        }
#if VM_COVERAGE
        // A second power-on reset: without it no register that software writes once ever falls to 0.
        loop.reset();
#endif
        top->final();
#if VM_COVERAGE
        // One file for each run; tools/coverage adds them up.
        if (const char* folder = std::getenv("INTLOOM_COVERAGE"))
            context->coveragep()->write((std::string(folder) + "/" + std::to_string(getpid()) + ".dat").c_str());
#endif
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench: %s\n", error.what());
        return 2;
    }
    return 0;
}
