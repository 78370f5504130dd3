#include "memory.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace bench {
namespace {

constexpr unsigned kReadDirection = 1, kWriteDirection = 2;
constexpr unsigned kIncrementing = 1;
constexpr uint64_t kPage = 4096;  // AXI bursts must not cross it

unsigned log2_of(unsigned value) {
    unsigned bits = 0;
    while ((1u << bits) < value) ++bits;
    return bits;
}

}  // namespace

Memory::Memory(const Job& job, unsigned word_bytes, WriteLog& log, BusLog& bursts)
    : word_bytes_(word_bytes),
      port_bytes_(static_cast<unsigned>(job.number("port_bytes"))),
      beat_bytes_(std::min(word_bytes_, port_bytes_)),
      base_(job.number("base")),
      bytes_(job.number("memory_bytes")),
      read_latency_(job.number("read_latency")),
      write_latency_(job.number("write_latency")),
      bandwidth_(job.number("bandwidth_milli") / 1000.0),
      stall_permille_(job.number("stall_permille")),
      error_address_(job.number("error_address")),
      error_response_(job.number("error_response")),
      error_directions_(job.number("error_directions")),
      depth_(static_cast<unsigned>(job.number("outstanding"))),
      log_(log),
      bursts_(bursts),
      store_(job.text("memory_file"), job.number("memory_bytes")),
      // Odd, because xorshift never leaves the state 0.
      random_(job.number("seed") * 2 + 1) {
    // The shell resets these inputs of the accelerator to the same values (_RESETS in shell.py).
    slave_.arready = slave_.awready = true;
}

bool Memory::idle() const {
    return reads_.empty() && writes_.empty() && responses_.empty() && !slave_.rvalid && !slave_.bvalid &&
           slave_.arready && slave_.awready && !slave_.wready;
}

void Memory::step(const AxiMaster& master, uint64_t cycle) {
    check_offers(master, cycle);
    accept(master, cycle);
    // `wready` takes the bandwidth credit of a write beat one cycle before the transfer; without a transfer it returns.
    if (slave_.wready && master.wvalid)
        take_write_beat(master, cycle);
    else if (slave_.wready)
        credit_ += 1.0;
    credit_ = std::min(std::max(1.0, bandwidth_), credit_ + bandwidth_ * static_cast<double>(cycle - last_cycle_));
    last_cycle_ = cycle;
    if (slave_.rvalid && master.rready) slave_.rvalid = false;
    if (slave_.bvalid && master.bready) slave_.bvalid = false;
    // Reads and writes alternate when both request the same beat.
    const bool give_way = last_was_read_ && !writes_.empty() && master.wvalid && bandwidth_ != 0 && credit_ < 2.0;
    if (!slave_.rvalid && !give_way) offer_read_beat(cycle);
    if (!slave_.bvalid) offer_response(cycle);
    slave_.arready = reads_.size() < depth_ && !stall();
    // A write burst is outstanding until its response is sent.
    slave_.awready = writes_.size() + responses_.size() < depth_ && !stall();
    slave_.wready = !writes_.empty() && (bandwidth_ == 0 || credit_ >= 1.0) && !stall();
    if (!slave_.wready) return;
    credit_ -= 1.0;
    last_was_read_ = false;
}

void Memory::accept(const AxiMaster& master, uint64_t cycle) {
    if (slave_.arready && master.arvalid) {
        check_burst("AR", master.araddr, master.arlen + 1u, master.arsize, master.arburst);
        bursts_.record(cycle, false, master.araddr, master.arlen + 1u, credit_);
        reads_.push_back({master.araddr, master.arlen + 1u, master.arid, cycle + read_latency_, OKAY});
    }
    if (slave_.awready && master.awvalid) {
        check_burst("AW", master.awaddr, master.awlen + 1u, master.awsize, master.awburst);
        bursts_.record(cycle, true, master.awaddr, master.awlen + 1u, credit_);
        writes_.push_back({master.awaddr, master.awlen + 1u, master.awid, 0, OKAY});
    }
}

void Memory::check_offers(const AxiMaster& now, uint64_t cycle) {
    const auto ar = [](const AxiMaster& m) { return std::tie(m.arvalid, m.araddr, m.arlen, m.arid, m.arsize, m.arburst); };
    const auto aw = [](const AxiMaster& m) { return std::tie(m.awvalid, m.awaddr, m.awlen, m.awid, m.awsize, m.awburst); };
    const auto w = [](const AxiMaster& m) { return std::tie(m.wvalid, m.wlast, m.wstrb); };
    // Edges without a valid are left out.
    const bool fell = cycle != last_cycle_ + 1;
    const bool same_data = !offered_.wvalid || std::memcmp(now.wdata, offered_data_, port_bytes_) == 0;
    const char* channel = nullptr;
    if (offered_.arvalid && (fell || ar(now) != ar(offered_))) channel = "AR";
    if (offered_.awvalid && (fell || aw(now) != aw(offered_))) channel = "AW";
    if (offered_.wvalid && (fell || w(now) != w(offered_) || !same_data)) channel = "W";
    if (channel && violation_.empty()) violation_ = std::string(channel) + " fell or changed before it was taken";
    offered_ = now;
    offered_.arvalid &= !slave_.arready;
    offered_.awvalid &= !slave_.awready;
    offered_.wvalid &= !slave_.wready;
    if (offered_.wvalid) std::memcpy(offered_data_, now.wdata, port_bytes_);
}

