cast/wpr_cast_enc.sv
cast/wpr_cast_dec.sv
