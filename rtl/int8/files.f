common/wpr_fifo.sv
common/wpr_narrow.sv
common/wpr_widen.sv
common/wpr_window.sv
common/wpr_multiple.sv
int8/wpr_int8_enc.sv
int8/wpr_int8_dec.sv
