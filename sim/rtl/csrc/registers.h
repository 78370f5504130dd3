// A master on the AXI4-Lite port: works a queue of register accesses, one at a time.
//
// `step` is one rising clock edge, as in memory.h. While `idle()`, edges may be left out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

namespace bench {

struct LiteSlave {
    bool awready, wready, bvalid, arready, rvalid;
    uint8_t bresp, rresp;
    uint32_t rdata;
};

struct LiteMaster {
    bool awvalid, wvalid, arvalid;
    uint32_t address, wdata;
};

class Registers {
  public:
    // Called with the data read (0 after a write) and the bus's response.
    using Done = std::function<void(uint32_t data, uint8_t response)>;

    void write(uint32_t address, uint32_t data, Done done) { queue_.push_back({true, address, data, std::move(done)}); }
    void read(uint32_t address, Done done) { queue_.push_back({false, address, 0, std::move(done)}); }

    bool idle() const { return queue_.empty(); }
    const LiteMaster& master() const { return master_; }

    void step(const LiteSlave& slave) {
        if (queue_.empty()) return;
        if (!started_) {
            const Access& next = queue_.front();
            master_ = {next.write, next.write, !next.write, next.address, next.data};
            started_ = true;
            return;
        }
        // AXI4-Lite accepts address and data in either order, so each valid falls on its own.
        if (slave.awready) master_.awvalid = false;
        if (slave.wready) master_.wvalid = false;
        if (slave.arready) master_.arvalid = false;
        if (slave.bvalid) finish(0, slave.bresp);
        else if (slave.rvalid) finish(slave.rdata, slave.rresp);
    }

  private:
    struct Access {
        bool write;
        uint32_t address, data;
        Done done;
    };

    void finish(uint32_t data, uint8_t response) {
        const Done done = std::move(queue_.front().done);
        queue_.pop_front();
        started_ = false;
        master_ = {};
        // Called last: the callback may queue the next access.
        done(data, response);
    }

    std::deque<Access> queue_;
    LiteMaster master_{};
    bool started_ = false;
};

}  // namespace bench
