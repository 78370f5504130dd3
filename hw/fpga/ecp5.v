// How products and sums become carry chains of Lattice ECP5, for Yosys' `techmap`.

// A sum of sums: left alone, Yosys makes one tree of full adders of it, three look-up tables a bit where chains take two.
(* techmap_celltype = "$add" *)
module intloom_chain (A, B, Y);
	parameter A_SIGNED = 0;
	parameter B_SIGNED = 0;
	parameter A_WIDTH = 1;
	parameter B_WIDTH = 1;
	parameter Y_WIDTH = 1;
	input [A_WIDTH-1:0] A;
	input [B_WIDTH-1:0] B;
	output [Y_WIDTH-1:0] Y;
	wire [Y_WIDTH-1:0] unused, carries;
	\$alu #(
		.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)
	) alu (.A(A), .B(B), .CI(1'b0), .BI(1'b0), .X(unused), .Y(Y), .CO(carries));
endmodule

// An int8 times the upper three bits of a weight, or two others, which are never negative. Four of them and their sums
// take a third of the look-up tables that `booth` makes of a product.
(* techmap_celltype = "$__INTLOOM_PRODUCT" *)
module intloom_product (A, B, Y);
	parameter A_SIGNED = 1;
	parameter B_SIGNED = 1;
	parameter A_WIDTH = 8;
	parameter B_WIDTH = 3;
	parameter Y_WIDTH = 10;
	parameter _TECHMAP_CONSTMSK_B_ = 0;
	parameter _TECHMAP_CONSTVAL_B_ = 0;
	input [7:0] A;
	input [B_WIDTH-1:0] B;
	output [9:0] Y;
	localparam LOWER = B_WIDTH == 3 && _TECHMAP_CONSTMSK_B_[2] && !_TECHMAP_CONSTVAL_B_[2];
	// The upper bits of a weight of eight bits, without the copy of its sign.
	localparam EIGHT = B_WIDTH == 2;
	wire _TECHMAP_FAIL_ = !A_SIGNED || !B_SIGNED || A_WIDTH != 8 || (B_WIDTH != 3 && !EIGHT) || Y_WIDTH != 10;
	wire [9:0] pair;
	generate
		if (EIGHT) intloom_signed_rows rows (.a(A), .b0(B[0]), .b1(B[1]), .y(Y));
		else begin
			intloom_rows rows (.a(A), .b0(B[0]), .b1(B[1]), .y(pair));
			if (LOWER) assign Y = pair;
			else intloom_minus_row minus (.a(A), .b(B[2]), .p(pair), .y(Y));
		end
	endgenerate
endmodule

