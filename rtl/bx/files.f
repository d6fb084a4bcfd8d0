common/wpr_chunks_in.sv
common/wpr_rows_out.sv
bx/wpr_bx_enc.sv
bx/wpr_bx_dec.sv
