fre/wpr_fre_pkg.sv
fre/wpr_fre_enc.sv
fre/wpr_fre_dec.sv
fre/wpr_fre_enc4.sv
fre/wpr_fre_dec4.sv
