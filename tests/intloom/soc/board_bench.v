// A board around the system: oscillator, SDRAM, a host at the serial port. It waits until the LEDs show the end of the
// firmware's self-test, and reads the accelerator's first register over the UART bridge. Below: the cells of ECP5.
`timescale 1ns / 1ps

module bench;
    parameter [31:0] REGISTER = 0, EXPECTED = 0;
    parameter integer LIMIT_US = 0;
    localparam integer BIT_NS = 1000;

    reg clk = 0, to_chip = 1;
    wire high, from_chip, sdram_clk, cke, cs_n, ras_n, cas_n, we_n;
    wire [7:0] leds;
    wire [12:0] a;
    wire [1:0] ba, dm;
    wire [15:0] dq;

    always #20 clk = ~clk;

    chip chip (
        .clk(clk), .rst(1'b0), .high(high), .leds(leds), .serial_rx(to_chip), .serial_tx(from_chip),
        .sdram_clk(sdram_clk), .sdram_cke(cke), .sdram_cs_n(cs_n), .sdram_ras_n(ras_n), .sdram_cas_n(cas_n),
        .sdram_we_n(we_n), .sdram_a(a), .sdram_ba(ba), .sdram_dm(dm), .sdram_dq(dq));

    sdram sdram (.clk(sdram_clk), .cke(cke), .command({cs_n, ras_n, cas_n, we_n}), .a(a), .ba(ba), .dm(dm), .dq(dq));

    task send(input [7:0] value);
        integer i;
        begin
            to_chip = 0;
            #(BIT_NS);
            for (i = 0; i < 8; i = i + 1) begin
                to_chip = value[i];
                #(BIT_NS);
            end
            to_chip = 1;
            #(BIT_NS);
        end
    endtask

    task receive(output [7:0] value);
        integer i;
        begin
            @(negedge from_chip);
            #(BIT_NS / 2);
            for (i = 0; i < 8; i = i + 1) begin
                #(BIT_NS);
                value[i] = from_chip;
            end
            #(BIT_NS);
        end
    endtask

    // LiteX's bridge: command 2 is a read, then the number of words and the address in words.
    reg [31:0] got;
    initial begin
        wait (leds == 8'h7f);
        $display("self-test passed after %0d us, %0d refreshes", $time / 1000, sdram.refreshes);
        send(8'd2);
        send(8'd1);
        send(REGISTER[31:26]);
        send(REGISTER[25:18]);
        send(REGISTER[17:10]);
        send(REGISTER[9:2]);
    end

    initial begin
        receive(got[31:24]);
        receive(got[23:16]);
        receive(got[15:8]);
        receive(got[7:0]);
        $display("register %h", got);
        if (got == EXPECTED && high && !sdram.wrong) $display("PASSED");
        else $display("FAILED");
        $finish;
    end

    always @(leds) $display("%0d us: LEDs %b", $time / 1000, leds);

    initial begin
        wait (leds[7]);
        $display("FAILED: LEDs %b", leds);
        $finish;
    end

    initial begin
        #(1000.0 * LIMIT_US);
        $display("FAILED: time limit");
        $finish;
    end
endmodule

// SDR SDRAM with bursts of one word and a latency of two cycles; `wrong` after a command that its state does not allow.
module sdram (
    input clk, cke, input [3:0] command, input [12:0] a, input [1:0] ba, dm, inout [15:0] dq
);
    reg [15:0] words [0:(1 << 24) - 1];
    reg [12:0] row [0:3];
    reg [3:0] open = 0;
    reg [15:0] first, second;
    reg first_valid = 0, second_valid = 0, wrong = 0, ready = 0;
    integer refreshes = 0;

    wire [23:0] at = {ba, row[ba], a[8:0]};
    assign dq = second_valid ? second : 16'hz;

    always @(posedge clk) begin
        first_valid <= 0;
        {second_valid, second} <= {first_valid, first};
        if (cke) case (command)
            4'b0011: begin  // activate
                wrong <= wrong | !ready | open[ba];
                row[ba] <= a;
                open[ba] <= 1;
            end
            4'b0101: begin  // read
                wrong <= wrong | !open[ba];
                {first_valid, first} <= {1'b1, words[at]};
                if (a[10]) open[ba] <= 0;
            end
            4'b0100: begin  // write
                wrong <= wrong | !open[ba] | second_valid;
                if (!dm[0]) words[at][7:0] <= dq[7:0];
                if (!dm[1]) words[at][15:8] <= dq[15:8];
                if (a[10]) open[ba] <= 0;
            end
            4'b0010: if (a[10]) open <= 0; else open[ba] <= 0;  // precharge
            4'b0001: begin  // refresh
                wrong <= wrong | open != 0;
                refreshes <= refreshes + 1;
            end
            4'b0000: begin  // mode register
                wrong <= wrong | open != 0 | a[7:0] != 8'h20;
                ready <= refreshes >= 2;
            end
            default: ;
        endcase
    end
endmodule

module EHXPLLL #(
    parameter CLKFB_DIV = 1, CLKI_DIV = 1, CLKOP_CPHASE = 0, CLKOP_DIV = 1, CLKOP_ENABLE = "", CLKOP_FPHASE = 0,
    CLKOS2_CPHASE = 0, CLKOS2_DIV = 1, CLKOS2_ENABLE = "", CLKOS2_FPHASE = 0, CLKOS_CPHASE = 0, CLKOS_DIV = 1,
    CLKOS_ENABLE = "", CLKOS_FPHASE = 0, FEEDBK_PATH = ""
) (
    input CLKI, RST, STDBY, output reg CLKOP, CLKOS, output CLKOS2, output reg LOCK
);
    // 25 MHz * 16 / 8, and the second clock a quarter of a period later.
    initial begin
        {CLKOP, CLKOS, LOCK} = 0;
        #500 LOCK = 1;
    end
    always @(CLKI) begin
        CLKOP = 1;
        #5 CLKOS = 1;
        #5 CLKOP = 0;
        #5 CLKOS = 0;
    end
    assign CLKOS2 = 0;
endmodule

module ODDRX1F (input D0, D1, SCLK, output Q);
    assign Q = SCLK ? D0 : D1;
endmodule

module OFS1P3BX (input D, PD, SCLK, SP, output reg Q);
    always @(posedge SCLK) if (SP) Q <= D;
endmodule

module IFS1P3BX (input D, PD, SCLK, SP, output reg Q);
    always @(posedge SCLK) if (SP) Q <= D;
endmodule

module FD1S3BX (input D, PD, CK, output reg Q);
    always @(posedge CK or posedge PD) if (PD) Q <= 1; else Q <= D;
endmodule

module TRELLIS_IO #(parameter DIR = "BIDIR") (inout B, input I, T, output O);
    assign B = T ? 1'bz : I;
    assign O = B;
endmodule
