// A host whose accesses go to any address, with any strobes and protection bits, and that is seldom ready for responses.
#pragma once

#include <cstdint>

template <typename Top, typename Master> void odd_host(Top& top, const Master& m) {
    static uint32_t state = 1;
    const bool offers = m.awvalid || m.wvalid || m.arvalid;
    // An offer does not change before it is taken, and a response waits until the offer ends.
    if (!offers) state = state * 1664525 + 1013904223;
    const uint32_t bits = state >> 8;
    if (bits >> 23) top.s_axi_awaddr ^= bits & 0x3FF, top.s_axi_araddr ^= bits & 0x3FF;
    top.s_axi_wstrb = bits >> 10 & 0xF;
    top.s_axi_awprot = bits >> 14 & 7;
    top.s_axi_arprot = bits >> 17 & 7;
    top.s_axi_bready = top.s_axi_rready = !offers || (bits >> 20 & 3) == 0;
}
