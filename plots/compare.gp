# predicted lines and measured points against size, the signed error below
# $data: a block per algorithm of bytes, predicted_us, measured_us, error; algorithms: their names.

set multiplot
set tmargin at screen 0.862
set bmargin at screen 0.415
set label 5 "time of one collective" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set format x ""

plot for [i = 0:n - 1] $data index i using 1:2 with lines linecolor rgb colour(i) linewidth 2.6 \
         dashtype dash(i) title word(algorithms, i + 1), \
     for [i = 0:n - 1] $data index i using 1:3 with points linecolor rgb "#ffffff" pointtype mark(i) \
         pointsize 2.1 notitle, \
     for [i = 0:n - 1] $data index i using 1:3 with points linecolor rgb colour(i) pointtype mark(i) \
         pointsize 1.3 notitle, \
     NaN with lines linecolor rgb "#ffffff" title " ", \
     NaN with lines linecolor rgb faint linewidth 2.6 title "predicted", \
     NaN with points linecolor rgb faint pointtype 7 pointsize 1.3 title "measured"

unset label 1
unset label 2
unset key
unset logscale y
set tmargin at screen 0.315
set bmargin at screen 0.085
set format x
set xlabel "size of the vector" offset 0,0.2 textcolor rgb ink
set label 5 "error of the prediction" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set ytics auto
set format y "%+.0f %%"
set ytics add ("0 %%" 0)
set yrange [*<-30:30<*]
set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead linecolor rgb "#6a6a6a" linewidth 1.2 back
set object 1 rectangle from graph 0, first -15 to graph 1, first 15 back \
    fillcolor rgb "#eef3f7" fillstyle solid 1 noborder
set label 3 "within ±15 %" at graph 1.005, first 15 left offset 0,-0.5 textcolor rgb faint font ",12" front

plot for [i = 0:n - 1] $data index i using 1:(100 * $4) with linespoints linecolor rgb colour(i) \
         linewidth 1.4 dashtype dash(i) pointtype mark(i) pointsize 1.15 notitle
unset multiplot
