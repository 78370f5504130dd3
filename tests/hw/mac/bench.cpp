// Drives a MAC unit: offers instructions, serves its ports by their contracts, and reports memory and cycle counts.
//
// The job file holds, little-endian: 9 words of settings (instructions, scratchpad words, weight words, percent of time
// in which the results and the residual port are ready, percent in which an instruction is offered, seed, most cycles,
// most cycles for which the results port stays ready or not), the scratchpad, the weight memory, the instructions. The
// result file: 8 words (cycles from first taken to last done, done, started, busy cycles, fault, cause, fault index,
// stalls for weights) and the scratchpad.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "Vtop.h"

// Verilator writes the second of two underscores in a name as ___05F.
#define PORT(port, member) top.port##___05F##member

static const int ROWS = BENCH_ROWS;
using Bytes = std::vector<uint8_t>;

static void put(uint32_t& port, const uint8_t* from) { memcpy(&port, from, ROWS); }
static void put(uint64_t& port, const uint8_t* from) { memcpy(&port, from, ROWS); }
template <std::size_t N> static void put(VlWide<N>& port, const uint8_t* from) { memcpy(&port[0], from, 4 * N); }
static void get(const uint32_t& port, uint8_t* to) { memcpy(to, &port, ROWS); }
static void get(const uint64_t& port, uint8_t* to) { memcpy(to, &port, ROWS); }
template <std::size_t N> static void get(const VlWide<N>& port, uint8_t* to) { memcpy(to, &port[0], 4 * N); }

static uint32_t state = 1;
static uint32_t random32() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}
static bool chance(uint32_t percent) { return random32() % 100 < percent; }

// A port that is ready, or not, for up to `longest` cycles at a time.
struct Grants {
    uint32_t percent, longest, left = 0;
    bool ready = false;
    bool next() {
        if (!left) {
            left = 1 + random32() % longest;
            ready = chance(percent);
        }
        left--;
        return ready;
    }
};

// Data comes so many cycles after a read; in all other cycles there is noise.
template <int LATENCY> struct Pipe {
    uint8_t stage[LATENCY][ROWS];
    void step(const uint8_t* word) {
        memmove(stage[0], stage[1], (LATENCY - 1) * ROWS);
        for (int i = 0; i < ROWS; i++) stage[LATENCY - 1][i] = word ? word[i] : uint8_t(random32());
    }
};

// A request that was not taken must stay as it is.
struct Holds {
    bool waiting = false;
    Bytes last;
    bool broken(bool valid, bool ready, const Bytes& payload) {
        bool bad = waiting && (!valid || payload != last);
        waiting = valid && !ready;
        last = payload;
        return bad;
    }
};

