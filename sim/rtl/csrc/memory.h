// The memory behind the AXI4 master port: a mapped file with latency, bandwidth, backpressure and injected errors.
//
// `step` is one rising clock edge: it takes the master's signals before the edge and gives the slave's
// signals after it. Responses come in order. While `idle()`, edges without a valid may be left out.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "bus_log.h"
#include "job.h"
#include "write_log.h"

namespace bench {

constexpr unsigned kMaxWordBytes = 32;

enum Response : uint8_t { OKAY = 0, SLVERR = 2, DECERR = 3 };

struct AxiMaster {
    bool arvalid, rready, awvalid, wvalid, wlast, bready;
    uint8_t arlen, awlen, arid, awid, arsize, awsize, arburst, awburst;
    uint64_t araddr, awaddr;
    const uint8_t* wdata;
    uint32_t wstrb;
};

struct AxiSlave {
    bool arready, rvalid, rlast, awready, wready, bvalid;
    uint8_t rresp, bresp, rid, bid;
    uint8_t rdata[kMaxWordBytes];
};

class Memory {
  public:
    Memory(const Job& job, unsigned word_bytes, WriteLog& log, BusLog& bursts);

    void step(const AxiMaster& master, uint64_t cycle);
    const AxiSlave& slave() const { return slave_; }
    bool idle() const;
    // The first AXI rule that the master broke; empty if none.
    const std::string& violation() const { return violation_; }
    unsigned port_bytes() const { return port_bytes_; }
    uint64_t read_beats() const { return read_beats_; }
    uint64_t write_beats() const { return write_beats_; }

  private:
    struct Burst {
        uint64_t address;
        unsigned beats;
        uint8_t id;
        uint64_t due;
        uint8_t response;
    };

    void accept(const AxiMaster& master, uint64_t cycle);
    void check_offers(const AxiMaster& now, uint64_t cycle);
    void take_write_beat(const AxiMaster& master, uint64_t cycle);
    void offer_read_beat(uint64_t cycle);
    void offer_response(uint64_t cycle);
    uint8_t response_at(uint64_t address, unsigned direction) const;
    void check_beat(const AxiMaster& master, unsigned lane);
    void check_burst(const char* channel, uint64_t address, unsigned beats, unsigned size, unsigned burst);
    bool stall();

    const unsigned word_bytes_, port_bytes_;
    // Bytes that a beat carries: a part of a word on a narrower port, one word on a wider one.
    const unsigned beat_bytes_;
    const uint64_t base_, bytes_;
    const uint64_t read_latency_, write_latency_;
    const double bandwidth_;
    const uint64_t stall_permille_;
    const uint64_t error_address_, error_response_, error_directions_;
    const unsigned depth_;
    WriteLog& log_;
    BusLog& bursts_;
    Mapping store_;
    std::deque<Burst> reads_, writes_, responses_;
    AxiSlave slave_{};
    // What the master offered at the last edge and the slave did not take; without a valid on channels where it did.
    AxiMaster offered_{};
    uint8_t offered_data_[kMaxWordBytes] = {};
    double credit_ = 0;
    bool last_was_read_ = false;
    uint64_t last_cycle_ = 0, random_;
    uint64_t read_beats_ = 0, write_beats_ = 0;
    // The word of which beats are written, for the log.
    uint8_t written_[kMaxWordBytes] = {};
    uint32_t written_mask_ = 0;
    std::string violation_;
};

}  // namespace bench
