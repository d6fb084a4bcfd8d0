// SPDX-License-Identifier: Apache-2.0
// The checksums of a UDP datagram that gets another payload. Each changes by what has changed (RFC
// 1624, equation 3) and is not made anew: a wrong checksum stays wrong by as much, so the receiver
// still finds the damage. A UDP checksum of 0 (none) stays 0. A pipeline of 4 clocks.
module wpr_nic_rewrite (
  input  logic        clk_i,
  input  logic [15:0] ip_i,
  input  logic [15:0] udp_i,
  input  logic [15:0] size_i,      // of the packet, before and after
  input  logic [15:0] new_size_i,
  input  logic [15:0] sum_i,       // of the payload's words, before and after
  input  logic [19:0] new_sum_i,
  output logic [15:0] ip_o,
  output logic [15:0] udp_o
);

  // The lengths of IP and UDP change by as much as the packet's. UDP's counts twice, since the
  // pseudo header holds it, too.
  logic [16:0] change_q, ip_fold_q, udp_fold_q;
  logic [20:0] udp1_q;
  logic [21:0] udp2_q;
  logic [17:0] ip2_q;
  logic [15:0] ip1_q, ip_sum, udp_sum;
  logic [2:0] none_q;
  assign ip_sum  = ~(ip_fold_q[15:0] + 16'(ip_fold_q[16]));
  assign udp_sum = ~(udp_fold_q[15:0] + 16'(udp_fold_q[16]));
  always_ff @(posedge clk_i) begin
    change_q   <= 17'(16'(~size_i)) + 17'(new_size_i);
    ip1_q      <= ~ip_i;
    udp1_q     <= 21'(16'(~udp_i)) + 21'(16'(~sum_i)) + 21'(new_sum_i);
    ip2_q      <= 18'(ip1_q) + 18'(change_q);
    udp2_q     <= 22'(udp1_q) + 22'({change_q, 1'b0});
    ip_fold_q  <= 17'(ip2_q[15:0]) + 17'(ip2_q[17:16]);
    udp_fold_q <= 17'(udp2_q[15:0]) + 17'(udp2_q[21:16]);
    ip_o       <= ip_sum;
    udp_o      <= none_q[2] ? '0 : udp_sum == '0 ? '1 : udp_sum;
    none_q     <= {none_q[1:0], udp_i == '0};
  end

endmodule
