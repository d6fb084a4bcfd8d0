# SPDX-License-Identifier: Apache-2.0
# Out of context synthesis and implementation of a core or a system of cores, from the project's root,
# with its parameters, and its settings tied as rtl/area.json has them:
#   vivado -mode batch -source rtl/vivado.tcl \
#     -tclargs MODULE PART MHZ [PARAMETER:=VALUE...] [PORT=VALUE...]
# Writes build/rtl/vivado/MODULE/{utilization,timing}.rpt. Not run by the project's own tests: Vivado
# is not free software.
set settings [lassign $argv top part mhz]
if {$mhz eq ""} {
  error "usage: -tclargs MODULE PART MHZ \[PARAMETER:=VALUE...\] \[PORT=VALUE...\]"
}
set generics [lmap setting [lsearch -all -inline $settings *:=*] { string map {:= =} $setting }]
set ties [lsearch -all -inline -not $settings *:=*]
set out build/rtl/vivado/$top
file mkdir $out
set files {}
foreach list [glob rtl/*/files.f] {
  set file [open $list]
  foreach name [split [string trim [read $file]] "\n"] {
    if {$name ni $files} { lappend files $name; read_verilog -sv rtl/$name }
  }
  close $file
}
synth_design -top $top -part $part -mode out_of_context -flatten_hierarchy rebuilt \
  -generic $generics
create_clock -name clk -period [expr 1000.0 / $mhz] [get_ports clk_i]
foreach tie $ties {
  lassign [split $tie =] name value
  foreach port [get_ports -regexp "${name}(\\\[.*\\\])?"] {
    set bit 0
    regexp {\[(\d+)\]} $port all bit
    if {($value >> $bit) & 1} { set_logic_one $port } else { set_logic_zero $port }
  }
}
opt_design
place_design
phys_opt_design
route_design
report_utilization -file $out/utilization.rpt
report_timing_summary -file $out/timing.rpt
puts "worst slack [get_property SLACK [get_timing_paths]] ns at $mhz MHz"