// a * (b0 - 2*b1): as intloom_rows, with the second row inverted and a carry that comes in below it.
module intloom_signed_rows (a, b0, b1, y);
	input [7:0] a;
	input b0, b1;
	output [9:0] y;
	wire [8:0] one = {a[7], a};
	wire [8:0] two = {a, 1'b0};
	wire [3:0] carry;
	localparam [15:0] INIT = 16'h8777;
	assign y[0] = a[0] & b0;
	assign y[1] = (two[1] & b1) ^ (one[1] & b0);
	wire carry2 = ~(two[1] & b1) | (one[1] & b0);
	intloom_first #(.INIT(INIT)) first (
		.a0(carry2), .b0(1'b1), .a(two[2]), .b(b1), .c(one[2]), .d(b0), .sum(y[2]), .carry_out(carry[0]));
	genvar i;
	generate for (i = 1; i < 4; i = i + 1) begin : bits
		CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
			.CIN(carry[i - 1]), .COUT(carry[i]),
			.A0(two[2*i+1]), .B0(b1), .C0(one[2*i+1]), .D0(b0), .S0(y[2*i+1]),
			.A1(two[2*i+2]), .B1(b1), .C1(one[2*i+2]), .D1(b0), .S1(y[2*i+2])
		);
	end endgenerate
	// Only 256, of -128 and -2, has no sign in bit 8.
	assign y[9] = y[8] & ~(a[7] & b1);
endmodule

// p - 4 * a * b, modulo 2**10: as below, eight positions of a chain and the other bits beside it.
module intloom_minus_row (a, b, p, y);
	input [7:0] a;
	input b;
	input [9:0] p;
	output [9:0] y;
	wire [3:0] carry;
	// Input D is 1: a row of zeros is subtracted as ones, with a carry that comes in.
	localparam [15:0] INIT = 16'h95aa;
	assign y[2:0] = {p[2] ^ (a[0] & b), p[1:0]};
	intloom_first #(.INIT(INIT)) first (
		.a0(p[2] | ~(a[0] & b)), .b0(1'b1), .a(p[3]), .b(a[1]), .c(b), .d(1'b1), .sum(y[3]), .carry_out(carry[0]));
	genvar i;
	generate for (i = 1; i < 4; i = i + 1) begin : bits
		CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
			.CIN(carry[i - 1]), .COUT(carry[i]),
			.A0(p[2*i+2]), .B0(a[2*i]), .C0(b), .D0(1'b1), .S0(y[2*i+2]),
			.A1(p[2*i+3]), .B1(a[2*i+1]), .C1(b), .D1(1'b1), .S1(y[2*i+3])
		);
	end endgenerate
endmodule

// a * (b0 + 2*b1): a carry chain whose own look-up tables make both rows of partial products. Chains begin at a tile's
// first position, so this one takes a tile's eight and no more; the outer bits stand beside it.
module intloom_rows (a, b0, b1, y);
	input [7:0] a;
	input b0, b1;
	output [9:0] y;
	wire [8:0] one = {a[7], a};
	wire [8:0] two = {a, 1'b0};
	wire [3:0] carry;
	// A chain's carry is made of inputs A and B alone.
	localparam [15:0] INIT = 16'h7888;
	assign y[0] = a[0] & b0;
	assign y[1] = (two[1] & b1) ^ (one[1] & b0);
	wire carry2 = two[1] & b1 & one[1] & b0;
	intloom_first #(.INIT(INIT)) first (
		.a0(carry2), .b0(1'b1), .a(two[2]), .b(b1), .c(one[2]), .d(b0), .sum(y[2]), .carry_out(carry[0]));
	genvar i;
	generate for (i = 1; i < 4; i = i + 1) begin : bits
		CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
			.CIN(carry[i - 1]), .COUT(carry[i]),
			.A0(two[2*i+1]), .B0(b1), .C0(one[2*i+1]), .D0(b0), .S0(y[2*i+1]),
			.A1(two[2*i+2]), .B1(b1), .C1(one[2*i+2]), .D1(b0), .S1(y[2*i+2])
		);
	end endgenerate
	assign y[9] = a[7] & (b0 | b1);
endmodule

// The first cell of a chain: its lower half only makes a carry, of a0 and b0, its upper half is a bit. A carry that came
// in from outside, even a constant, would take nextpnr a cell of its own.
module intloom_first (a0, b0, a, b, c, d, sum, carry_out);
	parameter [3:0] GENERATE = 4'b1010;
	parameter [15:0] INIT = 0;
	input a0, b0, a, b, c, d;
	output sum, carry_out;
	CCU2C #(.INIT0({12'd0, GENERATE}), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) cell_ (
		.A0(a0), .B0(b0), .C0(1'b1), .D0(1'b1), .A1(a), .B1(b), .C1(c), .D1(d), .S1(sum), .COUT(carry_out));
endmodule

// A sum that can be loaded, LOAD ? X : Q + S: a bit's look-up table has the four inputs that this takes. While X is
// loaded no carry may run: the chain's half table of Q and LOAD, the whole table's with S and X 0, lets none arise.
(* techmap_celltype = "$__INTLOOM_LOADABLE_ADDER" *)
module intloom_loadable_adder (Q, S, X, LOAD, Y);
	parameter WIDTH = 1;
	parameter LOAD_HIGH = 1;
	parameter _TECHMAP_CONSTMSK_S_ = 0;
	parameter _TECHMAP_CONSTVAL_S_ = 0;
	input [WIDTH-1:0] Q, S, X;
	input LOAD;
	output [WIDTH-1:0] Y;
	localparam [15:0] INIT = LOAD_HIGH ? 16'b1101_1110_0001_0010 : 16'b0111_1011_0100_1000;
	// Up or down by an odd constant: the half table knows bit 0's carry.
	localparam EARLY = WIDTH % 2 == 0 && _TECHMAP_CONSTMSK_S_[0] && _TECHMAP_CONSTVAL_S_[0];
	localparam FROM = EARLY ? 2 : 1;
	wire [WIDTH:0] carry;
	generate if (EARLY) begin
		assign Y[0] = (LOAD_HIGH ? LOAD : ~LOAD) ? X[0] : ~Q[0];
		intloom_first #(.GENERATE(INIT[3:0]), .INIT(INIT)) first (
			.a0(Q[0]), .b0(LOAD), .a(Q[1]), .b(LOAD), .c(S[1]), .d(X[1]), .sum(Y[1]), .carry_out(carry[2]));
	end else begin
		intloom_first #(.INIT(INIT)) first (
			.a0(1'b0), .b0(1'b1), .a(Q[0]), .b(LOAD), .c(S[0]), .d(X[0]), .sum(Y[0]), .carry_out(carry[1]));
	end endgenerate
	genvar i;
	generate for (i = FROM; i < WIDTH; i = i + 2) begin : bits
		if (i + 1 < WIDTH) begin
			CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]), .COUT(carry[i + 2]),
				.A0(Q[i]), .B0(LOAD), .C0(S[i]), .D0(X[i]), .S0(Y[i]),
				.A1(Q[i+1]), .B1(LOAD), .C1(S[i+1]), .D1(X[i+1]), .S1(Y[i+1])
			);
		end else begin
			CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]),
				.A0(Q[i]), .B0(LOAD), .C0(S[i]), .D0(X[i]), .S0(Y[i]),
				.A1(1'b0), .B1(1'b0), .C1(1'b0), .D1(1'b0)
			);
		end
	end endgenerate
