// The functions that the HDL shell (templates/bench.sv.j2) imports. Flags are packed into one word, which keeps the call short.
#include <svdpi.h>

#include <algorithm>
#include <cstring>

#include "environment.h"

using bench::environment;

extern "C" {

void bench_memory(uint64_t cycle, uint32_t flags, uint64_t araddr, uint64_t awaddr, uint32_t lengths, uint32_t ids,
                  const svBitVecVal* wdata, uint32_t wstrb, uint32_t* result, svBitVecVal* rdata) {
    bench::AxiMaster m;
    m.arvalid = flags & 1;
    m.rready = flags >> 1 & 1;
    m.awvalid = flags >> 2 & 1;
    m.wvalid = flags >> 3 & 1;
    m.wlast = flags >> 4 & 1;
    m.bready = flags >> 5 & 1;
    m.arsize = flags >> 6 & 7;
    m.awsize = flags >> 9 & 7;
    m.arburst = flags >> 12 & 3;
    m.awburst = flags >> 14 & 3;
    m.arlen = lengths & 0xFF;
    m.awlen = lengths >> 8 & 0xFF;
    m.arid = ids & 0xFF;
    m.awid = ids >> 8 & 0xFF;
    m.araddr = araddr;
    m.awaddr = awaddr;
    m.wdata = reinterpret_cast<const uint8_t*>(wdata);
    m.wstrb = wstrb;
    environment->memory.step(m, cycle);
    const bench::AxiSlave& s = environment->memory.slave();
    // svBitVecVal has 32 bits, so DPI passes at least 4 bytes.
    std::memcpy(rdata, s.rdata, std::max<size_t>(4, environment->memory.port_bytes()));
    *result = s.arready | s.rvalid << 1 | s.rlast << 2 | s.awready << 3 | s.wready << 4 | s.bvalid << 5 | s.rresp << 6 |
              s.bresp << 8 | !environment->memory.idle() << 10 | !environment->memory.violation().empty() << 11 |
              uint32_t(s.rid) << 16 | uint32_t(s.bid) << 24;
}

void bench_request(svBit write, uint32_t address, uint32_t data) {
    const auto done = [](uint32_t answer, uint8_t code) {
        environment->answered = true;
        environment->answer = answer;
        environment->answer_code = code;
    };
    if (write)
        environment->registers.write(address, data, done);
    else
        environment->registers.read(address, done);
}

void bench_registers(uint32_t flags, uint32_t rdata, uint32_t* result, uint32_t* address, uint32_t* wdata, uint32_t* answer) {
    bench::LiteSlave s;
    s.awready = flags & 1;
    s.wready = flags >> 1 & 1;
    s.bvalid = flags >> 2 & 1;
    s.arready = flags >> 3 & 1;
    s.rvalid = flags >> 4 & 1;
    s.bresp = flags >> 5 & 3;
    s.rresp = flags >> 7 & 3;
    s.rdata = rdata;
    environment->answered = false;
    environment->registers.step(s);
    const bench::LiteMaster& m = environment->registers.master();
    *address = m.address;
    *wdata = m.wdata;
    *answer = environment->answer;
    *result = m.awvalid | m.wvalid << 1 | m.arvalid << 2 | !environment->registers.idle() << 3 | environment->answered << 4 |
              environment->answer_code << 5;
}

svBit bench_trace(uint64_t cycle, uint32_t started, uint32_t done) {
    environment->recorder.pulses(cycle, started, done);
    return !environment->registers.idle();
}

void bench_write(uint64_t cycle, uint32_t writer, uint32_t word, uint32_t mask, const svBitVecVal* data) {
    environment->writes.record(cycle, static_cast<bench::Writer>(writer), word, mask, reinterpret_cast<const uint8_t*>(data));
}

}  // extern "C"
