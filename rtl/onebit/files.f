common/wpr_fifo.sv
common/wpr_narrow.sv
common/wpr_widen.sv
common/wpr_add_same.sv
common/wpr_mean.sv
onebit/wpr_onebit_enc.sv
onebit/wpr_onebit_dec.sv
