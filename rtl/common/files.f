common/wpr_skid.sv
common/wpr_fifo.sv
