# SPDX-License-Identifier: Apache-2.0
# Out of context synthesis and implementation of one top of rtl/area.json, from the project's root:
#   vivado -mode batch -source rtl/vivado.tcl -tclargs TOP PART MHZ
# Writes build/rtl/vivado/TOP/{utilization,timing}.rpt. Not run by the project's own tests: Vivado is
# not free software.
lassign $argv top part mhz
if {$mhz eq ""} { error "usage: -tclargs TOP PART MHZ" }
set out build/rtl/vivado/$top
file mkdir $out
foreach list [glob rtl/*/files.f] {
  set file [open $list]
  foreach name [split [string trim [read $file]] "\n"] { read_verilog -sv rtl/$name }
  close $file
}
read_verilog -sv [glob rtl/*/syn/*.sv]
synth_design -top $top -part $part -mode out_of_context -flatten_hierarchy rebuilt
create_clock -name clk -period [expr 1000.0 / $mhz] [get_ports clk_i]
opt_design
place_design
phys_opt_design
route_design
report_utilization -file $out/utilization.rpt
report_timing_summary -file $out/timing.rpt
puts "worst slack [get_property SLACK [get_timing_paths]] ns at $mhz MHz"
