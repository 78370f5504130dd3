// Programs on the accelerator during which events meet: error responses, halts, resets, interrupts set and cleared.
//
// Arguments: `disturbed`, a job for the log of writes, a file with points and programs (see disturbed.py), a seed, the most
// rounds; with none each program runs once, undisturbed. Without `disturbed` it is the bare loop, so one build serves
// both. A round runs a program with random
// stalls, and notes in which cycle each state is seen. It then repeats that run, with error responses, resets and interrupt
// clears in cycles of states whose points are open. Each run ends with a soft reset, and the next program must be right.
// Prints, for each probe, its value and each pair of events, the number of cycles in which all came together.
#include <verilated.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "Vtop.h"
#include "disturbed.h"
#define main bare_main
#include "bare_main.cpp"
#undef main
#include "ports.h"
#include "probes.h"
#include "stalls.h"

namespace {

// In the order of the names in coincidences.py.
enum Event { FAULT, SET, CLEAR, READ_ERROR, WRITE_ERROR, HALT, SOFT_RESET, POWER_RESET, EVENTS };

template <typename T> void append(Bytes& to, const T& value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

class Bench {
  public:
    Bench(Vtop& top, uint64_t seed, std::set<Point> wanted)
        : top_(top), open_(std::move(wanted)), random_{seed * 2654435761u + 88172645463325252u} {
        power_reset();
    }

    // A program runs undisturbed; then it runs again and again, each time disturbed in one of the states it was seen in.
    void round(const std::vector<Program>& programs) {
        const Program& disturbed = programs[random_.below(uint32_t(programs.size()))];
        const uint64_t seed = random_.next() | 1;
        sampling_ = true;
        run(disturbed, seed, {}, BENCH_CYCLES);
        sampling_ = false;
        recover(programs);
        for (int part = 0; part < 20; ++part) {
            Plan plan = choose();
            run(disturbed, seed, plan, plan.last + 40);
            stop();
            // Faults, halts and interrupts follow: the same run again, with commands when they come.
            for (const uint64_t at : std::vector<uint64_t>(followed_)) {
                if (at <= plan.last && !plan.commands.empty()) continue;
                Plan again = plan;
                again.add(at, command());
                run(disturbed, seed, again, again.last + 40);
                stop();
            }
            if (part % 4 == 0) recover(programs);
        }
    }

    // After a soft reset a program is right, and so are its counters.
    void complete(const Program& program) {
        stop();
        load(program, random_.next() | 1);
        writes_[now_] = {BENCH_CONTROL, BENCH_START};
        Stalls stalls;
        for (const uint64_t limit = now_ + program.cycles; !top_.irq;) {
            stalls.cycle(top_);
            cycle();
            require(now_ < limit, "a program after a soft reset must end");
        }
        require(flags_ == BENCH_DONE, "a program after a soft reset must be done");
        require(memory_.bytes == program.after, "a program after a soft reset must leave the memory as the instruction simulator does");
        settle();
        check_counters(stalls);
    }

    bool closed() const { return open_.empty(); }

    void print() const {
        std::printf("[");
        const char* between = "";
        for (const auto& [key, count] : counts_) {
            const auto& [probe, value, first, second] = key;
            std::printf("%s[%d, %u, %d, %d, %llu]", between, probe, value, first, second, static_cast<unsigned long long>(count));
            between = ", ";
        }
        std::printf("]\n");
    }
    uint64_t digest() const { return digest_; }

  private:
    unsigned command() {
        const unsigned commands[] = {1u << SOFT_RESET, 1u << CLEAR, 1u << POWER_RESET, 1u << SOFT_RESET | 1u << CLEAR};
        return commands[random_.below(4)];
    }

    // Aims at a point that is open, in a cycle in which its state was seen; some points follow by chance.
    Plan choose() {
        const Point point = open_.empty() ? Point{} : *std::next(open_.begin(), random_.below(uint32_t(open_.size())));
        const auto [probe, value, first, second] = point;
        const unsigned events = 1u << first | 1u << second;
        if (events & 1u << FAULT && fault_at_ && random_.chance(300)) return before_fault(events);
        const bool errors = events & (1u << READ_ERROR | 1u << WRITE_ERROR);
        // An interrupt is set by an error, or by the end of the program: then nothing must precede it.
        const bool ended = events & 1u << SET && !errors && random_.chance(300);
        const bool late = !ended && events & (1u << FAULT | 1u << SET | 1u << HALT);
        // A halt follows a reset command by two cycles, or an error by four; a fault follows an error by two.
        const bool halts = events & 1u << HALT, commanded = halts && random_.chance(500);
        if (halts && errors && fault_at_ && random_.chance(300)) return errors_at_halt();
        const int delay = commanded || !late ? 0 : halts ? 2 : 1;
        const auto& samples = samples_[delay][events & 1u << WRITE_ERROR ? 2 : events & 1u << READ_ERROR ? 1 : 0];
        const uint64_t at = std::max<uint64_t>(samples.in({probe, value}, random_), 2 + 2 * delay);
        Plan plan;
        plan.last = at;
        if (errors || delay) plan.errors_from = at - 2 * delay - 1;
        const auto before = [at](uint64_t cycles) { return at > cycles + 2 ? at - cycles : 2; };
        if (commanded) plan.add(before(2), 1u << SOFT_RESET);
        if (events & 1u << FAULT && random_.chance(300)) plan.add(before(random_.below(3)), 1u << SOFT_RESET);
        if (!ended && random_.chance(200)) plan.add(before(2 + random_.below(8)), 1u << SOFT_RESET);
        // Nothing but the error, or a halt, if the event of interest follows: the command comes in the next run.
        if (!late || random_.chance(500)) plan.add(at, events & (1u << SOFT_RESET | 1u << CLEAR | 1u << POWER_RESET));
        while (random_.chance(200)) plan.add(plan.last + 2 + random_.below(12), command());
        return plan;
    }

    // A reset command so long before the program's own fault that the fault comes in DRAIN, CLEAR or CLEARED.
    Plan before_fault(unsigned events) {
        Plan plan;
        const uint64_t reset = 4 + random_.below(8);
        plan.add(fault_at_ > reset + 2 ? fault_at_ - reset : 2, 1u << SOFT_RESET);
        plan.add(fault_at_, events & (1u << SOFT_RESET | 1u << CLEAR | 1u << POWER_RESET));
        return plan;
    }

    // The program's own fault, and error responses from the halt on that follows it by two cycles.
    Plan errors_at_halt() const {
        Plan plan;
        plan.last = fault_at_ + 2;
        plan.errors_from = plan.last - 1;
        return plan;
    }

    void run(const Program& program, uint64_t seed, const Plan& plan, uint64_t cycles) {
        load(program, seed);
        if (sampling_) fault_at_ = 0;
        if (sampling_)
            for (auto& kinds : samples_)
                for (Samples& samples : kinds) samples = {};
        origin_ = now_;
        counting_ = true;
        followed_.clear();
        memory_.errors_from = plan.errors_from == UINT64_MAX ? UINT64_MAX : now_ + plan.errors_from;
        writes_[now_] = {BENCH_CONTROL, BENCH_START};
        uint64_t power = UINT64_MAX;
        for (const auto& [at, events] : plan.commands) {
            // The reset command is a pulse in the cycle after the write.
            if (events & 1u << SOFT_RESET) writes_[origin_ + at - 1] = {BENCH_CONTROL, BENCH_RESET};
            if (events & 1u << CLEAR) writes_[origin_ + at] = {BENCH_IRQ_STATUS, 1 + random_.below(3)};
            if (events & 1u << POWER_RESET) power = std::min(power, origin_ + at);
        }
        while (now_ < std::min(origin_ + cycles, power)) cycle();
        if (now_ == power) power_reset();
        counting_ = false;
        writes_.clear();
    }

    // At rest, after a soft reset.
    void stop() {
        memory_.errors_from = UINT64_MAX;
        settle();
        writes_[now_] = {BENCH_CONTROL, BENCH_RESET};
        cycle(), cycle();
        settle();
        require(probes::run_control(top_) == BENCH_IDLE, "a soft reset must end in IDLE");
    }

    // After a run the next program is right.
    void recover(const std::vector<Program>& programs) {
        const Program* good = nullptr;
        while (good == nullptr || !good->has_result) good = &programs[random_.below(uint32_t(programs.size()))];
        complete(*good);
    }

    // The counters say of every cycle what the handshakes say.
    void check_counters(const Stalls& stalls) {
        for (unsigned u = 0; u < probes::BENCH_UNITS; ++u) {
            const Cycles& c = stalls.of[u];
            const uint32_t expected[] = {c.busy, c.no_instruction, c.wait, c.memory, c.weights, c.accumulators};
            for (unsigned i = 0; i < std::size(expected); ++i) {
                const uint32_t found = read_register(probes::BENCH_COUNTERS[u][i]);
                if (found == expected[i]) continue;
                throw std::runtime_error("counter at " + std::to_string(probes::BENCH_COUNTERS[u][i]) + " of unit " + std::to_string(u) +
                                         " is " + std::to_string(found) + "; by handshakes " + std::to_string(expected[i]));
            }
        }
    }

    void begin_read(uint32_t address) { reading_ = true, ++unanswered_, reading_address_ = address; }

    uint32_t read_register(uint32_t address) {
        reads_at_random_ = false;
        while (unanswered_) cycle();
        begin_read(address);
        while (unanswered_) cycle();
        reads_at_random_ = true;
        return answer_;
    }

    // Until no transfer is in flight and the run control waits for software.
    void settle() {
        for (const uint64_t limit = now_ + 20 * BENCH_CYCLES;;) {
            cycle();
            const unsigned state = probes::run_control(top_);
            if (!probes::busy(top_) && (state == BENCH_IDLE || state == BENCH_HALTED)) return;
            require(now_ < limit, "the accelerator must come to rest");
        }
    }

    void load(const Program& program, uint64_t seed) {
        memory_.begin(program.before, seed);
        for (const auto& [address, value] : {std::pair<uint32_t, uint32_t>{BENCH_PROGRAM, program.first_word},
                                            {BENCH_LENGTH, program.instructions},
                                            {BENCH_LIMIT, uint32_t(program.before.size() / BENCH_WORD)},
                                            {BENCH_WATCHDOG, program.watchdog},
                                            {BENCH_IRQ_STATUS, 3}}) {
            writes_[now_] = {address, value};
            cycle();
        }
        cycle();
    }

    void power_reset() {
        drive_writes();
        note(1u << POWER_RESET | events());
        memory_.clear();
        reading_ = false, unanswered_ = 0;
        pending_reset_ = halt_ = fault_ = false;
        flags_ = 0;
        for (Held* held : {&ar_, &aw_, &w_}) held->waits = false;
        writes_.clear();
        top_.rst = 1;
        ports::write_slave(top_, memory_.slave);
        drive({});
        for (int i = 0; i < 4; ++i, ++now_) top_.clk = 1, top_.eval(), top_.clk = 0, top_.eval();
        top_.rst = 0;
        for (const auto& [address, value] : {std::pair<uint32_t, uint32_t>{BENCH_BASE_LOW, BENCH_BASE},
                                            {BENCH_IRQ_ENABLE, 3}}) {
            writes_[now_] = {address, value};
            cycle();
        }
    }

    void drive(const bench::LiteMaster& lite) {
        ports::write_lite(top_, lite);
        lite_ = lite;
        top_.s_axi_arvalid = reading_;
        top_.s_axi_araddr = reading_address_;
        top_.eval();
    }

    // The write of this cycle, and now and then a read of any register.
    void drive_writes() {
        if (!reading_ && reads_at_random_ && random_reads_.chance(100)) begin_read(4 * random_reads_.below(64));
        const auto write = writes_.find(now_);
        if (write == writes_.end()) drive({});
        else drive({true, true, false, write->second.first, write->second.second});
    }

    // Events of this cycle, before its clock edge.
    unsigned events() {
        const bool halts = probes::halt(top_), fault = probes::fault(top_), write = lite_.awvalid && top_.s_axi_awready;
        clears_ = write && lite_.address == BENCH_IRQ_STATUS ? lite_.wdata & 3 : 0;
        sets_ = (probes::done_event(top_) ? BENCH_DONE : 0) | (probes::error_event(top_) ? BENCH_ERROR : 0);
        unsigned found = unsigned(sets_ != 0) << SET | unsigned(clears_ != 0) << CLEAR;
        const bool beat = top_.m_axi_rvalid && top_.m_axi_rready, response = top_.m_axi_bvalid && top_.m_axi_bready;
        if (sampling_) sample(beat, response);
        found |= unsigned(beat && top_.m_axi_rresp >= 2) << READ_ERROR;
        found |= unsigned(response && top_.m_axi_bresp >= 2) << WRITE_ERROR;
        found |= unsigned(halts && !halt_) << HALT | unsigned(pending_reset_) << SOFT_RESET;
        found |= unsigned(fault && !fault_) << FAULT;
        halt_ = halts, fault_ = fault;
        pending_reset_ = write && lite_.address == BENCH_CONTROL && (lite_.wdata & BENCH_RESET);
        return found;
    }

    void sample(bool beat, bool response) {
        unsigned values[probes::COUNT];
        probes::read(top_, values);
        const uint64_t cycle = now_ - origin_;
        transfers_ = transfers_ << 1 | unsigned(beat || response);
        for (int delay = 0; delay < 3; ++delay) {
            if (delay && !(transfers_ >> 2 * delay & 1)) continue;
            samples_[delay][0].add(values, cycle, random_);
            if (beat) samples_[delay][1].add(values, cycle, random_);
            if (response) samples_[delay][2].add(values, cycle, random_);
        }
    }

    void note(unsigned found) {
        if (!found || !counting_) return;
        if (sampling_ && found & 1u << FAULT) fault_at_ = now_ - origin_;
        if (found & (1u << FAULT | 1u << SET | 1u << HALT)) followed_.push_back(now_ - origin_);
        unsigned values[probes::COUNT];
        probes::read(top_, values);
        for (int a = 0; a < EVENTS; ++a) {
            if (!(found >> a & 1)) continue;
            for (int b = a; b < EVENTS; ++b)
                if (found >> b & 1)
                    for (int p = 0; p < probes::COUNT; ++p) {
                        ++counts_[{p, values[p], a, b}];
                        open_.erase({p, values[p], a, b});
                    }
        }
    }

    void cycle() {
        drive_writes();
        note(events());
        bench::AxiMaster master;
        uint8_t wdata[bench::kMaxWordBytes];
        ports::read_master(top_, master, wdata);
        check(master);
        require(bool(top_.irq) == (flags_ != 0), "the interrupt must be high while a flag is set");
        // Set wins over clear.
        flags_ = (flags_ & ~clears_) | sets_;
        top_.clk = 1, top_.eval();
        memory_.step(master, now_);
        ++now_;
        ports::write_slave(top_, memory_.slave);
        top_.clk = 0, top_.eval();
    }

    // Offers stay, and no output that is valid depends on registers before the reset: a second seed gives the same digest.
    void check(const bench::AxiMaster& m) {
        Bytes ar, aw, w, lite;
        if (m.arvalid) append(ar, m.araddr), append(ar, m.arlen), append(ar, m.arid), append(ar, m.arsize), append(ar, m.arburst);
        if (m.awvalid) append(aw, m.awaddr), append(aw, m.awlen), append(aw, m.awid), append(aw, m.awsize), append(aw, m.awburst);
        if (m.wvalid) append(w, m.wstrb), append(w, m.wlast);
        for (unsigned i = 0; m.wvalid && i < BENCH_WORD; ++i) w.push_back(m.wstrb >> i & 1 ? m.wdata[i] : 0);
        ar_.look(m.arvalid, top_.m_axi_arready, ar);
        aw_.look(m.awvalid, top_.m_axi_awready, aw);
        w_.look(m.wvalid, top_.m_axi_wready, w);
        append(lite, top_.irq), append(lite, m.rready), append(lite, m.bready);
        append(lite, top_.s_axi_bvalid), append(lite, top_.s_axi_rvalid);
        if (top_.s_axi_rvalid) append(lite, top_.s_axi_rdata), --unanswered_, answer_ = top_.s_axi_rdata;
        if (top_.s_axi_arready) reading_ = false;
        for (const Bytes* part : {&ar, &aw, &w, &lite})
            for (const uint8_t byte : *part) digest_ = (digest_ ^ byte) * 1099511628211u;
    }

    Vtop& top_;
    std::set<Point> open_;
    Random random_;
    Memory memory_;
    Held ar_, aw_, w_;
    bench::LiteMaster lite_{};
    std::map<uint64_t, std::pair<uint32_t, uint32_t>> writes_;
    std::map<Point, uint64_t> counts_;
    // Cycles; those with a read beat; those with a write response. Of each: all, and those with a transfer 2 or 4 before.
    Samples samples_[3][3];
    unsigned transfers_ = 0;
    std::vector<uint64_t> followed_;
    uint64_t fault_at_ = 0;  // Cycle of the fault of the undisturbed run; 0: none.
    bool sampling_ = false, counting_ = false;
    uint64_t now_ = 0, origin_ = 0, digest_ = 14695981039346656037u;
    unsigned flags_ = 0, clears_ = 0, sets_ = 0;
    bool halt_ = false, fault_ = false, pending_reset_ = false, reading_ = false, reads_at_random_ = true;
    uint32_t reading_address_ = 0, answer_ = 0;
    unsigned unanswered_ = 0;  // Register reads.
    Random random_reads_{12345};
};

uint32_t number(FILE* file) {
    uint32_t value;
    require(std::fread(&value, 4, 1, file) == 1, "the file of stimuli is too short");
    return value;
}

// The points that are wanted, then the programs.
std::pair<std::set<Point>, std::vector<Program>> read_stimuli(const char* path) {
    FILE* file = std::fopen(path, "rb");
    require(file != nullptr, "the file of stimuli is missing");
    std::set<Point> wanted;
    for (uint32_t left = number(file); left; --left) {
        const int probe = int(number(file));
        const unsigned value = number(file);
        const int first = int(number(file)), second = int(number(file));
        wanted.insert({probe, value, first, second});
    }
    std::vector<Program> programs(number(file));
    for (Program& program : programs) {
        program.first_word = number(file), program.instructions = number(file), program.has_result = number(file);
        program.cycles = number(file), program.watchdog = number(file);
        const uint32_t size = number(file);
        for (Bytes* part : {&program.before, &program.after}) {
            part->resize(size);
            require(std::fread(part->data(), 1, size, file) == size, "the file of stimuli is too short");
        }
    }
    std::fclose(file);
    return {wanted, programs};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || std::string(argv[1]) != "disturbed") return bare_main(argc, argv);
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    try {
        bench::Environment environment(argv[2]);
        bench::environment = &environment;
        const auto [wanted, programs] = read_stimuli(argv[3]);
        const uint64_t seed = std::strtoull(argv[4], nullptr, 0);
        const auto top = std::make_unique<Vtop>(context.get(), "");
        Bench bench(*top, seed, wanted);
        const unsigned long rounds = std::strtoul(argv[5], nullptr, 0);
        for (const Program& program : programs)
            if (!rounds) bench.complete(program);
        for (unsigned round = 0; round < rounds && !bench.closed(); ++round) {
            try {
                bench.round(programs);
            } catch (const std::exception& error) {
                throw std::runtime_error("round " + std::to_string(round) + ": " + error.what());
            }
        }
        std::printf("%llu\n", static_cast<unsigned long long>(bench.digest()));
        bench.print();
        top->final();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
