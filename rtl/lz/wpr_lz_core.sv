// SPDX-License-Identifier: Apache-2.0
// One core of this folder, chosen by parameters; with the ports that all of them have. An encoder
// has no m_axis_tuser: it is 0 then.
module wpr_lz_core #(
  parameter int unsigned Codec       = 0,  // 0: lz4, 1: snappy
  parameter bit          Decode      = 0,
  parameter int unsigned LogLiterals = 16  // of an encoder
) (
  input  logic        clk_i,
  input  logic        rst_ni,         // synchronous
  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,    // raw bytes of the next packet: at most 2^22
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,
  input  logic        s_axis_tlast,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet was not valid
);

  if (Decode && Codec == 0) begin : g_core
    wpr_lz4_dec core (.*);
  end else if (Decode) begin : g_core
    wpr_snappy_dec core (.*);
  end else begin : g_core
    if (Codec == 0) begin : g_of
      wpr_lz4_enc #(.LogLiterals(LogLiterals)) core (.*);
    end else begin : g_of
      wpr_snappy_enc #(.LogLiterals(LogLiterals)) core (.*);
    end
    assign m_axis_tuser = 1'b0;
  end

endmodule
