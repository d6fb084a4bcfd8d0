bx/wpr_bx_enc.sv
bx/wpr_bx_dec.sv
