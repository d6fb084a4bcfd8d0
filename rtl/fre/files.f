fre/wpr_fre_pkg.sv
fre/wpr_fre_enc.sv
fre/wpr_fre_dec.sv
