// The cells of a Lattice ECP5 that synthesis maps to, as far as the flow uses them: for simulations of its netlists.

module LUT4 (input A, B, C, D, output Z);
  parameter [15:0] INIT = 16'd0;
  assign Z = INIT[{D, C, B, A}];
endmodule

// Two bits of a carry chain: where a bit's table is 1 the carry goes through, elsewhere its lowest four entries make it.
module CCU2C (input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
  parameter [15:0] INIT0 = 16'd0;
  parameter [15:0] INIT1 = 16'd0;
  parameter INJECT1_0 = "YES";
  parameter INJECT1_1 = "YES";
  wire table0 = INIT0[{D0, C0, B0, A0}], table1 = INIT1[{D1, C1, B1, A1}];
  wire made0 = INIT0[{2'b00, B0, A0}], made1 = INIT1[{2'b00, B1, A1}];
  wire carry = table0 ? CIN : made0 & (INJECT1_0 == "NO");
  assign S0 = table0 ^ (CIN & (INJECT1_0 == "NO"));
  assign S1 = table1 ^ (carry & (INJECT1_1 == "NO"));
  assign COUT = table1 ? carry : made1 & (INJECT1_1 == "NO");
endmodule

module TRELLIS_FF (input CLK, LSR, CE, DI, output reg Q);
  parameter GSR = "DISABLED";
  parameter CEMUX = "CE";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter SRMODE = "LSR_OVER_CE";
  parameter REGSET = "RESET";
  wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "INV" ? ~CE : CE;
  wire reset = LSRMUX == "INV" ? ~LSR : LSR;
  initial Q = REGSET == "SET";
  // Other clocks and resets than these would need a model of their own.
  initial if (CLKMUX != "CLK" || SRMODE != "LSR_OVER_CE") $fatal(1, "no model of such a flip-flop");
  always @(posedge CLK)
    if (reset) Q <= REGSET == "SET";
    else if (enable) Q <= DI;
endmodule

module TRELLIS_DPR16X4 (input [3:0] DI, WAD, RAD, input WRE, WCK, output [3:0] DO);
  parameter WCKMUX = "WCK";
  parameter WREMUX = "WRE";
  parameter [63:0] INITVAL = 64'd0;
  reg [3:0] words [0:15];
  integer i;
  initial for (i = 0; i < 16; i = i + 1) words[i] = INITVAL[4 * i +: 4];
  always @(posedge WCK) if (WREMUX == "INV" ? ~WRE : WRE) words[WAD] <= DI;
  assign DO = words[RAD];
endmodule

// A register of a multiplier, or a wire.
module REGISTER #(parameter WIDTH = 1, parameter CLOCK = "NONE") (
  input clk, rst, enable, input [WIDTH-1:0] d, output [WIDTH-1:0] q);
  initial if (CLOCK != "NONE" && CLOCK != "CLK0") $fatal(1, "no model of such a clock");
  reg [WIDTH-1:0] held = 0;
  always @(posedge clk)
    if (rst) held <= 0;
    else if (enable) held <= d;
  assign q = CLOCK == "NONE" ? d : held;
endmodule

module MULT18X18D (
  input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, CE1, CE2, CE3, RST0,
  output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
    P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTA_CE = "CE0";
  parameter REG_INPUTA_RST = "RST0";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_INPUTB_CE = "CE0";
  parameter REG_INPUTB_RST = "RST0";
  parameter REG_OUTPUT_CLK = "NONE";
  parameter REG_OUTPUT_CE = "CE0";
  parameter REG_OUTPUT_RST = "RST0";
  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  wire signed [18:0] x, y;
  wire signed [37:0] product = x * y;
  // No test knows which enable a register listens to: it is only sure to work with all of them.
  wire enable = CE0 & CE1 & CE2 & CE3;
  REGISTER #(.WIDTH(19), .CLOCK(REG_INPUTA_CLK)) input_a (
    .clk(CLK0), .rst(RST0), .enable(enable), .d({SIGNEDA & a[17], a}), .q(x));
  REGISTER #(.WIDTH(19), .CLOCK(REG_INPUTB_CLK)) input_b (
    .clk(CLK0), .rst(RST0), .enable(enable), .d({SIGNEDB & b[17], b}), .q(y));
  REGISTER #(.WIDTH(36), .CLOCK(REG_OUTPUT_CLK)) output_p (
    .clk(CLK0), .rst(RST0), .enable(enable), .d(product[35:0]),
    .q({P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
      P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0}));
