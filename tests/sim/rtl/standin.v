// A small engine with the accelerator's ports: copies LENGTH words (a multiple of 4) from word PROGRAM to the words directly after
// them, in bursts of 4 beats, each a LOAD and a STORE in the trace. Benches are tried on it because it builds in seconds.
module npu(clk, rst, m_axi_awid, m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awlock, m_axi_awcache, m_axi_awprot, m_axi_awqos, m_axi_awvalid, m_axi_awready, m_axi_arid, m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_arlock, m_axi_arcache, m_axi_arprot, m_axi_arqos, m_axi_arvalid, m_axi_arready, m_axi_wdata, m_axi_wstrb, m_axi_wlast, m_axi_wvalid, m_axi_wready, m_axi_bid, m_axi_bresp, m_axi_bvalid, m_axi_bready, m_axi_rid, m_axi_rdata, m_axi_rresp, m_axi_rlast, m_axi_rvalid, m_axi_rready, s_axi_awaddr, s_axi_awprot, s_axi_awvalid, s_axi_awready, s_axi_araddr, s_axi_arprot, s_axi_arvalid, s_axi_arready, s_axi_wdata, s_axi_wstrb, s_axi_wvalid, s_axi_wready, s_axi_bresp, s_axi_bvalid, s_axi_bready, s_axi_rdata, s_axi_rresp, s_axi_rvalid, s_axi_rready, irq, trace_started, trace_done);
  input clk;
  input rst;
  output m_axi_awid;
  output [39:0] m_axi_awaddr;
  output [7:0] m_axi_awlen;
  output [2:0] m_axi_awsize;
  output [1:0] m_axi_awburst;
  output m_axi_awlock;
  output [3:0] m_axi_awcache;
  output [2:0] m_axi_awprot;
  output [3:0] m_axi_awqos;
  output m_axi_awvalid;
  input m_axi_awready;
  output m_axi_arid;
  output [39:0] m_axi_araddr;
  output [7:0] m_axi_arlen;
  output [2:0] m_axi_arsize;
  output [1:0] m_axi_arburst;
  output m_axi_arlock;
  output [3:0] m_axi_arcache;
  output [2:0] m_axi_arprot;
  output [3:0] m_axi_arqos;
  output m_axi_arvalid;
  input m_axi_arready;
  output [31:0] m_axi_wdata;
  output [3:0] m_axi_wstrb;
  output m_axi_wlast;
  output m_axi_wvalid;
  input m_axi_wready;
  input m_axi_bid;
  input [1:0] m_axi_bresp;
  input m_axi_bvalid;
  output m_axi_bready;
  input m_axi_rid;
  input [31:0] m_axi_rdata;
  input [1:0] m_axi_rresp;
  input m_axi_rlast;
  input m_axi_rvalid;
  output m_axi_rready;
  input [9:0] s_axi_awaddr;
  input [2:0] s_axi_awprot;
  input s_axi_awvalid;
  output s_axi_awready;
  input [9:0] s_axi_araddr;
  input [2:0] s_axi_arprot;
  input s_axi_arvalid;
  output s_axi_arready;
  input [31:0] s_axi_wdata;
  input [3:0] s_axi_wstrb;
  input s_axi_wvalid;
  output s_axi_wready;
  output [1:0] s_axi_bresp;
  output s_axi_bvalid;
  input s_axi_bready;
  output [31:0] s_axi_rdata;
  output [1:0] s_axi_rresp;
  output s_axi_rvalid;
  input s_axi_rready;
  output irq;
  output [3:0] trace_started;
  output [3:0] trace_done;

  reg [31:0] first, length, base_low, base_high, cycles, rdata, loads, stores;
  reg [1:0] enable;
  reg busy, done, error;
  reg [3:0] cause;
  reg [31:0] at;
  reg [2:0] state;
  reg [1:0] beat;
  reg [31:0] buffer [0:3];
  reg awheld, wheld, bvalid, rvalid, started_load, started_store, done_load, done_store;
  reg [9:0] awaddr;
  reg [31:0] wdata;
  localparam IDLE = 0, AR = 1, R = 2, AW = 3, W = 4, B = 5;

  wire [39:0] from = {base_high[7:0], base_low} + {first + at, 2'b00};
  assign m_axi_arid = 0, m_axi_awid = 0, m_axi_arlen = 3, m_axi_awlen = 3, m_axi_arsize = 2, m_axi_awsize = 2;
  assign m_axi_arburst = 1, m_axi_awburst = 1, m_axi_arlock = 0, m_axi_awlock = 0, m_axi_arcache = 3, m_axi_awcache = 3;
  assign m_axi_arprot = 0, m_axi_awprot = 0, m_axi_arqos = 0, m_axi_awqos = 0;
  assign m_axi_arvalid = state == AR, m_axi_araddr = from;
  assign m_axi_rready = state == R;
  assign m_axi_awvalid = state == AW, m_axi_awaddr = from + {length, 2'b00};
  assign m_axi_wvalid = state == W, m_axi_wdata = buffer[beat], m_axi_wstrb = 15, m_axi_wlast = beat == 3;
  assign m_axi_bready = state == B;
  assign s_axi_awready = !awheld & !bvalid, s_axi_wready = !wheld & !bvalid, s_axi_bvalid = bvalid, s_axi_bresp = 0;
  assign s_axi_arready = !rvalid, s_axi_rvalid = rvalid, s_axi_rdata = rdata, s_axi_rresp = 0;
  assign irq = (done & enable[0]) | (error & enable[1]);
  assign trace_started = {started_store, 2'b00, started_load}, trace_done = {done_store, 2'b00, done_load};

  initial begin
    state = IDLE; busy = 0; done = 0; error = 0; cause = 0; awheld = 0; wheld = 0; bvalid = 0; rvalid = 0; enable = 0;
    started_load = 0; started_store = 0; done_load = 0; done_store = 0; cycles = 0; loads = 0; stores = 0; at = 0; beat = 0;
  end

  always @(posedge clk) begin
    started_load <= 0; started_store <= 0; done_load <= 0; done_store <= 0;
    if (busy) cycles <= cycles + 1;
    if (s_axi_awvalid & s_axi_awready) begin awheld <= 1; awaddr <= s_axi_awaddr; end
    if (s_axi_wvalid & s_axi_wready) begin wheld <= 1; wdata <= s_axi_wdata; end
    if (awheld & wheld) begin
      awheld <= 0; wheld <= 0; bvalid <= 1;
      case (awaddr)
        10'h010: if (wdata[0] & !busy) begin busy <= 1; at <= 0; state <= AR; started_load <= 1; end
        10'h01C: enable <= wdata[1:0];
        10'h024: first <= wdata;
        10'h028: length <= wdata;
        10'h02C: base_low <= wdata;
        10'h030: base_high <= wdata;
      endcase
    end
    if (bvalid & s_axi_bready) bvalid <= 0;
    if (s_axi_arvalid & s_axi_arready) begin
      rvalid <= 1;
      case (s_axi_araddr)
        10'h008: rdata <= 32'h12345678;
        10'h014: rdata <= {20'd0, cause, 5'd0, error, done, busy};
        10'h018: rdata <= loads;
        10'h180: rdata <= cycles;
        10'h184: rdata <= at;
        default: rdata <= 0;
      endcase
    end
    if (rvalid & s_axi_rready) rvalid <= 0;

    case (state)
      AR: if (m_axi_arready) begin state <= R; beat <= 0; end
      R: if (m_axi_rvalid) begin
        buffer[beat] <= m_axi_rdata;
        beat <= beat + 1;
        if (m_axi_rresp != 0) begin error <= 1; busy <= 0; state <= IDLE; cause <= m_axi_rresp == 2 ? 5 : 6; end
        else if (m_axi_rlast) begin state <= AW; done_load <= 1; started_store <= 1; loads <= loads + 1; end
      end
      AW: if (m_axi_awready) begin state <= W; beat <= 0; end
      W: if (m_axi_wready) begin
        beat <= beat + 1;
        if (beat == 3) state <= B;
      end
      B: if (m_axi_bvalid) begin
        done_store <= 1;
        at <= at + 4;
        if (m_axi_bresp != 0) begin error <= 1; busy <= 0; state <= IDLE; cause <= m_axi_bresp == 2 ? 7 : 8; end
        else if (at + 4 == length) begin done <= 1; busy <= 0; state <= IDLE; end
        else begin state <= AR; started_load <= 1; end
      end
    endcase
  end
endmodule
