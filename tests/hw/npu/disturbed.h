// What disturbed.cpp is made of: a memory with stalls and error responses, a check of the bus, cycles by state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "ports.h"
#include "probes.h"

using Bytes = std::vector<uint8_t>;
struct Random {
    uint64_t state;
    uint32_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return uint32_t(state >> 16);
    }
    uint32_t below(uint32_t limit) { return next() % limit; }
    bool chance(uint32_t permille) { return below(1000) < permille; }
};

struct Program {
    uint32_t first_word, instructions, has_result, cycles, watchdog;  // The most cycles that it takes.
    Bytes before, after;
};

// What disturbs a run, in cycles from its start.
struct Plan {
    uint64_t errors_from = UINT64_MAX, last = 0;
    std::map<uint64_t, unsigned> commands;  // bits of events
    void add(uint64_t at, unsigned events) {
        commands[at] |= events;
        last = std::max(last, at);
    }
};

void require(bool right, const char* what) {
    if (!right) throw std::runtime_error(what);
}

// A memory that answers in order, with stalls, and with error responses from a cycle on.
class Memory {
  public:
    Bytes bytes;
    uint64_t errors_from = UINT64_MAX;
    Random random{1};
    bench::AxiSlave slave{};

    // Contents, and how often each channel pauses.
    void begin(const Bytes& contents, uint64_t seed) {
        bytes = contents;
        random.state = seed;
        for (uint32_t& share : stalls_) share = random.chance(300) ? 0 : random.below(BENCH_STALLS);
    }
    void clear() {
        reads_.clear(), writes_.clear(), responses_.clear();
        slave = {};
    }
    void step(const bench::AxiMaster& m, uint64_t cycle) {
        if (m.arvalid && slave.arready) reads_.push_back({m.araddr - BENCH_BASE, m.arlen + 1u});
        if (m.awvalid && slave.awready) writes_.push_back({m.awaddr - BENCH_BASE, m.awlen + 1u});
        if (m.wvalid && slave.wready) write(m);
        if (slave.rvalid && m.rready) slave.rvalid = false;
        if (slave.bvalid && m.bready) slave.bvalid = false;
        const uint8_t error = cycle >= errors_from ? uint8_t(2 + random.below(2)) : 0;
        if (!slave.rvalid && !reads_.empty() && !random.chance(stalls_[0])) read(error);
        if (!slave.bvalid && !responses_.empty() && !random.chance(stalls_[1])) {
            slave.bvalid = true;
            slave.bresp = error;
            responses_.pop_front();
        }
        slave.arready = reads_.size() < 8 && !random.chance(stalls_[2]);
        slave.awready = writes_.size() < 8 && !random.chance(stalls_[3]);
        // A burst's address comes before its data.
        slave.wready = !writes_.empty() && !random.chance(stalls_[4]);
    }

  private:
    struct Burst {
        uint64_t at;
        uint32_t beats;
    };
    void read(uint8_t error) {
        Burst& burst = reads_.front();
        require(burst.at + BENCH_BEAT <= bytes.size(), "a read outside the memory");
        // Lanes that the beat does not use.
        for (unsigned i = 0; i < BENCH_PORT; ++i) slave.rdata[i] = uint8_t(random.next());
        std::memcpy(slave.rdata + burst.at % BENCH_PORT, &bytes[burst.at], BENCH_BEAT);
        slave.rvalid = true;
        slave.rresp = error;
        burst.at += BENCH_BEAT;
        slave.rlast = --burst.beats == 0;
        if (slave.rlast) reads_.pop_front();
    }
    void write(const bench::AxiMaster& m) {
        Burst& burst = writes_.front();
        require(burst.at + BENCH_BEAT <= bytes.size(), "a write outside the memory");
        const unsigned lane = burst.at % BENCH_PORT;
        require((m.wstrb >> lane >> (BENCH_BEAT - 1) >> 1) == 0 && (uint64_t{m.wstrb} << (32 - lane) & 0xFFFFFFFF) == 0,
                "strobes outside the lanes of a beat");
        for (unsigned i = 0; i < BENCH_BEAT; ++i)
            if (m.wstrb >> (lane + i) & 1) bytes[burst.at + i] = m.wdata[lane + i];
        burst.at += BENCH_BEAT;
        require(m.wlast == (--burst.beats == 0), "WLAST must be high in the last beat and in no other");
        if (m.wlast) writes_.pop_front(), responses_.push_back(0);
    }
    std::deque<Burst> reads_, writes_;
    std::deque<int> responses_;
    uint32_t stalls_[5] = {};
};

// What a master offers stays until it is taken (AXI4 A3.2.1).
struct Held {
    bool waits = false;
    Bytes last;
    void look(bool valid, bool ready, const Bytes& payload) {
        require(!waits || (valid && payload == last), "an offer on the bus was withdrawn or changed");
        waits = valid && !ready;
        last = payload;
    }
};

using Point = std::tuple<int, unsigned, int, int>;  // probe, value, first and second event

// For each state of each probe one of the cycles in which it was seen.
class Samples {
  public:
    void add(const unsigned* values, uint64_t cycle, Random& random) {
        for (int p = 0; p < probes::COUNT; ++p) {
            auto& [count, chosen] = seen_[{p, values[p]}];
            if (random.below(++count) == 0) chosen = cycle;
        }
    }
    // A cycle with this state, else one of another state; 0 if nothing was seen.
    uint64_t in(const std::pair<int, unsigned>& state, Random& random) const {
        if (seen_.empty()) return 0;
        const auto found = seen_.find(state);
        return (found != seen_.end() ? found : std::next(seen_.begin(), random.below(uint32_t(seen_.size()))))->second.second;
    }

  private:
    std::map<std::pair<int, unsigned>, std::pair<uint32_t, uint64_t>> seen_;
};