void Memory::check_burst(const char* channel, uint64_t address, unsigned beats, unsigned size, unsigned burst) {
    // The first violation is kept: later ones may follow from it.
    if (!violation_.empty()) return;
    std::ostringstream text;
    text << channel << " of " << beats << " beats at 0x" << std::hex << address << std::dec;
    const uint64_t last = address + uint64_t(beats) * beat_bytes_ - 1;
    if (address % beat_bytes_ != 0)
        text << " is not aligned to " << beat_bytes_ << " bytes";
    else if (address / kPage != last / kPage)
        text << " crosses a 4 KiB boundary";
    else if (size != log2_of(beat_bytes_))
        text << " must have size " << log2_of(beat_bytes_) << ", not " << size;
    else if (burst != kIncrementing)
        text << " must be an incrementing burst, not of type " << burst;
    else
        return;
    violation_ = text.str();
}

void Memory::check_beat(const AxiMaster& master, unsigned lane) {
    const uint64_t lanes = (uint64_t{1} << beat_bytes_) - 1 << lane;
    if (violation_.empty() && (master.wstrb & ~lanes)) violation_ = "WSTRB outside the lanes of its beat";
}

void Memory::take_write_beat(const AxiMaster& master, uint64_t cycle) {
    Burst& burst = writes_.front();
    ++write_beats_;
    const unsigned lane = burst.address % port_bytes_, part = burst.address % word_bytes_;
    check_beat(master, lane);
    const uint8_t response = response_at(burst.address, kWriteDirection);
    // A burst has one response: the worst of its beats. DECERR is the larger code.
    burst.response = std::max(burst.response, response);
    if (response == OKAY) {
        uint8_t* const stored = store_.data() + (burst.address - base_);
        for (unsigned byte = 0; byte < beat_bytes_; ++byte)
            if (master.wstrb >> (lane + byte) & 1) stored[byte] = master.wdata[lane + byte];
        if (part == 0) written_mask_ = 0;
        std::memcpy(written_ + part, master.wdata + lane, beat_bytes_);
        written_mask_ |= master.wstrb >> lane << part;
        if (part + beat_bytes_ == word_bytes_)
            log_.record(cycle, Writer::STORE, (burst.address - base_) / word_bytes_, written_mask_, written_);
    }
    burst.address += beat_bytes_;
    --burst.beats;
    if (violation_.empty() && master.wlast != (burst.beats == 0))
        violation_ = master.wlast ? "WLAST before the last beat of its burst" : "no WLAST on the last beat of a burst";
    if (burst.beats != 0) return;
    burst.due = cycle + write_latency_;
    responses_.push_back(burst);
    writes_.pop_front();
}

void Memory::offer_read_beat(uint64_t cycle) {
    if (reads_.empty() || cycle < reads_.front().due || (bandwidth_ != 0 && credit_ < 1.0) || stall()) return;
    Burst& burst = reads_.front();
    credit_ -= 1.0;
    last_was_read_ = true;
    ++read_beats_;
    slave_.rvalid = true;
    slave_.rid = burst.id;
    slave_.rlast = burst.beats == 1;
    slave_.rresp = response_at(burst.address, kReadDirection);
    // Data of an error response, and on other lanes than the beat's, are not memory content.
    std::memset(slave_.rdata, 0, port_bytes_);
    if (slave_.rresp == OKAY)
        std::memcpy(slave_.rdata + burst.address % port_bytes_, store_.data() + (burst.address - base_), beat_bytes_);
    burst.address += beat_bytes_;
    if (--burst.beats == 0) reads_.pop_front();
}

void Memory::offer_response(uint64_t cycle) {
    if (responses_.empty() || cycle < responses_.front().due || stall()) return;
    slave_.bvalid = true;
    slave_.bid = responses_.front().id;
    slave_.bresp = responses_.front().response;
    responses_.pop_front();
}

uint8_t Memory::response_at(uint64_t address, unsigned direction) const {
    if (address < base_ || address - base_ + beat_bytes_ > bytes_) return DECERR;
    const bool injected = (error_directions_ & direction) && error_address_ / word_bytes_ == address / word_bytes_;
    return injected ? static_cast<uint8_t>(error_response_) : OKAY;
}

bool Memory::stall() {
    if (stall_permille_ == 0) return false;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % 1000 < stall_permille_;
}

}  // namespace bench
