// How three kinds of cells become carry chains of Lattice ECP5, for Yosys' `techmap` before `synth_lattice`.

// A sum of sums: left alone, Yosys makes one tree of full adders of it, three look-up tables a bit where chains take two.
(* techmap_celltype = "$add $sub" *)
module intloom_chain (A, B, Y);
	parameter A_SIGNED = 0;
	parameter B_SIGNED = 0;
	parameter A_WIDTH = 1;
	parameter B_WIDTH = 1;
	parameter Y_WIDTH = 1;
	parameter _TECHMAP_CELLTYPE_ = "";
	input [A_WIDTH-1:0] A;
	input [B_WIDTH-1:0] B;
	output [Y_WIDTH-1:0] Y;
	localparam MINUS = _TECHMAP_CELLTYPE_ == "$sub";
	wire [Y_WIDTH-1:0] unused, carries;
	\$alu #(
		.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)
	) alu (.A(A), .B(B), .CI(MINUS), .BI(MINUS), .X(unused), .Y(Y), .CO(carries));
endmodule

// A product of two int8 that shall not take a DSP block: 72 positions of look-up tables, where `booth` takes 200.
(* techmap_celltype = "$__INTLOOM_PRODUCT" *)
module intloom_product (A, B, Y);
	parameter A_SIGNED = 1;
	parameter B_SIGNED = 1;
	parameter A_WIDTH = 8;
	parameter B_WIDTH = 8;
	parameter Y_WIDTH = 16;
	input [7:0] A, B;
	output [15:0] Y;
	wire _TECHMAP_FAIL_ = !A_SIGNED || !B_SIGNED || A_WIDTH != 8 || B_WIDTH != 8 || Y_WIDTH != 16;
	wire signed [9:0] rows0, rows1, rows2, rows3;
	intloom_rows pair0 (.a(A), .b0(B[0]), .b1(B[1]), .y(rows0));
	intloom_rows pair1 (.a(A), .b0(B[2]), .b1(B[3]), .y(rows1));
	intloom_rows pair2 (.a(A), .b0(B[4]), .b1(B[5]), .y(rows2));
	intloom_rows #(.MINUS(1)) pair3 (.a(A), .b0(B[6]), .b1(B[7]), .y(rows3));
	wire signed [9:0] low = (rows0 >>> 2) + rows1;
	wire signed [9:0] high = (rows2 >>> 2) + rows3;
	wire signed [11:0] top = $signed({high, rows2[1:0]}) + (low >>> 2);
	assign Y = {top, low[1:0], rows0[1:0]};
endmodule

// a * (b0 + 2*b1), or a * (b0 - 2*b1): a carry chain whose own look-up tables make both rows of partial products.
module intloom_rows (a, b0, b1, y);
	parameter MINUS = 0;
	input [7:0] a;
	input b0, b1;
	output [9:0] y;
	wire [9:0] one = {{2{a[7]}}, a};
	wire [9:0] two = {a[7], a, 1'b0};
	wire [5:0] carry;
	assign carry[0] = MINUS;
	// A chain's carry is made of inputs A and B alone, so the row that is subtracted must be there.
	localparam [15:0] INIT = MINUS ? 16'h8777 : 16'h7888;
	genvar i;
	generate for (i = 0; i < 5; i = i + 1) begin : bits
		CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
			.CIN(carry[i]), .COUT(carry[i + 1]),
			.A0(two[2*i]), .B0(b1), .C0(one[2*i]), .D0(b0), .S0(y[2*i]),
			.A1(two[2*i+1]), .B1(b1), .C1(one[2*i+1]), .D1(b0), .S1(y[2*i+1])
		);
	end endgenerate
endmodule
