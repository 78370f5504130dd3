// Streams vectors through a requantizer lane, with gaps: `requantizer VECTORS RESULTS SEED`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

struct Item {
    int32_t acc, bias;
    uint32_t mantissa;
    uint8_t exponent;
    int8_t zero_point;
    uint8_t padding[2];
};
static_assert(sizeof(Item) == 16, "as the test packs it");

int main(int, char** argv) {
    std::vector<Item> items;
    FILE* file = fopen(argv[1], "rb");
    for (Item item; fread(&item, sizeof item, 1, file) == 1;) items.push_back(item);
    fclose(file);

    VerilatedContext context;
    Vtop top{&context};
    std::mt19937 random(strtoul(argv[3], nullptr, 10));
    std::vector<int8_t> results;
    // What each stage works on in this cycle, newest first; null is a gap.
    std::vector<const Item*> stages(LATENCY + 1, nullptr);
    size_t next = 0;
    while (results.size() < items.size()) {
        stages.pop_back();
        const bool gap = next == items.size() || random() % 8 == 0;
        stages.insert(stages.begin(), gap ? nullptr : &items[next++]);
        if (stages[LATENCY]) results.push_back(static_cast<int8_t>(top.result));
        top.enable = 0;
        for (int i = 0; i < LATENCY; i++) top.enable |= static_cast<unsigned>(stages[i] != nullptr) << i;
        if (const Item* item = stages[0]) {
            top.acc = item->acc & ((1ull << ACC_BITS) - 1);
            top.bias = item->bias;
        }
        if (const Item* item = stages[SCALE_STAGE]) {
            top.mantissa = item->mantissa;
            top.exponent = item->exponent;
        }
        if (const Item* item = stages[ZERO_POINT_STAGE]) top.zero_point = static_cast<uint8_t>(item->zero_point);
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
    }
    file = fopen(argv[2], "wb");
    fwrite(results.data(), 1, results.size(), file);
    fclose(file);
    top.final();
    return 0;
}
