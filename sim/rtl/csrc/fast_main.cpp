// The fast bench's main loop: runs whole clock cycles and enters Python only when the shell's `wake` output
// changes or a cocotb timer expires. One unit of simulation time is half a cycle.
#include <signal.h>
#include <sys/prctl.h>
#include <verilated.h>
#include <verilated_vpi.h>
#include <vpi_user.h>

#include <cstdio>
#include <exception>
#include <limits>
#include <memory>

#include "Vtop.h"
#if VM_TRACE
#include <verilated_fst_c.h>
#endif
#include "environment.h"
#include "host_software.h"

extern "C" void vlog_startup_routines_bootstrap(void);

namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kPublishMask = (1 << 14) - 1;

void settle(Vtop& top) {
    while (true) {
        // Verilator defers inertial writes of cocotb until this call, so it comes before the value callbacks.
        VerilatedVpi::doInertialPuts();
        bool again = VerilatedVpi::callValueCbs();
        if (VerilatedVpi::evalNeeded()) {
            VerilatedVpi::clearEvalNeeded();
            top.eval();
            again = true;
        }
        if (!again) return;
    }
}

// All callback phases of one time step: value changes, writes, read-only, next time step.
void run_callbacks(Vtop& top) {
    settle(top);
    // A callback of this phase may register the next one of the same phase.
    while (VerilatedVpi::hasCbs(cbReadWriteSynch)) {
        VerilatedVpi::callCbs(cbReadWriteSynch);
        settle(top);
    }
    VerilatedVpi::callCbs(cbReadOnlySynch);
    VerilatedVpi::callCbs(cbNextSimTime);
    settle(top);
}

// Waves of a window of cycles, in builds with tracing; nothing in others.
class Waves {
  public:
    Waves([[maybe_unused]] Vtop& top, [[maybe_unused]] const bench::Job& job) {
#if VM_TRACE
        first_ = 2 * job.number("wave_first");
        last_ = 2 * job.number("wave_last") + 1;
        if (last_ <= 1) return;
        top.trace(&file_, 99);
        file_.open(job.text("wave_file").c_str());
#endif
    }
    void sample([[maybe_unused]] uint64_t time) {
#if VM_TRACE
        if (time >= first_ && time <= last_) file_.dump(time);
#endif
    }

#if VM_TRACE
    ~Waves() { file_.close(); }

  private:
    uint64_t first_, last_;
    VerilatedFstC file_;
#endif
};

// One cycle from `time` on.
void cycle(Vtop& top, Waves& waves, uint64_t time) {
    for (unsigned half = 0; half < 2; ++half) {
        top.clk = half == 0;
        top.eval();
        waves.sample(time + half);
    }
}

void run(VerilatedContext& context, Vtop& top, Waves& waves) {
    VerilatedVpi::callCbs(cbStartOfSimulation);
    run_callbacks(top);
    while (!context.gotFinish()) {
        const uint64_t deadline = VerilatedVpi::cbNextDeadline();
        const auto wake = top.wake;
        uint64_t time = context.time();
        while (top.wake == wake && time < deadline && !context.gotFinish()) {
            cycle(top, waves, time);
            time += 2;
            if ((time & kPublishMask) == 0) bench::environment->publish(time / 2);
        }
        context.time(time);
        if (time >= deadline) VerilatedVpi::callTimedCbs();
        run_callbacks(top);
    }
}

// Instead of Python, a library of host software drives the accelerator.
void run_host_software(Vtop& top, Waves& waves, const std::string& library) {
    bench::HostSoftware host(top, *bench::environment, [&, time = uint64_t(0)]() mutable {
        cycle(top, waves, time);
        time += 2;
    });
    host.run(library);
}

// The value of plusarg `name`; empty without it.
std::string plusarg(VerilatedContext& context, const char* name) {
    const std::string found = context.commandArgsPlusMatch(name);
    return found.empty() ? found : found.substr(found.find('=') + 1);
}

}  // namespace

int main(int argc, char** argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the simulator ends with its parent process
    const auto context = std::make_unique<VerilatedContext>();
    Verilated::threadContextp(context.get());
    context->commandArgs(argc, argv);
    context->fatalOnVpiError(false);  // cocotb probes for system tasks that Verilator lacks
    try {
        const std::string job = plusarg(*context, "job=");
        const std::string library = plusarg(*context, "host=");
        if (job.empty()) throw std::runtime_error("call it with +job=FILE [+host=LIBRARY]");
        bench::Environment environment(job);
        bench::environment = &environment;
#if VM_TRACE
        context->traceEverOn(true);
#endif
        const auto top = std::make_unique<Vtop>(context.get(), "");
        Waves waves(*top, environment.job);
        if (library.empty()) {
            vlog_startup_routines_bootstrap();
            run(*context, *top, waves);
            VerilatedVpi::callCbs(cbEndOfSimulation);
        } else {
            run_host_software(*top, waves, library);
        }
        environment.publish(context->time() / 2);
        top->final();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench: %s\n", error.what());
        return 2;
    }
    return context->errorCount() > 0 ? 1 : 0;
}
