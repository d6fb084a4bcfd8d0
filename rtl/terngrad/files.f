common/wpr_fifo.sv
common/wpr_narrow.sv
common/wpr_widen.sv
terngrad/wpr_times.sv
terngrad/wpr_hash.sv
terngrad/wpr_terngrad_enc.sv
terngrad/wpr_terngrad_dec.sv
