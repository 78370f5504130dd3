// The system on a chip in one loop with the memory model. Prints what the firmware sends on the UART, and ends at the
// end-of-transmission character (4). Writes one JSON line with the outcome into the result file.
#include <signal.h>
#include <sys/prctl.h>
#include <verilated.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>

#include "Vtop.h"
#include "job.h"
#include "memory.h"
#include "ports.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint8_t kEndOfTransmission = 4;
constexpr unsigned kFrameBits = 10;

// Receiver of the serial line: samples each bit in its middle.
class UartReceiver {
  public:
    explicit UartReceiver(unsigned bit_cycles) : bit_cycles_(bit_cycles) {}

    // One cycle; true if a byte is complete.
    bool step(bool line) {
        if (bits_ == 0) {
            if (line) return false;
            bits_ = kFrameBits;
            wait_ = bit_cycles_ / 2;
        }
        if (wait_-- != 0) return false;
        wait_ = bit_cycles_ - 1;
        frame_ = frame_ >> 1 | unsigned{line} << (kFrameBits - 1);
        return --bits_ == 0;
    }

    uint8_t byte() const { return static_cast<uint8_t>(frame_ >> 1); }

  private:
    const unsigned bit_cycles_;
    unsigned bits_ = 0, wait_ = 0, frame_ = 0;
};

class System {
  public:
    System(Vtop& top, const bench::Job& job, bench::Memory& memory)
        : top_(top), memory_(memory), uart_(static_cast<unsigned>(job.number("uart_bit_cycles"))) {}

    void cycle() {
        bench::AxiMaster master;
        uint8_t wdata[bench::kMaxWordBytes];
        ports::read_master(top_, master, wdata);
        top_.clk = 1;
        top_.eval();
        if (master.arvalid || master.awvalid || master.wvalid || !memory_.idle()) {
            memory_.step(master, now_);
            ports::write_slave(top_, memory_.slave());
        }
        top_.clk = 0;
        top_.eval();
        ++now_;
        if (uart_.step(top_.uart_tx)) receive(uart_.byte());
    }

    void reset() {
        top_.rst = 1;
        ports::write_slave(top_, memory_.slave());
        for (int i = 0; i < 4; ++i) cycle();
        top_.rst = 0;
    }

    bool finished() const { return finished_; }
    uint64_t now() const { return now_; }

  private:
    void receive(uint8_t byte) {
        if (byte == kEndOfTransmission) {
            finished_ = true;
            return;
        }
        std::putchar(byte);
        if (byte == '\n') std::fflush(stdout);
    }

    Vtop& top_;
    bench::Memory& memory_;
    UartReceiver uart_;
    uint64_t now_ = 0;
    bool finished_ = false;
};

}  // namespace

int main(int argc, char** argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the simulator ends with its parent process
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    try {
        if (argc < 2) throw std::runtime_error("call it with JOB-FILE");
        const bench::Job job(argv[1]);
        bench::WriteLog writes("", static_cast<unsigned>(job.number("word_bytes")));
        bench::BusLog bursts("");
        bench::Memory memory(job, static_cast<unsigned>(job.number("word_bytes")), writes, bursts);
        const auto top = std::make_unique<Vtop>(context.get(), "");
        System system(*top, job, memory);
        system.reset();
        const uint64_t limit = job.number("limit");
        const auto start = Clock::now();
        while (!system.finished() && system.now() < limit) system.cycle();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        std::fflush(stdout);
        std::FILE* const result = std::fopen(job.text("result_file").c_str(), "w");
        if (result == nullptr) throw std::runtime_error("cannot write the result file");
        std::fprintf(result, "{\"cycles\": %llu, \"seconds\": %.6f, \"finished\": %s, \"violation\": \"%s\"}\n",
                     static_cast<unsigned long long>(system.now()), seconds, system.finished() ? "true" : "false",
                     memory.violation().c_str());
        std::fclose(result);
        top->final();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench: %s\n", error.what());
        return 2;
    }
    return 0;
}