endmodule

// A sum of P and one of two others, P + (SELECT ? X : Q). A bit's half table is P, from which its carry arises; the
// whole table with Q and X 0 is P as well.
(* techmap_celltype = "$__INTLOOM_SELECTING_ADDER" *)
module intloom_selecting_adder (P, Q, X, SELECT, Y);
	parameter WIDTH = 1;
	input [WIDTH-1:0] P, Q, X;
	input SELECT;
	output [WIDTH-1:0] Y;
	localparam [15:0] INIT = 16'b0101_0110_1001_1010;
	wire [WIDTH:0] carry;
	intloom_first #(.INIT(INIT)) first (
		.a0(1'b0), .b0(1'b1), .a(P[0]), .b(SELECT), .c(Q[0]), .d(X[0]), .sum(Y[0]), .carry_out(carry[1]));
	genvar i;
	generate for (i = 1; i < WIDTH; i = i + 2) begin : bits
		if (i + 1 < WIDTH) begin
			CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]), .COUT(carry[i + 2]),
				.A0(P[i]), .B0(SELECT), .C0(Q[i]), .D0(X[i]), .S0(Y[i]),
				.A1(P[i+1]), .B1(SELECT), .C1(Q[i+1]), .D1(X[i+1]), .S1(Y[i+1])
			);
		end else begin
			CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]),
				.A0(P[i]), .B0(SELECT), .C0(Q[i]), .D0(X[i]), .S0(Y[i]),
				.A1(1'b0), .B1(1'b0), .C1(1'b0), .D1(1'b0)
			);
		end
	end endgenerate
endmodule

