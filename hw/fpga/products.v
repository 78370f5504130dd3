// A part of a product in look-up tables, for Yosys' `techmap`, on families without a mapping of their own: an int8 times
// a digit of a weight chooses one of the pixel's multiples. Products that share a pixel share the multiples.
(* techmap_celltype = "$__INTLOOM_PRODUCT" *)
module intloom_product (A, B, Y);
	parameter A_SIGNED = 1;
	parameter B_SIGNED = 1;
	parameter A_WIDTH = 8;
	parameter B_WIDTH = 3;
	parameter Y_WIDTH = 10;
	input [A_WIDTH-1:0] A;
	input [B_WIDTH-1:0] B;
	output [Y_WIDTH-1:0] Y;
	wire _TECHMAP_FAIL_ = !A_SIGNED || !B_SIGNED || A_WIDTH != 8 || B_WIDTH < 2 || B_WIDTH > 3 || Y_WIDTH != 10;
	// A weight of eight bits has a last digit of two, which wreduce finds: its upper bit is its sign.
	wire [2:0] digit = {B[B_WIDTH-1], B[1:0]};
	wire [9:0] one = {{2{A[7]}}, A};
	wire [9:0] three = one + (one << 1);
	wire [9:0] minus_one = -one;
	wire [9:0] minus_three = -three;
	wire [9:0] upper = digit[1] ? (digit[0] ? minus_one : minus_one << 1) : (digit[0] ? minus_three : minus_one << 2);
	wire [9:0] lower = digit[1] ? (digit[0] ? three : one << 1) : (digit[0] ? one : 10'd0);
	assign Y = digit[2] ? upper : lower;
endmodule
