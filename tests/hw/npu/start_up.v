// Runs one program on the accelerator without initial values: every register and memory starts at X, and so do the
// payloads of idle channels. start_up.py writes ports.vh, the accelerator's ports; checks.vh, one check for each signal
// that must be 0 or 1; settings.vh; and for each run memory.hex and writes.hex, which has register offsets and values.
`timescale 1ns / 1ps
module bench;
`include "settings.vh"
`include "ports.vh"

    reg [8 * `WORD - 1:0] memory [0:`MEMORY_WORDS - 1];
    reg [15:0] noise = 16'hACE1;  // pauses of the channels
    integer cycle = 0;
    integer problems = 0;

    npu dut (.*);

    initial clk = 0;
    always #1 clk = ~clk;

    task check(input value, input [8 * 100 - 1:0] name);
        if (value === 1'bx) begin
            problems = problems + 1;
            $display("cycle %0d: %0s is not 0 or 1", cycle, name);
            if (problems == 8) $finish;
        end
    endtask

    always @(posedge clk) begin
        cycle <= cycle + 1;
        noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};
        if (rst === 1'b0) begin
`include "checks.vh"
        end
        if (cycle == `LIMIT) begin
            $display("no end after %0d cycles", cycle);
            $finish;
        end
    end

    // The memory: bursts in order, one beat in most cycles.
    reg [31:0] ar_address [0:15], aw_address [0:15];
    reg [7:0] ar_length [0:15];
    integer ar_first, ar_end, aw_first, aw_end, b_count, beat;
    wire read_fires = m_axi_rvalid & m_axi_rready, write_fires = m_axi_wvalid & m_axi_wready;
    wire [31:0] read_at = ar_address[ar_first % 16] - `BASE + beat * `BEAT, write_at = aw_address[aw_first % 16] - `BASE;

    always @* begin
        m_axi_rdata = 'bx;
        if (m_axi_rvalid)
            m_axi_rdata[8 * (read_at % `PORT) +: 8 * `BEAT] = memory[read_at / `WORD][8 * (read_at % `WORD) +: 8 * `BEAT];
        m_axi_rlast = m_axi_rvalid ? beat == ar_length[ar_first % 16] : 1'bx;
        m_axi_rresp = m_axi_rvalid ? 2'd0 : 2'bx;
        m_axi_bresp = m_axi_bvalid ? 2'd0 : 2'bx;
    end

    integer part;
    always @(posedge clk) begin
        if (rst !== 1'b0) begin
            {ar_first, ar_end, aw_first, aw_end, b_count, beat} <= 0;
            {m_axi_arready, m_axi_awready, m_axi_wready, m_axi_rvalid, m_axi_bvalid} <= 0;
        end else begin
            // A word is offered until it is taken; between words there may be a pause.
            m_axi_arready <= noise[0] & ar_end - ar_first < 8;
            m_axi_awready <= noise[1] & aw_end - aw_first < 8;
            if (m_axi_arvalid & m_axi_arready) begin
                ar_address[ar_end % 16] <= m_axi_araddr;
                ar_length[ar_end % 16] <= m_axi_arlen;
                ar_end <= ar_end + 1;
            end
            if (m_axi_awvalid & m_axi_awready) begin
                aw_address[aw_end % 16] <= m_axi_awaddr;
                aw_end <= aw_end + 1;
            end
            if (read_fires) begin
                beat <= m_axi_rlast ? 0 : beat + 1;
                if (m_axi_rlast) ar_first <= ar_first + 1;
            end
            if (!m_axi_rvalid | read_fires)
                m_axi_rvalid <= noise[2] & ar_end != ar_first + (read_fires & m_axi_rlast);
            // Data is taken only for an address that is there, so `write_at` is that of the current burst.
            m_axi_wready <= noise[3] & aw_end != aw_first & !(write_fires & m_axi_wlast);
            if (write_fires) begin
                for (part = 0; part < `BEAT; part = part + 1)
                    if (m_axi_wstrb[write_at % `PORT + part])
                        memory[write_at / `WORD][8 * (write_at % `WORD + part) +: 8] <= m_axi_wdata[8 * (write_at % `PORT + part) +: 8];
                aw_address[aw_first % 16] <= aw_address[aw_first % 16] + `BEAT;
                if (m_axi_wlast) aw_first <= aw_first + 1;
            end
            b_count <= b_count + (write_fires & m_axi_wlast) - (m_axi_bvalid & m_axi_bready);
            m_axi_bvalid <= b_count != (m_axi_bvalid & m_axi_bready);
        end
    end

    // The processor: one register access at a time; payloads are X before and after it.
    reg aw, w;
    task write(input [31:0] address, input [31:0] data);
        begin
            {s_axi_awvalid, s_axi_wvalid} <= 2'b11;
            s_axi_awaddr <= address;
            s_axi_awprot <= 0;
            s_axi_wdata <= data;
            s_axi_wstrb <= 4'hF;
            {aw, w} = 2'b11;
            @(posedge clk);
            while (aw | w) begin
                @(posedge clk);
                if (aw & s_axi_awready) begin
                    aw = 0;
                    s_axi_awvalid <= 0;
                    s_axi_awaddr <= 32'bx;
                    s_axi_awprot <= 3'bx;
                end
                if (w & s_axi_wready) begin
                    w = 0;
                    s_axi_wvalid <= 0;
                    s_axi_wdata <= 32'bx;
                    s_axi_wstrb <= 4'bx;
                end
            end
            @(posedge clk);
            while (!s_axi_bvalid) @(posedge clk);
        end
    endtask

    task read(input [31:0] address, output [31:0] data);
        begin
            s_axi_arvalid <= 1;
            s_axi_araddr <= address;
            s_axi_arprot <= 0;
            @(posedge clk);
            @(posedge clk);
            while (!s_axi_arready) @(posedge clk);
            s_axi_arvalid <= 0;
            s_axi_araddr <= 32'bx;
            s_axi_arprot <= 3'bx;
            @(posedge clk);
            while (!s_axi_rvalid) @(posedge clk);
            data = s_axi_rdata;
        end
    endtask

    reg [31:0] status;
    reg [31:0] writes [0:2 * `WRITES - 1];
    integer access;
    initial begin
        $readmemh("memory.hex", memory);
        $readmemh("writes.hex", writes);
        rst = 1;
        {s_axi_awvalid, s_axi_wvalid, s_axi_arvalid} = 0;
        {s_axi_bready, s_axi_rready} = 2'b11;
        repeat (4) @(posedge clk);
        rst <= 0;
        @(posedge clk);
        for (access = 0; access < `WRITES; access = access + 1) write(writes[2 * access], writes[2 * access + 1]);
        while (irq !== 1'b1) @(posedge clk);
        read(`STATUS, status);
        repeat (40) @(posedge clk);
        $display("status %h problems %0d cycles %0d", status, problems, cycle);
        $writememh("result.hex", memory);
        $finish;
    end
endmodule
