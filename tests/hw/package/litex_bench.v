// Plays host.hex on the Wishbone port `host` of a LiteX system: a line is an operation, an address and a word.
// Operation 0 writes, 1 reads until the word is there, 2 reads and compares, 3 ends with PASSED.
`timescale 1ns / 1ps
module bench;
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [71:0] script [0:8191];
  reg [31:0] address = 0, word = 0;
  reg cyc = 0, we = 0;
  wire [31:0] data;
  wire ack, err;
  integer line = 0, cycles = 0;

  `CHIP chip (
    .sys_clk(clk), .sys_rst(rst), .sim_trace(1'b0),
    .host_adr(address[31:2]), .host_dat_w(word), .host_dat_r(data), .host_sel(4'b1111), .host_cyc(cyc), .host_stb(cyc),
    .host_we(we), .host_ack(ack), .host_err(err), .host_cti(3'b000), .host_bte(2'b00)
  );

  always @(posedge clk) cycles <= cycles + 1;

  task fail(input [8*16-1:0] reason);
    begin
      $display("FAILED %0s: line %0d, %h is %h, not %h", reason, line, address, data, word);
      $finish;
    end
  endtask

  task access(input writes);
    begin
      @(negedge clk);
      cyc = 1;
      we = writes;
      @(posedge clk);
      while (!ack) @(posedge clk);
      if (err) fail("bus error");
    end
  endtask

  reg [31:0] found;

  initial begin
    repeat (20000) @(posedge clk);
    fail("time-out");
  end

  initial begin
    $readmemh("host.hex", script);
    repeat (5) @(posedge clk);
    rst = 0;
    repeat (100) @(posedge clk);
    while (script[line][71:64] != 3) begin
      address = script[line][63:32];
      word = script[line][31:0];
      access(script[line][71:64] == 0);
      found = data;
      @(negedge clk);
      cyc = 0;
      if (script[line][71:64] == 0 || found === word) line = line + 1;
      else if (script[line][71:64] == 2) fail("comparison");
    end
    $display("%0d cycles", cycles);
    $display("PASSED");
    $finish;
  end
endmodule
