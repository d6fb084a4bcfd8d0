common/wpr_skid.sv
common/wpr_fifo.sv
lz/wpr_lz_window.sv
lz/wpr_lz_literals.sv
lz/wpr_lz_copy.sv
lz/wpr_lz4_dec.sv
lz/wpr_snappy_dec.sv
