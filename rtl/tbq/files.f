common/wpr_narrow.sv
common/wpr_widen.sv
common/wpr_window.sv
common/wpr_multiple.sv
tbq/wpr_tbq_enc.sv
tbq/wpr_tbq_dec.sv
