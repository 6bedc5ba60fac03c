# predicted lines and measured points of one file: time above, bus bandwidth below
# $data: one block of bytes, predicted_us, measured_us, predicted and measured busbw in GB/s.

set multiplot
set tmargin at screen 0.862
set bmargin at screen 0.48
set label 5 "time of one collective" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set format x ""

plot $data index 0 using 1:2 with lines linecolor rgb colour(0) linewidth 2.6 title "predicted", \
     $data index 0 using 1:3 with points linecolor rgb "#ffffff" pointtype 7 pointsize 2.1 notitle, \
     $data index 0 using 1:3 with points linecolor rgb colour(1) pointtype 7 pointsize 1.3 title "measured"

unset label 1
unset label 2
unset key
unset logscale y
set tmargin at screen 0.39
set bmargin at screen 0.085
set format x
set xlabel "size of the vector" offset 0,0.2 textcolor rgb ink
set label 5 "bus bandwidth, GB/s" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set ytics auto
set format y "%g"
set yrange [0:*]

plot $data index 0 using 1:4 with lines linecolor rgb colour(0) linewidth 2.6 notitle, \
     $data index 0 using 1:5 with points linecolor rgb "#ffffff" pointtype 7 pointsize 2.1 notitle, \
     $data index 0 using 1:5 with points linecolor rgb colour(1) pointtype 7 pointsize 1.3 notitle
unset multiplot
