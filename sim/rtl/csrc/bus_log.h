// A record of every burst that the memory accepted, in order; only time-parallel runs ask for it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bench {

class BusLog {
  public:
    // An empty path makes a log that records nothing.
    explicit BusLog(const std::string& path) {
        if (path.empty()) return;
        file_ = std::fopen(path.c_str(), "wb");
        if (file_ == nullptr) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
    }
    ~BusLog() {
        if (file_ != nullptr) std::fclose(file_);
    }
    BusLog(const BusLog&) = delete;
    BusLog& operator=(const BusLog&) = delete;

    // Laid out for BUS_LAYOUT in sim/rtl/bus_log.py. `credit` is the memory's bandwidth credit in beats.
    void record(uint64_t cycle, bool write, uint64_t address, unsigned beats, double credit) {
        if (file_ == nullptr) return;
        const struct {
            uint64_t cycle, address;
            uint32_t write, beats;
            int64_t credit;
        } burst = {cycle, address, write, beats, static_cast<int64_t>(credit * kCreditUnits)};
        std::fwrite(&burst, sizeof burst, 1, file_);
    }

  private:
    // The fraction is compared between runs, so it must not depend on rounding in the last bits.
    static constexpr double kCreditUnits = 1e6;
    std::FILE* file_ = nullptr;
};

}  // namespace bench