// Any longer sum, difference or comparison.
(* techmap_celltype = "$alu" *)
module intloom_alu (A, B, CI, BI, X, Y, CO);
	parameter A_SIGNED = 0;
	parameter B_SIGNED = 0;
	parameter A_WIDTH = 1;
	parameter B_WIDTH = 1;
	parameter Y_WIDTH = 1;
	parameter _TECHMAP_CONSTMSK_CI_ = 0;
	parameter _TECHMAP_CONSTVAL_CI_ = 0;
	parameter _TECHMAP_CONSTMSK_BI_ = 0;
	parameter _TECHMAP_CONSTVAL_BI_ = 0;
	(* force_downto *) input [A_WIDTH-1:0] A;
	(* force_downto *) input [B_WIDTH-1:0] B;
	input CI, BI;
	(* force_downto *) output [Y_WIDTH-1:0] X, Y, CO;
	wire _TECHMAP_FAIL_ = Y_WIDTH <= 4;

	(* force_downto *) wire [Y_WIDTH-1:0] a, b;
	\$pos #(.A_SIGNED(A_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) extend_a (.A(A), .Y(a));
	\$pos #(.A_SIGNED(B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) extend_b (.A(B), .Y(b));
	(* force_downto *) wire [Y_WIDTH-1:0] added = BI ? ~b : b;
	assign X = a ^ added;
	// Input C inverts input B for a difference.
	localparam [15:0] INIT = 16'b1001_0110_1010_1010;
	// With constants, the half table makes bit 0's carry: a or b, a and b, either with b inverted.
	localparam EARLY = Y_WIDTH % 2 == 0 && _TECHMAP_CONSTMSK_CI_ && _TECHMAP_CONSTMSK_BI_;
	localparam [3:0] GENERATE = _TECHMAP_CONSTVAL_CI_ ? (_TECHMAP_CONSTVAL_BI_ ? 4'b1011 : 4'b1110)
		: (_TECHMAP_CONSTVAL_BI_ ? 4'b0010 : 4'b1000);
	localparam FROM = EARLY ? 2 : 1;
	(* force_downto *) wire [Y_WIDTH+1:0] carry;
	generate if (EARLY) begin
		assign Y[0] = X[0] ^ CI;
		assign CO[0] = CI ? a[0] | added[0] : a[0] & added[0];
		intloom_first #(.GENERATE(GENERATE), .INIT(INIT)) first (
			.a0(a[0]), .b0(b[0]), .a(a[1]), .b(b[1]), .c(BI), .d(1'b1), .sum(Y[1]), .carry_out(carry[2]));
	end else begin
		intloom_first #(.INIT(INIT)) first (
			.a0(CI), .b0(1'b1), .a(a[0]), .b(b[0]), .c(BI), .d(1'b1), .sum(Y[0]), .carry_out(carry[1]));
	end endgenerate
	// A carry that is looked at leaves the chain as the sum of a bit whose look-up table is 0.
	genvar i;
	generate for (i = FROM; i < Y_WIDTH; i = i + 2) begin : bits
		assign CO[i - 1] = Y[i] ^ X[i];
		if (i + 1 < Y_WIDTH) begin
			CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]), .COUT(carry[i + 2]),
				.A0(a[i]), .B0(b[i]), .C0(BI), .D0(1'b1), .S0(Y[i]),
				.A1(a[i+1]), .B1(b[i+1]), .C1(BI), .D1(1'b1), .S1(Y[i+1])
			);
			assign CO[i] = Y[i + 1] ^ X[i + 1];
		end else begin
			CCU2C #(.INIT0(INIT), .INIT1(16'd0), .INJECT1_0("NO"), .INJECT1_1("NO")) sum (
				.CIN(carry[i]),
				.A0(a[i]), .B0(b[i]), .C0(BI), .D0(1'b1), .S0(Y[i]),
				.A1(1'b0), .B1(1'b0), .C1(1'b0), .D1(1'b0), .S1(CO[i])
			);
		end
	end endgenerate
	generate if (EARLY || Y_WIDTH % 2 == 1) begin
		CCU2C #(.INIT0(16'd0), .INIT1(16'd0), .INJECT1_0("NO"), .INJECT1_1("NO")) out (
			.CIN(carry[Y_WIDTH]), .A0(1'b0), .B0(1'b0), .C0(1'b0), .D0(1'b0), .S0(CO[Y_WIDTH - 1]),
			.A1(1'b0), .B1(1'b0), .C1(1'b0), .D1(1'b0));
	end endgenerate
endmodule
