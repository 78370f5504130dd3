module bench;
  reg clk = 0;
  reg [3:0] ce = 0;
  reg signed [7:0] a = 0, b = 0;
  reg [9:0] at = 0, to = 0;
  reg [35:0] d = 0;
  wire [15:0] y [0:1], z [0:1];
  wire [17:0] narrow [0:1];
  wire [35:0] wide [0:1];
  integer i, wrong = 0, right = 0;
  reference reference(clk, ce, a, b, at, to, d, y[0], z[0], narrow[0], wide[0]);
  chip chip(clk, ce, a, b, at, to, d, y[1], z[1], narrow[1], wide[1]);
  initial begin
    for (i = 0; i < 4000; i = i + 1) begin
      {ce, a, b, d} = {$random, $random};
      // Few positions, so that what is written is read; a position that is written is not read at the same time.
      at = $random & 10'h305;
      to = ($random & 10'h305) ^ 10'h008;
      if (i & 1) {at, to} = {to, at};
      #1 clk = 1;
      #1 clk = 0;
      if ({y[0], z[0], narrow[0], wide[0]} !== {y[1], z[1], narrow[1], wide[1]}) wrong = wrong + 1;
      if (y[0] && z[0] && narrow[0] && wide[0]) right = right + 1;
    end
    $display("wrong: %0d, right: %0d", wrong, right);
  end
endmodule
