common/wpr_rows_out.sv
cast/wpr_cast_enc.sv
cast/wpr_cast_dec.sv