int main(int argc, char** argv) {
    FILE* in = fopen(argv[1], "rb");
    uint32_t s[9];
    if (argc != 3 || !in || fread(s, 4, 9, in) != 9) return 2;
    uint32_t count = s[0], words = s[1], weight_words = s[2];
    Bytes scratch(words * ROWS), weights(weight_words * ROWS), program(count * 64);
    if (fread(scratch.data(), 1, scratch.size(), in) != scratch.size()) return 2;
    if (fread(weights.data(), 1, weights.size(), in) != weights.size()) return 2;
    if (fread(program.data(), 1, program.size(), in) != program.size()) return 2;
    fclose(in);
    state = s[6] | 1;
    Vtop top;
    Pipe<BENCH_READ_LATENCY> act0{}, act1{}, residual{};
    Pipe<BENCH_WEIGHT_LATENCY> weight{};
    Grants results{s[3], s[8]};
    Holds write_holds, residual_holds;
    uint32_t offered = 0, done = 0, started = 0, busy = 0, stalls = 0;
    uint64_t first = 0, last = 0, cycle = 0;
    bool offering = false;
    top.rst = 1;
    for (int i = 0; i < 4; i++) { top.clk = i & 1; top.eval(); }
    top.rst = 0;
    auto address_ok = [&](uint32_t address) { return address < words; };
    for (; cycle < s[7] && done < count; cycle++) {
        offering = offering || (offered < count && chance(s[5]));
        top.clk = 0;
        PORT(unit, valid) = offering;
        PORT(unit, index) = offered;
        if (offering) memcpy(&PORT(unit, instruction)[0], &program[offered * 64], 64);
        PORT(act0, ready) = PORT(act1, ready) = 1;
        PORT(residual, ready) = chance(s[4]);
        PORT(results, ready) = results.next();
        put(PORT(act0, data), act0.stage[0]);
        put(PORT(act1, data), act1.stage[0]);
        put(PORT(residual, data), residual.stage[0]);
        put(PORT(weights, data), weight.stage[0]);
        top.eval();
        PORT(act0, fault) = !address_ok(PORT(act0, addr));
        PORT(act1, fault) = !address_ok(PORT(act1, addr));
        PORT(residual, fault) = !address_ok(PORT(residual, addr));
        PORT(results, fault) = !address_ok(PORT(results, addr));
        top.eval();
        auto read = [&](bool taken, uint32_t address) { return taken && address_ok(address) ? &scratch[address * ROWS] : nullptr; };
        act0.step(read(PORT(act0, valid), PORT(act0, addr)));
        act1.step(read(PORT(act1, valid), PORT(act1, addr)));
        residual.step(read(PORT(residual, valid) && PORT(residual, ready), PORT(residual, addr)));
        weight.step(PORT(weights, valid) ? &weights[PORT(weights, addr) % weight_words * ROWS] : nullptr);
        Bytes payload(ROWS + 8);
        get(PORT(results, data), payload.data());
        uint32_t address = PORT(results, addr), mask = PORT(results, mask);
        memcpy(&payload[ROWS], &address, 4);
        memcpy(&payload[ROWS + 4], &mask, 4);
        if (write_holds.broken(PORT(results, valid), PORT(results, ready), payload)) { fprintf(stderr, "write changed\n"); return 3; }
        uint32_t wanted = PORT(residual, addr);
        Bytes request((uint8_t*)&wanted, (uint8_t*)&wanted + 4);
        if (residual_holds.broken(PORT(residual, valid), PORT(residual, ready), request)) { fprintf(stderr, "read changed\n"); return 3; }
        if (PORT(results, valid) && PORT(results, ready) && address_ok(address))
            for (int i = 0; i < ROWS; i++)
                if (mask >> i & 1) scratch[address * ROWS + i] = payload[i];
        if (PORT(unit, idle) && !PORT(unit, fault) && offered > done) { fprintf(stderr, "idle, and an instruction is in flight\n"); return 3; }
        if (offering && PORT(unit, ready)) {
            if (!offered) first = cycle;
            offered++;
            offering = false;
        }
        if (PORT(unit, done)) { done++; last = cycle; }
        started += PORT(unit, started);
        busy += PORT(unit, busy);
        stalls += PORT(unit, stall) >> 3 & 1;
        if (PORT(unit, stall) & (PORT(unit, stall) - 1)) { fprintf(stderr, "two stalls at once\n"); return 3; }
        if (offering && !PORT(unit, busy) && !PORT(unit, stall)) { fprintf(stderr, "neither busy nor stalled\n"); return 3; }
        if (PORT(unit, busy) && PORT(unit, stall)) { fprintf(stderr, "busy and stalled\n"); return 3; }
        if (PORT(unit, idle) && (PORT(results, valid) || PORT(residual, valid))) { fprintf(stderr, "idle, and a request waits\n"); return 3; }
        if (PORT(unit, fault) && PORT(unit, idle)) break;
        top.clk = 1;
        top.eval();
    }
    uint32_t result[8] = {uint32_t(last - first), done, started, busy, PORT(unit, fault), PORT(unit, cause), PORT(unit, fault_index), stalls};
    FILE* out = fopen(argv[2], "wb");
    if (!out) return 2;
    fwrite(result, 4, 8, out);
    fwrite(scratch.data(), 1, scratch.size(), out);
    fclose(out);
    return 0;
}