endmodule

// A RAM of 2,048 positions of nine bits. Port A writes and reads, port B reads; with 36 bits A only writes and B only reads.
module DP16KD (
  input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
    DIA1, DIA0,
  input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
    DOA1, DOA0,
  input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2,
    DIB1, DIB0,
  input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
    DOB1, DOB0);
  parameter DATA_WIDTH_A = 18;
  parameter REGMODE_A = "NOREG";
  parameter CSDECODE_A = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter CLKAMUX = "CLKA";
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_B = "NOREG";
  parameter CSDECODE_B = "0b000";
  parameter WRITEMODE_B = "NORMAL";
  parameter CLKBMUX = "CLKB";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter GSR = "DISABLED";
  parameter [319:0] INITVAL_00 = 320'd0;
  parameter [319:0] INITVAL_01 = 320'd0;
  parameter [319:0] INITVAL_02 = 320'd0;
  parameter [319:0] INITVAL_03 = 320'd0;
  parameter [319:0] INITVAL_04 = 320'd0;
  parameter [319:0] INITVAL_05 = 320'd0;
  parameter [319:0] INITVAL_06 = 320'd0;
  parameter [319:0] INITVAL_07 = 320'd0;
  parameter [319:0] INITVAL_08 = 320'd0;
  parameter [319:0] INITVAL_09 = 320'd0;
  parameter [319:0] INITVAL_0A = 320'd0;
  parameter [319:0] INITVAL_0B = 320'd0;
  parameter [319:0] INITVAL_0C = 320'd0;
  parameter [319:0] INITVAL_0D = 320'd0;
  parameter [319:0] INITVAL_0E = 320'd0;
  parameter [319:0] INITVAL_0F = 320'd0;
  parameter [319:0] INITVAL_10 = 320'd0;
  parameter [319:0] INITVAL_11 = 320'd0;
  parameter [319:0] INITVAL_12 = 320'd0;
  parameter [319:0] INITVAL_13 = 320'd0;
  parameter [319:0] INITVAL_14 = 320'd0;
  parameter [319:0] INITVAL_15 = 320'd0;
  parameter [319:0] INITVAL_16 = 320'd0;
  parameter [319:0] INITVAL_17 = 320'd0;
  parameter [319:0] INITVAL_18 = 320'd0;
  parameter [319:0] INITVAL_19 = 320'd0;
  parameter [319:0] INITVAL_1A = 320'd0;
  parameter [319:0] INITVAL_1B = 320'd0;
  parameter [319:0] INITVAL_1C = 320'd0;
  parameter [319:0] INITVAL_1D = 320'd0;
  parameter [319:0] INITVAL_1E = 320'd0;
  parameter [319:0] INITVAL_1F = 320'd0;
  parameter [319:0] INITVAL_20 = 320'd0;
  parameter [319:0] INITVAL_21 = 320'd0;
  parameter [319:0] INITVAL_22 = 320'd0;
  parameter [319:0] INITVAL_23 = 320'd0;
  parameter [319:0] INITVAL_24 = 320'd0;
  parameter [319:0] INITVAL_25 = 320'd0;
  parameter [319:0] INITVAL_26 = 320'd0;
  parameter [319:0] INITVAL_27 = 320'd0;
  parameter [319:0] INITVAL_28 = 320'd0;
  parameter [319:0] INITVAL_29 = 320'd0;
  parameter [319:0] INITVAL_2A = 320'd0;
  parameter [319:0] INITVAL_2B = 320'd0;
  parameter [319:0] INITVAL_2C = 320'd0;
  parameter [319:0] INITVAL_2D = 320'd0;
  parameter [319:0] INITVAL_2E = 320'd0;
  parameter [319:0] INITVAL_2F = 320'd0;
  parameter [319:0] INITVAL_30 = 320'd0;
  parameter [319:0] INITVAL_31 = 320'd0;
  parameter [319:0] INITVAL_32 = 320'd0;
  parameter [319:0] INITVAL_33 = 320'd0;
  parameter [319:0] INITVAL_34 = 320'd0;
  parameter [319:0] INITVAL_35 = 320'd0;
  parameter [319:0] INITVAL_36 = 320'd0;
  parameter [319:0] INITVAL_37 = 320'd0;
  parameter [319:0] INITVAL_38 = 320'd0;
  parameter [319:0] INITVAL_39 = 320'd0;
  parameter [319:0] INITVAL_3A = 320'd0;
  parameter [319:0] INITVAL_3B = 320'd0;
  parameter [319:0] INITVAL_3C = 320'd0;
  parameter [319:0] INITVAL_3D = 320'd0;
  parameter [319:0] INITVAL_3E = 320'd0;
  parameter [319:0] INITVAL_3F = 320'd0;
  wire [35:0] written = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
    DIB3, DIB2, DIB1, DIB0, DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5,
    DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [13:0] at_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] at_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  localparam WIDE = DATA_WIDTH_B == 36;

  // The first of the four positions that an access may touch; bits below it choose among these, or within one.
  function [10:0] first (input [13:0] at, input integer width);
    first = width == 36 ? {at[13:5], 2'd0} : width == 18 ? {at[13:4], 1'd0} : at[13:3];
  endfunction
  function [35:0] chosen (input [13:0] at, input integer width, input [35:0] positions);
    case (width)
      1: chosen = {35'd0, positions[{3'd0, at[2:0]}]};
      2: chosen = {34'd0, positions[{3'd0, at[2:1], 1'd0} +: 2]};
      4: chosen = {32'd0, positions[{3'd0, at[2], 2'd0} +: 4]};
      9: chosen = {27'd0, positions[8:0]};
      18: chosen = {18'd0, positions[17:0]};
      default: chosen = positions;
    endcase
  endfunction

  reg [8:0] positions [0:2047];
  integer i;
  initial for (i = 0; i < 2048; i = i + 1) positions[i] = 9'd0;
  wire [10:0] a = first(at_a, DATA_WIDTH_A), b = first(at_b, DATA_WIDTH_B);
  reg [35:0] read_a = 36'd0, read_b = 36'd0;
  always @(posedge CLKA) if (CEA) begin
    if (WEA) case (DATA_WIDTH_A)
      1: positions[a][{1'd0, at_a[2:0]}] <= written[0];
      2: positions[a][{1'd0, at_a[2:1], 1'd0} +: 2] <= written[1:0];
      4: positions[a][{1'd0, at_a[2], 2'd0} +: 4] <= written[3:0];
      9: positions[a] <= written[8:0];
      default: begin
        if (at_a[0]) positions[a] <= written[8:0];
        if (at_a[1]) positions[a | 11'd1] <= written[17:9];
        if (at_a[2] && DATA_WIDTH_A == 36) positions[a | 11'd2] <= written[26:18];
        if (at_a[3] && DATA_WIDTH_A == 36) positions[a | 11'd3] <= written[35:27];
      end
    endcase
    if (!WEA || WRITEMODE_A == "READBEFOREWRITE")
      read_a <= chosen(at_a, DATA_WIDTH_A, {positions[a | 11'd3], positions[a | 11'd2], positions[a | 11'd1], positions[a]});
  end
  always @(posedge CLKB) if (CEB)
    read_b <= chosen(at_b, DATA_WIDTH_B, {positions[b | 11'd3], positions[b | 11'd2], positions[b | 11'd1], positions[b]});
  // A register behind what is read: a wide word's halves have one each, and both have the reading port's clock.
  wire [17:0] word_a = WIDE ? read_b[17:0] : read_a[17:0], word_b = WIDE ? read_b[35:18] : read_b[17:0];
  reg [17:0] held_a = 18'd0, held_b = 18'd0;
  wire clock_a = WIDE ? CLKB : CLKA;
  always @(posedge clock_a) if (OCEA) held_a <= word_a;
  always @(posedge CLKB) if (OCEB) held_b <= word_b;
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
    DOA1, DOA0} = REGMODE_A == "OUTREG" ? held_a : word_a;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
    DOB1, DOB0} = REGMODE_B == "OUTREG" ? held_b : word_b;
endmodule
